// Acting: a dialog asks for the token, which stays in this tab only, and says what came of it.
"use strict";

let onYes = null;
/** Requests whose answer this tab waits for. */
const asked = new Set();

function ask({ title, text, yes, more, number, check, act, nameless }) {
  $("ask-by-label").hidden = Boolean(nameless);
  $("ask-title").textContent = title;
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes;
  $("ask-error").textContent = "";
  $("ask-more-label").hidden = !more;
  $("ask-more-text").textContent = more || "";
  $("ask-more").value = "";
  $("ask-number-label").hidden = !number;
  $("ask-number").replaceChildren(...(number || []).map((id) => h("option", { value: id }, `broker ${id}`)));
  $("ask-check-label").hidden = !check;
  $("ask-check-text").textContent = check || "";
  $("ask-check").checked = false;
  $("ask-by").value = sessionStorage.getItem("by") || "";
  $("ask-token").value = sessionStorage.getItem("token") || "";
  onYes = act;
  $("ask").showModal();
  (nameless ? $("ask-token") : $("ask-by").value ? $("ask-yes") : $("ask-by")).focus();
}

async function send(kind, body) {
  const answer = await fetch(`/api/v1/actions/${kind}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${$("ask-token").value}` },
    body: JSON.stringify({ by: $("ask-by").value || undefined, ...body }),
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) return said.detail || `Ballast answered ${answer.status}.`;
  asked.add(said.request);
  if (status) drawAnswers(status);
  return null;
}

$("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = await onYes().catch(() => "Ballast does not answer.");
  if (problem) {
    $("ask-error").textContent = problem;
    return;
  }
  sessionStorage.setItem("by", $("ask-by").value);
  sessionStorage.setItem("token", $("ask-token").value);
  $("ask").close();
  window.dispatchEvent(new Event("token"));
});
$("ask-no").addEventListener("click", () => $("ask").close());

/** What came of the newest thing that this tab asked for. */
function drawAnswers(s) {
  const mine = s.answers.filter((a) => asked.has(a.request));
  const waiting = [...asked].some((id) => !s.answers.some((a) => a.request === id));
  const newest = mine[mine.length - 1];
  draw("answers", [newest, waiting], () => (waiting ? h("p", { class: "banner", "data-tone": "note" }, "Request sent; the next check executes it.")
    : newest ? h("p", { class: "banner", "data-tone": newest.ok ? "note" : "bad" }, newest.detail) : null));
}

const askCancel = (run) => ask({
  title: `Cancel run ${run.id}?`, text: "Reassignments in progress are cancelled; finished ones stay.", yes: "Cancel the run",
  check: "Also roll back completed moves", act: () => send("cancel", { run: run.id, rollback: $("ask-check").checked }),
});
const askApprove = (plan) => ask({
  title: `Approve “${named(plan)}”?`, text: `${plan.changes.join(", ")}. It starts once no guard refuses it.`,
  yes: "Approve", act: () => send("approve", { plan: plan.id }),
});
const askReject = (plan) => ask({
  title: `Reject “${named(plan)}”?`, text: "This plan is not proposed again until the cluster wants another one.",
  yes: "Reject", more: "Reason", act: () => send("reject", { plan: plan.id, reason: $("ask-more").value }),
});
const askRead = () => ask({
  title: "Token", text: "Reading this page needs a token. It stays in this tab.", yes: "Read", nameless: true,
  act: async () => {
    const answer = await fetch("/api/v1/settings", { headers: { Authorization: `Bearer ${$("ask-token").value}` } });
    return answer.ok ? null : (await answer.json().catch(() => ({}))).detail || `Ballast answered ${answer.status}.`;
  },
});
const askBalance = () => ask({
  title: "Balance now?", text: "Ballast reads the cluster and makes a plan. Nothing moves before you approve it.",
  yes: "Make the plan", act: () => send("plan", { intent: "balance" }),
});
const askElect = () => ask({
  title: "Elect preferred leaders?", text: "Ballast makes a plan of preferred leader elections; no data is copied. Nothing is elected before you approve it.",
  yes: "Make the plan", act: () => send("plan", { intent: "elect" }),
});
const askDrain = () => ask({
  title: "Drain a broker?", text: "Ballast makes a plan that moves every replica and leader off the broker. Nothing moves before you approve it. From then on the broker takes no replica until you end the drain, after restarts, too.",
  yes: "Make the plan", number: status.cluster.brokers.filter((b) => b.alive).map((b) => b.id), act: () => send("plan", { intent: "drain", broker: Number($("ask-number").value) }),
});

const askEndDrain = (drain) => ask({
  title: `End the drain of broker ${drain.broker}?`, text: "The broker takes its share again: the next balance fills it.",
  yes: "End the drain", act: () => send("end-drain", { broker: drain.broker }),
});

$("balance").addEventListener("click", askBalance);
$("elect").addEventListener("click", askElect);
$("drain").addEventListener("click", askDrain);
$("pause").addEventListener("click", () => (status.pause
  ? ask({ title: "Resume?", text: "Ballast goes on as its settings say.", yes: "Resume", act: () => send("resume", {}) })
  : ask({ title: "Pause Ballast?", text: "Nothing new starts until an operator resumes; moves in progress go on. It survives restarts.", yes: "Pause", more: "Reason", act: () => send("pause", { reason: $("ask-more").value }) })));
