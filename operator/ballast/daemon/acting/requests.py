"""The requests tick: what people ask for, through the page or the journal, is answered by the one that acts."""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ballast.core.cluster.drain import refuse_drained
from ballast.core.wording import human_many
from ballast.daemon.acting.decisions import pause_record, shared_records
from ballast.daemon.acting.drains import begin_drain, drained_by, end_drain
from ballast.daemon.acting.propose import act, approve, publish_proposals, reject, shown_proposals, write
from ballast.daemon.context.daemon_context import DaemonContext
from ballast.daemon.context.view import SETTLING, Pause, Role
from ballast.daemon.planning.asking import want
from ballast.daemon.process.logs import say
from ballast.errors import BallastError, Refused
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.rollback import refilled
from ballast.executor.machine.run import Now
from ballast.ports.journal import FORGOTTEN, Journal, Request, begun_record, is_expired, is_forgotten, signed

log = logging.getLogger("ballast.audit")

Inbox = queue.SimpleQueue[Request]


def submit(context: DaemonContext, inbox: Inbox, request: Request) -> None:
    """Take a request from the page: into the journal, so that the one that acts finds it, whichever replica was asked.

    A cancel that names no run means the one that the page shows now, and no later one.
    """
    if request.kind in {"cancel", "rollback"} and context.policy.writes:
        wanted = str(request.body.get("run", "")) or _shown_run(context)
        _refuse_settling(wanted)
        request = replace(request, body={**request.body, "run": wanted})
    if context.reading_journal is not None and context.policy.writes:
        context.reading_journal.request(request)
    elif request.kind in {"pause", "resume", "plan", "reject"}:
        inbox.put(request)
    else:
        raise Refused("This process only observes: there is nothing to approve or to cancel.")


def _shown_run(context: DaemonContext) -> str:
    view = context.board.view
    shown = (context.run_controller.current() if context.run_controller else None) or view.run or view.run_elsewhere
    if shown is None:
        raise Refused("Nothing is being carried out.", hint="Name the run, if one is about to begin.")
    return shown.id


def _refuse_settling(run: str) -> None:
    if run == SETTLING:
        raise Refused(
            "No run is being carried out: throttles of earlier runs are being removed, and that cannot be cancelled."
        )


def answer_requests(context: DaemonContext, inbox: Inbox) -> str:
    """Answer everything that waits."""
    answered = 0
    while not inbox.empty():
        request = inbox.get_nowait()
        say(log, answer(context, request), request=request.id, by=request.by)
        answered += 1
    if context.journal is not None and context.reading_journal is not None and _answers(context):
        for request in [r for r in context.reading_journal.requests() if r.answer is None and r.kind in ANSWERS]:
            if not _answers(context):
                break  # The lock was given up meanwhile; the rest is for whoever acts next.
            sentence = answer(context, request)
            context.journal.answer(request.id, sentence)
            say(log, sentence, request=request.id, by=request.by)
            answered += 1
            if context.give_way and context.run_controller is not None:
                # Only now: it takes a while, and the lock tick, which gives the lock up, does not wait for the answer.
                context.run_controller.stop(drain_s=0.0)
        share(context, context.journal)
    context.publish_permissions()
    return f"Answered {human_many(answered, 'request')}." if answered else "No requests."


def share(context: DaemonContext, journal: Journal) -> None:
    """Let the other replicas' pages show the plan that was asked for, and the answers: whoever asked may look at any of them."""
    view = context.board.view
    known = next((p for p in view.plans if p.asked_by), None), view.answers
    if known != context.memory.shared and _answers(context):
        journal.append(shared_records(*known))
        context.memory.shared = known


def _answers(context: DaemonContext) -> bool:
    """Only the one that may write answers, since an answer is a record."""
    return context.board.view.role is Role.LEADER and context.policy.writes


def answer(context: DaemonContext, request: Request) -> str:
    """Carry one request out and say what came of it; a refusal is an answer, too."""
    try:
        if request.kind in EXPIRING and is_expired(request, context.clock.now_ms()):
            raise Refused(
                f"{request.by} asked to {request.kind} too long ago and has expired; ask again if it is still wanted."
            )
        sentence, ok = ANSWERS[request.kind](context, request), True
    except BallastError as failure:
        sentence, ok = f"Refused: {failure}", False
    if request.kind != "plan" or not ok:
        # A plan's answer is told when it has been made.
        context.tell(request.id, sentence, ok=ok)
    return sentence


