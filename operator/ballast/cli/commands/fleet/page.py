"""One self-contained page about a fleet: who is worst off, what a plan would cost, whose loss hurts, when disks are full."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from ballast.core.cluster import STORAGE_ERROR
from ballast.core.what_if import ADD_BROKERS, BALANCE, CHANGE_RF, GROW, LOSE_BROKER, LOSE_RACK
from ballast.core.wording import human_bytes, human_many, human_names, human_percent, human_plan_status, human_total

if TYPE_CHECKING:
    from ballast.pipeline.fleet_store import FleetReport

Row = dict[str, Any]
MOST_LOSSES: Final = 50
"""Losses shown; the table in the store has them all."""
QUARTER_DAYS: Final = 91
QUARTERS: Final = 4
"""How far ahead capacity is shown."""
NEARLY_FULL: Final = 0.8

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;color:#1a1c20;background:#fff}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .4rem}p{margin:.3rem 0;color:#444}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #e3e5ea;white-space:nowrap}
th{font-weight:600;color:#555;font-size:.85rem}th:first-child,td:first-child{text-align:left}td.t{text-align:left;white-space:normal}
.bad{color:#a3121b;font-weight:600}.warn{color:#8a5a00;font-weight:600}.ok{color:#1b6b35}
@media (prefers-color-scheme:dark){body{background:#14161a;color:#e6e8ec}p,th{color:#a9afba}th,td{border-color:#2c3038}
.bad{color:#ff7b82}.warn{color:#f0b84a}.ok{color:#6fd08c}}
"""


def page(report: FleetReport, *, made_at: str) -> str:
    """The whole report; no script, nothing fetched from anywhere."""
    rows = report.plans
    away = {c.name for c in report.unreachable}
    clusters = len({c.name for c in report.contacts} | {r["name"] for r in rows})
    balance = [r for r in rows if r["scenario"] == BALANCE] or _one_each(rows)
    stored = human_total(sum(r["bytes_stored"] for r in balance), sum(r["sizes_unknown"] for r in balance))
    brokers, partitions = sum(r["brokers"] for r in balance), sum(r["partitions"] for r in balance)
    sections = (
        *(f'<p class="bad">{escape(sentence)}</p>' for sentence in notes(report)),
        _unreachable(report),
        _ranking(balance, away),
        _log_dirs(balance),
        _losses([r for r in rows if r["scenario"] in (LOSE_BROKER, LOSE_RACK)]),
        _quarters(balance),
        _outlook(balance, [r for r in rows if r["scenario"] == GROW]),
        _others([r for r in rows if r["scenario"] in (ADD_BROKERS, CHANGE_RF)]),
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Kafka fleet</title><style>{_STYLE}</style><h1>Kafka fleet</h1>"
        f"<p>{human_many(clusters, 'cluster')}{f' ({len(away)} unreachable)' if away else ''}, "
        f"{brokers:,} brokers, {partitions:,} partitions, {stored} stored. "
        f"Made {escape(made_at)}.</p>{''.join(sections)}</html>"
    )


def _one_each(rows: Iterable[Row]) -> list[Row]:
    """A row of each cluster, for its size, when balancing was not asked for."""
    return list({r["name"]: r for r in rows}.values())


def risk(row: Row) -> tuple[float, ...]:
    """What makes a cluster come first: what is offline, what is under its min ISR, how soon a disk is full, imbalance."""
    days = row["days_to_full"] if row["days_to_full"] is not None else float("inf")
    return (
        -(row["offline"] or 0),
        -(row["under_min_isr"] or 0),
        -len(row["log_dir_errors"]),
        days,
        -(row["worst_before"] or 1.0),
        -row["imbalance"],
    )


def notes(report: FleetReport) -> list[str]:
    """A sentence for each cluster that is in the report under several names, and one for those that have no plan yet."""
    missing = (
        [f"Not planned yet: {human_names(report.unplanned)}. Run `ballast fleet plan`."] if report.unplanned else []
    )
    return missing + [
        f"{human_names(names)} are the same cluster (cluster id {cluster}): it is counted {len(names)} times."
        for cluster, names in report.same_cluster.items()
    ]


def _unreachable(report: FleetReport) -> str:
    if not report.unreachable:
        return ""
    read = report.last_read
    body = [
        (
            escape(c.name),
            moment(c.tried_at),
            moment(read[c.name]) if c.name in read else "never",
            escape(c.detail),
        )
        for c in report.unreachable
    ]
    said = "The newest collect got no answer. Figures of these clusters below are those of the last reading."
    return _section("Unreachable", said, ("cluster", "tried", "last read", "why"), body)


