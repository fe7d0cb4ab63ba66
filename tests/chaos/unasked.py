"""The judgement on whether the person or the journal wanted what moves; no client, no clock.

Ballast journals each intent before it sends it, and the person notes each of theirs.  So a reassignment that stands in neither was sent by
a process of Ballast that acts without its journal: one that has lost the lock, for example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ballast.core.cluster import TopicPartition
from ballast.ports.cluster import Reassignment
from ballast.ports.journal_codec import RECORD_PREFIX

MOVES: Final = f"{RECORD_PREFIX}move/"
READ_LATER_S: Final = 20.0
"""A move is judged when the journal has been read up to so long after it was seen: its intent was written before."""


Target = tuple[str, frozenset[int]]
"""A partition as text, and the brokers that are to hold it."""


@dataclass(slots=True)
class Requested:
    """Where each partition was ever wanted, by anybody who may want something."""

    targets: set[Target] = field(default_factory=set)

    def want(self, name: TopicPartition, brokers: Iterable[int]) -> None:
        """A person does."""
        self.targets.add((str(name), frozenset(brokers)))

    def read(self, key: str, value: Mapping[str, Any] | None) -> None:
        """A record of the journal: a move goes to its new list, and back to its old one where it is cancelled."""
        if key.startswith(MOVES) and value is not None:
            name = TopicPartition(str(value["topic"]), int(value["partition"]))
            self.want(name, value["new"])
            self.want(name, value["old"])


@dataclass(slots=True)
class Unasked:
    """Moves that were seen and that neither the person nor the journal is known to have wanted so far."""

    requested: Requested
    judged: int = 0
    """Different targets that were seen in flight."""
    _seen: set[Target] = field(default_factory=set)
    _suspects: dict[Target, float] = field(default_factory=dict)

    def see(self, moving: Mapping[TopicPartition, Reassignment], now_s: float) -> None:
        """What is in flight at this moment of the wall clock."""
        for name, move in moving.items():
            target = (str(name), frozenset(move.replicas) - frozenset(move.removing))
            if target not in self._seen:
                self._seen.add(target)
                self._suspects[target] = now_s
        self.judged = len(self._seen)

    def convict(self, read_until_s: float) -> list[str]:
        """Moves that neither the person nor the journal wanted, with the journal read that far; each is told once."""
        self._suspects = {t: s for t, s in self._suspects.items() if t not in self.requested.targets}
        due = [t for t, seen_s in self._suspects.items() if read_until_s > seen_s + READ_LATER_S]
        for target in due:
            del self._suspects[target]
        return [
            f"{name} moves to {sorted(brokers)}, which no record of the journal nor the person wanted"
            for name, brokers in due
        ]
