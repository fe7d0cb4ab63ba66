"""A plan as people read it: what is wrong, what to do, what it costs, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from ballast.cli.tables import Cell, Column, Row, console, human_bytes, human_count, human_many, render_table
from ballast.core.plan.log_dirs import warnings
from ballast.core.plan.work import outline
from ballast.core.planner.cross_rack.traffic import human_change
from ballast.core.planner.report.summary import notes
from ballast.core.wording import (
    human_brokers,
    human_percent,
    human_replicas,
    human_time,
    planned_elections,
)

if TYPE_CHECKING:
    from ballast.core.plan import Move, Plan

MOVES_SHOWN: Final = 12
BROKERS_SHOWN: Final = 40
_STYLE: Final = {
    "meets-all-goals": "green",
    "nothing-to-do": "green",
    "misses-some-goals": "yellow",
    "no-plan-found": "red",
}


def show(plan: Plan, *, rate_bytes_per_s: int | None) -> None:
    """Print the whole plan."""
    out = console()
    summary = plan.summary
    style = "yellow" if plan.is_empty and plan.log_dir_errors else _STYLE.get(plan.status, "")
    out.print(headline(plan), style=style)
    for line in (*cost_lines(plan, rate_bytes_per_s), *human_change(summary.get("cross_rack"))):
        out.print(f"  {line}")
    for table, line in _special(summary, out.width):
        out.print()
        out.print(table)
        out.print(f"  {line}")
    if summary.get("resources"):
        out.print()
        out.print(_resources(summary["resources"], out.width))
        for line in notes(summary["resources"]):
            out.print(f"  {line}")
    brokers = summary.get("brokers", [])
    if brokers and len(brokers) <= BROKERS_SHOWN:
        out.print()
        out.print(_brokers(brokers, summary["resources"], out.width))
    if plan.moves:
        out.print()
        out.print(_moves(plan, out.width))
        if len(plan.moves) > MOVES_SHOWN:
            out.print(f"  … and {len(plan.moves) - MOVES_SHOWN:,} more (--output json has them all)")
    for warning in warnings(plan):
        out.print()
        # A terminal would break a path in its middle; a pipe gets it whole.
        out.print(warning.detail, style="red", markup=False, soft_wrap=not out.is_terminal)
        out.print(f"  → {warning.remedy}", markup=False, soft_wrap=not out.is_terminal)
    for obstacle in plan.obstacles:
        out.print()
        out.print(f"{obstacle.subject}: {obstacle.detail}.", style="yellow")
        if obstacle.remedy:
            out.print(f"  → {obstacle.remedy}")
    if plan.assumptions:
        out.print()
    for assumption in plan.assumptions:
        out.print(f"Assumed: {assumption}", style="dim")


def warn(plan: Plan) -> None:
    """Say of log dirs on stderr what an answer in another form has no place for."""
    for warning in warnings(plan):
        click.echo(f"ballast: {warning.detail} {warning.remedy}", err=True)


def headline(plan: Plan) -> str:
    """The plan in one sentence."""
    if plan.status == "nothing-to-do" and plan.log_dir_errors:
        dirs = human_many(len(plan.log_dir_errors), "log dir")
        return f"{plan.intent}: no move to make, but {dirs} reported errors, see below."
    if plan.status == "nothing-to-do" and plan.obstacles:
        return f"{plan.intent}: nothing to do; no plan was found that brings brokers nearer to their ranges, see below."
    if plan.status == "nothing-to-do":
        return f"{plan.intent}: nothing to do, everything is within its range."
    if plan.status == "no-plan-found":
        return f"{plan.intent}: no plan was found; see the obstacles below."
    end = "" if plan.status == "meets-all-goals" else "; some goals are not met, see below"
    return f"{plan.intent}: {', '.join(outline(plan)) or 'nothing that can be done'}{end}."


def cost_lines(plan: Plan, rate_bytes_per_s: int | None) -> list[str]:
    """Bytes, bound and time."""
    if not any(m.adding for m in plan.moves):
        return ["No data is moved."] if plan.moves or plan.elections else []
    if plan.bytes_moved == 0:
        if all(m.size_bytes == 0 for m in plan.moves if m.adding):
            return ["Only partitions without any data move, so no bytes."]
        return ["No size is known, so neither bytes nor time can be estimated."]
    lines = []
    moved = f"{_bound_prefix(plan)}{_exact(plan.bytes_moved)}"
    if plan.bound_bytes:
        over = plan.bytes_moved / plan.bound_bytes - 1
        lines.append(
            f"Moves {moved}; lower bound {_exact(plan.bound_bytes)} "
            f"(this plan is {human_percent(over)} above; {plan.bound_method})."
        )
    else:
        lines.append(f"Moves {moved}.")
    lines += _tiered_lines(plan)
    if plan.summary.get("search_ended_early"):
        lines.append("The last step of the search ended at its limit of work; a plan with fewer bytes may exist.")
    busiest = plan.summary.get("busiest_bytes", 0)
    if busiest is None:
        lines.append(
            f"The time cannot be estimated, as the size of {human_many(plan.unknown_sizes, 'partition')} is not known."
        )
    elif busiest and rate_bytes_per_s is None:
        lines.append("No throttle bounds the copies, so their time is not estimated; --rate estimates it.")
    elif busiest and rate_bytes_per_s is not None:
        lines.append(
            f"At {human_bytes(rate_bytes_per_s)}/s into and out of each broker, in parallel, copying takes about "
            f"{human_time(busiest / rate_bytes_per_s)}; sequentially {human_time(plan.bytes_moved / rate_bytes_per_s)}."
        )
    return lines


def _bound_prefix(plan: Plan) -> str:
    """Whether the bytes are a bound: unknown sizes come on top, what is in remote storage may be left out."""
    less = bool(plan.summary.get("tiered", {}).get("at_most_on"))
    if plan.unknown_sizes:
        return "about " if less else "at least "
    return "at most " if less else ""


def _tiered_lines(plan: Plan) -> list[str]:
    tiered = plan.summary.get("tiered")
    if tiered is None:
        return []
    size = human_bytes(tiered["bytes_moved"])
    many = human_many(tiered["partitions"], "partition")
    told = f"{many} of tiered topics: what their leaders have on disk is copied ({size}), nothing of what is in remote storage."
    if not (brokers := tiered["at_most_on"]):
        return [told]
    less = f"On {human_brokers(brokers)} it may be less (follower.fetch.last.tiered.offset.enable)"
    return [told, f"{less}; the disks fill up to the same size later."]


_COLOCATION: Final = (
    ("different_sets", "DISTINCT REPLICA SETS"),
    ("preferred_leaders_max", "PREFERRED LEADERS, MAX"),
    ("preferred_leaders_min", "MIN"),
    ("max_leaders_taken_over", "MAX LEADERS TAKEN OVER (1 FAILURE)"),
    ("min_brokers_taking_over", "ON BROKERS"),
    ("max_partitions_shared_by_pair", "PARTITIONS LOSING 2 REPLICAS (2 FAILURES)"),
    ("mean_partitions_shared_by_pair", "ON AVERAGE"),
)


def _placement(figures: dict[str, Any], width: int) -> Any:
    """Losses of one broker and of two: the lists of now, the planned ones, and the naive layout."""
    columns = [Column("LISTS", "left"), *(Column(head) for _, head in _COLOCATION)]
    rows: list[Row] = [
        [name, *(f"{figures[side][key]:g}" for key, _ in _COLOCATION)]
        for side, name in (("now", "now"), ("placed", figures["algorithm"]), ("naive", "naive"))
        if not (side == "naive" and figures["algorithm"] == "naive")
    ]
    return render_table(columns, rows, width)


def _special(summary: dict[str, Any], width: int) -> Iterator[tuple[Any, str]]:
    """What ``plan place`` and ``plan leaders --minimize`` have to show beside resources: a table and a line each."""
    if "placement" in summary:
        yield _placement(summary["placement"], width), _instead(summary["instead"])
    if "leader_balance" in summary:
        yield _leads(summary["leader_balance"], width), _quality(summary["leader_balance"])


def _leads(balance: dict[str, Any], width: int) -> Any:
    """What each broker leads before and after."""
    show = human_bytes if balance["measure"] == "bytes" else human_count
    title = "Leader bytes" if balance["measure"] == "bytes" else "Preferred leaders"
    rows: list[Row] = [[str(b["broker"]), show(b["before"]), show(b["after"])] for b in balance["brokers"]]
    return render_table([Column("Broker"), Column(f"{title} now"), Column("After")], rows, width)


def _quality(balance: dict[str, Any]) -> str:
    if balance["measure"] == "counts":
        return "The least possible maximum, with the fewest replica list changes."
    bound = human_bytes(balance["bound"])
    return f"The maximum is {balance['gap'] * 100:.3f} % above the lower bound ({bound})."


def _instead(balance: dict[str, Any]) -> str:
    """What balancing the same topics would do."""
    if not balance["moves"] and not balance["elections"]:
        return "Balancing these topics instead would move nothing."
    return (
        f"Balancing these topics instead would move {human_bytes(balance['bytes_moved'])}: "
        f"{human_many(balance['moves'], 'move')}, {planned_elections(balance['elections'])}."
    )


def _exact(size: int) -> str:
    """Three decimals, so that a plan and its bound can be told apart."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.3f} {unit}"
    return f"{size} B"


