"""Leader imbalance as Kafka's controller measures it.

The measure is drift from the *preferred* leader (the first replica of the target assignment) and nothing else: it is zero
while every preferred leader sits on one broker.  ``core.leadership.skew`` measures that other thing, ``core.leadership.reorder`` repairs it.

The counting is ``KafkaController.checkAndTriggerAutoLeaderRebalance`` of the ZooKeeper controllers (3.9 has the last one):

* A broker is judged on the partitions whose preferred leader it is; a broker that is no partition's first is not judged.
* Topics queued for deletion leave both counts.
* A partition led by another broker, or by none (-1), counts as not led.
* A partition without any leadership record leaves the numerator and stays in the denominator.
* A broker is over when its ratio is *strictly* greater than the threshold, compared as IEEE doubles, as Kafka does.

``tally`` works on bare columns, so that a row of history is judged by the same code as a live cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ballast.core.cluster import NO_LEADERSHIP_RECORD, UNKNOWN, ClusterState, Flags, Ints, SmallInts

DEFAULT_THRESHOLD_PERCENT: Final = 10.0
"""Kafka's default of ``leader.imbalance.per.broker.percentage``."""


@dataclass(frozen=True, slots=True)
class BrokerImbalance:
    """One broker's share of partitions that it should lead and does not."""

    broker: int
    preferred: int
    """Partitions whose first replica is this broker."""
    not_led: int
    """Of those, the ones led by another broker or by none."""
    over: bool
    """The ratio is strictly greater than the threshold."""

    @property
    def ratio(self) -> float:
        """``not_led / preferred``; 0 for a broker that is no partition's first replica."""
        return self.not_led / self.preferred if self.preferred else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LeaderImbalance:
    """The imbalance of every broker, as columns in broker order."""

    threshold_percent: float
    broker: Ints
    """Ids, ascending."""
    preferred: Ints
    not_led: Ints
    over: Flags

    def __len__(self) -> int:
        return len(self.broker)

    def __iter__(self) -> Iterator[BrokerImbalance]:
        columns = (self.broker.tolist(), self.preferred.tolist(), self.not_led.tolist(), self.over.tolist())
        for broker, preferred, not_led, over in zip(*columns, strict=True):
            yield BrokerImbalance(broker, preferred, not_led, over)

    def __getitem__(self, broker_id: int) -> BrokerImbalance:
        at = int(np.searchsorted(self.broker, broker_id))
        if at == len(self.broker) or self.broker[at] != broker_id:
            raise KeyError(broker_id)
        return BrokerImbalance(broker_id, int(self.preferred[at]), int(self.not_led[at]), bool(self.over[at]))

    @property
    def over_ids(self) -> tuple[int, ...]:
        """The brokers that are over the threshold."""
        return tuple(self.broker[self.over].tolist())

    @property
    def worst_ratio(self) -> float:
        """The largest ratio of any broker; 0 for an empty cluster."""
        judged = self.preferred > 0
        return float(np.max(self.not_led[judged] / self.preferred[judged])) if judged.any() else 0.0

    @property
    def total_ratio(self) -> float:
        """Of all partitions that count, the share not led by its preferred leader."""
        total = int(self.preferred.sum())
        return int(self.not_led.sum()) / total if total else 0.0


def tally(
    preferred: Ints | SmallInts,
    leader: Ints | SmallInts,
    brokers: Collection[int] = (),
    *,
    deleting: Flags | None = None,
    threshold_percent: float = DEFAULT_THRESHOLD_PERCENT,
) -> LeaderImbalance:
    """Count from bare columns, one element per partition; linear in partitions.

    ``brokers`` are listed even where they are no partition's first replica; a first replica that is not among them is added.
    """
    counted = preferred != UNKNOWN
    if deleting is not None:
        counted &= ~deleting
    first = preferred[counted].astype(np.int64)
    led_by = leader[counted]
    ids = np.union1d(np.array(sorted(brokers), np.int64), first)
    slot = np.searchsorted(ids, first)
    # The record's absence is no proof that another broker leads: it leaves the numerator only.
    not_led_by_preferred = (led_by != first) & (led_by != NO_LEADERSHIP_RECORD)
    total = np.bincount(slot, minlength=len(ids)).astype(np.int64)
    not_led = np.bincount(slot[not_led_by_preferred], minlength=len(ids)).astype(np.int64)
    over = not_led / np.maximum(total, 1) > threshold_percent / 100
    return LeaderImbalance(threshold_percent, ids, total, not_led, over)


def deleting_rows(state: ClusterState) -> Flags:
    """Per partition: is its topic queued for deletion?"""
    return np.array([t.deleting for t in state.topics], np.bool_)[state.partitions.topic]


def imbalance(state: ClusterState, threshold_percent: float = DEFAULT_THRESHOLD_PERCENT) -> LeaderImbalance:
    """Measure every broker that the cluster or a replica list names."""
    return tally(
        state.preferred,
        state.partitions.leader,
        [b.id for b in state.brokers],
        deleting=deleting_rows(state),
        threshold_percent=threshold_percent,
    )
