// The page: asks for the status, waits for a newer one, draws what changed. It needs nothing but this daemon.
"use strict";

const $ = (id) => document.getElementById(id);
const drawn = new Map();
let status = null;
let heardAt = 0;
let skewMs = 0;
let resource = "leaders and preferred";

/** An element; text is always text, never markup. */
function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
  return node;
}

/** Draw a part only when what it shows has changed, so that focus and selection survive. */
function draw(id, data, make) {
  const key = JSON.stringify(data);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  $(id).replaceChildren(...[make()].flat().filter((node) => node !== null));
}

const count = (n) => n.toLocaleString("en");
const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
/** Figures are written as Ballast's commands write them: one decimal, a space before the sign. */
const decimal = (n, digits = 1) => n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const percent = (share) => `${decimal(share * 100)} %`;

function bytes(n) {
  if (n === null || n === undefined) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (Math.abs(n) >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return `${decimal(n, at ? 1 : 0)} ${units[at]}`;
}

function span(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 && s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

const nowMs = () => Date.now() + skewMs;
const when = (ms) => new Date(ms).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
const shown = (unit, value) => (unit === "bytes" ? bytes(value) : count(Math.round(value)));

/** An age that counts on by itself. */
const ago = (ms) => h("small", { "data-since": ms }, `${span((nowMs() - ms) / 1000)} ago`);

/** `disconnected` is about this page and the daemon, `unreachable` about the daemon and the cluster. */
function state() {
  if (!status) return "loading";
  if (nowMs() - heardAt > 45000) return "disconnected";
  if (status.outage) return "unreachable";
  if (!status.cluster) return "loading";
  return nowMs() - status.cluster.taken_at_ms > 120000 ? "stale" : "fresh";
}

/** Down, and it holds replicas. A broker that was emptied and stopped is remembered by KRaft and missed by nobody. */
const missing = (b) => !b.alive && b.replicas > 0;

/** The most important thing in one line, and how worried to be. */
function verdict(s) {
  const c = s.cluster;
  if (s.outage) {
    const what = { unreachable: "Cluster unreachable", "access-denied": "Cluster refuses access" }[s.outage.code] || "Cluster cannot be read";
    return ["bad", `${what} since ${when(s.outage.since_ms)}`, `${s.outage.sentence} ${c ? "All figures below are from before." : "It has not been read yet."}`];
  }
  if (!c) return ["none", "Reading the cluster…", "The first reading takes a few seconds."];
  const down = c.brokers.filter(missing);
  const over = c.brokers.filter((b) => b.over);
  if (c.offline) return ["bad", `${plural(c.offline, "partition")} offline`, "They have no living leader: producers and consumers wait."];
  if (c.under_min_isr) return ["bad", `${plural(c.under_min_isr, "partition")} under min ISR`, "Producers with acks=all are refused there."];
  if (down.length) return ["bad", `Broker ${down.map((b) => b.id).join(", ")} is down`, `${plural(c.under_replicated, "partition")} under-replicated.`];
  const run = s.run || s.run_elsewhere;
  if (run) return ["none", run.sentence || "A run is being carried out", `${run.moves_done} of ${plural(run.moves_total, "move")} done.`];
  if (c.under_replicated) return ["warn", `${plural(c.under_replicated, "partition")} under-replicated`, "Replicas are catching up, or cannot."];
  if (over.length) return ["warn", `Leaders of broker ${over.map((b) => b.id).join(", ")} are imbalanced`,
    `Worst: ${percent(Math.max(...over.map((b) => b.imbalance)))} of its partitions are led elsewhere; the threshold is ${percent(c.leader_imbalance_threshold)}.`];
  if (s.level.verdict === "uneven") return ["warn", "The load is not level", s.level.sentence];
  if (s.level.verdict === "stuck") return ["good", "The cluster is as level as it can be", s.level.sentence];
  const where = `${plural(c.brokers.filter((b) => b.alive).length, "broker")}, every replica in sync, every leader where it belongs.`;
  return s.level.verdict === "level" ? ["good", "The cluster is level", where] : ["good", "The cluster is well", `${where} Its load has not been judged yet.`];
}

function drawTop(s) {
  const c = s.cluster;
  $("name").textContent = s.name || (c ? `Cluster ${c.id}` : "Ballast");
  document.title = `${verdict(s)[1]} · ${s.name || "Ballast"}`;
  const role = { observer: "observing", leader: "acting", standby: "standing by", starting: "starting", stopping: "stopping" }[s.role];
  const parts = [`mode ${s.mode}`, role];
  if (c && c.kafka_version) parts.push(`Kafka ${c.kafka_version}`);
  if (c && s.name) parts.push(c.id);
  $("what").textContent = parts.join(" · ");
  $("instance").textContent = `${s.instance}, up since ${when(s.started_at_ms)}`;
  $("pause").hidden = !s.actions_enabled;
  $("pause").textContent = s.pause ? "Resume" : "Pause";
}

function drawBanners(s) {
  const list = [];
  if (state() === "disconnected") list.push(["bad", "Connection to Ballast lost. What is shown is old; this page keeps trying."]);
  if (s.pause) list.push(["warn", `Paused by ${s.pause.by} since ${when(s.pause.since_ms)}${s.pause.reason ? `: ${s.pause.reason}` : ""}. Nothing new starts.`]);
  if (s.settings_problem) list.push(["bad", `The newest settings are not in force: ${s.settings_problem}`]);
  for (const other of s.others) if (other.blocking) list.push(["warn", `Standing back: ${other.sentence}`]);
  if (s.throttle_debts && !s.run && !s.run_elsewhere) list.push(["warn", `${plural(s.throttle_debts, "throttle")} set by Ballast still to be taken back.`]);
  draw("banners", list, () => list.map(([tone, text]) => h("p", { class: "banner", "data-tone": tone }, text)));
}

function drawTiles(c) {
  if (!c) return draw("tiles", null, () => []);
  const alive = c.brokers.filter((b) => b.alive).length;
  const wanted = alive + c.brokers.filter(missing).length;
  const worst = Math.max(0, ...c.brokers.map((b) => b.imbalance));
  const tiles = [
    ["brokers up", `${alive} / ${wanted}`, alive < wanted ? "bad" : ""],
    ["topics", count(c.topics), ""],
    ["partitions", count(c.partitions), ""],
    ["offline", count(c.offline), c.offline ? "bad" : ""],
    ["under min ISR", count(c.under_min_isr), c.under_min_isr ? "bad" : ""],
    ["under-replicated", count(c.under_replicated), c.under_replicated ? "warn" : ""],
    ["moving", count(c.moving), ""],
    ["worst leader imbalance", percent(worst), worst > c.leader_imbalance_threshold ? "warn" : ""],
  ];
  draw("tiles", tiles, () => tiles.map(([name, value, tone]) => h("div", { class: "tile", "data-tone": tone }, h("dt", {}, name), h("dd", {}, value))));
}

function drawBrokers(c) {
  if (!c) return draw("brokers", null, () => h("p", { class: "empty" }, "Nothing has been read yet."));
  const names = ["leaders and preferred", ...c.ranges.map((l) => l.label).filter((n) => n !== "leaders")];
  if (!names.includes(resource)) resource = names[0];
  draw("resources", [names, resource], () => names.map((name) =>
    h("button", { type: "button", "aria-pressed": String(name === resource), on: { click: () => { resource = name; drawBrokers(status.cluster); focusTab(name); } } }, name)));
  const level = c.ranges.find((l) => l.label === (resource === "leaders and preferred" ? "leaders" : resource));
  draw("legend", [resource, level && level.tolerance], () => legend(level));
  draw("brokers", [resource, c.brokers, level], () => {
    const racks = new Map();
    for (const b of c.brokers) racks.set(b.rack, [...(racks.get(b.rack) || []), b]);
    return [...racks].map(([rack, members]) => h("div", { class: "rack" },
      rack !== null ? h("h3", {}, /^rack/i.test(rack) ? rack : `Rack ${rack}`) : (racks.size > 1 ? h("h3", {}, "No rack") : null),
      members.map((b) => (resource === "leaders and preferred" ? leaderBar(b, c) : levelBar(b, level)))));
  });
}

function focusTab(name) {
  for (const button of $("resources").children) if (button.textContent === name) button.focus();
}

function legend(level) {
  if (resource === "leaders and preferred") return ["Bar: partitions the broker leads. Line: partitions that prefer it. Right: share of those led elsewhere. ★: the controller."];
  return level ? [`Green: the range of ±${percent(level.tolerance)} around each broker's fair share.`] : [];
}

function gauge(...parts) {
  const node = h("div", { class: "gauge", "aria-hidden": "true" });
  for (const [name, left, width] of parts) {
    const part = h("div", { class: name });
    if (left !== null) part.style.left = `${left * 100}%`;
    if (width !== null) part.style.width = `${width * 100}%`;
    node.append(part);
  }
  return node;
}

const flags = (b) => [b.controller ? "controller" : "", b.cordoned ? "cordoned" : "", b.draining ? (b.replicas ? "draining" : "drained") : "", b.alive ? "" : b.replicas ? "down" : "gone"].filter(Boolean).join(", ");

function brokerRow(b, out, bar, value) {
  const note = flags(b);
  return h("div", { class: `broker${out ? " out" : ""}${b.alive ? "" : " down"}`, "data-broker": b.id },
    h("span", { class: "id" }, `${b.id} `, note ? h("span", { class: "note" }, note === "controller" ? "★" : note === "down" ? "down" : `${note}`) : null),
    bar, h("span", { class: "value" }, value));
}

function leaderBar(b, c) {
  const top = Math.max(1, ...c.brokers.map((x) => Math.max(x.leaders, x.preferred))) * 1.08;
  return brokerRow(b, b.over, gauge(["fill", null, b.leaders / top], ["mark", b.preferred / top, null]),
    `${count(b.leaders)} / ${count(b.preferred)} · ${percent(b.imbalance)}`);
}

function levelBar(b, level) {
  const share = level && level.shares[String(b.id)];
  if (!share) return brokerRow(b, false, gauge(), !b.alive ? (b.replicas ? "down" : "gone, empty") : b.draining ? "no share" : "unknown");
  const top = Math.max(...Object.values(level.shares).map((s) => Math.max(s.load, s.high)), 1e-9) * 1.08;
  const off = share.fair ? share.load / share.fair - 1 : 0;
  return brokerRow(b, level.outside.includes(b.id),
    gauge(["band", share.low / top, (share.high - share.low) / top], ["fill", null, share.load / top]),
    `${shown(level.unit, share.load)} · ${off >= 0 ? "+" : "−"}${percent(Math.abs(off))}`);
}

function drawRun(s) {
  const run = s.run || s.run_elsewhere;
  $("now").hidden = !run;
  if (!run) return;
  draw("run", [run, s.run === null, s.lock.holder, s.actions_enabled], () => {
    const done = run.bytes_total ? 1 - run.bytes_left / run.bytes_total : run.moves_done / Math.max(run.moves_total, 1);
    return [
      h("p", {}, h("b", {}, run.intent), ` · run ${run.id} · ${run.phase}`),
      h("progress", { max: 1, value: done.toFixed(4), "aria-label": `Done: ${percent(done)}` }),
      h("p", { class: "facts" },
        fact("moves", `${run.moves_done} / ${run.moves_total}`),
        s.run ? [fact("left", bytes(run.bytes_left)), fact("rate", `${bytes(run.rate_bytes_per_s)}/s`), fact("time left", span(run.seconds_left))] : null,
        fact("throttle", run.throttle_bytes_per_s ? `${bytes(run.throttle_bytes_per_s)}/s` : "none"),
        run.moves_failed ? fact("failed", String(run.moves_failed)) : null),
      run.sentence ? h("p", {}, run.sentence) : null,
      s.run ? null : h("p", {}, `Carried out by ${s.lock.holder || "another process"}, whose own page tells bytes and time left. This is what the journal says.`),
      run.moves.length ? moveTable(run.moves) : null,
      s.actions_enabled ? h("p", { class: "buttons" }, h("button", { type: "button", class: "risky", on: { click: () => askCancel(run) } }, "Cancel this run…")) : null,
    ].filter(Boolean);
  });
}

const fact = (name, value) => h("span", {}, `${name} `, h("b", {}, value));

function moveTable(moves) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Moves" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", {}, "partition"), h("th", {}, "from → to"), h("th", { class: "n" }, "size"), h("th", {}, "state"), h("th", {}, "why"))),
    h("tbody", {}, moves.map((m) => h("tr", {},
      h("td", {}, h("code", {}, `${m.topic}-${m.partition}`)), h("td", {}, `${m.old.join(" ")} → ${m.new.join(" ")}`),
      h("td", { class: "n" }, bytes(m.size_bytes)),
      h("td", {}, m.copied_bytes && m.size_bytes ? `${m.phase} ${percent(Math.min(1, m.copied_bytes / m.size_bytes))}` : m.phase),
      h("td", {}, m.reason))))));
}

