"""Java's own randomness and hashing, as far as Kafka's placement depends on them.

``java.util.Random`` is specified to the bit (a 48-bit linear congruence), so a seed names the same placement here and in
a JVM.  The order in which a ``HashMap`` hands out its keys is not specified, yet ``StripedReplicaPlacer`` draws numbers
in that order: ``hash_map_order`` reproduces what OpenJDK does, short of bins that became trees (nine or more keys in one
bin of a table of at least 64).
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any, Final

_MULTIPLIER: Final = 0x5DEECE66D
_MASK: Final = (1 << 48) - 1
_TREE_BIN: Final = 9
_SMALLEST_TREE_TABLE: Final = 64


class JavaRandom:
    """``java.util.Random`` seeded with a long."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> (48 - bits)

    def next_int(self, bound: int) -> int:
        """A number of ``[0, bound)``, as ``Random.nextInt(bound)`` draws it; ``bound`` is at most 2^31 - 1."""
        if not 0 < bound < 1 << 31:
            raise ValueError(f"bound must be positive and fit a Java int, not {bound}")
        drawn = self._next(31)
        if bound & (bound - 1) == 0:
            return (bound * drawn) >> 31
        # Draws from the last, incomplete run of the range would favour small results: Java notices them by int overflow.
        while drawn - drawn % bound + bound - 1 >= 1 << 31:
            drawn = self._next(31)
        return drawn % bound

    def randrange(self, stop: int) -> int:
        """``next_int`` under the name that ``random.Random`` gives it."""
        return self.next_int(stop)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """``Collections.shuffle(items, this)``: from the last item down, each changes place with one at or before it."""
        for i in range(len(items), 1, -1):
            j = self.next_int(i)
            items[i - 1], items[j] = items[j], items[i - 1]


def utf16(text: str) -> bytes:
    """The UTF-16 code units in big-endian bytes; comparing these orders as ``String.compareTo`` does."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32-bit number."""
    units = utf16(text)
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value


def hash_map_order(keys: Sequence[str | None]) -> list[str | None]:
    """The order in which a ``HashMap`` of these keys (``Optional<String>``, put in this order) is iterated."""
    spread = {key: _spread(0 if key is None else string_hash(key)) for key in keys}
    placed: list[str | None] = []
    capacity = 16
    for key, value in spread.items():
        placed.append(key)
        same_bin = sum((spread[k] ^ value) & (capacity - 1) == 0 for k in placed)
        if same_bin >= _TREE_BIN and capacity < _SMALLEST_TREE_TABLE:
            capacity *= 2
        if len(placed) * 4 > capacity * 3:
            capacity *= 2
    # A table that grows keeps the order within each bin, so insertion order decides there.
    return sorted(placed, key=lambda k: spread[k] & (capacity - 1))


def _spread(value: int) -> int:
    return value ^ value >> 16
