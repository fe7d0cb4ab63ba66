"""What a plan or a run does, each kind of change with its own count: every table, sentence and page says it like this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ballast.core.plan.model import Move, Plan
from ballast.core.wording import human_many, human_total, planned_elections


@dataclass(frozen=True, slots=True)
class Work:
    """Partitions by what is done to them."""

    moves: int = 0
    """Data is copied from broker to broker."""
    list_changes: int = 0
    """The same brokers in another order."""
    shortened: int = 0
    """Replicas are given up, and none is added."""
    between_dirs: int = 0
    """The same replicas in other log dirs."""

    @property
    def partitions(self) -> int:
        """How many partitions change, of every kind."""
        return self.moves + self.list_changes + self.shortened + self.between_dirs

    def parts(self) -> list[str]:
        """Each kind that there is."""
        return [said for said, _ in self._kinds("")]

    def costs(self, size: str) -> list[str]:
        """Each kind with what it copies: ``size`` is what the moves do."""
        return [f"{said}{cost}" for said, cost in self._kinds(size)]

    def _kinds(self, size: str) -> Iterator[tuple[str, str]]:
        if self.moves:
            yield human_many(self.moves, "move"), f" ({size})"
        if self.list_changes:
            yield human_many(self.list_changes, "replica list change"), " (no data copied)"
        if self.shortened:
            yield f"{human_many(self.shortened, 'partition')} with fewer replicas", " (no data copied)"
        if self.between_dirs:
            yield f"{human_many(self.between_dirs, 'move')} between log dirs", ""


def work_of(moves: Iterable[Move]) -> Work:
    """These moves by kind."""
    listed = list(moves)
    copies = sum(bool(m.adding) for m in listed)
    list_changes = sum(m.is_list_change for m in listed)
    between = sum(m.old == m.new for m in listed)
    return Work(copies, list_changes, len(listed) - copies - list_changes - between, between)


def outline(plan: Plan) -> list[str]:
    """What a plan does, in parts of a sentence; none for an empty one."""
    parts = work_of(plan.moves).costs(human_total(plan.bytes_moved, plan.unknown_sizes))
    return [*parts, planned_elections(len(plan.elections))] if plan.elections else parts