/** Zero bytes have three reasons, and only one of them is that nothing is copied. */
function cost(plan) {
  if (plan.bytes_moved) return bytes(plan.bytes_moved);
  if (!plan.copies) return "no data moves";
  return plan.examples.some((m) => m.size_bytes === null) ? "sizes not known" : "their partitions are empty";
}

function drawPlans(plans) {
  $("plans-card").hidden = plans.length === 0;
  draw("plans", [plans, status.actions_enabled], () => plans.map((plan) => {
    return h("article", { class: "plan", "aria-label": `Plan ${plan.id}` },
      h("h3", {}, `${plan.intent} `, h("span", { class: "chip", "data-tone": plan.waiting ? "warn" : "good" }, plan.waiting ? "waits for you" : plan.kind)),
      h("p", { class: "facts" },
        plan.moves ? fact("moves", count(plan.moves)) : null, plan.elections ? fact("elections", count(plan.elections)) : null,
        fact("cost", cost(plan)),
        plan.bound_bytes !== null && plan.copies ? fact("least possible", bytes(plan.bound_bytes)) : null,
        h("span", {}, "made ", ago(plan.created_at_ms))),
      plan.reasons.length ? h("p", {}, `Why: ${plan.reasons.map(([why, n]) => `${why} (${count(n)})`).join(", ")}.`) : null,
      plan.resources.length ? h("div", { class: "compare" }, h("b", {}, "of the fair share"), h("b", {}, "before"), h("b", {}, "after"),
        plan.resources.map((r) => [h("span", {}, r.label || r.name), h("span", {}, range(r.before)), h("span", {}, range(r.after))])) : null,
      plan.obstacles.length ? h("ul", {}, plan.obstacles.map((o) => h("li", {}, o))) : null,
      plan.examples.length ? h("details", {}, h("summary", {}, `Show ${plan.examples.length < plan.moves ? "the first " : ""}${plural(plan.examples.length, "move")}`), moveTable(plan.examples)) : null,
      plan.waiting && status.actions_enabled ? h("p", { class: "buttons" }, h("button", { type: "button", on: { click: () => askApprove(plan) } }, "Approve…")) : null);
  }));
}

