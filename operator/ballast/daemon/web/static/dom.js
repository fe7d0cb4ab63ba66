// What every part of the page is built with: elements, and figures written as Ballast's commands write them.
"use strict";

const $ = (id) => document.getElementById(id);
const drawn = new Map();

/** An element; text is always text, never markup. */
function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for pictures. */
function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}

/** Draw a part only when what it shows has changed, so that focus and selection survive. */
function draw(id, data, make) {
  const key = JSON.stringify(data);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  $(id).replaceChildren(...[make()].flat(Infinity).filter((node) => node !== null && node !== undefined && node !== false));
}

const count = (n) => n.toLocaleString("en");
const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
const decimal = (n, digits = 1) => n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const percent = (share, digits = 1) => `${decimal(share * 100, digits)} %`;
const signed = (share) => `${share >= 0 ? "+" : "−"}${percent(Math.abs(share))}`;

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
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 && s < 1800 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** A time of the API as this page counts. */
const ms = (time) => Date.parse(time);

const when = (time) => new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** A sentence of the daemon, which writes UTC, with its times as this page writes times. */
const local = (text) => text.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC/g, (_, day, time) => when(Date.parse(`${day}T${time}Z`)));

const clock = (time) => new Date(time).toLocaleTimeString("en-GB", { timeStyle: "short" });

/** A load in its resource's own unit. */
const load = (unit, value) => ({ bytes: () => bytes(value), "bytes/s": () => `${bytes(value)}/s`, cpu: () => `${decimal(value / 1e6)} %` }[unit] || (() => count(Math.round(value))))();

/** An age, and the time that is left, that count on by themselves. */
const ago = (time) => h("small", { "data-since": time }, `${span((nowMs() - ms(time)) / 1000)} ago`);
const until = (time) => h("span", { "data-until": time }, span((ms(time) - nowMs()) / 1000));

const fact = (name, ...value) => h("span", {}, `${name} `, h("b", {}, ...value));
const chip = (tone, text) => h("span", { class: "chip", "data-tone": tone }, text);
const brokerLink = (id) => h("a", { href: `#/broker/${id}` }, String(id));
const topicLink = (name) => h("a", { href: `#/topic/${encodeURIComponent(name)}` }, name);
const brokerLinks = (ids) => ids.flatMap((id, i) => (i ? [" ", brokerLink(id)] : [brokerLink(id)]));

/** A table; on a narrow screen each row becomes a block in which every cell carries its column's name. */
function table(name, columns, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, h("table", { class: "stack" },
    h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { class: kind }, title)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, i) => h("td", { class: columns[i][1], "data-label": columns[i][0] }, h("span", {}, cell))))))));
}

async function read(path) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(path, { cache: "no-store", headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (answer.ok) return answer.json();
  const said = (await answer.json().catch(() => ({}))).detail || `${path}: ${answer.status}`;
  throw Object.assign(new Error(said), { needsToken: answer.status === 401 });
}
