"""What one reading of the cluster says in figures: the numbers that metrics, the page and decisions share.

Pure.  Every figure means what Kafka's own brokers and tools mean by it: a partition being reassigned is under-replicated against
the replicas it had, not against the union.  ``kafka-topics --describe`` says otherwise only where a topic asks for more replicas in
sync than it has, which brokers since Kafka 3.7 do not hold against it (``core.cluster.min_isr``).  The web API writes these
types as they are declared here, but for what is marked as ``INTERNAL``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from ballast.core.cluster import STORAGE_ERROR, UNKNOWN, ClusterState, Flags, Gap
from ballast.core.cluster.min_isr import at_min_isr, min_isr_unknown, under_min_isr, under_replicated
from ballast.core.field_types import Known, Moment, OneOf
from ballast.core.leadership import LeaderImbalance, imbalance
from ballast.core.planner import Loads, PlannerPolicy
from ballast.core.planner.cross_rack.traffic import CrossRackTraffic, traffic_now
from ballast.core.planner.problem.ranges import Share, ranges_of
from ballast.core.wording import human_brokers, human_many

DEFAULT: Final = PlannerPolicy()
INTERNAL: Final = Field(exclude=True)
"""Marks a figure that metrics and decisions go by and the web API does not tell."""
LEADER_THROTTLE = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLE = "follower.replication.throttled.replicas"
RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


@dataclass(frozen=True, slots=True)
class LogDirError:
    """A log dir that its broker reports with an error."""

    path: str
    error: str
    """Kafka's name: ``KAFKA_STORAGE_ERROR`` is a failed disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    """One broker in figures; bytes are null where the broker did not say."""

    id: int
    rack: str | None
    alive: bool
    reachable: bool
    """It answered when it was last asked for its log dirs: one that does not may still be alive to the cluster."""
    log_dir_errors: tuple[LogDirError, ...]
    controller: bool
    cordoned: bool
    draining: bool
    """The settings or a person drain it: it has no share of its own, and is not judged by the bands."""
    replicas: int
    leaders: int
    preferred_leaders: int
    """Partitions whose preferred leader it is."""
    preferred_not_led: int
    """Of these, those that another broker leads."""
    imbalance_ratio: float
    """``preferredNotLed`` as a part of ``preferredLeaders``."""
    over_threshold: bool
    replica_bytes: Known
    disk_total_bytes: Known
    disk_usable_bytes: Annotated[int, INTERNAL]
    disk_used_bytes: Known
    """By replicas or by anything else."""
    leader_bytes: Known

    @property
    def failed_log_dirs(self) -> int:
        """Log dirs that it lives without; ``UNKNOWN`` where it did not report its log dirs."""
        failed = sum(e.error == STORAGE_ERROR for e in self.log_dir_errors)
        return UNKNOWN if self.replica_bytes == UNKNOWN else failed


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFigures:
    """One topic in figures, collected only on request."""

    name: str
    partitions: int
    size_bytes: int
    """Of all its replicas; ``UNKNOWN`` where the size of one is."""
    under_replicated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFigures:
    """One resource over the brokers that share it, and the range of each in which it is left alone."""

    resource: str
    label: str
    unit: Annotated[str, OneOf("bytes", "bytes/s", "cpu", "")]
    """Empty for counts."""
    tolerance: float
    """How far from its fair share a broker may be, as a part of that share."""
    shares: Mapping[int, Share]
    """By broker id."""
    brokers_out_of_range: tuple[int, ...]
    skew: float
    """The largest distance from a fair share, as a part of that share."""
    mean: Annotated[float, INTERNAL]
    """The average fair share; ``low`` and ``high`` are the edges, averaged over brokers."""
    low: Annotated[float, INTERNAL]
    high: Annotated[float, INTERNAL]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttles:
    """Replication throttles that are set now, by Ballast or another user."""

    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    bytes_per_s: Known = UNKNOWN
    """The lowest rate on any broker; null where none is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The cluster in figures."""

    cluster_id: Annotated[str, Field(serialization_alias="id")]
    kafka_version: str | None
    taken_at_ms: Moment
    """When it was read."""
    brokers: tuple[BrokerFigures, ...]
    topics: int
    partitions: int
    under_replicated: int
    under_min_isr: int
    """Of the topics whose minimum is known."""
    at_min_isr: int
    min_isr_unknown: int
    """Under-replicated, of topics whose minimum could not be read: each may be at it or under it, and is in neither of the two."""
    offline: int
    reassigning: int
    leader_imbalance_threshold_ratio: float
    """0 to 1; a broker over it counts as imbalanced."""
    ranges: tuple[RangeFigures, ...]
    cross_rack: Annotated[CrossRackTraffic | None, INTERNAL]
    """Bytes per second between racks; None where racks or what producers write are not known."""
    throttles: Throttles
    gaps: tuple[Gap, ...]
    """What the reading lacks."""
    per_topic: Annotated[tuple[TopicFigures, ...], INTERNAL] = ()

    @property
    def alive(self) -> int:
        """Brokers that are up."""
        return sum(b.alive for b in self.brokers)

    @property
    def racks(self) -> int:
        """Racks that live brokers name."""
        return len({b.rack for b in self.brokers if b.alive and b.rack is not None})

    @property
    def over(self) -> tuple[int, ...]:
        """Brokers over the leader imbalance threshold."""
        return tuple(b.id for b in self.brokers if b.over_threshold)

    @property
    def healthy(self) -> bool:
        """Every replica is in sync and every partition has its leader."""
        return not (self.under_replicated or self.offline)


