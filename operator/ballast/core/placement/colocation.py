"""Which replicas sit together: what the loss of one broker, and of two, does to a placement.  Pure.

A placement may give every broker the same number of replicas and leaders and still be bad: when the lists repeat, all that a
down broker led falls on one neighbour, and a second loss takes the same partitions' next replica.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True, slots=True)
class Colocation:
    """Figures of one placement over some brokers."""

    partitions: int
    different_sets: int
    """Different sets of brokers that hold a partition."""
    preferred_leaders_min: int
    preferred_leaders_max: int
    """Preferred leaders of a broker."""
    max_leaders_taken_over: int
    """Most leaderships that one broker takes over when another one is lost."""
    min_brokers_taking_over: int
    """On how many brokers the leaderships of a lost one fall, where they fall on fewest."""
    max_partitions_shared_by_pair: int
    """Partitions that lose two replicas when two brokers are lost, for the worst two."""
    mean_partitions_shared_by_pair: float
    """The same, over all pairs of brokers."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def colocation(lists: Collection[Sequence[int]], brokers: Collection[int]) -> Colocation:
    """Figures of these replica lists; quadratic in replicas of a partition, linear in partitions and pairs of brokers."""
    leaders: Counter[int] = Counter()
    next_leaders: Counter[tuple[int, int]] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for members in lists:
        leaders[members[0]] += 1
        if len(members) > 1:
            next_leaders[members[0], members[1]] += 1
        pairs.update(combinations(sorted(members), 2))
    led = [leaders[b] for b in brokers]
    new_leaders_of = Counter(leader for leader, _ in next_leaders)
    possible = len(brokers) * (len(brokers) - 1) // 2
    return Colocation(
        partitions=len(lists),
        different_sets=len({frozenset(m) for m in lists}),
        preferred_leaders_min=min(led, default=0),
        preferred_leaders_max=max(led, default=0),
        max_leaders_taken_over=max(next_leaders.values(), default=0),
        min_brokers_taking_over=min(new_leaders_of.values(), default=0),
        max_partitions_shared_by_pair=max(pairs.values(), default=0),
        mean_partitions_shared_by_pair=round(pairs.total() / possible, 2) if possible else 0.0,
    )
