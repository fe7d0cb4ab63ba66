"""One self-contained HTML page about a plan: pictures and tables, no script, no network, good on paper.

Pure text building.  Everything that came from the cluster is escaped.  Colours are never the only carrier of meaning:
bars have figures beside them, limits are drawn as lines.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from html import escape
from typing import Any, Final

from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.plan.work import work_of
from ballast.core.planner.cross_rack.traffic import human_change
from ballast.core.planner.report.summary import notes
from ballast.core.wording import (
    human_bytes,
    human_many,
    human_percent,
    human_plan_status,
    human_replicas,
    human_time,
    human_total,
)

MOVES_SHOWN: Final = 1000
FLOWS_SHOWN: Final = 24
BAR_WIDTH: Final = 260

_STYLE: Final = """
:root{--ink:#1c2733;--soft:#5c6b7a;--line:#d5dde5;--paper:#fff;--old:#b7c3cf;--new:#1f6f8b;--warn:#b4541a;--ok:#2d7a46}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa8b5;--line:#33404d;--paper:#11171d;--old:#4b5a68;
--new:#4fb3d1;--warn:#f0a060;--ok:#6cc48a}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:2rem 1.5rem;color:var(--ink);background:var(--paper);
font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}p{margin:.3rem 0}.soft{color:var(--soft)}
.facts{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;margin:1.2rem 0}.facts div{min-width:8rem}
.facts b{display:block;font-size:1.4rem}.warn{border-left:4px solid var(--warn);padding:.2rem .8rem;margin:.6rem 0}
table{border-collapse:collapse;width:100%;font-size:.88rem}th{text-align:left;font-weight:600}
th,td{padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:1.5rem}svg{max-width:100%;height:auto}
svg text{fill:var(--ink);font:11px system-ui,sans-serif}.old{fill:var(--old)}.new{fill:var(--new)}.out{fill:var(--warn)}
.band{fill:var(--line);opacity:.5}.share{stroke:var(--soft);stroke-dasharray:3 3}.axis{stroke:var(--line)}
.step{fill:none;stroke:var(--new);stroke-width:2}
@media print{body{max-width:none;padding:0;font-size:11px}h2{break-after:avoid}tr,svg{break-inside:avoid}
:root{--ink:#000;--paper:#fff;--old:#bbb;--new:#346;--line:#ccc;--soft:#444}}
"""


def page(plan: Plan, *, rate_bytes_per_s: int | None) -> str:
    """The whole page; ``rate_bytes_per_s`` is what one broker is taken to receive and to send; None where no throttle bounds it: no time is told."""
    summary = plan.summary
    body = [
        f"<header><h1>{_text(plan.intent)}</h1>",
        f'<p class="soft">Cluster {_text(plan.cluster_id)} · made from {_text(plan.fingerprint)} · seed {plan.seed}</p></header>',
        _facts(plan, rate_bytes_per_s),
        _obstacles(plan),
        _resources(summary.get("resources", [])),
        _cross_rack(summary),
        _charts(summary),
        _racks(summary),
        _flows(plan),
        _order(plan, rate_bytes_per_s),
        _moves(plan),
        _assumptions(plan),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Ballast plan: {_text(plan.intent)}</title><style>{_STYLE}</style></head><body>"
        + "\n".join(part for part in body if part)
        + "</body></html>\n"
    )


def _text(value: object) -> str:
    return escape(str(value))


def _figure(value: float, unit: str) -> str:
    if unit == "cpu":
        return f"{value / 1e6:.1f} %"
    if unit:
        return human_bytes(value) + ("/s" if unit == "bytes/s" else "")
    return f"{value:,.0f}"


def _facts(plan: Plan, rate: int | None) -> str:
    s = plan.summary
    busiest, does = s.get("busiest_bytes"), work_of(plan.moves)
    facts = [
        (human_plan_status(plan.status), "plan"),
        (human_total(plan.bytes_moved, plan.unknown_sizes), "to copy"),
        (f"{does.moves:,}", "moves"),
        (f"{does.list_changes:,}", "replica list changes (no data copied)"),
        (f"{len(plan.elections):,}", "preferred leader elections (no data copied)"),
    ]
    if busiest and rate:
        facts.append((human_time(busiest / rate), f"at {human_bytes(rate)}/s into and out of each broker"))
    if plan.bound_bytes:
        over = plan.bytes_moved / plan.bound_bytes - 1
        facts.append((human_percent(over), f"above the proven least, {human_bytes(plan.bound_bytes)}"))
    cells = "".join(f"<div><b>{_text(value)}</b><span class='soft'>{_text(name)}</span></div>" for value, name in facts)
    return f'<section class="facts">{cells}</section>'


def _obstacles(plan: Plan) -> str:
    lines = [
        f'<div class="warn"><p><b>{_text(w.detail)}</b></p><p class="soft">{_text(w.remedy)}</p></div>'
        for w in warnings(plan)
    ]
    lines += [
        f'<div class="warn"><p><b>{_text(o.subject)}</b>: {_text(o.detail)}.</p><p class="soft">{_text(o.remedy)}</p></div>'
        for o in plan.obstacles
    ]
    return "<h2>Obstacles</h2>" + "".join(lines) if lines else ""


def _resources(resources: list[dict[str, Any]]) -> str:
    if not resources:
        return ""
    rows = "".join(
        f"<tr><td>{_text(r['label'])}</td><td class=n>±{human_percent(r['range'], 0)}</td>"
        + "".join(
            f"<td class=n>{human_percent(r[side]['minimum'])} … {human_percent(r[side]['maximum'])}</td><td class=n>{r[side]['out_of_range']}</td>"
            for side in ("before", "after")
        )
        + "</tr>"
        for r in resources
    )
    return (
        "<h2>Load, as a part of each broker's fair share</h2><table><tr><th>Resource<th class=n>Range"
        "<th class=n>Before<th class=n>Out of range<th class=n>After<th class=n>Out of range</tr>"
        f"{rows}</table>" + "".join(f"<p class='soft'>{_text(line)}</p>" for line in notes(resources))
    )


def _cross_rack(summary: dict[str, Any]) -> str:
    told = summary.get("cross_rack")
    if not told:
        return ""
    rows = "".join(
        f"<tr><td>{name}</td>"
        + "".join(
            f"<td class=n>{human_bytes(told[side][key])}{'/s' if told[side][key] is not None else ''}</td>"
            for side in ("before", "after")
        )
        + "</tr>"
        for name, key in (("producers", "producers"), ("followers", "followers"), ("consumers", "consumers"))
    )
    lines = "".join(f"<p>{_text(line)}</p>" for line in human_change(told))
    return (
        f"<h2>Traffic between racks</h2>{lines}<table><tr><th>Of<th class=n>Before<th class=n>After</tr>{rows}</table>"
    )


def _charts(summary: dict[str, Any]) -> str:
    brokers = sorted(summary.get("brokers", []), key=lambda b: (str(b["rack"]), b["broker"]))
    if not brokers or len(brokers) > 200:
        return ""
    charts = "".join(_chart(brokers, r) for r in summary["resources"])
    return f'<h2>Brokers before (light) and after (dark)</h2><div class="charts">{charts}</div>'


def _chart(brokers: list[dict[str, Any]], resource: dict[str, Any]) -> str:
    name, unit = resource["name"], resource["unit"]
    most = max([max(b["before"][name], b["after"][name], b["share"][name]) for b in brokers] + [1])
    row, left = 18, 96
    parts = []
    for i, b in enumerate(brokers):
        y = 20 + i * row
        old, new, share = (BAR_WIDTH * b[side][name] / most for side in ("before", "after", "share"))
        edges = b["range"].get(name)
        low, high = (BAR_WIDTH * min(edge / most, 1.0) for edge in edges) if edges else (0.0, 0.0)
        outside = edges is not None and not edges[0] <= b["after"][name] <= edges[1]
        figure = _figure(b["after"][name], unit)
        parts.append(
            f'<text x="0" y="{y + 10}">{_text(b["broker"])} · {_text(b["rack"] or "no rack")}</text>'
            f'<rect class="band" x="{left + low:.1f}" y="{y - 2}" width="{high - low:.1f}" height="{row - 2}"/>'
            f'<rect class="old" x="{left}" y="{y}" width="{old:.1f}" height="5"/>'
            f'<rect class="{"out" if outside else "new"}" x="{left}" y="{y + 6}" width="{new:.1f}" height="6"/>'
            f'<line class="share" x1="{left + share:.1f}" x2="{left + share:.1f}" y1="{y - 2}" y2="{y + row - 4}"/>'
            f'<text x="{left + BAR_WIDTH + 8}" y="{y + 10}">{_text(figure)}</text>'
        )
    height = 24 + row * len(brokers)
    return (
        f'<figure style="margin:0"><svg viewBox="0 0 {left + BAR_WIDTH + 90} {height}" width="{left + BAR_WIDTH + 90}" '
        f'role="img" aria-label="{_text(resource["label"])} by broker"><text x="0" y="10"><tspan font-weight="600">'
        f"{_text(resource['label'])}</tspan></text>{''.join(parts)}</svg></figure>"
    )


def _racks(summary: dict[str, Any]) -> str:
    racks: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    for b in summary.get("brokers", []):
        for r in summary["resources"]:
            totals = racks[str(b["rack"] or "no rack")][r["name"]]
            totals[0] += b["before"][r["name"]]
            totals[1] += b["after"][r["name"]]
    if len(racks) < 2:
        return ""
    head = "".join(f"<th class=n>{_text(r['label'])}" for r in summary["resources"])
    rows = []
    for rack in sorted(racks):
        cells = []
        for r in summary["resources"]:
            before, after = (_figure(v, r["unit"]) for v in racks[rack][r["name"]])
            cells.append(f"<td class=n>{before} → {after}</td>" if before != after else f"<td class=n>{after}</td>")
        rows.append(f"<tr><td>{_text(rack)}</td>{''.join(cells)}</tr>")
    return f"<h2>Racks</h2><table><tr><th>Rack{head}</tr>{''.join(rows)}</table>"


def _flows(plan: Plan) -> str:
    flows: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    unknown: Counter[tuple[int, int]] = Counter()
    for m in plan.moves:
        for source, target in zip(m.removing, m.adding, strict=False):
            flow = flows[source, target]
            flow[0] += max(m.size_bytes, 0)
            flow[1] += 1
            unknown[source, target] += m.size_unknown
    if not flows:
        return ""
    ranked = sorted(flows.items(), key=lambda item: (-item[1][0], item[0]))[:FLOWS_SHOWN]
    most = max(size for _, (size, _) in ranked) or 1
    parts = []
    for i, ((source, target), (size, count)) in enumerate(ranked):
        y = 4 + i * 18
        parts.append(
            f'<text x="0" y="{y + 10}">{source} → {target}</text><rect class="new" x="96" y="{y}" '
            f'width="{BAR_WIDTH * size / most:.1f}" height="12"/><text x="{104 + BAR_WIDTH * size / most:.0f}" '
            f'y="{y + 10}">{human_total(size, unknown[source, target])}, {human_many(count, "replica")}</text>'
        )
    more = f"<p class='soft'>and {len(flows) - len(ranked)} smaller ones</p>" if len(flows) > len(ranked) else ""
    return (
        f'<h2>Data movement</h2><svg viewBox="0 0 560 {10 + 18 * len(ranked)}" width="560" role="img" '
        f'aria-label="Bytes from broker to broker">{"".join(parts)}</svg>{more}'
    )


def _order(plan: Plan, rate: int | None) -> str:
    """The bytes still to copy as the plan runs through, in its own order."""
    total = plan.known_bytes
    if not total:
        return ""
    one_by_one = (
        f" One copy after another at {human_bytes(rate)}/s would take {human_time(total / rate)}." if rate else ""
    )
    points, left = [(0.0, 1.0)], total
    count = len(plan.moves)
    for i, m in enumerate(plan.moves, 1):
        left -= m.bytes_moved
        if i == count or i * 200 // count != (i - 1) * 200 // count:
            points.append((i / count, left / total))
    path = " ".join(f"{40 + 600 * x:.1f},{10 + 140 * (1 - y):.1f}" for x, y in points)
    return (
        "<h2>Order</h2><p class='soft'>Replica list changes first, since they copy nothing; then repairs; then what relieves the worst "
        f"brokers most.{one_by_one}</p>"
        '<svg viewBox="0 0 660 175" width="660" role="img" aria-label="Bytes left by move">'
        '<line class="axis" x1="40" x2="640" y1="150" y2="150"/><line class="axis" x1="40" x2="40" y1="10" y2="150"/>'
        f'<polyline class="step" points="{path}"/><text x="0" y="16">all left</text><text x="0" y="150">none</text>'
        f'<text x="40" y="168">first move</text><text x="560" y="168">move {count:,}</text></svg>'
    )


def _moves(plan: Plan) -> str:
    if not plan.moves:
        return ""
    rows = "".join(
        f"<tr><td>{_text(m.name)}</td><td>{human_replicas(m.old)}</td><td>{human_replicas(m.new)}</td>"
        f"<td class=n>{human_bytes(None if m.size_unknown else m.bytes_moved) if m.adding else 'no data'}</td><td>{_text(m.reason.detail or m.reason.code)}</td></tr>"
        for m in plan.moves[:MOVES_SHOWN]
    )
    more = len(plan.moves) - MOVES_SHOWN
    rest = f"<p class='soft'>and {more:,} more, in the plan file</p>" if more > 0 else ""
    return (
        "<h2>Moves</h2><table><tr><th>Partition<th>From<th>To<th class=n>Bytes<th>Why</tr>" + rows + "</table>" + rest
    )


def _assumptions(plan: Plan) -> str:
    if not plan.assumptions:
        return ""
    return "<h2>Assumed</h2><ul>" + "".join(f"<li>{_text(a)}</li>" for a in plan.assumptions) + "</ul>"