def measure(
    state: ClusterState,
    *,
    threshold_percent: float,
    policy: PlannerPolicy = DEFAULT,
    loads: Loads | None = None,
    per_topic: bool = False,
) -> Figures:
    """Turn one reading into figures; linear in replicas."""
    health = Health(state)
    leaders = imbalance(state, threshold_percent)
    loads = loads if loads is not None else Loads.from_state(state)
    brokers = tuple(_brokers(state, leaders, policy.draining))
    return Figures(
        cluster_id=state.cluster_id,
        kafka_version=state.kafka_version,
        taken_at_ms=state.taken_at_ms,
        brokers=brokers,
        topics=len(state.topics),
        partitions=len(state.partitions),
        under_replicated=int(health.under_replicated.sum()),
        under_min_isr=int(health.under_min_isr.sum()),
        at_min_isr=int(health.at_min_isr.sum()),
        min_isr_unknown=int(health.min_isr_unknown.sum()),
        offline=int(health.offline.sum()),
        reassigning=int(state.moving.sum()),
        leader_imbalance_threshold_ratio=threshold_percent / 100,
        ranges=tuple(_ranges(state, brokers, policy, loads)),
        cross_rack=traffic_now(state, loads, policy.cross_rack),
        throttles=throttles(state),
        gaps=state.gaps,
        per_topic=_topics(state, health) if per_topic else (),
    )


class Health:
    """Per partition, the four states that ``kafka-topics --describe`` lists, and where two of them cannot be told."""

    under_replicated: Flags
    under_min_isr: Flags
    at_min_isr: Flags
    min_isr_unknown: Flags
    offline: Flags

    def __init__(self, state: ClusterState) -> None:
        self.under_replicated = under_replicated(state)
        self.under_min_isr = under_min_isr(state)
        self.at_min_isr = at_min_isr(state)
        self.min_isr_unknown = min_isr_unknown(state)
        self.offline = ~np.isin(state.partitions.leader, np.array(sorted(state.alive), np.int32))


def throttles(state: ClusterState) -> Throttles:
    """Every replication throttle that is set dynamically, Ballast's or foreign."""
    topics = tuple(
        t.name for t in state.topics if any(t.configs.get(k) and t.configs[k].value for k in THROTTLED_REPLICAS)
    )
    rates = {
        broker: [
            int(entry.value)
            for key in RATES
            if (entry := configs.get(key)) and entry.value and entry.source.startswith("DYNAMIC")
        ]
        for broker, configs in state.broker_configs.items()
    }
    lowest = min((rate for found in rates.values() for rate in found), default=UNKNOWN)
    return Throttles(topics=topics, brokers=tuple(sorted(b for b, r in rates.items() if r)), bytes_per_s=lowest)


THROTTLED_REPLICAS = (LEADER_THROTTLE, FOLLOWER_THROTTLE)