def moment(at: datetime) -> str:
    """A moment to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _ranking(rows: list[Row], away: Collection[str]) -> str:
    body = [
        (
            escape(r["name"]),
            str(r["brokers"]),
            f"{r['partitions']:,}",
            _flag(r["offline"], "bad"),
            _flag(r["under_min_isr"], "warn"),
            _flag(len(r["log_dir_errors"]), "bad"),
            _share(r["disk_full_before"]),
            _times(r["preferred_leaders_before"]),
            f"{human_percent(r['imbalance'], 0)}",
            _days(r["days_to_full"]),
            _count(None if r["moves"] is None else r["moves"] - r["replica_list_changes"]),
            _count(r["replica_list_changes"]),
            _bytes(r["bytes_moved"]),
            _share(r["disk_full_after"]),
            _times(r["preferred_leaders_after"]),
            '<span class="bad">unreachable</span>' if r["name"] in away else _status(r),
        )
        for r in sorted(rows, key=lambda r: (*risk(r), r["name"]))
    ]
    heads = (
        "cluster", "brokers", "partitions", "offline", "under min ISR", "log dir errors", "fullest disk", "most preferred leaders", "leader imbalance",
        "days to full", "moves", "replica list changes", "copies", "disk after", "preferred leaders after", "plan",
    )  # fmt: skip
    said = (
        "Worst first. Fullest disk: used fraction of the fullest broker's disks. Most preferred leaders: 1.00x is the "
        "average of the brokers. The columns from moves on are of the plan that balances the cluster: nothing of it was executed."
    )
    return _section("Clusters", said, heads, body)


def _log_dirs(rows: list[Row]) -> str:
    body = [
        (escape(r["name"]), str(e["broker"]), escape(e["path"]), escape(e["error"]), f"{e['offline_replicas']:,}")
        for r in sorted(rows, key=lambda r: r["name"])
        for e in r["log_dir_errors"]
    ]
    if not body:
        return ""
    heads = ("cluster", "broker", "log dir", "error", "offline replicas of the broker")
    said = f"{STORAGE_ERROR} is a failed disk; any other error need not be the disk's."
    return _section("Log dirs with errors", said, heads, body)


def _losses(rows: list[Row]) -> str:
    if not rows:
        return ""
    worst = sorted(
        rows,
        key=lambda r: (*(-(r[k] or 0) for k in ("offline", "under_min_isr", "bytes_moved")), r["name"], r["subject"]),
    )
    body = [
        (
            escape(r["name"]),
            escape(f"{'broker' if r['scenario'] == LOSE_BROKER else 'rack'} {r['subject']}"),
            _flag(r["offline"], "bad"),
            _flag(r["under_min_isr"], "warn"),
            _bytes(r["bytes_moved"]),
            _share(r["disk_full_after"]),
            _status(r),
        )
        for r in worst[:MOST_LOSSES]
    ]
    heads = (
        "cluster",
        "lost",
        "partitions offline",
        "under min ISR",
        "copies to restore",
        "fullest disk after",
        "plan",
    )
    said = f"What the loss of a broker or a rack takes along; the worst {len(body)} of {len(rows)}."
    return _section("Failure scenarios", said, heads, body)


def _quarters(balance: list[Row]) -> str:
    """How full the disks are, now and at the end of each of the next quarters, for each cluster and for all."""
    known = [r for r in balance if r["disk_bytes"] and r["disk_free_bytes"] is not None]
    if not known:
        return ""
    rows = sorted(known, key=lambda r: (-_used_share(r, QUARTERS), r["name"]))
    every = {k: _sum(r[k] for r in known) for k in ("disk_bytes", "disk_free_bytes", "growth_bytes_per_day")}
    body = [
        (
            escape(r["name"]),
            human_bytes(r["disk_bytes"]),
            _quarterly_growth(r["growth_bytes_per_day"]),
            _full(_used_share(r, 0)),
            *(_ahead(r, ahead) for ahead in range(1, QUARTERS + 1)),
        )
        for r in (
            *rows,
            {"name": f"all {len(rows)}", "growth_unknown": sum(r["growth_unknown"] for r in rows), **every},
        )
    ]
    heads = ("cluster", "disks", "growth a quarter", "full now", *(f"in {n} Q" for n in range(1, QUARTERS + 1)))
    said = f"Used disk at today's growth, all live brokers together. {_growth_lacks(balance)}"
    if len(known) < len(balance):
        said += f" {human_many(len(balance) - len(known), 'cluster')} left out: no broker reported its disk size."
    return _section("Capacity by quarter", said, heads, body)


def _ahead(row: Row, quarters: int) -> str:
    """How full the disks are then; at least so full where some of what they hold is not known to grow."""
    if row["growth_bytes_per_day"] is None:
        return "-"
    return f"{'≥ ' if row['growth_unknown'] else ''}{_full(_used_share(row, quarters))}"


def _used_share(row: Row, quarters: int) -> float:
    """Share of the disks that is used then."""
    used = row["disk_bytes"] - row["disk_free_bytes"] + (row["growth_bytes_per_day"] or 0) * QUARTER_DAYS * quarters
    return float(max(used, 0) / row["disk_bytes"])


def _full(share: float) -> str:
    kind = "bad" if share >= 1 else "warn" if share >= NEARLY_FULL else ""
    text = human_percent(share, 0)
    return f'<span class="{kind}">{text}</span>' if kind else text


def _share(share: float | None) -> str:
    return "-" if share is None else _full(share)


def _outlook(balance: list[Row], grown: list[Row]) -> str:
    known = [r for r in balance if r["days_to_full"] is not None]
    if not known and not grown:
        return ""
    ahead = {r["name"]: r for r in grown if r["growth_bytes_per_day"] is not None}
    body = []
    for r in sorted(balance, key=lambda r: (r["days_to_full"] is None, r["days_to_full"] or 0, r["name"])):
        later, days = ahead.get(r["name"]), r["days_to_full"]
        when = (
            "-"
            if days is None
            else ("this quarter" if days < QUARTER_DAYS else f"in {days / QUARTER_DAYS:.0f} quarters")
        )
        row = (escape(r["name"]), _days(days), when)
        body.append(
            (
                *row,
                *(
                    (
                        f"{later['subject']} days",
                        _share(later["disk_full_before"]),
                        _bytes(later["bytes_moved"]),
                        _status(later),
                    )
                    if later
                    else ("-",) * 4
                ),
            )
        )
    heads = (
        "cluster",
        "days to full",
        "first disk full",
        "looking ahead",
        "fullest disk then",
        "copies to balance then",
        "plan then",
    )
    said = f"At today's growth. {_growth_lacks(balance)}"
    return _section("Looking ahead", said, heads, body)


def _others(rows: list[Row]) -> str:
    if not rows:
        return ""
    words = {ADD_BROKERS: "{} more brokers", CHANGE_RF: "replication factor {}"}
    body = [
        (
            escape(r["name"]),
            escape(words[r["scenario"]].format(r["subject"])),
            _count(r["moves"]),
            _bytes(r["bytes_moved"]),
            _share(r["disk_full_after"]),
            _status(r),
        )
        for r in rows
    ]
    return _section("What if", "", ("cluster", "what if", "moves", "copies", "fullest disk after", "plan"), body)


def _section(title: str, said: str, heads: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{h}</th>' for h in heads)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return (
        f'<h2>{title}</h2><p>{said}</p><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _growth_lacks(balance: list[Row]) -> str:
    """Where growth is not known: whole clusters, of which nothing is foretold, and single partitions, which count as none."""
    bare = [r["name"] for r in balance if r["growth_bytes_per_day"] is None]
    some = [
        f"{escape(r['name'])} ({r['growth_unknown']:,} of {human_many(r['partitions'], 'partition')})"
        for r in balance
        if r["growth_bytes_per_day"] is not None and r["growth_unknown"]
    ]
    said = []
    if bare:
        said.append(f"The growth of {escape(human_names(bare))} is not known: it takes samples and a load model.")
    if some:
        said.append(f"Not known is the growth of some partitions of {human_names(some)}: they count as not growing.")
    return " ".join(said)


def _flag(count: int | None, kind: str) -> str:
    return f'<span class="{kind}">{count:,}</span>' if count else _count(count)


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _bytes(figure: float | None) -> str:
    return "-" if figure is None else human_bytes(figure)


def _quarterly_growth(per_day: int | None) -> str:
    """What a quarter brings; logs that shrink have a sign."""
    if per_day is None:
        return "-"
    return f"{'-' if per_day < 0 else ''}{human_bytes(abs(per_day) * QUARTER_DAYS)}"


def _sum(figures: Iterable[int | None]) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [f for f in figures if f is not None]
    return sum(known) if known else None


def _status(row: Row) -> str:
    kind = {"meets-all-goals": "ok", "nothing-to-do": "ok", "misses-some-goals": "warn"}.get(row["status"], "bad")
    detail = f' title="{escape(row["detail"])}"' if row["detail"] else ""
    return f'<span class="{kind}"{detail}>{escape(human_plan_status(row["status"]))}</span>'


def _times(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}x"


def _days(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f'<span class="bad">{figure:.0f}</span>' if figure < QUARTER_DAYS / 3 else f"{figure:,.0f}"
