"""The requests check: what people ask for, through the page or the journal, is answered by the leader."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import NamedTuple

from ballast.core.catalogue import Message, Messages, Said
from ballast.core.cluster.drain import refuse_drained
from ballast.core.wording import human_many, human_names
from ballast.daemon.acting.answers import answer, refusal
from ballast.daemon.acting.drains import Drains, broker_to_drain
from ballast.daemon.acting.permission import Permissions
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import ANSWERS_KEPT, SETTLING, Board, Role
from ballast.daemon.planning.asking import RequestedPlans
from ballast.daemon.policy import LivePolicy
from ballast.errors import BallastError, Fenced, JournalLost, Refused, Unavailable
from ballast.executor.journal.answers import RequestAnswer, answer_asked, answer_stale
from ballast.executor.journal.pause import pause_of, pause_record, resume_records
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.rollback import refilled_brokers
from ballast.executor.machine.run import Now
from ballast.ports.journal import Request, is_expired, sign
from ballast.ports.time import Clock

log = logging.getLogger("ballast.audit")


class RequestOutcome(NamedTuple):
    """What came of a request."""

    sentence: str
    refused: bool = False

    def __str__(self) -> str:
        """As the log and the page tell it."""
        return f"Refused: {self.sentence}" if self.refused else self.sentence


@dataclass(slots=True)
class Requests:
    """Takes requests, and answers them where this process acts."""

    clock: Clock
    board: Board
    policy: LivePolicy
    access: Access
    runs: Runs
    permissions: Permissions
    proposals: Proposals
    drains: Drains
    asked: RequestedPlans
    inbox: SimpleQueue[Request] = field(default_factory=SimpleQueue)
    """What the page of a process that only observes was asked."""
    _sent: deque[Request] = field(default_factory=lambda: deque(maxlen=ANSWERS_KEPT))
    """The newest requests of this page that are in the journal and wait for an answer, perhaps of another process."""
    _unwritten: dict[str, RequestOutcome] = field(default_factory=dict)
    """What came of requests whose answer is not in the journal yet: they are not executed again."""
    _told: set[str] = field(default_factory=set)
    """Requests of which it was said that they cannot be read."""

    def submit(self, request: Request) -> None:
        """Take a request from the page: into the journal, so that the leader finds it, whichever replica was asked.

        A cancel that names no run means the one that the page shows now, and no later one.
        """
        if request.kind in {"cancel", "rollback"} and self.policy.now.writes:
            wanted = str(request.body.get("run", "")) or self._shown_run()
            _refuse_settling(wanted)
            request = replace(request, body={**request.body, "run": wanted})
        if self.access.journal_to_read is not None and self.policy.now.writes:
            self.access.journal_to_read.request(request)
            self._sent.append(request)
        elif request.kind in {"pause", "resume", "plan", "reject"}:
            self.inbox.put(request)
        else:
            raise refusal("observes")

    def answer_all(self) -> str:
        """Answer everything that waits."""
        answered = 0
        self._forget_sent()
        while not self.inbox.empty():
            request = self.inbox.get_nowait()
            log_event(log, str(self.answer(request)), request=request.id, by=request.by)
            answered += 1
        if self.access.journal is not None and self.access.journal_to_read is not None and self._answers():
            waiting = [r for r in self.access.journal_to_read.requests() if r.answer is None]
            self._unwritten = {r.id: self._unwritten[r.id] for r in waiting if r.id in self._unwritten}
            for request in waiting:
                if not self._answers():
                    break  # The lock was released meanwhile; the rest is for its next holder.
                outcome = self._unwritten.get(request.id) or self.answer(request)
                if not self._answers() and request.kind != "take-over":
                    break  # It was released on the way, and then this decision is not in the journal: its next holder decides.
                self._unwritten[request.id] = outcome
                self.access.journal.answer(request.id, outcome.sentence, refused=outcome.refused)
                del self._unwritten[request.id]
                log_event(log, str(outcome), request=request.id, by=request.by)
                answered += 1
                if self.access.release_for:
                    # Only now: it takes a while, and the lock check, which releases the lock, does not wait for the answer.
                    self.access.stop()
            self._tell_skipped(self.access.journal_to_read.skipped_requests())
            if self._answers():
                self.proposals.share(self.access.journal)
        else:
            self._tell_answers()
        self.permissions.publish()
        return f"Answered {human_many(answered, 'request')}." if answered else "No requests."

    def answer(self, request: Request) -> RequestOutcome:
        """Execute one request and say what came of it; a refusal is an answer, too.

        Raises what the journal failed with: nothing was decided then, and the request waits.
        """
        try:
            if (stale := answer_stale(request, self.clock.now_ms())) is not None:
                raise Refused(str(stale))
            if request.kind not in self._kinds():
                raise Refused(str(RequestAnswer("unknown", {"kind": request.kind})))
            with self.proposals.deciding:
                outcome = RequestOutcome(str(self._kinds()[request.kind](request)))
        except (Unavailable, JournalLost, Fenced):
            raise
        except BallastError as failure:
            outcome = RequestOutcome(str(failure), refused=True)
        if request.kind != "plan" or outcome.refused:
            # A plan's answer is told when it has been made.
            self.board.tell(request.id, str(outcome), ok=not outcome.refused, at_ms=self.clock.now_ms())
        return outcome

    def _tell_answers(self) -> None:
        """Show what another process answered to the requests of this page: a command that holds the lock has no page."""
        waiting = {request.id for request in tuple(self._sent)}
        if not waiting or self.access.journal_to_read is None:
            return
        for request in self.access.journal_to_read.requests():
            # That a plan was asked for is no answer yet: what came of it is.
            if request.id in waiting and request.answer is not None and (request.kind != "plan" or request.refused):
                said = str(RequestOutcome(request.answer, request.refused))
                self.board.tell(request.id, said, ok=not request.refused, at_ms=self.clock.now_ms())
        self._forget_sent()

    def _forget_sent(self) -> None:
        """Wait no more for what the page shows an answer to, which older answers leave again, nor for what has expired."""
        told, now_ms = {answer.request for answer in self.board.view.answers}, self.clock.now_ms()
        for request in tuple(self._sent):
            if request.id in told or is_expired(request, now_ms):
                self._sent.remove(request)

    def _kinds(self) -> dict[str, Callable[[Request], Said]]:
        return {
            "pause": self._pause,
            "resume": self._resume,
            "approve": self._approve,
            "reject": self._reject,
            "plan": self.asked.want,
            "end-drain": self.drains.end,
            "cancel": self._cancel,
            "rollback": self._cancel,
            "take-over": self._take_over,
        }

    def _tell_skipped(self, skipped: Mapping[str, str]) -> None:
        """Say of every request that cannot be read, once, that it is not obeyed: its sender waits for an answer."""
        new = skipped.keys() - self._told
        self._told = set(skipped)
        if new:
            log_event(
                log,
                f"{human_many(len(new), 'request')} in the journal cannot be read and will not be answered: "
                f"{human_names(sorted(new))}. {skipped[min(new)]}",
                level=logging.WARNING,
            )
        if self.board.view.requests_skipped != len(skipped):
            self.board.publish(requests_skipped=len(skipped))

    def _answers(self) -> bool:
        """Only the leader answers, and only where it may write, since an answer is a record."""
        return self.board.view.role is Role.ACTIVE and self.policy.now.writes

    def _shown_run(self) -> str:
        view = self.board.view
        shown = self.access.current() or view.run or view.run_elsewhere
        if shown is None:
            raise refusal("nothing-runs")
        return shown.id

    def _pause(self, request: Request) -> Said:
        pause = pause_of(request)
        self.access.write(pause_record(pause))
        self.runs.set_pause(pause)
        elsewhere = self.board.view.run_elsewhere
        paused = RequestAnswer("paused", {"by": pause.by})
        if self.policy.now.writes or elsewhere is None:
            return paused
        return Messages((paused, answer("run-elsewhere", run=elsewhere.id)))

    def _resume(self, request: Request) -> Said:
        if self.board.view.pause is None:
            return RequestAnswer("not-paused")
        for record in resume_records():
            self.access.write(record)
        self.runs.set_pause(None)
        return RequestAnswer("resumed", {"by": request.by})

    def _approve(self, request: Request) -> Message:
        wanted = str(request.body.get("plan", ""))
        if run := self.runs.in_flight():
            raise refusal("run-in-progress", run=run)
        for proposal in (self.proposals.asked, *self.proposals.by_kind.values()):
            if proposal is not None and proposal.id == wanted:
                if (broker := broker_to_drain(proposal)) is not None:
                    self.drains.begin(broker, request.by)
                effect = self.proposals.approve(proposal, request.by)
                return answer("approved", by=request.by, plan=wanted, effect=effect)
        raise refusal("plan-gone", plan=wanted)

    def _reject(self, request: Request) -> Message:
        wanted = str(request.body.get("plan", ""))
        for proposal in self.proposals.list_proposals():
            if proposal.id == wanted:
                self.proposals.reject(proposal)
                return answer("rejected", by=request.by, plan=wanted, reason=request.reason)
        raise refusal("plan-gone", plan=wanted)

    def _cancel(self, request: Request) -> Message:
        rollback, wanted = request.kind == "rollback", request.body.get("run")
        run = self.access.unfinished_run()
        if wanted is None:
            raise Refused(str(RequestAnswer("names-no-run", {"kind": request.kind})))
        _refuse_settling(run.id if run else "")
        if run is not None and wanted != run.id:
            raise refusal("another-run", run=wanted, current=run.id)
        if rollback and run is not None:
            self._refuse_refilling(run.id)
        if (
            self.access.run_controller is None
            or run is None
            or not self.access.run_controller.cancel(run.id, rollback=rollback, by=sign(request))
        ):
            raise refusal("run-not-executed", run=wanted)
        return answer_asked(request, run.id)

    def _refuse_refilling(self, run_id: str) -> None:
        """Undoing a run must not fill a broker that is being drained: the next balance would only empty it again."""
        drained = [d.broker for d in self.board.view.drains]
        if not drained or self.access.journal is None:
            return
        runs = load_runs(self.access.journal.read(), Now(self.clock.now_ms(), self.clock.monotonic_s()))
        if (run := runs.get(run_id)) is not None:
            refuse_drained(
                refilled_brokers(run),
                drained,
                f"Undoing run {run_id} puts replicas on",
                "Cancel it and keep completed moves",
            )

    def _take_over(self, request: Request) -> Message:
        """Make room for a person: leave the run to them, release the lock, and keep every replica from it for a moment.

        The run is left once this is answered; from now on the work loop begins no other one.
        """
        self.access.ask_release(request.by)
        return answer("lock-released", by=request.by)


def _refuse_settling(run: str) -> None:
    if run == SETTLING:
        raise refusal("removing-throttles")
