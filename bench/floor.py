"""What the busiest broker of a plan receives or sends at least, whatever the plan: a linear program over all placements.

Every range that the plan meets is met, one that it misses is missed by no more, no rack holds more of a partition than its limit (or than the
plan puts there), and no more than half a percent more bytes are copied.  A partition may be split over several placements, which is why this
is a floor; ``whole`` of the largest ones are not, which takes an integer program and minutes.  Disk space is not looked at, since moves may
wait for each other.
"""

from __future__ import annotations

from typing import Any, Final

import highspy
import numpy as np
from bench.forms import Case
from bench.score import Lists

from ballast.core.planner import Balance, PlannerPolicy
from ballast.core.planner.linear import ANSWERED, program, solve
from ballast.core.planner.problem.problem import FREE, Problem, problem_of
from ballast.core.planner.problem.scope import scope_of

MORE_BYTES: Final = 1.005
SECONDS: Final = 600.0
LIMITS: Final = frozenset({highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kSolutionLimit})
LARGEST_PROGRAM: Final = 10_000
"""Partition-broker pairs up to which the program is solved."""


def proven_floor(case: Case, new: Lists, policy: PlannerPolicy, *, whole: int = 0) -> float | None:
    """Bytes; None where the program is too large.  It ends after ``SECONDS`` with the floor that it has then."""
    p = problem_of(case.state, case.loads, policy, scope_of(case.state, Balance(), policy), bands="target")
    if len(p.size) * len(p.ids) > LARGEST_PROGRAM:
        return None
    at = {int(b): i for i, b in enumerate(p.ids)}
    lists = [p.home[p.start[r] : p.start[r + 1]].tolist() for r in range(len(p.size))]
    for row in range(len(p.size)):
        name = case.state.name(row)
        if (name.topic, name.partition) in new:
            lists[row] = [at[b] for b in new[name.topic, name.partition]]
    built = _Floor(p, lists, [at.get(b, -1) for b in case.state.partitions.leader.tolist()])
    return built.solve(whole) * p.average / p.byte_unit


class _Floor:
    """Two columns for each partition and broker (it holds a replica, it leads) and one for the busiest."""

    def __init__(self, p: Problem, lists: list[list[int]], leader: list[int]) -> None:
        self.p, self.brokers = p, len(p.ids)
        self.busiest = 2 * len(p.size) * self.brokers
        self.rows: list[tuple[float, float, list[int], list[float]]] = []
        self.upper = np.zeros(self.busiest + 1)
        self.upper[-1] = highspy.kHighsInf
        width = p.low.shape[1]
        load: list[dict[int, float]] = [{} for _ in range(self.brokers * width)]
        work: list[dict[int, float]] = [{} for _ in range(2 * self.brokers)]
        now, copied = np.zeros(p.low.shape, np.int64), 0.0
        for row, members in enumerate(lists):
            self._place(row, members)
            size = float(p.size[row]) / p.average
            old = p.old[p.old_start[row] : p.old_start[row + 1]].tolist()
            now[members] += p.follow[row]
            now[members[0]] += p.lead[row] - p.follow[row]
            copied += size * len(set(members) - set(old))
            for b in range(self.brokers):
                holds, leads = self._columns(row, b)
                for k in range(width):
                    load[b * width + k][holds] = float(p.follow[row, k]) / p.average
                    load[b * width + k][leads] = float(p.lead[row, k] - p.follow[row, k]) / p.average
                if b not in old:
                    work[b][holds] = size
                    if leader[row] >= 0:
                        work[self.brokers + leader[row]][holds] = size
        low = np.where(p.low > 0, np.minimum(p.low, now) / p.average, -highspy.kHighsInf).ravel()
        high = np.where(p.high < FREE, np.maximum(p.high, now) / p.average, highspy.kHighsInf).ravel()
        for entries, least, most in zip(load, low.tolist(), high.tolist(), strict=True):
            self._row(least, most, entries)
        for entries in work:
            self._row(-highspy.kHighsInf, 0.0, entries | {self.busiest: -1.0})
        received = {column: size for entries in work[: self.brokers] for column, size in entries.items()}
        self._row(-highspy.kHighsInf, copied * MORE_BYTES, received)

    def _columns(self, row: int, broker: int) -> tuple[int, int]:
        holds = 2 * (row * self.brokers + broker)
        return holds, holds + 1

    def _row(self, least: float, most: float, entries: dict[int, float]) -> None:
        self.rows.append((least, most, list(entries), list(entries.values())))

    def _place(self, row: int, members: list[int]) -> None:
        """As many replicas as the partition has, one of which leads, where brokers may hold and lead, and racks apart."""
        p, s = self.p, self.p.scope
        old = p.old[p.old_start[row] : p.old_start[row + 1]].tolist()
        racks: dict[int, list[int]] = {}
        for b in range(self.brokers):
            holds, leads = self._columns(row, b)
            self.upper[holds] = b in members or bool(s.takes[b]) or (b in old and not s.leave[b])
            self.upper[leads] = b == members[0] or bool(s.leads[b]) or (b == old[0] and not s.unlead[b])
            self._row(-1.0, 0.0, {leads: 1.0, holds: -1.0})
            racks.setdefault(int(p.rack[b]), []).append(b)
        every = [self._columns(row, b) for b in range(self.brokers)]
        self._row(len(members), len(members), {holds: 1.0 for holds, _ in every})
        self._row(1.0, 1.0, {leads: 1.0 for _, leads in every})
        for brokers in racks.values():
            most = max(int(p.rack_limit[row]), len(set(brokers) & set(members)))
            if most < min(len(brokers), len(members)):
                self._row(0.0, most, {every[b][0]: 1.0 for b in brokers})

    def solve(self, whole: int) -> float:
        """The least, in shares."""
        solver: Any = program(time_limit=SECONDS)
        count = self.busiest + 1
        cost, none = np.zeros(count), np.zeros(0, np.int32)
        cost[-1] = 1.0
        solver.addCols(count, cost, np.zeros(count), self.upper, 0, np.zeros(count, np.int32), none, np.zeros(0))
        least, most, index, value = zip(*self.rows, strict=True)
        starts = np.cumsum([0] + [len(i) for i in index])
        flat = np.concatenate([np.array(i, np.int32) for i in index])
        figures = np.concatenate([np.array(v) for v in value])
        solver.addRows(
            len(least), np.array(least), np.array(most), len(flat), starts[:-1].astype(np.int32), flat, figures
        )
        if not whole:
            solve(solver, "the busiest broker")
            return float(solver.getInfo().objective_function_value)
        largest = np.argsort(-self.p.size, kind="stable")[:whole]
        columns = (2 * self.brokers * largest[:, None] + np.arange(2 * self.brokers)).ravel().astype(np.int32)
        kinds = np.full(len(columns), highspy.HighsVarType.kInteger)
        solver.changeColsIntegrality(len(columns), columns, kinds)
        solve(solver, "the busiest broker", ends=ANSWERED | LIMITS)
        return float(solver.getInfo().mip_dual_bound)
