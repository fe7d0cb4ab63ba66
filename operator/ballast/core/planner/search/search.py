"""The search: free replica list changes, then moves at a falling price, then moves and swaps, again and again from the best plan.

Every step is deterministic.  How much is tried depends on the size of the cluster alone, never on a clock.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ballast.core.cluster import Flags, Ints, SmallInts
from ballast.core.planner.problem.problem import is_uniform
from ballast.core.planner.search.loops import forced, kernels, swaps
from ballast.core.planner.search.order import Sorted
from ballast.core.planner.search.rounding import starts
from ballast.core.planner.search.world import Saved, World

COARSE_PRICES: Final = (6000, 3000, 2000, 1400)
"""The falling price of a byte, in 1/1024 of a unit of excess: what is worth most is done first."""
FINE_PRICES: Final = (6144, 4608, 3584, 2816, 2304, 1920, 1536, 1228, 980, 784, 560, 400, 256, 128, 64, 24, 8)
SMALL: Final = 10_000
"""Up to so many replica slots there is time for finer prices and more polishing."""
CHANGE: Final = 0.2
"""The worth of not changing a leader, in fair shares of one partition: it falls with the price of a byte, so that few
leaders change that need not."""

FULL_SCAN: Final = 32
"""Up to so many brokers every one is a candidate for every replica."""
WINDOW: Final = 10
"""Candidates for each replica beyond that."""

SETTLE_PRICE: Final = 256
"""Where the price begins that is halved until the last broker is within its bands."""
SETTLE_ROUNDS: Final = 24
SETTLE_PARTNERS: Final = 3
"""Brokers drawn for each replica on a broker that is still outside its band."""
SETTLE_SAMPLES: Final = 8
"""Replicas tried on each of them; twice as many in each further round, as there are ever fewer such brokers."""
SETTLE_DOUBLINGS: Final = 6
SETTLE_PATIENCE: Final = 3
"""Rounds without a change, at no price and with twice the brokers each time, after which nothing more is tried."""

POLISH_PRICES: Final = (1400, 1100, 850, 600, 300)
"""One round of polishing: about what a byte is worth at the end, from above."""
POLISH_SLOTS: Final = 150_000
"""Replica slots that all rounds of polishing look at together."""
POLISH_ROUNDS: Final = 40
POLISH_PATIENCE: Final = 10
"""Rounds without a better plan after which polishing ends."""
POLISH_SAMPLES: Final = 12
"""Replicas tried at the home of one that left it; four times as many on small clusters."""
POLISH_PARTNERS: Final = 1

REPAIRS: Final = 8
"""Times that replicas without a broker are tried again, once others have made room."""

ALIKE: Final = 1000
"""Plans whose bytes differ by less than one part in so many are worth the same."""

SCAN: Final = 20_000_000
"""Most exchanges that one scan tries: where nearly every broker is an offender, fewer replicas of each."""
TRIES: Final = 200_000_000
"""Exchanges tried after which a cluster that is still not balanced is let be: a few CPU seconds' worth."""

Candidate = tuple[int, int, Saved]
"""A plan with its excess and the scaled bytes that it copies."""


def search(world: World, *, seed: int) -> Flags:
    """Improve the world in place; returns the slots for which no legal broker was found."""
    ordered = Sorted.of(world)
    p = ordered.world.problem
    run = _Search(ordered.world, seed=seed)
    run.leaders(run.leader_change_cost(COARSE_PRICES[0]))
    unplaced = run.force()
    run.leaders(run.leader_change_cost(COARSE_PRICES[0]))
    if run.roam:
        run.descend(FINE_PRICES if run.small else COARSE_PRICES)
        if run.small:
            run.settle()
        run.polish()
        if p.scope.repair_racks and (run.world.excess or not is_uniform(p)):
            run.begin_elsewhere()
    else:
        unplaced = run.repair(unplaced)
        if run.may_share_racks(unplaced):
            unplaced = run.repair(run.force())
    return ordered.give_back(world, unplaced)


