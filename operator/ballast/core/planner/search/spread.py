"""How evenly topics lie over brokers, and the choice between plans that are worth the same by it."""

from __future__ import annotations

from typing import Final

import numpy as np

from ballast.core.cluster import SmallInts
from ballast.core.planner.search.world import Saved, World

ALIKE: Final = 1000
"""Plans whose bytes differ by less than one part in so many are worth the same."""

Found = tuple[int, int, Saved]
"""A plan with its excess and the scaled bytes that it copies."""


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


def most_even(world: World, before: SmallInts, found: list[Found]) -> Saved:
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
