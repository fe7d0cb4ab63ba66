"""What is declared of a metric, and every gauge: how its samples come out of the board's view.

Labels are bounded by brokers, resources and closed sets of words; topics only on request; partitions never.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ballast import __version__
from ballast.core.cluster import UNKNOWN
from ballast.daemon.context.figures import Figures
from ballast.daemon.context.view import Role, RunView, View

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One metric: its name, what it means, its labels, and how its samples come out of a view."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    samples: Callable[[View], Iterable[Sample]] = lambda _: ()
    kind: Literal["gauge", "counter", "histogram"] = "gauge"


def _one(value: Callable[[View], float | None]) -> Callable[[View], Iterable[Sample]]:
    def samples(view: View) -> Iterator[Sample]:
        number = value(view)
        if number is not None:
            yield (), float(number)

    return samples


def _of_figures(value: Callable[[Figures], float | None]) -> Callable[[View], Iterable[Sample]]:
    return _one(lambda view: None if view.figures is None else value(view.figures))


def _per_broker(attribute: str) -> Callable[[View], Iterable[Sample]]:
    def samples(view: View) -> Iterator[Sample]:
        for broker in view.figures.brokers if view.figures else ():
            value = getattr(broker, attribute)
            if value != UNKNOWN:
                yield (str(broker.id),), float(value)

    return samples


def _per_balance(value: Callable[[Figures], Iterator[Sample]]) -> Callable[[View], Iterable[Sample]]:
    return lambda view: () if view.figures is None else value(view.figures)


def _of_run(value: Callable[[RunView], float | None]) -> Callable[[View], Iterable[Sample]]:
    return _one(lambda view: None if view.run is None else value(view.run))


def _run_or_zero(value: Callable[[RunView], float | None]) -> Callable[[View], Iterable[Sample]]:
    return _one(lambda view: 0.0 if view.run is None else value(view.run))


def _unless_unknown(figures: Figures, count: int) -> int | None:
    """A count by min ISR; 0 is said only where no partition of unknown minimum may belong to it."""
    return None if count == 0 and figures.min_isr_unknown else count


def _cross_rack(figures: Figures) -> Iterator[Sample]:
    found = figures.cross_rack
    if found is not None:
        yield ("producers",), float(found.producers)
        yield ("followers",), float(found.followers)
        if not found.unknown_reads:
            yield ("consumers",), float(found.consumers)


def _age_s(at_ms: int | None) -> float | None:
    return None if at_ms is None else max(0.0, time.time() - at_ms / 1000)


GAUGES: Final[tuple[Spec, ...]] = (
    Spec(
        name="ballast_build_info",
        help="Always 1; the labels say which version of Ballast and Python this is.",
        labels=("version", "python"),
        samples=lambda _: [((__version__, platform.python_version()), 1.0)],
    ),
    Spec(
        name="ballast_cluster_info",
        help="Always 1; the labels name the cluster that this process manages.",
        labels=("cluster_id", "name", "kafka_version"),
        samples=lambda v: (
            [((v.figures.cluster_id, v.name, v.figures.kafka_version or "unknown"), 1.0)] if v.figures else []
        ),
    ),
    Spec(
        name="ballast_cluster_reachable",
        help="1 when the newest attempt to read the cluster succeeded.",
        samples=_one(lambda v: float(v.figures is not None and v.outage is None)),
    ),
    Spec(
        name="ballast_metadata_timestamp_seconds",
        help="Unix time of the newest successful reading of the cluster.",
        samples=_of_figures(lambda f: f.taken_at_ms / 1000),
    ),
    Spec(
        name="ballast_mode",
        help="1 for the active mode of each kind of action.",
        labels=("action", "mode"),
        samples=lambda v: [
            ((s.action, mode), float(s.mode == mode)) for s in v.permissions for mode in ("observe", "approve", "auto")
        ],
    ),
    Spec(
        name="ballast_action_allowed",
        help="1 when this kind of action may start now; otherwise 0 and `reason` says which guard refuses.",
        labels=("action", "reason"),
        samples=lambda v: [((s.action, s.code), float(s.allowed)) for s in v.permissions],
    ),
    Spec(
        name="ballast_paused",
        help="1 while the pause switch is on.",
        samples=_one(lambda v: float(v.pause is not None)),
    ),
    Spec(
        name="ballast_active_or_observing",
        help="1 in the process that holds the cluster's lock, or that needs none because it only observes. Alerts use "
        "it, so that two instances do not alert twice.",
        samples=_one(lambda v: float(v.lock.held or v.role is Role.OBSERVING)),
    ),
    Spec(
        name="ballast_role",
        help="1 for what this process is: observing, active, standby, starting or stopping.",
        labels=("role",),
        samples=lambda v: [((r.value,), float(v.role is r)) for r in Role],
    ),
    Spec(
        name="ballast_journal_readable",
        help="1 when the last attempt to read the journal succeeded and this version understands its records; absent where there is "
        "none (observe).",
        samples=_one(lambda v: None if v.lock.journal_readable is None else float(v.lock.journal_readable)),
    ),
    Spec(
        name="ballast_brokers",
        help="Brokers that the cluster or a replica list names.",
        samples=_of_figures(lambda f: len(f.brokers)),
    ),
    Spec(
        name="ballast_brokers_alive",
        help="Brokers that are alive: registered and not fenced.",
        samples=_of_figures(lambda f: f.alive),
    ),
    Spec(name="ballast_topics", help="Topics.", samples=_of_figures(lambda f: f.topics)),
    Spec(name="ballast_partitions", help="Partitions.", samples=_of_figures(lambda f: f.partitions)),
    Spec(
        name="ballast_under_replicated_partitions",
        help="Partitions with fewer in-sync replicas than assigned replicas, as kafka-topics --under-replicated-partitions "
        "counts them.",
        samples=_of_figures(lambda f: f.under_replicated),
    ),
    Spec(
        name="ballast_under_min_isr_partitions",
        help="Partitions with fewer in-sync replicas than min.insync.replicas requires (since Kafka 3.7 never more than the replication factor); absent where none is known to be, and "
        "`ballast_min_isr_unknown_partitions` is not 0.",
        samples=_of_figures(lambda f: _unless_unknown(f, f.under_min_isr)),
    ),
    Spec(
        name="ballast_at_min_isr_partitions",
        help="Partitions with exactly as many in-sync replicas as min.insync.replicas requires; absent as the one above.",
        samples=_of_figures(lambda f: _unless_unknown(f, f.at_min_isr)),
    ),
    Spec(
        name="ballast_min_isr_unknown_partitions",
        help="Under-replicated partitions of topics whose min.insync.replicas could not be read: they may be under min ISR.",
        samples=_of_figures(lambda f: f.min_isr_unknown),
    ),
    Spec(
        name="ballast_offline_partitions",
        help="Offline partitions: without a leader.",
        samples=_of_figures(lambda f: f.offline),
    ),
    Spec(
        name="ballast_reassigning_partitions",
        help="Partitions being reassigned, by Ballast or another user.",
        samples=_of_figures(lambda f: f.reassigning),
    ),
    Spec(
        name="ballast_leader_imbalance_ratio",
        help="Of the partitions whose preferred leader is this broker, the fraction (0 to 1) that it does not lead.",
        labels=("broker",),
        samples=_per_broker("imbalance_ratio"),
    ),
    Spec(
        name="ballast_leader_imbalance_threshold_ratio",
        help="The fraction (0 to 1) above which a broker counts as imbalanced: leader.imbalance.per.broker.percentage.",
        samples=_of_figures(lambda f: f.leader_imbalance_threshold_ratio),
    ),
    Spec(
        name="ballast_broker_alive",
        help="1 for a broker that is alive, 0 for one that is down.",
        labels=("broker",),
        samples=_per_broker("alive"),
    ),
    Spec(
        name="ballast_broker_draining",
        help="1 for a broker that the settings or a person drain; once it holds no replicas it may be stopped.",
        labels=("broker",),
        samples=_per_broker("draining"),
    ),
    Spec(
        name="ballast_broker_replicas",
        help="Replicas on this broker.",
        labels=("broker",),
        samples=_per_broker("replicas"),
    ),
    Spec(
        name="ballast_broker_leaders",
        help="Partitions that this broker leads.",
        labels=("broker",),
        samples=_per_broker("leaders"),
    ),
    Spec(
        name="ballast_broker_preferred_leaders",
        help="Partitions whose preferred leader is this broker.",
        labels=("broker",),
        samples=_per_broker("preferred_leaders"),
    ),
    Spec(
        name="ballast_broker_replica_bytes",
        help="Bytes of all replicas on this broker whose size it reported.",
        labels=("broker",),
        samples=_per_broker("replica_bytes"),
    ),
    Spec(
        name="ballast_broker_disk_capacity_bytes",
        help="Total size of this broker's log dirs (Kafka 3.3 and later).",
        labels=("broker",),
        samples=_per_broker("disk_total_bytes"),
    ),
    Spec(
        name="ballast_broker_disk_usable_bytes",
        help="Free space in this broker's log dirs (Kafka 3.3 and later).",
        labels=("broker",),
        samples=_per_broker("disk_usable_bytes"),
    ),
    Spec(
        name="ballast_broker_failed_log_dirs",
        help="Offline log dirs of this broker (KAFKA_STORAGE_ERROR); absent where it did not report its log dirs.",
        labels=("broker",),
        samples=_per_broker("failed_log_dirs"),
    ),
    Spec(
        name="ballast_balance_mean",
        help="Average fair share of a resource over the brokers that take part, in the resource's own unit.",
        labels=("resource",),
        samples=_per_balance(lambda f: (((lv.resource,), lv.mean) for lv in f.ranges)),
    ),
    Spec(
        name="ballast_balance_range",
        help="Lower and upper edge of the range in which a broker is left alone, averaged over brokers, in the resource's own unit.",
        labels=("resource", "edge"),
        samples=_per_balance(
            lambda f: (
                ((lv.resource, edge), value) for lv in f.ranges for edge, value in (("low", lv.low), ("high", lv.high))
            )
        ),
    ),
    Spec(
        name="ballast_balance_skew_ratio",
        help="The largest distance of any broker from its fair share, as a fraction of that share.",
        labels=("resource",),
        samples=_per_balance(lambda f: (((lv.resource,), lv.skew) for lv in f.ranges)),
    ),
    Spec(
        name="ballast_balance_brokers_out_of_range",
        help="Brokers out of range of a resource.",
        labels=("resource",),
        samples=_per_balance(lambda f: (((lv.resource,), float(len(lv.brokers_out_of_range))) for lv in f.ranges)),
    ),
    Spec(
        name="ballast_cross_rack_bytes_per_second",
        help="Bytes per second from one rack to another, by who sends or fetches them (producers, followers, consumers); absent where racks or the traffic are not known, or for consumers where that of one partition is not.",
        labels=("clients",),
        samples=_per_balance(_cross_rack),
    ),
    Spec(
        name="ballast_throttled_topics",
        help="Topics with leader.replication.throttled.replicas or follower.replication.throttled.replicas, set by anyone.",
        samples=_of_figures(lambda f: len(f.throttles.topics)),
    ),
    Spec(
        name="ballast_throttled_brokers",
        help="Brokers with a dynamic replication throttle rate, set by anyone.",
        samples=_of_figures(lambda f: len(f.throttles.brokers)),
    ),
    Spec(
        name="ballast_throttle_bytes_per_second",
        help="The lowest replication throttle rate on any broker; absent when none is set.",
        samples=_of_figures(lambda f: None if f.throttles.bytes_per_s == UNKNOWN else f.throttles.bytes_per_s),
    ),
    Spec(
        name="ballast_throttles_to_restore",
        help="Throttles that Ballast set and has not yet removed; absent in observe mode, where nothing is removed.",
        samples=_one(lambda v: None if v.role is Role.OBSERVING else v.throttles_to_restore),
    ),
    Spec(
        name="ballast_foreign_activity",
        help="1 for another balancer or a foreign reassignment; Ballast waits where blocking is true.",
        labels=("who", "blocking"),
        samples=lambda v: [((o.code, str(o.blocking).lower()), 1.0) for o in v.others],
    ),
    Spec(
        name="ballast_requests_unreadable",
        help="Requests in the journal that this process cannot read (of a newer version, or not Ballast's), and so does not answer; absent where another process answers them.",
        samples=_one(lambda v: v.requests_skipped if v.role is Role.ACTIVE else None),
    ),
    Spec(
        name="ballast_plans",
        help="Plans that exist and were not started; pending_approval is true where a person's approval would start one.",
        labels=("action", "pending_approval"),
        samples=lambda v: [((p.action, str(p.pending_approval).lower()), 1.0) for p in v.plans],
    ),
    Spec(
        name="ballast_plan_cost_bytes",
        help="Bytes that a plan would send over the network; absent where the size of a partition is unknown.",
        labels=("action",),
        samples=lambda v: [((p.action,), float(p.bytes_moved)) for p in v.plans if p.bytes_moved is not None],
    ),
    Spec(
        name="ballast_plan_bound_bytes",
        help="The least bytes that any plan could move to reach the same ranges.",
        labels=("action",),
        samples=lambda v: [((p.action,), float(p.bound_bytes)) for p in v.plans if p.bound_bytes is not None],
    ),
    Spec(
        name="ballast_plan_age_seconds",
        help="Age of a plan that was not started.",
        labels=("action",),
        samples=lambda v: [
            ((p.action,), age) for p in v.plans if p.created_at_ms and (age := _age_s(p.created_at_ms)) is not None
        ],
    ),
    Spec(
        name="ballast_run_active",
        help="1 while a run is in progress.",
        samples=_one(lambda v: float(v.run is not None)),
    ),
    Spec(
        name="ballast_run_moves_left",
        help="Moves of the current run that are not done; 0 when there is none.",
        samples=_run_or_zero(lambda r: r.moves_total - r.moves_verified - r.moves_ended_otherwise),
    ),
    Spec(
        name="ballast_run_bytes_left",
        help="Bytes the current run still has to copy; 0 when there is none, absent where the size of a partition is unknown.",
        samples=_run_or_zero(lambda r: r.bytes_left),
    ),
    Spec(
        name="ballast_run_rate_bytes_per_second",
        help="Rate at which the current run copies; 0 when there is none, absent until it is known.",
        samples=_run_or_zero(lambda r: r.bytes_per_s),
    ),
    Spec(
        name="ballast_run_time_left_seconds",
        help="Estimated time until the current run is done; absent when it cannot be estimated.",
        samples=_of_run(lambda r: r.seconds_left),
    ),
    Spec(
        name="ballast_run_throttle_bytes_per_second",
        help="The throttle that the current run set; absent when it set none.",
        samples=_of_run(lambda r: r.throttle_bytes_per_s),
    ),
    Spec(
        name="ballast_check_timestamp_seconds",
        help="Unix time at which a check last began.",
        labels=("check",),
        samples=lambda v: [((name,), t.at_ms / 1000) for name, t in v.checks.items()],
    ),
    Spec(
        name="ballast_check_failures_in_a_row",
        help="How often a check has failed since it last succeeded.",
        labels=("check",),
        samples=lambda v: [((name,), float(t.failures)) for name, t in v.checks.items()],
    ),
    Spec(
        name="ballast_sample_timestamp_seconds",
        help="Unix time of the newest minute that this process recorded for the load model; absent before the first one.",
        samples=_one(lambda v: None if v.sampled_at_ms is None else v.sampled_at_ms / 1000),
    ),
    Spec(
        name="ballast_sample_failures_in_a_row",
        help="How many samples could not be recorded since the last one that could; absent where none is kept.",
        samples=_one(lambda v: None if v.sample_failures is None else float(v.sample_failures)),
    ),
    Spec(
        name="ballast_settings_valid",
        help="1 when the newest settings file is active, 0 when it is invalid or cannot be read and the previous settings stay active.",
        samples=_one(lambda v: float(not v.settings_problem)),
    ),
    Spec(
        name="ballast_topic_size_bytes",
        help="Bytes of all replicas of a topic, absent where the size of one is unknown. Only with web.topic_metrics.",
        labels=("topic",),
        samples=lambda v: [
            ((t.name,), float(t.size_bytes))
            for t in (v.figures.per_topic if v.figures else ())
            if t.size_bytes != UNKNOWN
        ],
    ),
    Spec(
        name="ballast_topic_under_replicated_partitions",
        help="Under-replicated partitions of a topic. Only with web.topic_metrics.",
        labels=("topic",),
        samples=lambda v: [((t.name,), float(t.under_replicated)) for t in (v.figures.per_topic if v.figures else ())],
    ),
)
