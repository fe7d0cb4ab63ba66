// The page: asks for the status, waits for a newer one, draws what changed. It needs nothing but this daemon.
"use strict";

let status = null;
let points = [];
let pointsProblem = null;
let heardAt = 0;
let skewMs = 0;
/** The tab that the reader chose; null opens the resource that is out of range. */
let chosen = null;

const nowMs = () => Date.now() + skewMs;
const LEADERSHIP = "leader imbalance";

/** `disconnected` is about this page and the daemon, `unreachable` about the daemon and the cluster. */
function state() {
  if (!status) return "loading";
  if (nowMs() - heardAt > 45000) return "disconnected";
  if (status.outage) return "unreachable";
  if (!status.cluster) return "loading";
  return nowMs() - ms(status.cluster.takenAt) > 120000 ? "stale" : "fresh";
}

/** Down, and it holds replicas. A broker that was emptied and stopped is remembered by KRaft and not missed. */
const missing = (b) => !b.alive && b.replicas > 0;

const brokerIds = (ids) => `broker${ids.length === 1 ? "" : "s"} ${ids.join(", ")}`;
const brokersOf = (p) => [...p.brokers.length ? [brokerIds(p.brokers)] : [], ...p.racks.map((r) => `rack ${r}`)].join(" and ");
const names = {
  balance: () => "Balance the cluster", leaders: () => "Spread preferred leaders", racks: () => "Spread replicas over racks",
  evacuate: (p) => `Rebuild replicas of ${brokersOf(p)}`, "evacuate-offline": (p) => `Rebuild offline replicas of ${brokersOf(p)}`,
  decommission: (p) => `Empty ${brokersOf(p)}`, expand: (p) => `Fill ${brokersOf(p)}`, demote: (p) => `Move leaders off ${brokersOf(p)}`,
  elect: () => "Elect preferred leaders", "elect-unclean": () => "Elect leaders, unclean", replace: (p) => `Replace broker ${p.brokers[0]} with ${p.brokers[1]}`,
  "remove-throttles": () => "Remove throttles of earlier runs",
};

/** What a plan or a run is for; the commands' words are in the title's tooltip, and the title where it has no other. */
const named = ({ purpose, intent }) => (Object.hasOwn(names, purpose.code) ? names[purpose.code](purpose) : intent);

