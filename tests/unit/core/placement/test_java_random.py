"""Java's randomness and hashing, against values that its documentation and any JVM give."""

from __future__ import annotations

from itertools import product

import pytest

from ballast.core.placement.java_random import JavaRandom, hash_map_order, string_hash


def drawn(seed: int, bound: int, count: int) -> list[int]:
    """The first numbers of ``new Random(seed)``."""
    source = JavaRandom(seed)
    return [source.next_int(bound) for _ in range(count)]


def test_numbers_are_those_of_a_jvm() -> None:
    """``nextInt(bound)``, whose powers of two take the high bits."""
    assert drawn(0, 10, 10) == [0, 8, 9, 7, 5, 3, 1, 1, 9, 4]
    assert drawn(42, 100, 4) == [30, 63, 48, 84]
    assert drawn(0, 16, 2) == [11, 13]
    assert drawn(0, 1, 3) == [0, 0, 0]
    assert JavaRandom(0).randrange(10) == 0
    assert drawn(7 - (1 << 64), 1000, 3) == drawn(7, 1000, 3), "a seed is a long"


def test_draws_of_the_last_incomplete_run_are_drawn_again() -> None:
    """The first two are at or above the bound and would favour small results."""
    assert drawn(0, (1 << 30) + 1, 1) == [516548029]
    assert drawn(0, (1 << 31) - 1, 2) == [1569741360, 1785505948]


@pytest.mark.parametrize("bound", [0, -1, 1 << 31])
def test_a_bound_is_a_positive_java_int(bound: int) -> None:
    """Any other is refused, as Java does."""
    with pytest.raises(ValueError, match=f"not {bound}$"):
        JavaRandom(0).next_int(bound)


def test_shuffling_is_that_of_collections() -> None:
    """From the last item down; nothing is drawn for the first, so that the next draw is the fifth."""
    source, items = JavaRandom(0), [0, 1, 2, 3, 4]
    source.shuffle(items)
    assert items == [4, 2, 1, 3, 0]
    assert source.next_int(10) == 5
    source.shuffle([])
    source.shuffle([1])
    assert source.next_int(10) == 3


def test_hashes_of_strings() -> None:
    """Over UTF-16 code units, modulo 2^32."""
    assert [string_hash(text) for text in ("", "a", "Aa", "BB", "hello")] == [0, 97, 2112, 2112, 99162322]
    assert string_hash("polygenelubricants") == 1 << 31
    assert string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_keys_of_a_hash_map_come_in_the_order_of_their_bins() -> None:
    """Sixteen bins up to twelve keys, twice as many for more; the high half of a hash counts too; no rack is the bin 0."""
    some = list("abcdefghijk")
    assert hash_map_order(["p", *some]) == ["p", *some]
    assert hash_map_order(["p", *some, "l"]) == [*some, "l", "p"]
    assert hash_map_order(["hello", "d"]) == ["d", "hello"]
    assert hash_map_order(["a", None]) == [None, "a"]
    assert hash_map_order([]) == []


def test_keys_of_one_bin_keep_the_order_in_which_they_were_put() -> None:
    """Equal hashes always share one."""
    assert hash_map_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert hash_map_order(["Aa", "BB"]) == ["Aa", "BB"]


@pytest.mark.parametrize(("crowd", "order"), [(8, "paB"), (9, "aBp"), (10, "Bap"), (11, "Bap")])
def test_a_crowded_bin_doubles_a_small_table(crowd: int, order: str) -> None:
    """The ninth and the tenth key of a bin do; a table of 64 makes a tree of it instead."""
    alike = ["".join(pairs) for pairs in product(("Aa", "BB"), repeat=4)][:crowd]
    assert len({string_hash(key) for key in alike}) == 1
    found = [key for key in hash_map_order([*alike, "a", "p", "B"]) if key not in alike]
    assert found == list(order)