def human_load(value: float, unit: str) -> str:
    """A load in its resource's unit."""
    if unit == "bytes":
        return human_bytes(value)
    if unit == "bytes/s":
        return f"{human_bytes(value)}/s"
    if unit == "cpu":
        return f"{value / 1e6:.1f} %"
    return human_count(round(value))


def _resources(resources: list[dict[str, Any]], width: int) -> Any:
    columns = [Column("Resource", "left"), Column("Range"), Column("Min … max before"), Column("Out of range"),
               Column("Min … max after"), Column("Out of range")]  # fmt: skip
    rows: list[Row] = []
    for r in resources:
        before, after = r["before"], r["after"]
        rows.append(
            [
                r["label"],
                f"±{human_percent(r['range'], 0)}",
                f"{human_percent(before['minimum'], 0)} … {human_percent(before['maximum'], 0)}",
                _out_of_range(before["out_of_range"]),
                f"{human_percent(after['minimum'], 0)} … {human_percent(after['maximum'], 0)}",
                _out_of_range(after["out_of_range"]),
            ]
        )
    return render_table(columns, rows, width)


def _out_of_range(count: int) -> Cell:
    return Cell(human_many(count, "broker") if count else "none", "yellow" if count else "green")


def _brokers(brokers: list[dict[str, Any]], resources: list[dict[str, Any]], width: int) -> Any:
    columns = [Column("Broker"), Column("Rack", "left", 3)]
    for r in resources:
        rank = 0 if r["name"] in {"disk", "preferred-leaders"} else 2
        columns.append(Column(r["label"], rank=rank))
    columns += [Column("In", rank=1), Column("Out", rank=1)]
    rows: list[Row] = []
    for b in brokers:
        row: list[str | Cell] = [str(b["broker"]) if b["alive"] else f"{b['broker']} (down)", b["rack"] or "-"]
        for r in resources:
            old, new = (human_load(b[side][r["name"]], _unit(r)) for side in ("before", "after"))
            row.append(old if old == new else f"{old} → {new}")
        row += [human_bytes(b["bytes_received"]), human_bytes(b["bytes_deleted"])]
        rows.append(row)
    return render_table(columns, rows, width)


def _unit(resource: dict[str, Any]) -> str:
    unit = resource["unit"]
    assert isinstance(unit, str)
    return unit


def _select_moves(plan: Plan) -> list[Move]:
    """The first copies and the first replica list changes: the order of the plan, without one kind hiding the other."""
    copies = [m for m in plan.moves if not m.is_list_change]
    list_changes = [m for m in plan.moves if m.is_list_change]
    few = list_changes[: max(MOVES_SHOWN // 3, MOVES_SHOWN - len(copies))]
    return [*few, *copies[: MOVES_SHOWN - len(few)]]


def _moves(plan: Plan, width: int) -> Any:
    columns = [Column("Partition", "left"), Column("From", "left"), Column("To", "left"), Column("Bytes"),
               Column("Why", "left", 1)]  # fmt: skip
    rows: list[Row] = [[*move_row(m)] for m in _select_moves(plan)]
    return render_table(columns, rows, width)


def move_row(move: Move) -> list[str]:
    """A move as the table shows it: partition, from, to, bytes, why."""
    return [
        str(move.name),
        human_replicas(move.old),
        human_replicas(move.new),
        human_bytes(None if move.size_unknown else move.bytes_moved),
        move.reason.detail or move.reason.code,
    ]