/** Least and most loaded broker, as shares of what each should carry. */
const range = (r) => `${Math.round(r.least * 100)}–${Math.round(r.most * 100)} %${r.outside ? ` · ${r.outside} out` : ""}`;

function drawLists(s) {
  draw("standings", s.standings, () => s.standings.length === 0 ? h("li", {}, "Nothing has been judged yet.") : s.standings.map((x) => h("li", {},
    h("span", { class: "word" }, x.kind, h("small", {}, x.mode)),
    h("span", { class: "said" }, h("span", { class: "chip", "data-tone": x.allowed ? "good" : "warn" }, x.allowed ? "may start" : "may not"), ` ${x.sentence}`))));
  draw("others", s.others, () => s.others.map((o) => h("li", {}, h("span", { class: "word" }, o.code), h("span", { class: "said" }, o.sentence))));
  // Housekeeping is shown only when it fails.
  const known = ["observe", "leaders", "repair", "level", "act", "lock"].filter((name) => s.ticks[name]);
  const ticks = [...known, ...Object.keys(s.ticks).filter((name) => !known.includes(name) && !s.ticks[name].ok)].map((name) => [name, s.ticks[name]]);
  draw("ticks", ticks.map(([n, t]) => [n, t.sentence, t.ok, t.failures]), () => ticks.map(([name, t]) => h("li", { "data-tone": t.ok ? null : "bad" },
    h("span", { class: "word" }, name), h("span", { class: "said" }, t.sentence, t.failures > 1 ? h("small", {}, `${t.failures} failures in a row`) : null))));
}

