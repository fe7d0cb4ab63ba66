// The pages of one broker, one topic, and the partitions in one state: the address behind # says which.
"use strict";

const STATES = { offline: "Offline partitions", "under-min-isr": "Partitions under min ISR", "at-min-isr": "Partitions at min ISR",
  "min-isr-unknown": "Under-replicated partitions of unknown min ISR",
  "under-replicated": "Under-replicated partitions", reassigning: "Partitions being reassigned" };
const SHOWN = 300;

function place() {
  const [kind, name] = location.hash.replace(/^#\/?/, "").split("/");
  return name === undefined ? null : [kind, decodeURIComponent(name)];
}

async function drawDetail() {
  const at = place();
  $("overview").hidden = at !== null;
  $("detail").hidden = at === null;
  if (!at) return;
  const [kind, name] = at;
  const make = { broker: brokerPage, topic: topicPage, partitions: partitionsPage }[kind];
  const path = { broker: "brokers", topic: "topics", partitions: "partitions" }[kind];
  try {
    if (!make) throw new Error("There is no such page.");
    const found = await read(`/api/v1/${path}/${encodeURIComponent(name)}`);
    draw("detail", [at, found, status && status.run], () => [back(), ...make(found)]);
  } catch (problem) {
    draw("detail", [at, problem.message], () => [back(), h("p", { class: "empty" }, problem.message)]);
  }
}

const back = () => h("p", {}, h("a", { href: "#", class: "back" }, "← Overview"));
const titled = (name, ...parts) => h("section", { class: "card wide", "aria-label": name }, h("h2", {}, name), ...parts);

function brokerPage(b) {
  const figures = status && status.cluster && status.cluster.brokers.find((x) => x.id === b.id);
  const state = !b.alive ? "down" : !b.reachable ? "unreachable" : "up";
  const moves = ((status && status.run && status.run.moves) || []).filter((m) => m.old.includes(b.id) || m.new.includes(b.id));
  return [
    titled(`Broker ${b.id}`,
      h("p", { class: "facts" }, fact("state", chip(state === "up" ? "good" : "bad", state)), fact("host", b.host === null ? "unknown" : `${b.host}:${b.port}`), fact("rack", b.rack || "none"),
        b.controller ? fact("role", "controller") : null,
        figures ? [fact("replicas", count(figures.replicas)), fact("leaders", count(figures.leaders)), fact("preferred leader of", count(figures.preferredLeaders)),
          fact("preferred, not led", percent(figures.imbalanceRatio))] : null)),
    titled("Log directories", b.logDirs.length === 0 ? h("p", { class: "empty" }, "Not known: the broker did not say.") : b.logDirs.map((d) => disk(d))),
    titled("Throttles", b.throttles.length === 0 ? h("p", { class: "empty" }, "No replication throttle is set on this broker.")
      : table("Throttles", [["setting"], ["rate", "n"]], b.throttles.map((t) => [h("code", {}, t.key), /^\d+$/.test(t.value) ? `${bytes(Number(t.value))}/s` : t.value]))),
    moves.length ? titled("Moves in progress", moveTable(moves)) : null,
    titled("Replicas", more(b.total, b.replicas.length), table("Replicas", [["partition"], ["role"], ["state"], ["size", "n"]], b.replicas.slice(0, SHOWN).map((r) => [
      partitionName(r), r.leader ? (r.preferred ? "leader" : "leader, not preferred") : r.preferred ? "follower, preferred leader" : "follower",
      r.adding ? "being added" : r.removing ? "being removed" : r.inSync ? "in sync" : chip("warn", "not in sync"), bytes(r.sizeBytes)]))),
  ];
}

function disk(d) {
  const known = d.totalBytes !== null && d.usableBytes !== null;
  const used = known ? 1 - d.usableBytes / Math.max(d.totalBytes, 1) : 0;
  return h("div", { class: "disk" }, h("code", {}, d.path || "unknown path"), known ? gauge(["fill", null, used]) : null,
    h("span", {}, known ? `${percent(used)} of ${bytes(d.totalBytes)} used` : "size not known", d.cordoned ? ", cordoned" : ""),
    d.error ? chip("bad", d.error) : null);
}

function topicPage(t) {
  return [
    titled(`Topic ${t.topic}`, h("p", { class: "facts" }, fact("partitions", count(t.total)), fact("size of all replicas", bytes(t.sizeBytes)),
      fact("min.insync.replicas", t.minIsr === null ? "unknown" : t.minIsr), t.internal ? fact("kind", "internal") : null,
      fact("throttled replicas", t.throttled ? "yes" : "none"))),
    titled("Partitions", more(t.total, t.partitions.length), partitionTable(t.partitions, true)),
  ];
}

function partitionsPage(p) {
  return [titled(STATES[p.state] || p.state, p.total === 0 ? h("p", { class: "empty" }, "None now.") : [more(p.total, p.partitions.length), partitionTable(p.partitions)])];
}

const more = (total, listed) => (total > Math.min(listed, SHOWN) ? h("p", { class: "empty" }, `The first ${count(Math.min(listed, SHOWN))} of ${count(total)}.`) : null);
const partitionName = (p) => h("code", {}, topicLink(p.topic), `-${p.partition}`);

/** Lag is asked for where a topic is shown: everywhere else its column would say nothing in any row. */
function partitionTable(partitions, lagged = false) {
  return table("Partitions", [["partition"], ["leader"], ["replicas"], ["ISR"], ["size", "n"], ...(lagged ? [["lag", "n"]] : [])], partitions.slice(0, SHOWN).map((p) => [
    partitionName(p),
    p.leader === null ? chip("bad", "none") : [brokerLink(p.leader), p.leader === p.preferredLeader ? "" : h("small", {}, ` preferred ${p.preferredLeader}`)],
    [brokerLinks(p.replicas), p.adding.length ? h("small", {}, ` adding ${p.adding.join(" ")}`) : "", p.removing.length ? h("small", {}, ` removing ${p.removing.join(" ")}`) : ""],
    p.inSyncReplicas.length < p.replicas.length - p.adding.length ? chip("warn", p.inSyncReplicas.join(" ") || "none") : p.inSyncReplicas.join(" "),
    bytes(p.sizeBytes), ...(lagged ? [p.lag === null ? "unknown" : count(p.lag)] : [])]));
}

function moveTable(moves) {
  return table("Moves", [["partition"], ["from → to"], ["size", "n"], ["state"], ["reason"]], moves.map((m) => [
    partitionName(m), [brokerLinks(m.old), " → ", brokerLinks(m.new)], bytes(m.sizeBytes),
    m.copiedBytes && m.sizeBytes ? `${m.stage} ${percent(Math.min(1, m.copiedBytes / m.sizeBytes))}` : m.stage, m.detail]));
}
