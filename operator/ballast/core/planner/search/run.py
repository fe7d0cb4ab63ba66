"""The search: free reorders, then moves at a falling price, then swaps, then the same again from the best plan.

Every step is deterministic.  How much is tried depends on the size of the cluster alone, never on a clock.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ballast.core.cluster import Flags, SmallInts
from ballast.core.planner.search import kernels
from ballast.core.planner.search.world import World

PRICES: Final = (6000, 3000, 2000, 1400, 1000, 700, 400, 100)
"""The falling price of a byte, in 1/1024 of a unit of excess."""
FINE_PRICES: Final = (6144, 4608, 3584, 2816, 2304, 1920, 1536, 1228, 980, 784, 560, 400, 256, 128, 64, 24, 8)
SMALL: Final = 10_000
"""Up to so many replica slots there is time for finer prices and more polishing."""

FULL_SCAN: Final = 32
"""Up to so many brokers every one is a candidate for every replica."""
WINDOW: Final = 10
"""Candidates for each replica beyond that."""
SETTLE_PARTNERS: Final = 3
"""Brokers drawn for each replica on a broker that is still outside its band."""
SETTLE_SAMPLES: Final = 8
"""Replicas tried on each of them; twice as many in each further round."""
POLISH_SLOTS: Final = 150_000
"""Replica slots that all rounds of polishing look at together."""
POLISH_ROUNDS: Final = 60
POLISH_PATIENCE: Final = 16
"""Rounds without a better plan after which polishing ends."""
POLISH_SAMPLES: Final = 64
"""Replicas tried at the home of one that left it."""
POLISH_PARTNERS: Final = 1


def search(world: World, *, seed: int) -> Flags:
    """Improve the world in place; returns the slots for which no legal broker was found."""
    run = _Search(world, seed=seed)
    run.leaders()
    homeless = run.force()
    run.leaders()
    if run.roam:
        run.descend(FINE_PRICES if len(world.cur) <= SMALL else PRICES)
        run.settle()
        run.polish()
    else:
        run.descend((0, 0, 0))
    return homeless


class _Search:
    """One search; holds what does not change between kernels."""

    def __init__(self, world: World, *, seed: int) -> None:
        p = world.problem
        self.world = world
        self.movable = movable = p.scope.open_rows
        self.seed = seed
        self.shift = shift = p.scope.shift
        self.roam = p.scope.roam
        self.repair_racks = p.scope.repair_racks
        self.arrays = world.arrays
        self.by_size = np.argsort(-p.size[world.row], kind="stable").astype(np.int32)
        weight = (p.lead - p.follow).max(axis=1) if p.lead.shape[1] else np.zeros(len(p.lead), np.int64)
        rows = np.argsort(-weight, kind="stable").astype(np.int32)
        self.shift_rows = rows[movable[rows]] if shift else rows[:0]
        first = world.cur[np.minimum(p.start[:-1], max(len(world.cur) - 1, 0))] if len(world.cur) else rows[:0]
        barred = p.scope.unlead[first] & (np.diff(p.start) > 0)
        self.forced_rows = rows[movable[rows] & barred[rows]]
        self.takers = np.flatnonzero(p.scope.takes).astype(np.int32)

    def leaders(self, toll: int = 0) -> None:
        """Reorders: first those that must, then those that help, until none does."""
        costs = self.world.costs
        rows = self.shift_rows if self.shift else self.forced_rows
        for _ in range(4):
            if not kernels.shift_leaders(self.arrays, *costs, rows, toll):
                return

    def force(self) -> Flags:
        """Replicas that must go, largest first."""
        homeless = np.zeros(len(self.world.cur), np.bool_)
        kernels.place_forced(
            self.arrays,
            *self.world.costs,
            self.by_size,
            self.movable,
            self.takers,
            self.world.budget,
            self.repair_racks,
            homeless,
        )
        return homeless

    def near(self) -> tuple[SmallInts, int]:
        """Candidate brokers, the neediest first, and how many of them each replica is shown."""
        if len(self.takers) <= FULL_SCAN:
            return self.takers, len(self.takers)
        w = self.world
        low, high = w.problem.low, w.problem.high
        need = np.maximum(low - w.load, 0).sum(axis=1)[self.takers]
        over = np.maximum(w.load - high, 0).sum(axis=1)[self.takers]
        ranked = self.takers[np.lexsort((self.takers, over - need))]
        keep = max(int((need > over).sum()), WINDOW * 3, len(ranked) // 4)
        return ranked[:keep], WINDOW

    def sweep(self, price: int) -> int:
        """One offer to every replica."""
        if not len(self.takers):
            return 0
        near, width = self.near()
        return int(
            kernels.sweep(
                self.arrays,
                *self.world.costs,
                self.by_size,
                self.movable,
                near,
                width,
                price,
                self.world.budget,
                self.roam,
            )
        )

    def descend(self, prices: tuple[int, ...]) -> None:
        """Sweeps at falling prices, with reorders between them."""
        for price in prices:
            self.sweep(price)
            self.leaders()
            if not self.world.excess and price < 64:
                return

    def settle(self) -> None:
        """Bring the last brokers in: sweeps that pay any price, and swaps."""
        price = 1
        for round_ in range(12):
            if not self.world.excess:
                return
            changed = self.sweep(price)
            self.leaders()
            changed += self.swap(
                self._of_offenders(),
                price=price,
                partners=SETTLE_PARTNERS,
                samples=SETTLE_SAMPLES << min(round_, 3),
                seed=self.seed + round_,
            )
            self.leaders()
            if not changed and not price:
                return
            if not changed:
                # A broker a hair outside its band repairs less than any price: now bytes do not count.
                price = 0

    def swap(self, slots: SmallInts, *, price: int, partners: int, samples: int, seed: int) -> int:
        """One scan for exchanges."""
        w = self.world
        order = np.argsort(w.cur, kind="stable").astype(np.int32)
        order = order[w.cur[order] >= 0]
        starts = np.searchsorted(w.cur[order], np.arange(len(w.load) + 1)).astype(np.int64)
        return int(
            kernels.swap_scan(
                self.arrays,
                *w.costs,
                slots,
                self.movable,
                starts,
                order,
                partners,
                samples,
                seed,
                price,
                w.budget,
                self.roam,
            )
        )

    def _of_offenders(self) -> SmallInts:
        """Slots on brokers that are outside a band."""
        w = self.world
        out = (np.maximum(w.load - w.problem.high, 0) + np.maximum(w.problem.low - w.load, 0)).sum(axis=1) > 0
        return np.flatnonzero((w.cur >= 0) & out[w.cur]).astype(np.int32)

    def _away(self) -> SmallInts:
        """Slots whose replica left home."""
        w = self.world
        return np.flatnonzero(w.away()).astype(np.int32)

    def polish(self) -> None:
        """Raise the price again and come down from the best plan, as often as the cluster's size affords."""
        w = self.world
        slots = len(w.cur)
        small = slots <= SMALL
        rounds = POLISH_ROUNDS if small else max(1, POLISH_SLOTS // slots)
        samples = POLISH_SAMPLES * (4 if small else 1)
        best = w.save()
        best_score = (w.excess, w.copied)
        idle = 0
        for n in range(rounds):
            price = (1200, 900, 700, 500)[n % 4]
            self.swap(self._away(), price=price, partners=POLISH_PARTNERS, samples=samples, seed=self.seed + 1000 + n)
            self.descend((price, price // 2, price // 4, 64, 8))
            self.settle()
            score = (w.excess, w.copied)
            if score < best_score:
                best, best_score = w.save(), score
                idle = 0
            else:
                w.restore(best)
                idle += 1
                if idle >= POLISH_PATIENCE:
                    break
        w.restore(best)
        # What no longer helps goes back to the leader it had: a change nobody needs is a change too many.
        self.leaders(toll=1)
