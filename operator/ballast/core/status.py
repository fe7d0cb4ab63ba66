"""What ``status`` tells about a cluster, computed from one ``ClusterState`` and nothing else.

Counting follows Kafka's own metrics: a partition is under-replicated when its ISR is smaller than the replica count it has
apart from replicas being added (``Partition.isUnderReplicated``), and under its min ISR when producers with
``acks=all`` are refused (``core.cluster.min_isr``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np

from ballast.core.cluster import NO_LEADER, UNKNOWN, Broker, ClusterState, Flags, Gap, Ints, LogDir, TopicPartition
from ballast.core.cluster.balancers import OtherBalancer, other_balancers
from ballast.core.cluster.drain import Drain
from ballast.core.cluster.isr import leaves_every_isr_after_s
from ballast.core.cluster.min_isr import min_isr_unknown, under_min_isr, under_replicated
from ballast.core.leadership import LeaderImbalance, imbalance
from ballast.core.leadership.imbalance import deleting_rows
from ballast.core.leadership.limits import Limit, imbalance_percentage
from ballast.core.planner.cross_rack import traffic as cross_rack
from ballast.core.planner.cross_rack.policy import CrossRackPolicy
from ballast.core.planner.loads import Loads
from ballast.core.planner.policy import PlannerPolicy
from ballast.core.planner.problem.ranges import Range, ranges_of
from ballast.core.throttles import Setting
from ballast.core.throttles.stale import FoundThrottle, find_throttles


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """One broker's line."""

    broker: Broker
    replicas: int
    """Replicas that it holds or is getting."""
    leaders: int
    preferred_leaders: int
    """Partitions whose first replica it is."""
    not_led: int
    """Of those, the ones that it does not lead."""
    over_threshold: bool
    replica_bytes: int
    """Sum of the sizes it told; ``UNKNOWN`` when it told none."""
    unknown_sizes: int
    """Replicas whose size is not in that sum."""
    out_of_sync: int
    offline_replicas: int

    @property
    def imbalance_ratio(self) -> float:
        """Share of the partitions that prefer this broker and are led by another or none."""
        return self.not_led / self.preferred_leaders if self.preferred_leaders else 0.0

    @property
    def disk_used_bytes(self) -> int:
        """Capacity less free space, used by Kafka or by anything else."""
        return self.broker.used_bytes


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """A move in progress and how far its copies are."""

    name: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    copied_bytes: int
    """Bytes on the brokers being added; ``UNKNOWN`` when one of them did not tell."""
    total_bytes: int
    """Bytes that these will hold, judged by the leader's copy."""


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """Partitions that are not well, by what ails them; one may be in several."""

    offline: tuple[TopicPartition, ...]
    """No leader now."""
    under_min_isr: tuple[TopicPartition, ...]
    """Producers with acks=all are refused."""
    under_replicated: tuple[TopicPartition, ...]
    min_isr_unknown: tuple[TopicPartition, ...]
    """Of these, the ones whose topic's minimum is unknown: they may be under it."""

    @property
    def any(self) -> bool:
        """Is any partition unhealthy?"""
        return bool(self.offline or self.under_min_isr or self.under_replicated)


class JournalState(StrEnum):
    """What became of Ballast's journal on this cluster."""

    NONE = "none"
    """There is none, and nothing shows that there was."""
    PRESENT = "present"
    DELETED = "deleted"
    """Its topic is gone, and the topic of its requests is there."""
    RECREATED_EMPTY = "recreated-empty"
    """It was deleted, and a process that did not remember it began an empty one."""
    UNKNOWN = "unknown"
    """It is there and did not tell."""


