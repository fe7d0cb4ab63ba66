"""What a simulation tells, as tables for people and as JSON for programs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from ballast.cli.documents import simulation as documents
from ballast.cli.documents.base import Partition
from ballast.cli.tables import Cell, Column, Row, console, human_bytes, human_names, human_percent, render_table
from ballast.core.plan.file import ObstacleLine
from ballast.core.wording import human_brokers, human_many, human_time, human_total

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState, TopicPartition
    from ballast.core.plan import Plan
    from ballast.core.what_if.loss import Health, Loss
    from ballast.sim.play import BrokerFailure, BrokerPeak, Playback

BROKERS_SHOWN: Final = 40
NAMES_SHOWN: Final = 8
EVENTS_SHOWN: Final = 12


def show_play(played: Playback, failure: BrokerFailure | None) -> None:
    """How a plan would go."""
    out = console()
    style = "green" if played.status == "done" else "yellow"
    out.print(_headline(played), style=style)
    out.print(
        f"  {human_bytes(played.bytes_copied)} are copied; the busiest link needs {human_time(played.min_seconds)}."
    )
    if failure is not None:
        out.print()
        for line in _after_failure(played, failure):
            out.print(line)
    if len(played.events) > 1:
        out.print()
        for at_s, sentence in _shorten(played.events):
            out.print(f"  after {human_time(at_s)}: {sentence}")
    shown = _select_brokers(played.brokers)
    if shown:
        out.print()
        out.print(_peaks(shown, out.width))
        if len(played.brokers) > len(shown):
            out.print(f"  … and {len(played.brokers) - len(shown)} more brokers (--output json has them all)")
    out.print()
    for sentence in played.assumptions:
        out.print(f"Assumed: {sentence}", style="dim")


def _headline(played: Playback) -> str:
    ended = f"{played.moves_ended:,} of {played.moves:,} moves"
    match played.status:
        case "done":
            return f"The plan is executed in {human_time(played.seconds)}: {ended} made and verified."
        case "waiting":
            return (
                f"The run would still be waiting after {human_time(played.seconds)}, with {ended} ended. "
                "Cancel it, bring the broker back, or give --cancel-stalled-after."
            )
        case _:
            return (
                f"The run ends as {played.status} after {human_time(played.seconds)}, with {ended} made and verified."
            )


def _after_failure(played: Playback, failure: BrokerFailure) -> list[str]:
    brokers = sorted(failure.brokers)
    fail = "fails" if len(failure.brokers) == 1 else "fail"
    if played.failed_at_s is None:
        return [f"The run is over before {human_brokers(brokers)} could fail; give an earlier --at."]
    lines = [f"{human_brokers(brokers, start=True)} {fail} after {human_time(played.failed_at_s)}:"]
    for kind, words in _TROUBLE.items():
        names = played.troubled.get(kind, [])
        if names:
            lines.append(f"  {human_many(len(names), 'partition')} {words}: {human_names(names, NAMES_SHOWN)}")
    if not any(played.troubled.values()):
        lines.append("  Every partition keeps a leader and stays above min ISR.")
    if played.after is not None:
        lines.append(
            f"  At the end {len(played.after.offline):,} are offline and {len(played.after.under_replicated):,} are under-replicated."
        )
    return lines


_TROUBLE: Final = {
    "offline": "are offline",
    "under_min_isr": "are under min ISR",
    "at_min_isr": "are at min ISR",
    "min_isr_unknown": "may be under min ISR (min.insync.replicas is not known)",
}


def _shorten(events: list[tuple[float, str]]) -> list[tuple[float, str]]:
    if len(events) <= EVENTS_SHOWN:
        return events
    return [*events[: EVENTS_SHOWN - 2], (events[-2][0], f"… ({len(events) - EVENTS_SHOWN} more)"), *events[-2:]]


def _select_brokers(brokers: list[BrokerPeak]) -> list[BrokerPeak]:
    """All of them, or those to which something happens."""
    if len(brokers) <= BROKERS_SHOWN:
        return brokers
    busy = sorted(brokers, key=lambda b: -(b.in_peak + b.out_peak))[:BROKERS_SHOWN]
    return sorted(busy, key=lambda b: b.broker)


def _peaks(brokers: list[BrokerPeak], width: int) -> Any:
    columns = [Column("Broker"), Column("Disk now", rank=2), Column("Peak disk"), Column("Peak disk %"),
               Column("When", rank=3), Column("Disk after", rank=1), Column("Peak in"), Column("Peak out"),
               Column("Leaders", rank=1)]  # fmt: skip
    rows: list[Row] = []
    for b in brokers:
        full = "?" if not b.disk_total else human_percent(b.disk_peak / b.disk_total)
        tight = bool(b.disk_total) and b.disk_peak > 0.9 * (b.disk_total or 0)
        led = str(b.leaders_after)
        rows.append(
            [
                str(b.broker),
                human_bytes(b.disk_before),
                human_bytes(b.disk_peak),
                Cell(full, "red" if tight else ""),
                human_time(b.disk_peak_at_s) if b.disk_peak_at_s else "-",
                human_bytes(b.disk_after),
                _rate(b.in_peak, b.in_usual),
                _rate(b.out_peak, b.out_usual),
                led if b.leaders_before == b.leaders_after else f"{b.leaders_before} → {led}",
            ]
        )
    return render_table(columns, rows, width)


def _rate(peak: float, usual: float | None) -> str:
    told = f"{human_bytes(peak)}/s" if peak else "-"
    return told if not usual else f"{human_bytes(usual)}/s + {told}" if peak else f"{human_bytes(usual)}/s"


def play_document(played: Playback, plan: Plan, failure: BrokerFailure | None) -> documents.Simulation:
    """The whole of it for programs."""
    return documents.Simulation(
        intent=plan.intent,
        status=played.status,
        seconds=played.seconds,
        min_seconds=played.min_seconds,
        moves=played.moves,
        moves_ended=played.moves_ended,
        bytes_copied=round(played.bytes_copied),
        broker_failure=None
        if failure is None or played.failed_at_s is None
        else _failure(played, failure, played.failed_at_s),
        brokers=[
            documents.BrokerPeak(
                id=b.broker,
                disk_bytes_before=round(b.disk_before),
                disk_bytes_peak=round(b.disk_peak),
                disk_peak_at_second=b.disk_peak_at_s,
                disk_bytes_after=round(b.disk_after),
                disk_total_bytes=None if b.disk_total is None else round(b.disk_total),
                copy_in_peak_bytes_per_s=round(b.in_peak),
                copy_out_peak_bytes_per_s=round(b.out_peak),
                usual_in_bytes_per_s=None if b.in_usual is None else round(b.in_usual),
                usual_out_bytes_per_s=None if b.out_usual is None else round(b.out_usual),
                leaders_before=b.leaders_before,
                leaders_after=b.leaders_after,
            )
            for b in played.brokers
        ],
        events=[documents.SimulatedEvent(second=at_s, detail=sentence) for at_s, sentence in played.events],
        assumptions=list(played.assumptions),
    )


def _failure(played: Playback, failure: BrokerFailure, at_s: float) -> documents.BrokerFailure:
    return documents.BrokerFailure(
        brokers=sorted(failure.brokers),
        at_second=at_s,
        offline=_names(played.troubled.get("offline", [])),
        under_min_isr=_names(played.troubled.get("under_min_isr", [])),
        at_min_isr=_names(played.troubled.get("at_min_isr", [])),
        offline_at_end=None if played.after is None else len(played.after.offline),
        under_replicated_at_end=None if played.after is None else len(played.after.under_replicated),
    )


def _names(names: list[TopicPartition]) -> list[Partition]:
    return [Partition.of(n) for n in names]


# Losing brokers without a plan


def show_loss(loss: Loss, repair: Plan, *, rate_bytes_per_s: int | None) -> None:
    """What the cluster would look like."""
    out = console()
    health = loss.health_after
    named = ", ".join(map(str, loss.brokers))
    bad = len(health.offline) or len(health.under_min_isr) or len(health.min_isr_unknown)
    head = f"Without broker{'s' if len(loss.brokers) > 1 else ''} {named}: "
    out.print(head + _counts(health), style="red" if bad else "green")
    out.print(f"  {loss.leaders_moved:,} partitions get another leader.")
    for kind, words in _TROUBLE.items():
        new = loss.find_new(kind)
        if new:
            out.print(f"  {len(new):,} more than now {words}: {human_names(new, NAMES_SHOWN)}")
    out.print()
    for line in _repair_lines(repair, rate_bytes_per_s):
        out.print(line)
    rows = _broker_rows(loss, repair)
    if len(rows) <= BROKERS_SHOWN:
        columns = [Column("Broker"), Column("Rack", "left", 3), Column("Leaders"), Column("Disk now"),
                   Column("Disk after repair"), Column("Full after repair")]  # fmt: skip
        table: list[Row] = [
            [
                f"{r.id} (lost)" if r.lost else str(r.id),
                r.rack or "-",
                f"{r.leaders_before} → {r.leaders_after}",
                _at_least(r.disk_bytes_before, r.replica_bytes_before),
                _at_least(r.disk_bytes_after_repair, r.replica_bytes_after_repair),
                _full(r),
            ]
            for r in rows
        ]
        out.print()
        out.print(render_table(columns, table, out.width))


def _full(b: documents.BrokerLoss) -> str:
    if b.disk_total_bytes is None or b.disk_bytes_after_repair is None:
        return "?"
    return human_percent(b.disk_bytes_after_repair / b.disk_total_bytes)


def _counts(health: Health) -> str:
    return (
        f"{len(health.offline):,} partitions are offline, {len(health.under_min_isr):,} are under min ISR, "
        + (f"{len(health.min_isr_unknown):,} may be too, " if len(health.min_isr_unknown) else "")
        + f"{len(health.under_replicated):,} are under-replicated."
    )


def _repair_lines(repair: Plan, rate_bytes_per_s: int | None) -> list[str]:
    if repair.status == "nothing-to-do":
        return ["Nothing would have to be rebuilt."]
    if repair.status == "no-plan-found":
        return ["No plan was found that rebuilds any of it on the brokers that are left.", *_obstacles(repair)]
    copies = repair.summary.get("replica_moves", 0)
    busiest = repair.summary.get("busiest_bytes", 0)
    if busiest is None:
        time = "for a time that cannot be estimated, as some sizes are not known"
    elif rate_bytes_per_s is None:
        time = "for a time that no throttle bounds"
    else:
        rate = f"{human_bytes(rate_bytes_per_s)}/s into and out of each broker"
        time = f"about {human_time(busiest / rate_bytes_per_s)} at {rate}"
    line = f"To repair it without them, copy {human_many(copies, 'replica')} ({human_total(repair.bytes_moved, repair.unknown_sizes)}): {time}."
    return [line, *_obstacles(repair)]


def _obstacles(repair: Plan) -> list[str]:
    out = [f"  {o.subject}: {o.detail}." for o in repair.obstacles[:NAMES_SHOWN]]
    more = len(repair.obstacles) - len(out)
    return out + ([f"  … and {more} more obstacles."] if more > 0 else [])


def _broker_rows(loss: Loss, repair: Plan) -> list[documents.BrokerLoss]:
    led_before, led_after = _count_leaders(loss.before), _count_leaders(loss.after)
    sizes = loss.before.partitions.size_bytes
    held = {b["broker"]: b for b in repair.summary.get("brokers", [])}
    replicas = {
        b.id: int(sizes[(loss.before.partitions.replica == b.id) & (sizes >= 0)].sum()) for b in loss.before.brokers
    }
    # What else lies on the disk, Kafka's or not, is there before and after.
    other = {b.id: max(b.used_bytes - replicas[b.id], 0) if b.used_bytes >= 0 else None for b in loss.before.brokers}
    return [
        documents.BrokerLoss(
            id=b.id,
            rack=b.rack,
            lost=b.id in loss.brokers,
            leaders_before=led_before[b.id],
            leaders_after=led_after[b.id],
            disk_bytes_before=_with(other[b.id], held[b.id]["before"].get("disk")),
            disk_bytes_after_repair=_with(other[b.id], held[b.id]["after"].get("disk")),
            disk_total_bytes=b.capacity_bytes if b.capacity_bytes > 0 else None,
            replica_bytes_before=held[b.id]["before"].get("disk"),
            replica_bytes_after_repair=held[b.id]["after"].get("disk"),
        )
        for b in loss.before.brokers
    ]


def _with(other: int | None, replicas: int | None) -> int | None:
    return None if replicas is None or other is None else other + replicas


def _at_least(disk: int | None, replicas: int | None) -> str:
    """What lies on a broker's disks; where it does not tell, Kafka's replicas are the least that it is."""
    return f"≥ {human_bytes(replicas)}" if disk is None and replicas is not None else human_bytes(disk)


def _count_leaders(state: ClusterState) -> Counter[int]:
    return Counter(state.partitions.leader.tolist())


def loss_document(loss: Loss, repair: Plan) -> documents.Loss:
    """The whole of it for programs."""
    health = loss.health_after
    return documents.Loss(
        brokers_lost=list(loss.brokers),
        leaders_moved=loss.leaders_moved,
        under_replicated=len(health.under_replicated),
        offline=_rows(loss, health.offline.tolist()),
        under_min_isr=_rows(loss, health.under_min_isr.tolist()),
        at_min_isr=_rows(loss, health.at_min_isr.tolist()),
        min_isr_unknown=_rows(loss, health.min_isr_unknown.tolist()),
        repair=documents.Repair(
            status=repair.status,
            replicas=repair.summary.get("replica_moves", 0),
            bytes=repair.known_bytes,
            obstacles=[ObstacleLine.of(o) for o in repair.obstacles],
        ),
        brokers=_broker_rows(loss, repair),
    )


def _rows(loss: Loss, rows: list[int]) -> list[Partition]:
    return _names([loss.after.name(row) for row in rows])
