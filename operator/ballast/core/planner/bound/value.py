"""The exact value of a lower bound at given prices: the proof, apart from the search for good prices.

For any prices ``m`` (by broker and resource, positive for the upper end of a band and negative for the lower) every plan
within the bands copies at least::

    sum over partitions of the cheapest legal placement, each replica costing its copy plus m times its load
    - sum of m * high where m > 0  + sum of -m * low where m < 0

Placements keep racks apart; where racks do not suffice, or may go on being shared, that rule is dropped, which only lowers
the value.  So do the rules that topics have for themselves: a replica must leave where its topic may not stay, but may be
copied to any broker, and led from any.  Loads are looked at through a coarser unit where prices times loads would not fit
64 bits; all of it is integer arithmetic, and rounding is given away to the safe side, so the value needs no tolerance.  The sum over partitions is compiled (``kernels``): millions of replicas take a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ballast.core.planner.bound import kernels
from ballast.core.planner.bound.kernels import ANYWHERE, APART, CLOSED, LOOSE, SCALE, Options, Partitions
from ballast.core.planner.bound.listed import Listed
from ballast.core.planner.loads import DISK
from ballast.core.planner.problem.problem import FREE, SHARE, Problem

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.int32]


@dataclass(eq=False)
class Relaxation:
    """What the bound is about, independent of any search."""

    problem: Problem
    """The problem in units of two to the ``shift`` of its own."""
    shift: int
    low: Ints
    high: Ints
    before: Ints
    """B x K: the loads before, without what must leave."""
    pinned: Ints
    """B x K: the same without partitions that lose a replica: what nothing but a copy takes away."""
    forced: int
    """Scaled bytes that must be copied whatever the bands."""
    forced_bytes: int
    """The same in bytes, without rounding."""
    disk: int | None
    """The column of disk."""
    kind: npt.NDArray[np.int8]
    """By partition: which rule of ``kernels`` its placements keep."""
    gone: Flags
    """By old replica: may it not stay where it is?"""
    listed: tuple[Listed, ...] = ()
    """Partitions whose placements are listed one by one; the kernel places all others."""

    def evaluate(self, prices: Ints) -> tuple[int, Slots]:
        """The bound in scaled bytes, and the cheapest placement: broker by slot, leader first, -1 for none."""
        p, world = self.problem, self._world
        racks, singles = self._options(prices, self._racks), self._options(prices, self._singles)
        groups = len(p.ids) + 1
        scratch = tuple(np.empty(groups, np.int64) for _ in range(5))
        placement = np.full(len(p.home), -1, np.int32)
        lead, follow, _ = self._others
        high, low = kernels.place_all(world, prices, lead, follow, racks, singles, scratch, placement)
        worth = _exact_dot(np.maximum(-prices, 0), self.low) - _exact_dot(np.maximum(prices, 0), self.high)
        worth += (int(high) << kernels.LOW_BITS) + int(low)
        for one in self.listed:
            cost, members = one.cheapest(p, prices)
            worth += cost
            placement[p.start[one.row] : p.start[one.row + 1]] = members
        # Each copy's price was rounded by less than one unit.
        return worth // SCALE - len(p.home), placement

    @cached_property
    def _racks(self) -> tuple[Slots, Ints, Ints]:
        """Rack by broker, and the brokers by rack as runs."""
        _, numbers = np.unique(self.problem.rack, return_inverse=True)
        members = np.argsort(numbers, kind="stable").astype(np.int64)
        starts = np.concatenate(([0], np.cumsum(np.bincount(numbers)))).astype(np.int64)
        return numbers.astype(np.int32), starts, members

    @cached_property
    def _singles(self) -> tuple[Slots, Ints, Ints]:
        """Every broker a group of its own."""
        count = len(self.problem.ids)
        return np.arange(count, dtype=np.int32), np.arange(count + 1, dtype=np.int64), np.arange(count, dtype=np.int64)

    @cached_property
    def _world(self) -> Partitions:
        p, s = self.problem, self.problem.scope
        return Partitions(
            start=p.start,
            old_start=p.old_start,
            old=p.old,
            size=self._others[2],
            gone=self.gone,
            leads=s.leads,
            group=self._racks[0],
            kind=self.kind,
        )

    @cached_property
    def _others(self) -> tuple[Ints, Ints, Ints]:
        """Loads and sizes as the kernel takes them: what is listed costs it nothing."""
        p = self.problem
        rows = [one.row for one in self.listed]
        if not rows:
            return p.lead, p.follow, p.size
        lead, follow, size = p.lead.copy(), p.follow.copy(), p.size.copy()
        lead[rows], follow[rows], size[rows] = 0, 0, 0
        return lead, follow, size

    def _options(self, prices: Ints, groups: tuple[Slots, Ints, Ints]) -> tuple[Options, Options]:
        """Who may receive a follower and who a leader, by group, with the least prices there."""
        p, s = self.problem, self.problem.scope
        group_of, starts, members = groups
        out = []
        for may, cost in ((s.takes & ~s.leave, p.follow), (s.takes & s.leads & ~s.leave, p.lead)):
            kept_start, kept = np.zeros(len(starts), np.int64), np.zeros(len(members), np.int64)
            used = cost.any(axis=0)
            kernels.front(prices, used, starts, members, may, kept_start, kept)
            floor = np.zeros((len(starts), prices.shape[1]), np.int64)
            kernels.floors(prices, kept_start, kept, floor)
            out.append(Options(group_of, kept_start, kept, floor))
        return out[0], out[1]


def relaxation_of(problem: Problem, reached: Ints, placement: npt.NDArray[np.int32]) -> Relaxation:
    """Bands that the plan met count in full; where it did not, only as far as it got."""
    shift = max(problem.average.bit_length() - SHARE.bit_length(), 0)
    # The search's bands end at whole units of the resource, and its shares are sums of fractions.
    width = ((np.ceil(problem.share * 1e-6).astype(np.int64) + 1) * problem.unit) >> shift
    least, most = reached >> shift, -(-reached >> shift)
    problem = _coarser(problem, shift)
    s, classes = problem.scope, problem.scope.classes
    row = np.repeat(np.arange(len(problem.old_start) - 1), np.diff(problem.old_start))
    slot_row = np.repeat(np.arange(len(problem.start) - 1), np.diff(problem.start))
    short = (placement < 0) | s.leave[placement] | classes.expelled[classes.of[slot_row], placement]
    unplaced = np.bincount(slot_row[short], minlength=len(problem.size)) > 0
    # What a topic's rule expels and the plan could not place stays: no plan is held to more than this one reached.
    expelled = classes.expelled[classes.of[row], problem.old] & s.open_rows[row] & ~unplaced[row]
    gone = s.leave[problem.old] | expelled
    first = np.zeros(len(row), np.bool_)
    first[problem.old_start[:-1][np.diff(problem.old_start) > 0]] = True
    before = np.zeros(problem.low.shape, np.int64)
    figures = np.where(first[:, None], problem.lead[row], problem.follow[row])
    stays = ~gone
    np.add.at(before, problem.old[stays], figures[stays])
    surplus = np.maximum(np.diff(problem.old_start) - np.diff(problem.start), 0)
    pinned = np.zeros(problem.low.shape, np.int64)
    whole = stays & (surplus[row] == 0)
    np.add.at(pinned, problem.old[whole], figures[whole])
    held = np.bincount(problem.old, minlength=len(problem.ids)) + len(problem.size)
    rounding = held[:, None].astype(np.int64)
    low = np.maximum(np.minimum(problem.low - width, least) - rounding, 0)
    high = np.minimum(np.maximum(problem.high + width, most) + rounding, FREE)
    # A limit that nothing can reach would only make the numbers large.
    total = before.sum(axis=0) + figures.sum(axis=0)
    high = np.minimum(high, total[None, :] + 1)
    missing = np.maximum(np.diff(problem.start) - np.diff(problem.old_start), 0)
    leaving = np.bincount(row, weights=~stays & s.open_rows[row], minlength=len(problem.size)).astype(np.int64)
    copies = missing + np.maximum(leaving - surplus, 0)
    copies[unplaced] = 0
    names = [r.name for r in problem.resources]
    disk = names.index(DISK) if DISK in names else None
    kind = np.where(s.open_rows, np.where(_apart(problem, placement), APART, LOOSE), CLOSED)
    kind[unplaced & s.open_rows] = ANYWHERE
    forced_bytes = 0 if disk is None else int((problem.resources[disk].lead * copies).sum())
    return Relaxation(
        problem,
        shift,
        low,
        high,
        before,
        pinned,
        int((problem.size * copies).sum()),
        forced_bytes,
        disk,
        kind.astype(np.int8),
        gone,
    )


def _coarser(problem: Problem, shift: int) -> Problem:
    """The same with each figure rounded to a multiple of two to the ``shift``, and counted in these."""
    if not shift:
        return problem
    half = (1 << shift) >> 1
    return replace(
        problem,
        lead=(problem.lead + half) >> shift,
        follow=(problem.follow + half) >> shift,
        size=np.maximum((problem.size + half) >> shift, 1),
        low=problem.low >> shift,
        high=np.where(problem.high < FREE, -(-problem.high >> shift), FREE),
    )


def _apart(problem: Problem, placement: Slots) -> Flags:
    """By partition: must its replicas be in racks of their own?  Not where the plan itself, or what may stay, is not."""
    apart: Flags = (problem.rack_limit == 1) & ~_shares_rack(problem, problem.start, placement)
    if not problem.scope.repair_racks:
        apart &= ~_shares_rack(problem, problem.old_start, problem.old)
    return apart


def _shares_rack(problem: Problem, start: Ints, broker: Slots) -> Flags:
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    racks = int(problem.rack.max(initial=0)) + 1
    which, count = np.unique(row * racks + problem.rack[broker], return_counts=True)
    out = np.zeros(len(start) - 1, np.bool_)
    out[which[count > 1] // racks] = True
    return out


def value(relaxation: Relaxation, prices: Ints) -> int:
    """The bound at these prices, in scaled bytes."""
    return relaxation.evaluate(prices)[0]


def _exact_dot(a: Ints, b: Ints) -> int:
    """The sum of products in unbounded integers."""
    at = np.nonzero(a)
    return sum(int(x) * int(y) for x, y in zip(a[at].tolist(), b[at].tolist(), strict=True))