async function drawHistory() {
  const { runs } = await read("/api/v1/history");
  draw("history", runs, () => runs.length === 0 ? h("p", { class: "empty" }, "No run has ended yet.") :
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs that ended" }, h("table", {},
      h("thead", {}, h("tr", {}, ["run", "what", "ended", "took"].map((t) => h("th", {}, t)), h("th", { class: "n" }, "moves"), h("th", { class: "n" }, "bytes"), h("th", {}, "outcome"))),
      h("tbody", {}, runs.map((r) => h("tr", {}, h("td", {}, h("code", {}, r.id)), h("td", {}, r.intent), h("td", {}, r.ended_at_ms ? when(r.ended_at_ms) : "—"),
        h("td", {}, r.ended_at_ms ? span((r.ended_at_ms - r.started_at_ms) / 1000) : "—"), h("td", { class: "n" }, count(r.moves_total)), h("td", { class: "n" }, bytes(r.bytes_total)),
        h("td", {}, h("span", { class: "chip", "data-tone": r.outcome === "done" ? "good" : "warn" }, r.outcome))))))));
}

async function drawSettings() {
  const { settings } = await read("/api/v1/settings");
  const wanted = $("settings-find").value.trim().toLowerCase();
  const rows = settings.filter((s) => s.name.includes(wanted));
  draw("settings", rows, () => rows.length === 0 ? h("p", { class: "empty" }, "No setting has that in its name.") : h("table", {},
    h("thead", {}, h("tr", {}, h("th", {}, "setting"), h("th", {}, "value"))),
    h("tbody", {}, rows.map((s) => h("tr", {}, h("td", {}, h("code", {}, s.name)), h("td", {}, s.value))))));
}