LOST: Final = frozenset({JournalState.DELETED, JournalState.RECREATED_EMPTY})
"""It is unknown which throttles and moves were Ballast's."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """Everything ``status`` shows."""

    cluster_id: str
    taken_at_ms: int
    kafka_version: str | None
    mode: str
    """``kraft`` or ``zookeeper``."""
    controller_id: int
    topics: int
    internal_topics: int
    deleting_topics: tuple[str, ...]
    partitions: int
    replicas: int
    brokers: tuple[BrokerStatus, ...]
    threshold: Limit
    ranges: tuple[Range, ...]
    """Where the brokers stand on each resource that is known."""
    imbalance_ratio: float
    """Over the whole cluster."""
    unhealthy: Unhealthy
    moving: tuple[MovingPartition, ...]
    throttles: tuple[FoundThrottle, ...]
    others: tuple[OtherBalancer, ...]
    gaps: tuple[Gap, ...]
    leaves_isr_after_s: float
    """A follower that has stopped fetching is out of every ISR after this long at most; ``UNKNOWN`` where no leader told."""
    cross_rack: Mapping[str, Any] | None = None
    """Traffic between racks (``cross_rack.figures_now``)."""
    cross_rack_unknown: str | None = None
    """Why that is not known, where the settings say something of it."""
    drains: tuple[Drain, ...] | None = ()
    """Brokers that people drained through the daemon; None where the journal did not tell."""
    journal: JournalState = JournalState.NONE
    journal_recreated_ms: int | None = None
    """When it was recreated."""

    @property
    def down_brokers(self) -> tuple[int, ...]:
        """Brokers that are not alive and hold replicas."""
        return tuple(b.broker.id for b in self.brokers if not b.broker.alive and b.replicas)

    @property
    def departed_brokers(self) -> tuple[int, ...]:
        """Brokers that are not alive and hold nothing: KRaft remembers one that was emptied and stopped."""
        return tuple(b.broker.id for b in self.brokers if not b.broker.alive and not b.replicas)

    @property
    def unreachable_brokers(self) -> tuple[int, ...]:
        """Brokers that the cluster still calls alive and that did not answer: stopped a moment ago, frozen, or cut off."""
        return tuple(b.broker.id for b in self.brokers if b.broker.alive and not b.broker.reachable)

    @property
    def bad_log_dirs(self) -> tuple[tuple[int, LogDir], ...]:
        """Log dirs that their broker reports with an error, by broker."""
        return tuple((b.broker.id, d) for b in self.brokers for d in b.broker.bad_log_dirs)

    @property
    def skew(self) -> tuple[Range, ...]:
        """The resources of which some broker has more or less than its range: those that a plan would balance."""
        return tuple(r for r in self.ranges if r.outside)

    @property
    def over_threshold(self) -> tuple[int, ...]:
        """Brokers whose leader imbalance is over the threshold."""
        return tuple(b.broker.id for b in self.brokers if b.over_threshold)

    @property
    def broken(self) -> bool:
        """Partitions, brokers or log dirs are not well."""
        return bool(self.unhealthy.any or self.down_brokers or self.unreachable_brokers or self.bad_log_dirs)

    @property
    def needs_attention(self) -> bool:
        """Partitions, brokers or log dirs that are not well, brokers out of range, imbalance over the threshold, stale throttles, a lost journal."""
        left = self.stale_throttles or self.journal in LOST
        return bool(self.broken or self.over_threshold or self.skew or left)

    def with_ledgers(self, in_ledger: Collection[Setting], set_by_hand: Collection[Setting] = ()) -> ClusterStatus:
        """The same, where Ballast's own ledgers are known by now: what is in them is not stale."""
        known = [
            replace(
                t,
                in_ledger=t.in_ledger or t.setting in in_ledger,
                set_by_hand=t.set_by_hand or t.setting in set_by_hand,
            )
            for t in self.throttles
        ]
        return replace(self, throttles=tuple(known))

    @property
    def stale_throttles(self) -> tuple[FoundThrottle, ...]:
        """Throttles that nothing needs."""
        return tuple(t for t in self.throttles if t.stale)


