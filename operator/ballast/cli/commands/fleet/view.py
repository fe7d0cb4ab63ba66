"""The fleet's report on a terminal and as JSON: the worst cluster first, and those that did not answer before all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ballast.cli.commands.fleet.page import moment, notes, risk
from ballast.cli.documents import history as documents
from ballast.cli.tables import Cell, Column, Row, console, human_bytes, human_count, human_percent, render_table
from ballast.core.cluster import STORAGE_ERROR
from ballast.core.plan.log_dirs import NAMED
from ballast.core.what_if import BALANCE
from ballast.core.wording import ShowLine, human_log_dir_error, human_many, human_plan_status

if TYPE_CHECKING:
    from ballast.pipeline.fleet_store import Contact, FleetReport

COLUMNS = (
    Column("cluster", "left"),
    Column("brokers", rank=1),
    Column("partitions"),
    Column("offline"),
    Column("log dir errors"),
    Column("fullest disk"),
    Column("days to full"),
    Column("moves", rank=1),
    Column("copies"),
    Column("plan", "left"),
)


def document(report: FleetReport) -> documents.FleetReport:
    """Every plan, who did not answer, and which names are one cluster."""
    read = report.last_read
    return documents.FleetReport(
        plans=[documents.FleetPlan(**row) for row in report.plans],
        unreachable=[
            documents.Unreachable(name=c.name, tried_at=c.tried_at, detail=c.detail, last_read=read.get(c.name))
            for c in report.unreachable
        ],
        unplanned=report.unplanned,
        same_cluster=[documents.SameCluster(cluster=i, names=names) for i, names in report.same_cluster.items()],
    )


def show(report: FleetReport, on_line: ShowLine) -> None:
    """A line for each cluster; what a cluster that does not answer was like when it was last read."""
    balance = sorted((r for r in report.plans if r["scenario"] == BALANCE), key=lambda r: (*risk(r), r["name"]))
    figures = {r["name"]: r for r in balance}
    away = {c.name for c in report.unreachable}
    rows = [_unreachable(c, figures.get(c.name)) for c in report.unreachable]
    rows += [_line(r, human_plan_status(r["status"])) for r in balance if r["name"] not in away]
    rows += [_bare(name, "not planned yet") for name in report.unplanned]
    screen = console()
    screen.print(render_table(COLUMNS, rows, screen.width))
    for contact in report.unreachable:
        on_line(f"{contact.name} did not answer at {moment(contact.tried_at)}: {contact.detail}")
    for sentence in notes(report):
        on_line(sentence)
    for row in balance:
        for told in _log_dirs(row):
            on_line(told)


def _log_dirs(row: dict[str, Any]) -> Iterator[str]:
    """A sentence for each log dir of a cluster that reported an error, or how many more there are."""
    errors = row["log_dir_errors"]
    for e in errors[:NAMED]:
        told = human_log_dir_error(e["broker"], e["path"], e["error"], failed=e["error"] == STORAGE_ERROR)
        yield f"{row['name']}: {told}"
    if len(errors) > NAMED:
        yield f"{row['name']}: {human_many(len(errors) - NAMED, 'more log dir')} reported errors (--output json names them)."


def _unreachable(contact: Contact, row: dict[str, Any] | None) -> Row:
    if row is None:
        return _bare(contact.name, Cell("unreachable, never read", "red"))
    return _line(row, Cell(f"unreachable, last read {moment(row['taken_at'])}", "red"))


def _bare(name: str, plan: str | Cell) -> Row:
    return [name, *("-" for _ in COLUMNS[2:]), plan]


def _line(r: dict[str, Any], plan: str | Cell) -> Row:
    return [
        r["name"],
        str(r["brokers"]),
        human_count(r["partitions"]),
        _figure_or_dash(r["offline"], human_count),
        Cell(human_count(len(r["log_dir_errors"])), "red" if r["log_dir_errors"] else ""),
        "-" if r["disk_full_before"] is None else human_percent(r["disk_full_before"], 0),
        "-" if r["days_to_full"] is None else f"{r['days_to_full']:.0f}",
        "-" if r["moves"] is None else human_count(r["moves"] - r["replica_list_changes"]),
        _figure_or_dash(r["bytes_moved"], human_bytes),
        plan,
    ]


def _figure_or_dash(figure: int | None, show: Callable[[int], str]) -> str:
    return "-" if figure is None else show(figure)
