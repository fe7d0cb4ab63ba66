"""How a ``ClusterStatus`` looks, to people and to programs (``docs/json.md`` describes the shape)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from ballast.cli.documents import cluster as documents
from ballast.cli.documents.base import Partition, span_ms
from ballast.cli.tables import (
    UNKNOWN_TEXT,
    Cell,
    Column,
    Row,
    human_bytes,
    human_count,
    human_many,
    human_moment,
    human_names,
    human_percent,
    render_table,
)
from ballast.core.cluster import TopicPartition
from ballast.core.planner.cross_rack.traffic import human_traffic, unknown_reads
from ballast.core.status import LOST, BrokerStatus, ClusterStatus, MovingPartition
from ballast.core.wording import human_brokers, human_log_dir_error

FEW: Final = 10
"""Under-replicated, offline and reassigning partitions named in a table unless all are asked for."""

_BROKER_COLUMNS: Final = (
    Column("BROKER"),
    Column("STATE", "left"),
    Column("RACK", "left", rank=3),
    Column("REPLICAS"),
    Column("LEADERS"),
    Column("PREFERRED LEADERS", rank=2),
    Column("IMBALANCE"),
    Column("OUT OF SYNC", rank=4),
    Column("DATA", rank=1),
    Column("DISK USED", rank=2),
    Column("DISK", rank=3),
    Column("HOST", "left", rank=5),
)


def document(status: ClusterStatus) -> documents.Status:
    """For programs; every figure that is not known is null."""
    return documents.Status(
        taken_at_ms=status.taken_at_ms,
        cluster=documents.Cluster(
            id=status.cluster_id,
            kafka_version=status.kafka_version,
            mode=status.mode,
            controller_id=status.controller_id,
            topics=status.topics,
            internal_topics=status.internal_topics,
            deleting_topics=list(status.deleting_topics),
            partitions=status.partitions,
            replicas=status.replicas,
        ),
        needs_attention=status.needs_attention,
        leader_imbalance=documents.Imbalance(
            threshold_ratio=status.threshold.value / 100,
            threshold_origin=status.threshold.origin,
            ratio=status.imbalance_ratio,
            brokers_over_threshold=list(status.over_threshold),
        ),
        skew=[documents.Skew(resource=r.resource, brokers_out_of_range=list(r.outside)) for r in status.skew],
        cross_rack=cast("documents.CrossRack | None", status.cross_rack),
        brokers=[_broker(b) for b in status.brokers],
        partitions_with_problems=documents.Problems(
            offline=_partitions(status.unhealthy.offline),
            under_min_isr=_partitions(status.unhealthy.under_min_isr),
            under_replicated=_partitions(status.unhealthy.under_replicated),
            min_isr_unknown=_partitions(status.unhealthy.min_isr_unknown),
        ),
        leaves_isr_after_ms=span_ms(status.leaves_isr_after_s),
        reassigning=[_moving(m) for m in status.moving],
        throttles=[
            documents.ThrottleSetting(
                resource_type=t.setting.kind,
                resource_name=t.setting.name,
                key=t.setting.key,
                value=t.value,
                stale=t.stale,
                detail=t.why,
            )
            for t in status.throttles
        ],
        other_balancers=status.others,
        drains=status.drains,
        journal=documents.JournalFate(
            state=status.journal,
            recreated_at_ms=status.journal_recreated_ms,
        ),
        gaps=status.gaps,
    )


def _broker(b: BrokerStatus) -> documents.Broker:
    return documents.Broker(
        id=b.broker.id,
        rack=b.broker.rack,
        host=b.broker.host or None,
        port=b.broker.port or None,
        alive=b.broker.alive,
        reachable=b.broker.alive and b.broker.reachable,
        controller=b.broker.controller,
        cordoned=b.broker.cordoned,
        replicas=b.replicas,
        leaders=b.leaders,
        preferred_leaders=b.preferred_leaders,
        preferred_not_led=b.not_led,
        imbalance_ratio=b.imbalance_ratio,
        over_threshold=b.over_threshold,
        out_of_sync_replicas=b.out_of_sync,
        offline_replicas=b.offline_replicas,
        replica_bytes=b.replica_bytes,
        replicas_of_unknown_size=b.unknown_sizes,
        disk_total_bytes=b.broker.capacity_bytes,
        disk_used_bytes=b.disk_used_bytes,
        log_dirs=b.broker.log_dirs,
    )


def _moving(m: MovingPartition) -> documents.Moving:
    return documents.Moving(
        topic=m.name.topic,
        partition=m.name.partition,
        replicas=list(m.replicas),
        adding=list(m.adding),
        removing=list(m.removing),
        copied_bytes=m.copied_bytes,
        total_bytes=m.total_bytes,
    )


def _partitions(names: Sequence[TopicPartition]) -> list[Partition]:
    return [Partition.of(n) for n in names]


def draw(status: ClusterStatus, screen: Any, *, limit: int | None) -> None:
    """Print it on a rich console, at most ``limit`` partitions of each kind by name."""
    # A terminal would break the line in the middle of a word; a pipe gets each sentence whole.
    whole = not screen.is_terminal
    screen.print(_headline(status), soft_wrap=whole)
    screen.print()
    screen.print(render_table(_BROKER_COLUMNS, [_broker_row(b) for b in status.brokers], screen.width))
    screen.print()
    for cell in _findings(status, limit):
        screen.print(cell.text, style=cell.style or None, markup=False, soft_wrap=whole)
    if status.moving:
        screen.print()
        shown = status.moving[:limit]
        screen.print(render_table(_MOVING_COLUMNS, [_moving_row(m) for m in shown], screen.width))
        if len(shown) < len(status.moving):
            screen.print(f"… and {len(status.moving) - len(shown):,} more (--all names them)")
    if status.throttles:
        screen.print()
        rows: list[Row] = [
            (t.resource, t.setting.key, _shorten(t.value), Cell(t.why, "yellow" if t.stale else ""))
            for t in status.throttles
        ]
        screen.print(render_table(_THROTTLE_COLUMNS, rows, screen.width))
    for gap in status.gaps:
        screen.print(
            f"Missing: {gap.missing} of {gap.subject} ({gap.detail})", style="yellow", markup=False, soft_wrap=whole
        )


def _headline(status: ClusterStatus) -> str:
    mode = "KRaft" if status.mode == "kraft" else "ZooKeeper"
    alive = sum(b.broker.alive and b.broker.reachable for b in status.brokers)
    controller = status.controller_id if status.controller_id >= 0 else UNKNOWN_TEXT
    return (
        f"Cluster {status.cluster_id}: Kafka {status.kafka_version or UNKNOWN_TEXT}, {mode}, controller {controller}; "
        f"{alive} of {len(status.brokers)} brokers reachable, {human_many(status.topics, 'topic')}, "
        f"{human_many(status.partitions, 'partition')}, {human_many(status.replicas, 'replica')}"
    )


def _broker_row(b: BrokerStatus) -> Row:
    used, total = b.disk_used_bytes, b.broker.capacity_bytes
    share = f" ({used / total * 100:.0f} %)" if used >= 0 and total > 0 else ""
    data = human_bytes(b.replica_bytes) + ("+?" if b.replica_bytes >= 0 and b.unknown_sizes else "")
    return (
        str(b.broker.id),
        _broker_state(b),
        b.broker.rack or "-",
        human_count(b.replicas),
        human_count(b.leaders),
        human_count(b.preferred_leaders),
        Cell(
            human_percent(b.imbalance_ratio) + (" !" if b.over_threshold else ""), "yellow" if b.over_threshold else ""
        ),
        Cell(human_count(b.out_of_sync), "yellow" if b.out_of_sync else ""),
        data,
        human_bytes(used) + share,
        human_bytes(total),
        f"{b.broker.host}:{b.broker.port}" if b.broker.host else "-",
    )


def _broker_state(b: BrokerStatus) -> Cell:
    if not b.broker.alive:
        return Cell("down", "red")
    if not b.broker.reachable:
        return Cell("unreachable", "red")
    marks = ["controller"] if b.broker.controller else []
    marks += ["cordoned"] if b.broker.cordoned else []
    marks += ["log dir failed"] if any(d.failed for d in b.broker.log_dirs) else []
    marks += ["log dir error"] if any(d.error and not d.failed for d in b.broker.log_dirs) else []
    marks += ["log dirs unknown"] if not b.broker.log_dirs_known else []
    return Cell(", ".join(marks), "yellow" if set(marks) - {"controller"} else "") if marks else Cell("ok")


def _findings(status: ClusterStatus, limit: int | None) -> Iterator[Cell]:
    """One sentence each, worst first."""
    few = limit if limit is not None else status.partitions
    unhealthy = status.unhealthy
    for names, what in (
        (unhealthy.offline, "offline"),
        (unhealthy.under_min_isr, "under min ISR"),
        (unhealthy.under_replicated, "under-replicated"),
        (unhealthy.min_isr_unknown, "perhaps under min ISR (min.insync.replicas could not be read)"),
    ):
        if names:
            yield Cell(f"{len(names):,} partition{_s(names)} {what}: {human_names(names, few)}", "red")
    yield from _broker_findings(status, few)
    over = status.over_threshold
    figure = f"{status.threshold.value:g} %" + _ORIGINS[status.threshold.origin]
    overall = f"{human_percent(status.imbalance_ratio)} of all partitions are not led by their preferred leader"
    if over:
        yield Cell(
            f"Leader imbalance is over {figure} on broker{_s(over)} {human_names(over, few)}; {overall}. "
            "To elect preferred leaders: ballast elect",
            "yellow",
        )
    else:
        yield Cell(f"Leader imbalance is within {figure} on every broker; {overall}.")
    if status.skew:
        parts = ", ".join(f"{r.label} on {human_brokers(r.outside, few)}" for r in status.skew)
        yield Cell(f"Out of range: {parts}; see what would move: ballast plan balance", "yellow")
    elif status.partitions and not (status.gaps or status.broken or any(b.unknown_sizes for b in status.brokers)):
        yield Cell(
            f"Balanced: every broker is within its range of {human_names([r.label for r in status.ranges])}.", "green"
        )
    yield from _cross_rack(status)
    if status.deleting_topics:
        yield Cell(f"Being deleted: {human_names(status.deleting_topics, few)}")
    if status.moving:
        yield Cell(f"{len(status.moving):,} partition{_s(status.moving)} being reassigned.")
    stale = status.stale_throttles
    if stale:
        yield Cell(f"{len(stale)} stale throttle setting{_s(stale)}; see: ballast throttles", "yellow")
    if status.journal in LOST:
        yield Cell(_lost_journal(status), "yellow")
    for other in status.others:
        does = "moves replicas" if other.moves_replicas else "elects leaders"
        yield Cell(f"Also {does} here: {other.name} ({other.evidence}).")
    if not (unhealthy.any or status.down_brokers or status.unreachable_brokers or status.bad_log_dirs):
        yield Cell("No offline or under-replicated partitions.", "green")


def _cross_rack(status: ClusterStatus) -> Iterator[Cell]:
    if status.cross_rack is not None:
        told = human_traffic(status.cross_rack, status.cross_rack["currency"])
        for line in (f"Traffic between racks: {told}.", *unknown_reads(status.cross_rack)):
            yield Cell(line)
    elif status.cross_rack_unknown is not None:
        yield Cell(f"Traffic between racks: {UNKNOWN_TEXT} ({status.cross_rack_unknown}).")


def _lost_journal(status: ClusterStatus) -> str:
    """What is not known any more, and what to do about it."""
    if status.journal_recreated_ms is None:
        what = "Ballast's journal was deleted"
    else:
        what = f"Ballast's journal was deleted, and recreated empty at {human_moment(status.journal_recreated_ms)}"
    throttles = [t for t in status.throttles if not (t.in_ledger or t.set_by_hand or t.intended_by_user)]
    found = [f"{len(s):,} {name}{_s(s)}" for s, name in ((throttles, "throttle setting"), (status.moving, "move")) if s]
    stands = f" There are, and may be of such a run: {', '.join(found)}." if found else ""
    look = "ballast throttles" if status.journal_recreated_ms is None else "ballast throttles --clean"
    return f"{what}: it is not known what earlier runs have set.{stands} See: {look}"


def _broker_findings(status: ClusterStatus, few: int) -> Iterator[Cell]:
    if status.down_brokers:
        named, whose = human_names(status.down_brokers, few), "its" if len(status.down_brokers) == 1 else "their"
        ids = _as_arguments(status.down_brokers, few)
        told = f"Broker{_s(status.down_brokers)} {named} down. To rebuild {whose} replicas elsewhere: ballast plan evacuate {ids}"
        yield Cell(told, "red")
    if status.unreachable_brokers:
        named = human_names(status.unreachable_brokers, few)
        do = "does" if len(status.unreachable_brokers) == 1 else "do"
        yield Cell(
            f"Broker{_s(status.unreachable_brokers)} {named} {do} not answer; the cluster still lists it as alive."
            + (
                f" It leaves the ISRs of its partitions at most {status.leaves_isr_after_s:g} s after its last fetch."
                if status.leaves_isr_after_s >= 0
                else ""
            ),
            "red",
        )
    for broker, log_dir in status.bad_log_dirs[:few]:
        told = human_log_dir_error(broker, log_dir.path, log_dir.error or "", failed=log_dir.failed)
        yield Cell(told, "red")
    if len(status.bad_log_dirs) > few:
        yield Cell(f"… and {len(status.bad_log_dirs) - few:,} more log dirs with errors (--all names them)", "red")
    if failed := sorted({broker for broker, log_dir in status.bad_log_dirs if log_dir.failed}):
        ids = _as_arguments(failed, few)
        yield Cell(f"To rebuild elsewhere what was on failed log dirs: ballast plan evacuate {ids} --offline-only")
    for drain in status.drains or ():
        end = f"ballast drains end {drain.broker}"
        yield Cell(
            f"Drain of broker {drain.broker} ({drain.by}, {human_moment(drain.since_ms)}): it takes no replica until: {end}"
        )
    if status.departed_brokers:
        gone = human_names(status.departed_brokers, few)
        yield Cell(
            f"Broker{_s(status.departed_brokers)} {gone} down and hosts no replicas: unregister what is gone permanently "
            "(kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id BROKER)."
        )


_ORIGINS: Final = {"settings": " (as given)", "cluster": " (the cluster's own setting)", "default": ""}


def _as_arguments(brokers: Sequence[int], few: int) -> str:
    """All of them, as a command takes them, or none: with some of them it would look whole."""
    return " ".join(map(str, brokers)) if len(brokers) <= few else "BROKER…"


def _s(items: Sequence[object]) -> str:
    return "" if len(items) == 1 else "s"


_MOVING_COLUMNS: Final = (
    Column("REASSIGNING", "left"),
    Column("REPLICAS", "left", rank=2),
    Column("ADDING", "left"),
    Column("REMOVING", "left", rank=1),
    Column("COPIED"),
)
_THROTTLE_COLUMNS: Final = (
    Column("THROTTLE ON", "left"),
    Column("SETTING", "left"),
    Column("VALUE", "left", rank=1),
    Column("IN USE", "left"),
)
_VALUE_WIDTH: Final = 40


def _shorten(value: str) -> str:
    return value if len(value) <= _VALUE_WIDTH else value[: _VALUE_WIDTH - 1] + "…"


def _moving_row(m: MovingPartition) -> Row:
    progress = f"{human_bytes(m.copied_bytes)} of {human_bytes(m.total_bytes)}" if m.adding else "-"
    return (str(m.name), _ids(m.replicas), _ids(m.adding), _ids(m.removing), progress)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(str(b) for b in brokers) or "-"