def cluster_status(
    state: ClusterState,
    threshold: Limit | None = None,
    policy: PlannerPolicy | None = None,
    loads: Loads | None = None,
) -> ClusterStatus:
    """Compute it; linear in replicas.  What Ballast's own ledger holds is told to the result: ``with_ledgers``.

    Brokers are judged by what the state says; ``loads`` are only for the traffic between racks.
    """
    policy, loads = policy or PlannerPolicy(), loads if loads is not None else Loads.from_state(state)
    asked = policy.cross_rack != CrossRackPolicy()
    threshold = threshold or imbalance_percentage(state, None)
    measured = imbalance(state, threshold.value)
    return ClusterStatus(
        cluster_id=state.cluster_id,
        taken_at_ms=state.taken_at_ms,
        kafka_version=state.kafka_version,
        mode="kraft" if "kraft" in state.api else "zookeeper",
        controller_id=state.controller_id,
        topics=len(state.topics),
        internal_topics=sum(t.internal for t in state.topics),
        deleting_topics=tuple(t.name for t in state.topics if t.deleting),
        partitions=len(state.partitions),
        replicas=len(state.partitions.replica),
        brokers=_brokers(state, measured),
        threshold=threshold,
        ranges=judge_ranges(state, policy),
        imbalance_ratio=measured.total_ratio,
        unhealthy=unhealthy_partitions(state),
        moving=tuple(_moving(state, row) for row in np.flatnonzero(state.moving).tolist()),
        throttles=find_throttles(state),
        others=other_balancers(state),
        gaps=state.gaps,
        leaves_isr_after_s=leaves_every_isr_after_s(state),
        cross_rack=cross_rack.figures_now(state, loads, policy.cross_rack),
        cross_rack_unknown=cross_rack.why_unknown(state, loads) if asked else None,
    )


def judge_ranges(state: ClusterState, policy: PlannerPolicy) -> tuple[Range, ...]:
    """Every resource that is known; a broker that did not tell its sizes is not judged by bytes."""
    silent = {b.id for b in state.brokers if not b.log_dirs_known}
    return tuple(
        replace(r, shares={b: s for b, s in r.shares.items() if r.unit != "bytes" or b not in silent})
        for r in ranges_of(state, Loads.from_state(state), policy)
    )


def unhealthy_partitions(state: ClusterState) -> Unhealthy:
    """Name the partitions that are not well; topics being deleted do not count."""
    deleting = deleting_rows(state)

    def names(rows: Flags) -> tuple[TopicPartition, ...]:
        return tuple(state.name(row) for row in np.flatnonzero(rows & ~deleting).tolist())

    return Unhealthy(
        offline=names(state.partitions.leader == NO_LEADER),
        under_min_isr=names(under_min_isr(state)),
        under_replicated=names(under_replicated(state)),
        min_isr_unknown=names(min_isr_unknown(state)),
    )


def _brokers(state: ClusterState, measured: LeaderImbalance) -> tuple[BrokerStatus, ...]:
    p = state.partitions
    ids = np.array([b.id for b in state.brokers], np.int64)
    at = np.searchsorted(ids, p.replica)
    known = p.size_bytes >= 0

    def per_broker(which: Flags) -> Ints:
        return np.bincount(at[which], minlength=len(ids)).astype(np.int64)

    replicas = per_broker(np.ones(len(p.replica), np.bool_))
    sizes = np.zeros(len(ids), np.int64)
    np.add.at(sizes, at[known], p.size_bytes[known])
    led = p.leader >= 0
    leaders = np.bincount(np.searchsorted(ids, p.leader[led]), minlength=len(ids))
    unknown, out_of_sync, offline = per_broker(~known), per_broker(~p.in_sync), per_broker(p.offline)
    out: list[BrokerStatus] = []
    for i, broker in enumerate(state.brokers):
        drift = measured[broker.id]
        told = broker.log_dirs_known
        out.append(
            BrokerStatus(
                broker=broker,
                replicas=int(replicas[i]),
                leaders=int(leaders[i]),
                preferred_leaders=drift.preferred,
                not_led=drift.not_led,
                over_threshold=drift.over,
                replica_bytes=int(sizes[i]) if told else UNKNOWN,
                unknown_sizes=int(unknown[i]),
                out_of_sync=int(out_of_sync[i]),
                offline_replicas=int(offline[i]),
            )
        )
    return tuple(out)


def _moving(state: ClusterState, row: int) -> MovingPartition:
    p = state.partitions
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    replica, size, adding = p.replica[run], p.size_bytes[run], p.adding[run]
    copies = size[adding]
    leader = size[replica == p.leader[row]]
    whole = int(leader[0]) if len(leader) and leader[0] >= 0 else UNKNOWN
    return MovingPartition(
        name=state.name(row),
        replicas=tuple(replica.tolist()),
        adding=tuple(replica[adding].tolist()),
        removing=tuple(replica[p.removing[run]].tolist()),
        copied_bytes=int(copies.sum()) if len(copies) == 0 or copies.min() >= 0 else UNKNOWN,
        total_bytes=whole * int(adding.sum()) if whole >= 0 else UNKNOWN,
    )