def _pause(context: DaemonContext, request: Request) -> str:
    pause = Pause(by=request.by, since_ms=request.at_ms, reason=str(request.body.get("reason", ""))[:200])
    write(context, pause_record(pause))
    context.set_pause(pause)
    return f"Paused by {pause.by}: nothing new starts, moves in flight go on."


def _resume(context: DaemonContext, request: Request) -> str:
    if context.board.view.pause is None:
        return "It was not paused."
    # Whoever resumes has looked; were this second, a process that dies in between would begin without a pause.
    write(context, begun_record(None))
    write(context, pause_record(None))
    context.set_pause(None)
    return f"Resumed by {request.by}."


def _approve(context: DaemonContext, request: Request) -> str:
    wanted = str(request.body.get("plan", ""))
    if run := context.run_in_flight():
        raise Refused(f"Run {run} is in progress.", hint="Plans are made anew when it has ended.")
    if context.memory.asked is not None and context.memory.asked.id == wanted:
        if (broker := drained_by(context.memory.asked)) is not None:
            begin_drain(context, broker, request.by)
        context.memory.asked = replace(context.memory.asked, approved_by=request.by)
        publish_proposals(context)
        return f"{request.by} approved {wanted}. {act(context)}"
    for proposal in list(context.memory.proposals.values()):
        if proposal.id == wanted:
            return f"{request.by} approved {wanted}. {approve(context, proposal, request.by)}"
    raise Refused(f"There is no plan {wanted} any more.", hint="The cluster changed; look at the plan that waits now.")


def _reject(context: DaemonContext, request: Request) -> str:
    wanted = str(request.body.get("plan", ""))
    for proposal in shown_proposals(context):
        if proposal.id == wanted:
            reject(context, proposal)
            why = f": {request.body['reason']}" if request.body.get("reason") else ""
            return f"{request.by} rejected {wanted}{why}."
    raise Refused(f"There is no plan {wanted} any more.", hint="The cluster changed; look at the plans there are now.")


def _cancel(context: DaemonContext, request: Request) -> str:
    rollback, wanted = request.kind == "rollback", request.body.get("run")
    run = context.run_controller.current() if context.run_controller else None
    if wanted is None:
        raise Refused(f"A {request.kind} names its run.", hint="Another one may have begun since it was asked for.")
    _refuse_settling(run.id if run else "")
    if run is not None and wanted != run.id:
        raise Refused(f"Run {wanted} is not being carried out; run {run.id} is.")
    if rollback and run is not None:
        _refuse_refilling(context, run.id)
    if (
        context.run_controller is None
        or run is None
        or not context.run_controller.cancel(run.id, rollback=rollback, by=signed(request))
    ):
        return "Nothing is being carried out."
    return f"{request.by} cancelled run {run.id}" + (" and asked to undo what had arrived." if rollback else ".")


def _refuse_refilling(context: DaemonContext, run_id: str) -> None:
    """Undoing a run must not fill a broker that somebody drains: the next balance would only empty it again."""
    drained = [d.broker for d in context.board.view.drains]
    if not drained or context.journal is None:
        return
    runs = load_runs(context.journal.read(), Now(context.clock.now_ms(), context.clock.monotonic_s()))
    if (run := runs.get(run_id)) is not None:
        refuse_drained(
            refilled(run), drained, f"Undoing run {run_id} puts replicas on", "Cancel it and keep what arrived"
        )


def _take_over(context: DaemonContext, request: Request) -> str:
    """Make room for a person: leave the run to them, give the lock up, and keep every replica from it for a moment.

    The run is left once this is answered; from now on the work loop begins no other one.
    """
    if is_forgotten(request, context.clock.now_ms()):
        raise Refused(f"That is {FORGOTTEN}.")
    context.yield_to(request.by)
    return f"The lock is given up for {request.by}; the daemon waits until it is free again."


ANSWERS: dict[str, Callable[[DaemonContext, Request], str]] = {
    "pause": _pause,
    "resume": _resume,
    "approve": _approve,
    "reject": _reject,
    "plan": want,
    "end-drain": end_drain,
    "cancel": _cancel,
    "rollback": _cancel,
    "take-over": _take_over,
}


EXPIRING: Final = frozenset({"pause", "resume", "approve", "reject", "plan", "end-drain"})
"""Requests that a later process must not obey: they name no run, and plans are numbered anew by each."""