/** When the replicas of a broker that is down are rebuilt, by the mode of repair. */
function countdown(s, absence) {
  const repair = s.permissions.find((x) => x.action === "repair");
  const what = { auto: "replicas rebuilt", approve: "rebuild plan" }[repair ? repair.mode : "observe"] || "rebuild recommended";
  return ms(absence.repairAt) <= nowMs() ? `: ${what} now due` : [`: ${what} in `, until(absence.repairAt)];
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const brokersNamed = (list) => brokerIds(list.map((b) => b.id));

const outages = { unreachable: "cluster unreachable", "access-denied": "cluster refuses access" };

/** How far a run is; its kinds of change are counted together here. */
const reached = (run) => (run.movesTotal || !run.electionsTotal ? `${count(run.movesVerified)} of ${plural(run.movesTotal, "partition")} done`
  : `${count(run.electionsCompleted)} of ${plural(run.electionsTotal, "election")} completed`);

/** The most important thing in one line, and how worried to be. */
function verdict(s) {
  const c = s.cluster;
  if (s.outage) {
    const what = outages[s.outage.code] || "cluster cannot be read";
    return ["bad", [`${capital(what)} since ${when(s.outage.since)}`], `${s.outage.detail} ${c ? "All figures below are from the last successful reading." : "It has not been read yet."}`];
  }
  if (!c) return ["none", ["Reading the cluster…"], "The first reading takes a few seconds."];
  const down = c.brokers.filter(missing);
  const [next] = [...s.absences].sort((a, b) => ms(a.repairAt) - ms(b.repairAt));
  const which = `${capital(brokersNamed(down))} ${down.length === 1 ? "is" : "are"} down`;
  const wait = down.length && next ? countdown(s, next) : "";
  const also = down.length ? [" ", which, wait, "."] : [];
  if (c.offline) return ["bad", [`${plural(c.offline, "partition")} offline`], [`${c.offline === 1 ? "It has" : "They have"} no leader and cannot be written or read.`, also]];
  if (c.underMinIsr) return ["bad", [`${plural(c.underMinIsr, "partition")} under min ISR`], ["Writes with acks=all are rejected there (NOT_ENOUGH_REPLICAS).", also]];
  if (c.minIsrUnknown) return ["bad", [`${plural(c.minIsrUnknown, "partition")} may be under min ISR`], ["Under-replicated, and the min.insync.replicas of their topics could not be read (DescribeConfigs).", also]];
  if (down.length) return ["bad", [which, wait], `${plural(c.underReplicated, "partition")} under-replicated.`];
  const unreachable = c.brokers.filter((b) => b.alive && !b.reachable);
  if (unreachable.length) return ["bad", [`${capital(brokersNamed(unreachable))} ${unreachable.length === 1 ? "does" : "do"} not answer`], `The cluster still lists ${unreachable.length === 1 ? "it" : "them"} as alive.`];
  const dirs = c.brokers.flatMap((b) => b.logDirErrors.map((d) => ({ id: b.id, ...d })));
  if (dirs.length) return ["bad", [dirs.length > 1 ? `${plural(dirs.length, "log dir")} of ${brokersNamed(c.brokers.filter((b) => b.logDirErrors.length))} report errors`
    : `Log dir of broker ${dirs[0].id} ${dirs[0].error === "KAFKA_STORAGE_ERROR" ? "has failed" : "reports an error"}`], dirs.slice(0, 3).map((d) => `Broker ${d.id}, ${d.path || "unknown path"}: ${d.error}`).join("; ")];
  const run = s.run || s.runElsewhere;
  if (run) return ["none", [run.detail || "A reassignment is in progress"], `${named(run)}: ${run.changes.length ? `${run.changes.join(", ")}; ` : ""}${reached(run)}.`];
  if (c.underReplicated) return ["warn", [`${plural(c.underReplicated, "partition")} under-replicated`], "Replicas are catching up, or cannot."];
  const over = c.brokers.filter((b) => b.overThreshold);
  if (over.length) return ["warn", [`Leaders of ${brokersNamed(over)} are imbalanced`],
    `Worst: ${percent(Math.max(...over.map((b) => b.imbalanceRatio)))} of the partitions whose preferred leader it is, it does not lead; the threshold is ${percent(c.leaderImbalanceThresholdRatio)}.`];
  if (s.balance.verdict === "unbalanced") return ["warn", ["Cluster is unbalanced"], s.balance.detail];
  if (s.balance.verdict === "no-plan-found") return ["none", ["Out of range, and no better plan was found"], s.balance.detail];
  const where = `${plural(c.brokers.filter((b) => b.alive).length, "broker")}, all replicas in sync, all preferred leaders active.`;
  return s.balance.verdict === "balanced" ? ["good", ["Cluster is balanced"], where] : ["good", ["Cluster is healthy"], `${where} Its balance has not been checked yet.`];
}

const flat = (parts) => parts.flat(Infinity).map((p) => (p instanceof Node ? p.textContent : p)).join("");

/** What stands still of a text: its countdowns go on in their place. */
const still = (parts) => [parts].flat(Infinity).map((p) => (p instanceof Node ? "" : p)).join("");

function drawTop(s) {
  const c = s.cluster;
  $("name").textContent = s.name || (c ? `Cluster ${c.id}` : "Ballast");
  document.title = `${flat(verdict(s)[1])} · ${s.name || "Ballast"}`;
  const parts = [`mode: ${s.mode}`, s.role];
  if (!s.actionsEnabled && s.mode !== "observe") parts.push(`read-only: ${s.readOnly}`);
  if (c && c.kafkaVersion) parts.push(`Kafka ${c.kafkaVersion}`);
  if (c && s.name) parts.push(c.id);
  $("what").textContent = parts.join(" · ");
  $("instance").textContent = `${s.instance}, up since ${when(s.startedAt)}`;
  $("pause").hidden = !s.actionsEnabled;
  $("actions").hidden = !s.actionsEnabled || !c || s.outage !== null || s.run !== null || s.runElsewhere !== null;
  $("pause").textContent = s.pause ? "Resume" : "Pause";
}

/** What the reading lacks, in a sentence for each reason; that a broker does not answer is told by its own state. */
function lacking(c) {
  const told = new Set(c.brokers.filter((b) => !b.alive || !b.reachable).map((b) => b.id));
  const groups = new Map();
  for (const gap of c.gaps) {
    if (told.has(gap.broker)) continue;
    const key = `${gap.missing} ${gap.detail}`;
    const group = groups.get(key);
    if (group) group.more += 1;
    else groups.set(key, { first: gap, more: 0 });
  }
  return [...groups.values()].map(({ first, more }) => `Missing: ${first.missing} of ${first.subject}${more ? ` and ${more} more` : ""} (${first.detail})`);
}

function drawBanners(s) {
  const list = [];
  if (state() === "disconnected") list.push(["bad", "Connection to Ballast lost. What is shown is old; this page keeps trying."]);
  if (s.pause) list.push(["warn", `Paused by ${s.pause.by} since ${when(s.pause.since)}${s.pause.reason ? `: ${s.pause.reason}` : ""}. Nothing new starts.`]);
  if (s.lock.journalProblem) list.push(["bad", `The journal cannot be used, so nothing starts: ${s.lock.journalProblem}`]);
  if (s.settingsProblem) list.push(["bad", `The newest settings are not active: ${s.settingsProblem}`]);
  for (const other of s.others) if (other.blocking) list.push(["warn", `Waiting for another balancer or reassignment: ${other.detail}`]);
  if (s.cluster) list.push(...lacking(s.cluster).map((text) => ["warn", text]));
  if (s.throttlesToRestore && !s.run && !s.runElsewhere) list.push(["warn", `${plural(s.throttlesToRestore, "throttle")} set by Ballast not yet removed.`]);
  draw("banners", list, () => list.map(([tone, text]) => h("p", { class: "banner", "data-tone": tone }, text)));
}

/** Brokers that people drained: who, since when, and how to end it. */
function drawDrains(s) {
  draw("drains", [s.drains, s.actionsEnabled], () => s.drains.map((d) => h("p", { class: "banner", "data-tone": "note", "data-broker": d.broker },
    "Drain of broker ", brokerLink(d.broker), ` (${d.by}, ${when(d.since)}): it takes no replica until the drain is ended. `,
    s.actionsEnabled ? h("button", { type: "button", class: "quiet", on: { click: () => askEndDrain(d) } }, "End the drain…") : null)));
}

/** Partitions on their way: a run tells of its own at once, the next reading of those of others as well. */
function moving(s) {
  const run = s.run || s.runElsewhere;
  if (!run) return s.cluster.reassigning;
  return s.others.some((o) => o.blocking) ? Math.max(s.cluster.reassigning, run.movesInFlight) : run.movesInFlight;
}

/** Why a plan is made: resources out of range by their labels, the rest in words. */
const whys = { "not-preferred": "the preferred leader does not lead", "leader-balance": "preferred leaders are unevenly spread", racks: "replicas share a rack",
  evacuate: "replicas are offline, or their broker is to be emptied", decommission: "the broker is to be emptied", draining: "the broker is draining", "broker-down": "the broker is down", expand: "the broker is to be filled",
  demote: "the broker is to lead nothing", replace: "the broker is to be replaced", "topic-rule": "the rule of the topic", "make-room": "room for other moves", "cross-rack": "less traffic between racks",
  "replication-factor": "another replication factor", placement: "Kafka's placement" };
function why(plan, code) {
  const resource = plan.resources.find((r) => r.name === code);
  return resource ? `${resource.label} unevenly spread` : whys[code] || code;
}

function drawTiles(s) {
  const c = s.cluster;
  if (!c) return draw("tiles", null, () => []);
  const alive = c.brokers.filter((b) => b.alive).length;
  const wanted = alive + c.brokers.filter(missing).length;
  const worst = Math.max(0, ...c.brokers.map((b) => b.imbalanceRatio));
  const tiles = [
    ["brokers alive", `${alive} / ${wanted}`, alive < wanted || c.brokers.some((b) => b.alive && !b.reachable) ? "bad" : ""],
    ["topics", count(c.topics), ""],
    ["partitions", count(c.partitions), ""],
    ["offline", count(c.offline), c.offline ? "bad" : "", c.offline && "offline"],
    c.minIsrUnknown && !c.underMinIsr ? ["under min ISR", "unknown", "bad", "min-isr-unknown"]
      : ["under min ISR", `${count(c.underMinIsr)}${c.minIsrUnknown ? " or more" : ""}`, c.underMinIsr ? "bad" : "", c.underMinIsr && "under-min-isr"],
    ["under-replicated", count(c.underReplicated), c.underReplicated ? "warn" : "", c.underReplicated && "under-replicated"],
    ["being reassigned", count(moving(s)), "", moving(s) && "reassigning"],
    ["worst leader imbalance", percent(worst), worst > c.leaderImbalanceThresholdRatio ? "warn" : ""],
  ];
  draw("tiles", tiles, () => tiles.map(([name, value, tone, list]) => h("div", { class: "tile", "data-tone": tone },
    h("dt", {}, name), h("dd", {}, list ? h("a", { href: `#/partitions/${list}` }, value) : value))));
}

/** The tab that opens: what is furthest out of range; leadership first, since it costs nothing to mend. */
function opened(c) {
  if (c.brokers.some((b) => b.overThreshold)) return LEADERSHIP;
  const worst = [...c.ranges].sort((a, b) => b.brokersOutOfRange.length - a.brokersOutOfRange.length || b.skew - a.skew)[0];
  return worst && worst.brokersOutOfRange.length ? worst.label : LEADERSHIP;
}

function drawBrokers(c) {
  if (!c) return draw("brokers", null, () => h("p", { class: "empty" }, "No data yet."));
  const names = [LEADERSHIP, ...c.ranges.map((r) => r.label)];
  const resource = names.includes(chosen) ? chosen : opened(c);
  const focused = $("resources").contains(document.activeElement) ? document.activeElement.dataset.resource : null;
  const out = (name) => (name === LEADERSHIP ? c.brokers.filter((b) => b.overThreshold).length : c.ranges.find((r) => r.label === name).brokersOutOfRange.length);
  draw("resources", [names.map((n) => [n, out(n)]), resource], () => names.map((name) =>
    h("button", { type: "button", "aria-pressed": String(name === resource), "data-resource": name, on: { click: () => { chosen = name; drawBrokers(status.cluster); focusTab(name); } } },
      name, out(name) ? h("span", { class: "count" }, ` ${out(name)} out`) : null)));
  if (focused) focusTab(focused);
  const range = c.ranges.find((r) => r.label === resource);
  draw("legend", [resource, range && range.tolerance, c.leaderImbalanceThresholdRatio, c.brokers.some((b) => b.controller)], () => (range
    ? `Bar: load, moves in progress counted as done. Green: the range of ±${percent(range.tolerance)} around each broker's fair share. Right: compared with the fair share.`
    : `Bar: of the partitions whose preferred leader the broker is, the fraction that it does not lead. Green: up to the threshold of ${percent(c.leaderImbalanceThresholdRatio)}.${c.brokers.some((b) => b.controller) ? " ★: the controller." : ""}`));
  draw("brokers", [resource, c.brokers, range, c.leaderImbalanceThresholdRatio], () => {
    const racks = new Map();
    for (const b of c.brokers) racks.set(b.rack, [...(racks.get(b.rack) || []), b]);
    return [...racks].map(([rack, members]) => h("div", { class: "rack" },
      rack !== null ? h("h3", {}, /^rack/i.test(rack) ? rack : `Rack ${rack}`) : (racks.size > 1 ? h("h3", {}, "No rack") : null),
      members.map((b) => (range ? rangeBar(b, range) : leaderBar(b, c)))));
  });
}

function focusTab(name) {
  for (const button of $("resources").children) if (button.dataset.resource === name) button.focus();
}

const flags = (b) => [b.controller ? "★" : "", b.cordoned ? "cordoned" : "", b.draining ? (b.replicas ? "draining" : "draining, empty") : "", b.alive ? (b.reachable ? "" : "unreachable") : b.replicas ? "down" : "down, empty"].filter(Boolean).join(", ");

function brokerRow(b, out, bar, value) {
  const note = flags(b);
  return h("div", { class: `broker${out ? " out" : ""}${b.alive ? "" : " down"}`, "data-broker": b.id },
    h("span", { class: "id" }, brokerLink(b.id), " ", note ? h("span", { class: "note" }, note) : null),
    bar, h("span", { class: "value" }, value));
}

function leaderBar(b, c) {
  const top = Math.max(c.leaderImbalanceThresholdRatio, ...c.brokers.map((x) => x.imbalanceRatio)) * 1.08 || 1;
  return brokerRow(b, b.overThreshold, gauge(["band", 0, c.leaderImbalanceThresholdRatio / top], ["fill", null, b.imbalanceRatio / top]),
    `${percent(b.imbalanceRatio)} · ${count(b.preferredNotLed)} of ${count(b.preferredLeaders)}`);
}

function rangeBar(b, range) {
  const share = range.shares[String(b.id)];
  if (!share) return brokerRow(b, false, gauge(), !b.alive ? (b.replicas ? "down" : "down, empty") : b.draining ? "no share" : "unknown");
  const top = Math.max(...Object.values(range.shares).map((s) => Math.max(s.load, s.high)), 1e-9) * 1.08;
  const off = share.fair ? share.load / share.fair - 1 : 0;
  return brokerRow(b, range.brokersOutOfRange.includes(b.id),
    gauge(["band", share.low / top, (share.high - share.low) / top], ["fill", null, share.load / top]),
    `${load(range.unit, share.load)} · ${signed(off)}`);
}

function drawRun(s) {
  const run = s.run || s.runElsewhere;
  $("now").hidden = !run;
  if (!run) return;
  draw("run", [run, s.run === null, s.lock.holder, s.actionsEnabled], () => {
    const done = run.bytesTotal ? 1 - run.bytesLeft / run.bytesTotal : run.movesTotal ? run.movesVerified / run.movesTotal : run.electionsCompleted / Math.max(run.electionsTotal, 1);
    return [
      h("p", {}, h("b", { title: run.intent }, named(run)), ` · run ${run.id} · ${run.phase}`),
      h("progress", { max: 1, value: done.toFixed(4), "aria-label": `Done: ${percent(done)}` }),
      h("p", { class: "facts" },
        run.changes.length ? fact("changes", run.changes.join(", ")) : null, run.movesTotal ? fact("partitions", `${count(run.movesVerified)} / ${count(run.movesTotal)}`) : null, run.electionsTotal ? fact("preferred leader elections", `${run.electionsCompleted} / ${run.electionsTotal}`) : null,
        s.run ? [fact("left", bytes(run.bytesLeft)), fact("rate", run.bytesPerS === null ? "not known yet" : `${bytes(run.bytesPerS)}/s`), fact("time left", span(run.secondsLeft))] : null,
        fact("throttle", run.throttleBytesPerS ? `${bytes(run.throttleBytesPerS)}/s` : "none")),
      s.run ? null : h("p", {}, `Executed by ${s.lock.holder || "another process"}, whose own page shows bytes and time left. This is what the journal says.`),
      run.moves.length ? moveTable(run.moves) : null,
      s.actionsEnabled ? h("p", { class: "buttons" }, h("button", { type: "button", class: "risky", on: { click: () => askCancel(run) } }, "Cancel this run…")) : null,
    ];
  });
}

function time(plan) {
  if (!plan.copies || plan.seconds === null) return null;
  return fact("time", `about ${span(Math.max(plan.seconds, 1))}`, h("small", {}, ` at ${bytes(plan.throttleBytesPerS)}/s into each broker${plan.throttle === "auto" ? ", the first rate of the automatic throttle" : ""}`));
}

/** The resources of which some broker has more or less after the plan. */
const pictured = (plan) => plan.resources.filter((r) => plan.brokers.length === 0 || plan.brokers.some((b) => b.before[r.name] !== b.after[r.name]));

function drawPlans(s) {
  const plans = s.outage ? [] : s.plans;
  $("plans-card").hidden = plans.length === 0;
  // The reason that blocks a plan may change each second and is updated below: redrawing the card would close its details and lose the focus.
  draw("plans", [plans.map((p) => ({ ...p, blocked: Boolean(p.blocked) })), s.actionsEnabled], () => plans.map((plan) => [plan, pictured(plan), [...plan.objections.map((o) => `Waits for approval: ${o.detail}.`), ...plan.obstacles]]).map(([plan, changed, waits]) => h("article", { class: "plan", "aria-label": `Plan ${plan.id}` },
    h("h3", { title: plan.intent }, `${named(plan)} `, plan.pendingApproval ? chip("warn", "Pending approval") : plan.approvedBy ? chip("good", `Approved by ${plan.approvedBy}`) : chip("good", plan.blocked ? "Recommended" : "Starts by itself"), h("code", { class: "name" }, plan.id)),
    h("p", { class: "facts" },
      fact("changes", plan.changes.join(", ")),
      plan.boundBytes !== null && plan.bytesMoved ? fact("lower bound", bytes(plan.boundBytes)) : null,
      time(plan), plan.throttle === "none" && plan.copies ? fact("throttle", "none") : null,
      h("span", {}, plan.requestedBy ? `requested by ${plan.requestedBy}, ` : "", "made ", ago(plan.createdAt))),
    plan.reasons.length ? h("p", {}, `Reason: ${plan.reasons.map((r) => `${why(plan, r.code)} (${count(r.count)})`).join(", ")}.`) : null,
    plan.blocked ? h("p", { class: "blocked" }, chip("warn", "Blocked"), " ", h("span", { "data-blocks": plan.id }, local(plan.blocked))) : null,
    waits.length ? h("ul", {}, waits.map((o) => h("li", {}, o))) : null,
    changed.length ? h("div", { class: "pictures" }, changed.map((r) => beforeAfter(plan, r))) : null,
    changed.length && plan.brokers.length ? h("p", { class: "legend" }, `Light: before. Dark: after. Green: the broker's range. Percentages: of the fair share${changed.some((r) => r.sharesChange) ? ", before of that of now, after of that which the broker then has" : ""}.`) : null,
    plan.examples.length ? h("details", {}, h("summary", {}, `Show ${plan.examples.length < plan.moves ? "the first " : ""}${plural(plan.examples.length, "change")}`), moveTable(plan.examples)) : null,
    s.actionsEnabled && (plan.pendingApproval || plan.requestedBy || !plan.blocked) ? h("p", { class: "buttons" },
      plan.pendingApproval ? h("button", { type: "button", on: { click: () => askApprove(plan) } }, "Approve…") : null,
      h("button", { type: "button", class: "risky", on: { click: () => askReject(plan) } }, "Reject…")) : null)));
  for (const plan of plans) {
    const reason = document.querySelector(`[data-blocks="${CSS.escape(plan.id)}"]`);
    if (reason && reason.textContent !== local(plan.blocked)) reason.textContent = local(plan.blocked);
  }
}

/** Where the chart's bytes in come from. */
function sources() {
  const found = new Set(points.map((p) => p.bytesInSource));
  return !found.has("measured") ? "growth of logs" : found.has("growth") ? "measured by brokers, else growth of logs" : "measured by brokers";
}

function drawSeries(s) {
  const disk = s.cluster && s.cluster.ranges.find((r) => r.resource === "disk");
  draw("series", [points, pointsProblem, disk && disk.tolerance], () => [
    pointsProblem ? h("p", { class: "empty", role: "status" }, pointsProblem) : null,
    line("Leader imbalance, worst broker", points, (p) => p.imbalanceRatio, percent, s.cluster && s.cluster.leaderImbalanceThresholdRatio),
    line("Disk, furthest from fair share", points, (p) => p.diskSkew, percent, disk && disk.tolerance),
    line(`Bytes in (${sources()})`, points, (p) => p.bytesInPerS, (v) => `${bytes(v)}/s`),
    line("Partitions being reassigned", points, (p) => p.reassigning, count),
  ]);
}

function drawLists(s) {
  draw("permissions", s.permissions.map((x) => [x.action, x.allowed, x.detail]), () => s.permissions.length === 0 ? h("li", {}, "No data yet.") : s.permissions.map((x) => h("li", {},
    h("span", { class: "word" }, x.action.replaceAll("_", " "), h("small", {}, x.mode)),
    h("span", { class: "said" }, chip(x.allowed ? "good" : "warn", x.allowed ? "Allowed" : "Blocked"), x.allowed ? "" : ` ${local(x.detail)}`))));
  draw("others", s.others, () => s.others.map((o) => h("li", {}, h("span", { class: "word" }, o.code), h("span", { class: "said" }, o.detail))));
  // Housekeeping is shown only when it fails.
  const known = ["observe", "leaders", "repair", "balance", "act", "lock"].filter((name) => s.checks[name]);
  const checks = [...known, ...Object.keys(s.checks).filter((name) => !known.includes(name) && s.checks[name].result !== "ok")].map((name) => [name, s.checks[name]]);
  draw("checks", checks.map(([n, t]) => [n, t.detail, t.result, t.failures, t.stale, t.at]), () => checks.map(([name, t]) => h("li", { "data-tone": t.result === "ok" ? null : "bad", "data-check": name, "data-stale": t.stale || null },
    h("span", { class: "word" }, name), h("span", { class: "said" }, t.stale === "outage" ? `Not known: ${outages[s.outage.code] || "cluster cannot be read"}.` : local(t.detail),
      h("small", {}, t.stale ? "checked " : "", ago(t.at), t.stale === "earlier-reading" ? ", before the cluster changed" : ""),
      t.failures > 1 ? h("small", {}, `${t.failures} failures in a row`) : null))));
}

async function drawHistory() {
  const { runs, skipped, problem } = await read("/api/v1/history");
  draw("history", [runs, skipped, problem], () => problem ? h("p", { class: "empty" }, `Past runs are not known: ${problem}`) : [
    skipped.map((r) => h("p", { class: "empty" }, `Run ${r.id} cannot be shown: ${r.detail}`)),
    runs.length === 0 ? (skipped.length ? null : h("p", { class: "empty" }, "No run has ended yet.")) :
    table("Runs that ended", [["run"], ["what"], ["ended"], ["took"], ["partitions", "n"], ["bytes", "n"], ["outcome"]], runs.map((r) => [
      h("code", {}, r.id), named(r), r.endedAt ? when(r.endedAt) : "—", r.endedAt ? span((ms(r.endedAt) - ms(r.startedAt)) / 1000) : "—",
      count(r.movesTotal), bytes(r.bytesTotal), chip(r.status === "done" ? "good" : "warn", r.status)]))]);
}

async function drawSettings() {
  const { settings } = await read("/api/v1/settings");
  const wanted = $("settings-find").value.trim().toLowerCase();
  const rows = settings.filter((s) => s.name.includes(wanted));
  const changed = rows.filter((s) => s.changed);
  const kept = rows.filter((s) => !s.changed);
  const list = (of) => table("Settings", [["setting"], ["value"]], of.map((s) => [[h("code", {}, s.name), s.changed ? [" ", chip("warn", "changed")] : null], s.value]));
  draw("settings", [rows, wanted], () => (rows.length === 0 ? h("p", { class: "empty" }, "No setting has that in its name.") : [
    changed.length ? list(changed) : h("p", { class: "empty" }, "Every setting has its default."),
    kept.length ? h("details", { open: wanted !== "", class: "kept" }, h("summary", {}, `${plural(kept.length, "setting")} with ${kept.length === 1 ? "its" : "their"} default`), list(kept)) : null]));
}

function drawAll() {
  document.body.dataset.state = state();
  if (!status) return;
  drawTop(status);
  drawBanners(status);
  drawAnswers(status);
  drawDrains(status);
  const [tone, headline, detail] = verdict(status);
  draw("verdict", [tone, status.absences, still(headline), still(detail)], () => [h("p", { class: "headline" }, headline), h("p", { class: "detail" }, detail)]);
  $("verdict").dataset.tone = tone;
  drawTiles(status);
  drawRun(status);
  drawPlans(status);
  drawBrokers(status.cluster);
  drawSeries(status);
  drawLists(status);
}

function checkAges() {
  document.body.dataset.state = state();
  if (status) drawBanners(status);
  const taken = status && status.cluster ? status.cluster.takenAt : null;
  $("fresh").textContent = taken === null ? "no data yet" : `read ${span((nowMs() - ms(taken)) / 1000)} ago`;
  for (const node of document.querySelectorAll("[data-since]")) node.textContent = `${span((nowMs() - ms(node.dataset.since)) / 1000)} ago`;
  for (const node of document.querySelectorAll("[data-until]")) node.textContent = span((ms(node.dataset.until) - nowMs()) / 1000);
}

/** Reading needs a token here: nothing is asked again before one was accepted. */
async function tokenGiven() {
  document.body.dataset.state = "locked";
  draw("verdict", "locked", () => [h("p", { class: "headline" }, "Reading this page needs a token"),
    h("p", { class: "detail" }, h("button", { type: "button", on: { click: askRead } }, "Give the token…"))]);
  if (!$("ask").open) askRead();
  await new Promise((go) => window.addEventListener("token", go, { once: true }));
}

const nap = (ms) => new Promise((wake) => setTimeout(wake, ms));

async function follow() {
  for (;;) {
    try {
      const after = status ? `?after=${status.version}` : "";
      const before = status;
      status = await read(`/api/v1/status${after}`);
      skewMs = ms(status.now) - Date.now();
      heardAt = nowMs();
      // A daemon that restarted counts from the start again.
      if (before && status.startedAt !== before.startedAt) drawn.clear();
      ({ points, problem: pointsProblem } = await read("/api/v1/series"));
      drawAll();
      checkAges();
      await drawHistory();
      await drawDetail();
      if ($("settings-box").open) await drawSettings();
      await nap(1000);
    } catch (problem) {
      document.body.dataset.state = state();
      await (problem.needsToken ? tokenGiven() : nap(3000));
    }
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") || (dark.matches ? "dark" : "light");
}
$("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
});
dark.addEventListener("change", theme);
window.addEventListener("hashchange", () => { drawDetail(); window.scrollTo(0, 0); });
$("settings-box").addEventListener("toggle", () => { if ($("settings-box").open) drawSettings(); });
$("settings-find").addEventListener("input", drawSettings);
theme();
setInterval(checkAges, 1000);
follow();