function drawAll() {
  document.body.dataset.state = state();
  if (!status) return;
  drawTop(status);
  drawBanners(status);
  const [tone, headline, detail] = verdict(status);
  draw("verdict", [tone, headline, detail], () => [h("p", { class: "headline" }, headline), h("p", { class: "detail" }, detail)]);
  $("verdict").dataset.tone = tone;
  drawTiles(status.cluster);
  drawRun(status);
  drawPlans(status.plans);
  drawBrokers(status.cluster);
  drawLists(status);
}

function tickAges() {
  document.body.dataset.state = state();
  if (status) drawBanners(status);
  const taken = status && status.cluster ? status.cluster.taken_at_ms : null;
  $("fresh").textContent = taken === null ? "not read yet" : `read ${span((nowMs() - taken) / 1000)} ago`;
  for (const node of document.querySelectorAll("[data-since]")) node.textContent = `${span((nowMs() - Number(node.dataset.since)) / 1000)} ago`;
}

async function read(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

const nap = (ms) => new Promise((wake) => setTimeout(wake, ms));

async function follow() {
  for (;;) {
    try {
      const after = status ? `?after=${status.version}` : "";
      const before = status;
      status = await read(`/api/v1/status${after}`);
      skewMs = status.now_ms - Date.now();
      heardAt = nowMs();
      // A daemon that restarted counts from the start again.
      if (before && status.started_at_ms !== before.started_at_ms) drawn.clear();
      drawAll();
      tickAges();
      await drawHistory();
      if ($("settings-box").open) await drawSettings();
      await nap(1000);
    } catch {
      document.body.dataset.state = state();
      await nap(3000);
    }
  }
}

// Acting: a dialog asks for the token, which stays in this tab only.

let onYes = null;

function ask({ title, text, yes, more, check, act }) {
  $("ask-title").textContent = title;
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes;
  $("ask-error").textContent = "";
  $("ask-more-label").hidden = !more;
  $("ask-more-text").textContent = more || "";
  $("ask-more").value = "";
  $("ask-check-label").hidden = !check;
  $("ask-check-text").textContent = check || "";
  $("ask-check").checked = false;
  $("ask-by").value = sessionStorage.getItem("by") || "";
  $("ask-token").value = sessionStorage.getItem("token") || "";
  onYes = act;
  $("ask").showModal();
  ($("ask-by").value ? $("ask-yes") : $("ask-by")).focus();
}

async function send(kind, body) {
  const answer = await fetch(`/api/v1/actions/${kind}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${$("ask-token").value}` },
    body: JSON.stringify({ by: $("ask-by").value || undefined, ...body }),
  });
  if (answer.ok) return null;
  const said = await answer.json().catch(() => ({}));
  return said.error || `The daemon answered ${answer.status}.`;
}

$("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = await onYes().catch(() => "The daemon does not answer.");
  if (problem) {
    $("ask-error").textContent = problem;
    return;
  }
  sessionStorage.setItem("by", $("ask-by").value);
  sessionStorage.setItem("token", $("ask-token").value);
  $("ask").close();
});
$("ask-no").addEventListener("click", () => $("ask").close());

const askCancel = (run) => ask({
  title: `Cancel run ${run.id}?`, text: "Moves in flight are taken back; what has arrived stays.", yes: "Cancel the run",
  check: "Also undo what has arrived", act: () => send("cancel", { run: run.id, rollback: $("ask-check").checked }),
});
const askApprove = (plan) => ask({
  title: `Approve ${plan.intent}?`, text: `${plural(plan.moves, "move")}, ${plural(plan.elections, "election")}; data over the network: ${cost(plan)}. It starts as soon as its guards allow.`,
  yes: "Approve", act: () => send("approve", { plan: plan.id }),
});
$("pause").addEventListener("click", () => (status.pause
  ? ask({ title: "Resume?", text: "Ballast goes on as its settings say.", yes: "Resume", act: () => send("resume", {}) })
  : ask({ title: "Pause Ballast?", text: "Nothing new starts until somebody resumes; moves in flight go on. It survives restarts.", yes: "Pause", more: "Why", act: () => send("pause", { reason: $("ask-more").value }) })));

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") || (dark.matches ? "dark" : "light");
}
$("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
});
dark.addEventListener("change", theme);
$("settings-box").addEventListener("toggle", () => { if ($("settings-box").open) drawSettings(); });
$("settings-find").addEventListener("input", drawSettings);
theme();
setInterval(tickAges, 1000);
follow();
