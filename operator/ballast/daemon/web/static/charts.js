// Pictures: bars against a range, lines over time, brokers before and after a plan. Each has its figures in words beside it.
"use strict";

function gauge(...parts) {
  const node = h("div", { class: "gauge", "aria-hidden": "true" });
  for (const [name, left, width] of parts) {
    const part = h("div", { class: name });
    if (left !== null) part.style.left = `${left * 100}%`;
    if (width !== null) part.style.width = `${Math.max(width, 0) * 100}%`;
    node.append(part);
  }
  return node;
}

const WIDE = 320;
const HIGH = 72;

/** So long without a point is a gap: no process read the cluster. */
const GAP_MS = 900000;

/** One figure over time; a point that is not known is a gap. `limit` is drawn as a line. */
function line(title, points, of, show, limit = null) {
  const known = points.filter((p) => of(p) !== null);
  const newest = known.length ? known[known.length - 1] : null;
  const label = newest === null ? "not known yet" : `${show(of(newest))} at ${clock(newest.at)}`;
  const head = h("figcaption", {}, h("b", {}, title), h("span", {}, label));
  if (known.length < 2) return h("figure", { class: "line" }, head, h("p", { class: "empty" }, "A chart needs two points: one a minute."));
  const most = Math.max(...known.map(of), limit || 0, 1e-9) * 1.05;
  const from = ms(points[0].at);
  const long = Math.max(ms(points[points.length - 1].at) - from, 1);
  const x = (p) => ((ms(p.at) - from) / long) * WIDE;
  const y = (value) => HIGH - (value / most) * HIGH;
  const runs = [[]];
  points.forEach((p, i) => {
    if (of(p) === null || (i && ms(p.at) - ms(points[i - 1].at) > GAP_MS)) runs.push([]);
    if (of(p) !== null) runs[runs.length - 1].push(`${x(p).toFixed(1)},${y(of(p)).toFixed(1)}`);
  });
  return h("figure", { class: "line" }, head,
    svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${label}, at most ${show(Math.max(...known.map(of)))}` },
      limit === null ? null : svg("line", { class: "limit", x1: 0, x2: WIDE, y1: y(limit), y2: y(limit) }),
      runs.filter((run) => run.length).map((run) => svg("polyline", { class: "step", points: run.join(" ") }))),
    h("p", { class: "axis" }, h("span", {}, when(from)), h("span", {}, `max ${show(Math.max(...known.map(of)))}`)));
}

const PICTURED = 40;

/** Every broker that the plan changes: a light bar before, a dark one after, on one scale, over the broker's range. A drained one has none. */
function beforeAfter(plan, resource) {
  const name = resource.name;
  const alters = (b) => b.before[name] !== b.after[name];
  const rows = plan.brokers.filter((b) => b.range[name] || alters(b));
  const shown = (rows.length <= PICTURED ? rows : rows.filter(alters)).slice(0, PICTURED);
  const top = Math.max(...rows.map((b) => Math.max(b.before[name], b.after[name], b.range[name] ? b.range[name][1] : 0)), 1e-9) * 1.04;
  const out = (b, value) => b.range[name] && (value < b.range[name][0] || value > b.range[name][1]);
  return h("figure", { class: "compare" },
    h("figcaption", {}, h("b", {}, resource.label), h("span", {}, `${spread(resource.before)} → ${spread(resource.after)}`)),
    shown.map((b) => h("div", { class: "pair", "data-broker": b.broker },
      h("span", { class: "id" }, brokerLink(b.broker)),
      gauge(...(b.range[name] ? [["band", b.range[name][0] / top, (b.range[name][1] - b.range[name][0]) / top]] : []),
        [`was${out(b, b.before[name]) ? " out" : ""}`, null, b.before[name] / top],
        [`will${out(b, b.after[name]) ? " out" : ""}`, null, b.after[name] / top]),
      h("span", { class: "value" }, !alters(b) ? load(resource.unit, b.after[name]) : `${load(resource.unit, b.before[name])} → ${load(resource.unit, b.after[name])}`))),
    rows.length > shown.length ? h("p", { class: "empty" }, `${plural(rows.length - shown.length, "more broker")} not drawn.`) : null);
}

/** Least and most loaded broker, as parts of what each should carry. */
const spread = (r) => `${Math.round(r.minimum * 100)}–${Math.round(r.maximum * 100)} %${r.outOfRange ? `, ${plural(r.outOfRange, "broker")} out of range` : ""}`;