class _Search:
    """One search; holds what does not change between kernels."""

    def __init__(self, world: World, *, seed: int) -> None:
        p = world.problem
        self.world = world
        movable = p.scope.open_rows
        self.seed = seed
        self.shift = shift = p.scope.shift
        self.roam = p.scope.roam
        self.repair_racks = p.scope.repair_racks
        self.repair_rules = p.scope.repair_rules
        self.classes = p.scope.classes
        self.arrays = world.arrays
        self.small = len(world.cur) <= SMALL
        self.change = int(CHANGE * p.average * max(len(world.load), 1) / max(len(p.size), 1))
        weight = (p.lead - p.follow).max(axis=1) if p.lead.shape[1] else np.zeros(len(p.lead), np.int64)
        rows = np.argsort(-weight, kind="stable").astype(np.int32)
        self.shift_rows = rows[movable[rows]] if shift else rows[:0]
        first = world.cur[np.minimum(p.start[:-1], max(len(world.cur) - 1, 0))] if len(world.cur) else rows[:0]
        barred = (p.scope.unlead[first] | self.classes.must_step_down[self.classes.of, first]) & (np.diff(p.start) > 0)
        self.forced_rows = rows[movable[rows] & barred[rows]]
        self.takers = np.flatnonzero(p.scope.takes).astype(np.int32)
        self.tries = 0

    @property
    def spent(self) -> bool:
        """Has enough been tried on a cluster that may be impossible to balance?"""
        return self.tries > TRIES

    def leaders(self, leader_change_cost: int = 0) -> int:
        """Replica list changes: first those that must, then those that help, until none does; returns how many."""
        costs = self.world.costs
        rows = self.shift_rows if self.shift else self.forced_rows
        changed = 0
        for _ in range(4):
            more = kernels.shift_leaders(self.arrays, *costs, rows, leader_change_cost)
            changed += int(more)
            if not more:
                break
        return changed

    def leader_change_cost(self, price: int) -> int:
        """What a change of leader must repair at this price, in scaled excess."""
        return self.change * price // kernels.UNIT

    def force(self) -> Flags:
        """Replicas that must go, largest first."""
        unplaced = np.zeros(len(self.world.cur), np.bool_)
        forced.place_forced(
            self.arrays,
            *self.world.costs,
            self.takers,
            self.repair_racks,
            self.roam and self.shift and self.repair_rules,
            unplaced,
        )
        if self.repair_rules and self.classes.any:
            forced.thin_out(self.arrays, *self.world.costs, self.takers)
        return unplaced

    def repair(self, unplaced: Flags) -> Flags:
        """Replicas without a broker are tried again as long as others make room for some; returns those that are left."""
        for _ in range(REPAIRS):
            self.descend((0, 0, 0))
            left = self.force()
            if not left.any() or bool((left == unplaced).all()):
                return left
            unplaced = left
        return unplaced

    def may_share_racks(self, unplaced: Flags) -> bool:
        """Let replicas that are added, and that no broker of a further rack may have, be in the racks of others; are there any?"""
        w, p = self.world, self.world.problem
        added = unplaced & (w.cur < 0) & (p.rack_least[w.row] > 0)
        for row in np.unique(w.row[added]).tolist():
            members = w.cur[p.start[row] : p.start[row + 1]]
            p.rack_least[row] = len(np.unique(p.rack[members[members >= 0]]))
        return bool(added.any())

    def near(self) -> tuple[SmallInts, Ints, int]:
        """Candidate brokers by class, the neediest first, as runs; and how many of them each replica is shown."""
        ranked, keep, width = self._rank()
        runs = [ranked[:keep], *(ranked[~barred[ranked]] for barred in self.classes.barred[1:])]
        starts = np.concatenate(([0], np.cumsum([len(run) for run in runs]))).astype(np.int64)
        return np.concatenate(runs), starts, width

    def _rank(self) -> tuple[SmallInts, int, int]:
        if len(self.takers) <= FULL_SCAN:
            return self.takers, len(self.takers), len(self.takers)
        w = self.world
        low, high = w.problem.low, w.problem.high
        need = np.maximum(low - w.load, 0).sum(axis=1)[self.takers]
        over = np.maximum(w.load - high, 0).sum(axis=1)[self.takers]
        ranked = self.takers[np.lexsort((self.takers, over - need))]
        keep = max(int((need > over).sum()), WINDOW * 3, len(ranked) // 4)
        return ranked, keep, WINDOW

    def sweep(self, price: int) -> int:
        """One offer to every replica."""
        if not len(self.takers):
            return 0
        near, starts, width = self.near()
        return int(
            kernels.sweep(
                self.arrays,
                *self.world.costs,
                near,
                starts,
                width,
                price,
                self.roam,
            )
        )

    def descend(self, prices: tuple[int, ...]) -> None:
        """Sweeps at falling prices, with replica list changes between them."""
        for price in prices:
            self.sweep(price)
            self.leaders(self.leader_change_cost(price))

    def settle(self) -> None:
        """Bring the last brokers in: sweeps and swaps that pay twice as much each time, and in the end any price."""
        price, idle, still = SETTLE_PRICE, 0, False
        for n in range(SETTLE_ROUNDS):
            if not self.world.excess:
                return
            # Where nothing changed in a round at no price, no sweep and no replica list change will find more than it did.
            changed = 0 if still else self.sweep(price)
            shifted = 0 if still else self.leaders()
            changed += self.swap(
                self._of_offenders(),
                price=price,
                partners=SETTLE_PARTNERS << idle,
                samples=SETTLE_SAMPLES << min(n, SETTLE_DOUBLINGS),
                seed=self.seed + n,
            )
            shifted += self.leaders() if changed or shifted else 0
            still = not price and not changed and not shifted
            idle = 0 if changed or price else idle + 1
            if idle == SETTLE_PATIENCE or (idle and self.spent):
                return
            price //= 2

    def swap(self, slots: SmallInts, *, price: int, partners: int, samples: int, seed: int) -> int:
        """One scan for exchanges."""
        w = self.world
        samples = max(min(samples, SCAN // max(len(slots) * partners, 1)), 1)
        self.tries += len(slots) * partners * min(samples, len(w.cur) // len(w.load) + 1)
        # NumPy sorts numbers this short by their digits.
        short = w.cur.astype(np.int16) if len(w.load) < 1 << 15 else w.cur
        order = np.argsort(short, kind="stable").astype(np.int32)
        order = order[w.cur[order] >= 0]
        starts = np.searchsorted(w.cur[order], np.arange(len(w.load) + 1)).astype(np.int64)
        near, near_starts, _ = self.near()
        return int(
            swaps.swap_scan(
                self.arrays,
                *w.costs,
                slots,
                starts,
                order,
                near,
                near_starts,
                partners,
                samples,
                seed,
                price,
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
        """Raise the price again and come down from the best plan, as often as the cluster's size affords.

        Exchanges with the home of a replica that left are tried at every price: they undo what a cheaper way made needless.
        """
        w = self.world
        rounds = POLISH_ROUNDS if self.small else max(1, POLISH_SLOTS // len(w.cur))
        found: list[Candidate] = [(w.excess, w.copied, w.save())]
        best = found[0]
        idle = 0
        for n in range(rounds):
            self._polish_once(self.seed + 1000 * (n + 1))
            found.append((w.excess, w.copied, w.save()))
            if found[-1][:2] < best[:2]:
                best = found[-1]
                idle = 0
            else:
                w.restore(best[2])
                idle += 1
            if idle >= POLISH_PATIENCE or (best[0] and self.spent):
                break
        w.restore(most_even(w, w.problem.home, found))
        # What no longer helps goes back to the leader it had: a change without need is a change too many.
        self.leaders(leader_change_cost=1)

    def begin_elsewhere(self) -> None:
        """Search again from where a linear program would place everything, and keep what is best.

        Such a place may be past a hard limit; what is still past one in the end is no better than what was there.
        """
        w = self.world
        best = (int(w.past_hard.sum()), w.excess, w.copied, w.save())
        for start in starts(w):
            w.place(start)
            self.tries = TRIES // 2
            self.leaders()
            self.settle()
            self.polish()
            found = (int(w.past_hard.sum()), w.excess, w.copied, w.save())
            best = min(best, found, key=lambda plan: plan[:3])
            w.restore(best[3])

    def _polish_once(self, seed: int) -> None:
        samples = POLISH_SAMPLES * (4 if self.small else 1)
        for n, price in enumerate(POLISH_PRICES):
            self.swap(self._away(), price=price, partners=POLISH_PARTNERS, samples=samples, seed=seed + n)
            self.sweep(price)
            self.leaders(self.leader_change_cost(price))
        self.settle()


class Exchanges:
    """Exchanges of two replicas that save bytes and repair nothing, in a world sorted by size."""

    def __init__(self, world: World) -> None:
        self._search = _Search(world, seed=0)

    def scan(self, slots: SmallInts, *, partners: int, samples: int, seed: int) -> int:
        """One for each of these slots where there is one; returns how many there were."""
        return self._search.swap(slots, price=kernels.UNIT, partners=partners, samples=samples, seed=seed)


def unevenness(world: World, cur: SmallInts) -> float:
    """The sum over topics of the standard deviation of their replicas by broker, brokers that share the load alone."""
    p = world.problem
    shares = p.scope.shares
    brokers = len(p.ids)
    seen = (cur >= 0) & shares[cur]
    keys, count = np.unique(p.topic[world.row[seen]].astype(np.int64) * brokers + cur[seen], return_counts=True)
    topic = keys // brokers
    mean = np.bincount(topic, weights=count) / max(int(shares.sum()), 1)
    squares = np.bincount(topic, weights=count.astype(np.float64) ** 2) / max(int(shares.sum()), 1)
    return float(np.sqrt(np.maximum(squares - mean * mean, 0)).sum())


def most_even(world: World, before: SmallInts, found: list[Candidate]) -> Saved:
    """The cheapest of the plans found; where it scatters topics worse than before, the most even of those as cheap.

    Of plans that leave topics as even as they were, the cheapest is taken.
    """
    excess, copied, best = min(found, key=lambda plan: plan[:2])
    alike = sorted((c, n) for n, (e, c, _) in enumerate(found) if e == excess and (c - copied) * ALIKE <= copied)
    if len(alike) == 1:
        return best
    limit = unevenness(world, before)
    ranked = []
    for _, n in alike:
        uneven = unevenness(world, found[n][2][0])
        if uneven <= limit:
            return found[n][2]
        ranked.append((uneven, n))
    return found[min(ranked)[1]][2]
