"""Balance preferred leadership by reordering replica lists: no byte is copied, an election makes it so.

A replica list change puts another replica of a partition first.  For counts the answer is exact: the least possible maximum of
preferred leaders on a broker, and among all choices with that maximum the one that changes the fewest partitions.  For
bytes the problem is NP-hard (halving a heap of sizes between two brokers is already): the relaxation, in which a
partition may be led in parts, gives a bound; rounding and repair give a choice; the gap between them is stated.

Rows work on positions so that the planner, a test or a row of history can use them without a ``ClusterState``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Ints, SmallInts
from ballast.core.leadership.imbalance import deleting_rows
from ballast.core.leadership.reorder_changes import least_changes
from ballast.core.leadership.reorder_relax import relax
from ballast.core.leadership.reorder_round import repair, round_off
from ballast.core.plan import Move, Reason

REPAIRS_PER_BROKER: Final = 20
"""Ends the repair of a rounded choice on a cluster where it would take too long; a handful is usual."""


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Who may lead what: the rows of a leadership problem."""

    row: Ints
    """The partition's row in the cluster, for each row here."""
    start: Ints
    """Options of row i are ``option[start[i]:start[i + 1]]``; at least one each."""
    option: SmallInts
    """Positions in ``brokers``."""
    home: Ints
    """The slot (index into ``option``) of the present preferred leader; ``UNKNOWN`` where it is not eligible."""
    brokers: Ints
    """Ids of the eligible brokers, ascending."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def first(self) -> Ints:
        """Per row the slot to start from: home, or the first option where there is none."""
        return np.asarray(np.where(self.home >= 0, self.home, self.start[:-1]))


@dataclass(frozen=True, slots=True, eq=False)
class Reordering:
    """A choice of preferred leaders and what is known about it."""

    choices: Choices
    chosen: Ints
    """The slot per row."""
    load: Ints
    """Per eligible broker what it leads now: partitions, or bytes."""
    bound: int
    """No choice whatever has a smaller maximum."""

    @property
    def maximum(self) -> int:
        """The largest load."""
        return int(self.load.max(initial=0))

    @property
    def gap(self) -> float:
        """How far the maximum may be above the least possible one, as a fraction; 0 when it is the least possible."""
        return self.maximum / self.bound - 1 if self.bound else 0.0

    @property
    def changed(self) -> Ints:
        """Cluster rows whose preferred leader changes, those among them that had no eligible one."""
        return np.asarray(self.choices.row[self.chosen != self.choices.home])

    @property
    def leaders(self) -> Ints:
        """The broker id per row of ``choices``."""
        return np.asarray(self.choices.brokers[self.choices.option[self.chosen]])


def choices(
    state: ClusterState,
    *,
    excluded: Collection[int] = (),
    topics: Collection[str] | None = None,
) -> Choices:
    """Who may lead: replicas that are alive and not ``excluded``.

    Partitions in mid-move and topics that are not among ``topics``, if given, keep their leader and count
    for its load.  Topics being deleted and partitions without an eligible replica are left out: nothing can be done.
    """
    p = state.partitions
    brokers = np.array(sorted(state.alive - set(excluded)), np.int64)
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    fixed_topic = np.array([topics is not None and t.name not in topics for t in state.topics], np.bool_)
    fixed = state.moving | fixed_topic[p.topic]
    is_home = p.replica == state.preferred[rows]
    keep = np.isin(p.replica, brokers) & ~p.removing & ~deleting_rows(state)[rows] & (is_home | ~fixed[rows])
    kept_row, kept_home = rows[keep], is_home[keep]
    counts = np.bincount(kept_row, minlength=len(p))
    present = np.flatnonzero(counts)
    start = np.concatenate(([0], np.cumsum(counts[present]))).astype(np.int64)
    home = np.full(len(p), UNKNOWN, np.int64)
    home[kept_row[kept_home]] = np.flatnonzero(kept_home)
    option = np.searchsorted(brokers, p.replica[keep]).astype(np.int32)
    return Choices(present.astype(np.int64), start, option, home[present], brokers)


def balance_counts(problem: Choices) -> Reordering:
    """The least maximum of leaders per broker, reached with the fewest changes; exact.

    The maximum is found from below: a cap is tried, and if it cannot be met, the brokers that prove it give the next
    cap.  200,000 partitions on 1,000 brokers take well under a second once compiled.
    """
    ones = np.ones(len(problem), np.int64)
    cap = least_cap(problem, ones)
    at = problem.first.copy()
    load = loads(problem, at, ones)
    reached = least_changes(problem.start, problem.option, at, problem.home, load, cap)
    assert reached, "a cap that the relaxation meets can be met with whole partitions"
    return Reordering(problem, at, load, cap)


def balance_weights(problem: Choices, weight: Ints) -> Reordering:
    """A small maximum of led bytes (or any weight, 0 or more, per row) per broker, and a bound that none can beat.

    Rows start at home and leave it only where the relaxation sends them, so that changes stay few; they are not proven
    to be fewest.
    """
    cap, amount = relax_loads(problem, weight)
    bound = max(cap, int(weight.max(initial=0)))
    at = round_off(problem.start, amount, problem.home)
    load = loads(problem, at, weight)
    repair(problem.start, problem.option, weight, at, load, bound, REPAIRS_PER_BROKER * len(load))
    return Reordering(problem, at, load, bound)


def loads(problem: Choices, at: Ints, weight: Ints) -> Ints:
    """Per broker the weight of the rows that have chosen it."""
    out = np.zeros(len(problem.brokers), np.int64)
    np.add.at(out, problem.option[at], weight)
    return out


def least_cap(problem: Choices, weight: Ints) -> int:
    """The least whole cap that weights meet when they may be split; a lower bound for whole partitions.

    For weights of one it is the least maximum itself, since flows with whole capacities are whole.
    """
    return relax_loads(problem, weight)[0]


def relax_loads(problem: Choices, weight: Ints) -> tuple[int, Ints]:
    """That cap, and how much of each row's weight lies on each slot."""
    if not len(problem):
        return 0, np.zeros(0, np.int64)
    at = problem.first
    load = loads(problem, at, weight)
    amount = np.zeros(len(problem.option), np.int64)
    amount[at] = weight
    cap = _share(int(load.sum()), len(load))
    while True:
        stuck = relax(problem.start, problem.option, amount, load, cap)
        if not stuck.any():
            return cap, amount
        # All that these brokers carry can go nowhere else, so one of them carries at least the average.
        cap = _share(int(load[stuck].sum()), int(stuck.sum()))


def _share(total: int, parts: int) -> int:
    return -(-total // parts)


def reorder_moves(state: ClusterState, found: Reordering, *, reason: Reason | None = None) -> tuple[Move, ...]:
    """The changed replica lists: the chosen leader first, the others in their old order."""
    why = reason or Reason("leader-balance", "spread preferred leaders over the brokers; no data moves")
    moved = np.flatnonzero(found.chosen != found.choices.home)
    out = []
    for i, leader in zip(moved.tolist(), found.leaders[moved].tolist(), strict=True):
        row = int(found.choices.row[i])
        old = state.target(row)
        name = state.name(row)
        new = (leader, *(b for b in old if b != leader))
        out.append(Move(name.topic, name.partition, old, new, size_bytes=0, reason=why))
    return tuple(out)