def _brokers(state: ClusterState, leaders: LeaderImbalance, draining: Collection[int]) -> list[BrokerFigures]:
    p = state.partitions
    ids = np.array([b.id for b in state.brokers], np.int64)
    slot = np.searchsorted(ids, p.replica)
    replicas = np.bincount(slot, minlength=len(ids))
    known = p.size_bytes >= 0
    disk = np.bincount(slot[known], weights=p.size_bytes[known].astype(np.float64), minlength=len(ids))
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    leading = p.replica == p.leader[row]
    led = np.bincount(slot[leading], minlength=len(ids))
    lead = leading & known
    led_bytes = np.bincount(slot[lead], weights=p.size_bytes[lead].astype(np.float64), minlength=len(ids))
    out = []
    for i, broker in enumerate(state.brokers):
        judged = leaders[broker.id]
        sized = broker.log_dirs_known
        out.append(
            BrokerFigures(
                id=broker.id,
                rack=broker.rack,
                alive=broker.alive,
                reachable=broker.reachable,
                log_dir_errors=tuple(LogDirError(d.path, d.error) for d in broker.log_dirs if d.error),
                controller=broker.controller,
                cordoned=broker.cordoned,
                draining=broker.id in draining,
                replicas=int(replicas[i]),
                leaders=int(led[i]),
                preferred_leaders=judged.preferred,
                preferred_not_led=judged.not_led,
                imbalance_ratio=judged.ratio,
                over_threshold=judged.over,
                replica_bytes=int(disk[i]) if sized else UNKNOWN,
                disk_total_bytes=broker.capacity_bytes,
                disk_usable_bytes=broker.usable_bytes,
                disk_used_bytes=broker.used_bytes,
                leader_bytes=int(led_bytes[i]) if sized else UNKNOWN,
            )
        )
    return out


def _ranges(
    state: ClusterState, brokers: tuple[BrokerFigures, ...], policy: PlannerPolicy, loads: Loads
) -> Iterator[RangeFigures]:
    """Per resource where its brokers stand; one that did not say its sizes is not judged by those of the others."""
    silent = {b.id for b in brokers if b.replica_bytes == UNKNOWN}
    for r in ranges_of(state, loads, policy):
        shares = {b: s for b, s in r.shares.items() if r.unit != "bytes" or b not in silent}
        yield RangeFigures(
            resource=r.resource,
            label=r.label,
            unit=r.unit,
            tolerance=r.tolerance,
            shares=shares,
            brokers_out_of_range=tuple(b for b, s in shares.items() if s.outside),
            skew=max((abs(s.load - s.fair) / s.fair for s in shares.values() if s.fair), default=0.0),
            mean=_mean(s.fair for s in shares.values()),
            low=_mean(s.low for s in shares.values()),
            high=_mean(s.high for s in shares.values()),
        )


def _mean(values: Iterable[float]) -> float:
    return fmean(found) if (found := tuple(values)) else 0.0


def _topics(state: ClusterState, health: Health) -> tuple[TopicFigures, ...]:
    p = state.partitions
    row_topic = p.topic[np.repeat(np.arange(len(p)), np.diff(p.start))]
    known = p.size_bytes >= 0
    count = len(state.topics)
    size = np.bincount(row_topic[known], weights=p.size_bytes[known].astype(np.float64), minlength=count)
    size[row_topic[~known]] = UNKNOWN
    partitions = np.bincount(p.topic, minlength=count)
    unhealthy = np.bincount(p.topic[health.under_replicated], minlength=count)
    return tuple(
        TopicFigures(
            name=t.name, partitions=int(partitions[i]), size_bytes=int(size[i]), under_replicated=int(unhealthy[i])
        )
        for i, t in enumerate(state.topics)
    )


def sentence(figures: Figures) -> str:
    """The cluster in one sentence."""
    down = sum(not b.alive and b.replicas > 0 for b in figures.brokers)
    silent = sum(b.alive and not b.reachable for b in figures.brokers)
    bad_dirs = sum(len(b.log_dir_errors) for b in figures.brokers)
    parts = [f"{human_many(figures.alive, 'broker')} up" + (f", {down} down" if down else "")]
    parts += [f"{silent} of them without an answer"] if silent else []
    parts += [f"{human_many(bad_dirs, 'log dir')} with errors"] if bad_dirs else []
    parts.append(human_many(figures.partitions, "partition"))
    for count, what in (
        (figures.offline, "offline"),
        (figures.under_min_isr, "under min ISR"),
        (figures.under_replicated, "under-replicated"),
        (figures.min_isr_unknown, "of them with an unknown min ISR"),
        (figures.reassigning, "moving"),
    ):
        if count:
            parts.append(f"{count} {what}")
    over = figures.over
    leaders = f"leaders of {human_brokers(over)} imbalanced" if over else "preferred leaders OK"
    return f"{', '.join(parts)}; {leaders}."
