"""How much each broker receives and sends while moves are executed: what sets the time that they take.

A new replica fetches from the partition's leader, so it is the leader who sends, also where another replica leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Move


@dataclass(frozen=True, slots=True)
class Copying:
    """Bytes by broker id; an unknown size counts as none and is counted."""

    received: Counter[int] = field(default_factory=Counter)
    sent: Counter[int] = field(default_factory=Counter)
    unknown: int = 0
    """Moves that copy and whose size no broker tells."""

    def of(self, broker: int) -> int:
        """What the broker receives or sends, whichever is more."""
        return max(self.received[broker], self.sent[broker])

    @property
    def busiest(self) -> int | None:
        """The most that any broker receives or sends; None where a size is unknown."""
        return None if self.unknown else max([0, *self.received.values(), *self.sent.values()])


def copying_of(moves: Iterable[Move], leader: Callable[[TopicPartition], int]) -> Copying:
    """Of these moves together; ``leader`` says -1 where no broker leads, and so none is known to send."""
    out = Copying()
    unknown = 0
    for move in moves:
        size = max(move.size_bytes, 0)
        unknown += move.size_unknown
        for broker in move.adding:
            out.received[broker] += size
        source = leader(move.name) if move.adding else -1
        if source >= 0:
            out.sent[source] += move.bytes_moved
    return Copying(out.received, out.sent, unknown)


def leader_in(state: ClusterState) -> Callable[[TopicPartition], int]:
    """Who leads in this reading; -1 without a leader, and for a partition that is not there."""

    def leader(name: TopicPartition) -> int:
        row = state.index.get(name)
        return -1 if row is None else int(state.partitions.leader[row])

    return leader
