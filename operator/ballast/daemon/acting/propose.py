"""From a plan to a run: propose it, let it wait for a person, or start it, and keep the counts that caps need."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar, cast

from ballast.core.catalogue import Message, Messages, Said
from ballast.core.plan import Plan
from ballast.core.plan.fingerprint import find_recreated, fingerprint
from ballast.daemon.acting.answers import answer, refusal
from ballast.daemon.acting.decisions import Approval, Decisions, approval_record, rejection_record, shared_records
from ballast.daemon.acting.permission import Permissions
from ballast.daemon.acting.plan_views import outline, plan_view
from ballast.daemon.acting.proposal import Proposal, name_of
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Answer, BalanceView, Board, PlanView, Role
from ballast.daemon.observing.reading import Reading
from ballast.daemon.policy import ActionKind, LivePolicy, Mode
from ballast.executor.driver.pace import first_pace
from ballast.ports.event_sink import ClusterEvent, EventSink
from ballast.ports.journal import Journal, Request
from ballast.ports.time import Clock

log = logging.getLogger("ballast.daemon")

_Method = TypeVar("_Method", bound=Callable[..., Any])

ASKED_WAITS_S = 600
"""How long a plan that a person asked for keeps runs that no person approved from beginning."""


def _one_at_a_time(method: _Method) -> _Method:
    """Have the method wait while another thread is in one of these: neither overwrites what the other decides."""

    @wraps(method)
    def call(self: Proposals, *given: object, **more: object) -> object:
        with self.deciding:
            return method(self, *given, **more)

    return cast("_Method", call)


@dataclass(slots=True)
class Proposals:
    """Every plan that exists, what people have decided of plans, and how one becomes a run."""

    clock: Clock
    board: Board
    policy: LivePolicy
    reading: Reading
    access: Access
    runs: Runs
    permissions: Permissions
    event_sink: EventSink
    refused: Callable[[str, str], None]
    """Told about every plan that may not start: the kind of action and the code."""
    look_again: Callable[[], None]
    """Makes the checks due at once."""
    by_kind: dict[ActionKind, Proposal] = field(default_factory=dict)
    wanted: Request | None = None
    """A plan that a person asked for and that is still to be made."""
    asked: Proposal | None = None
    """The plan that was made for a person."""
    asked_elsewhere: PlanView | None = None
    """The same as the leader shows it, while this process is a standby."""
    rejected: dict[ActionKind, str] = field(default_factory=dict)
    """By kind, the name of the plan that a person rejected last: it is not proposed again."""
    approved: dict[ActionKind, Approval] = field(default_factory=dict)
    """By kind, the plan that a person approved, until it starts or is no longer wanted."""
    _shared: tuple[PlanView | None, tuple[Answer, ...]] = (None, ())
    """What the journal tells the others of plans that were asked for and of answers."""
    deciding: threading.RLock = field(default_factory=threading.RLock)
    """Held by the loop that makes, shows, starts or drops plans, or obeys a person; renewing the lock never waits for it."""

    @_one_at_a_time
    def propose(self, kind: ActionKind, plan: Plan, objections: tuple[Message, ...] = ()) -> Message:
        """Show the plan; start it if its kind may act by itself now; say what came of it."""
        if self.notice_end():
            return answer("run-ended")
        if run := self.runs.in_flight():
            self.withdraw(kind)
            return answer("no-planning", run=run)
        verdict = self.permissions.of(kind)
        before, name = self.by_kind.get(kind), name_of(kind, plan)
        if self.rejected.get(kind) == name:
            self.withdraw(kind)
            return answer("rejected-before", plan=name)
        if before is not None and before.id == name:
            # What a person approved stays approved, and what has waited since yesterday is not new because it was made again.
            proposal = replace(
                before, plan=replace(plan, created_at_ms=before.plan.created_at_ms), objections=objections
            )
        else:
            proposal = Proposal(
                id=name, kind=kind, plan=plan, objections=objections, approved_by=self._approval_of(kind, name)
            )
            if proposal.approved_by is None:
                self._forget_approval(kind)
            log_event(log, f"Planned: {outline(plan)}", plan=proposal.id, action=kind.value)
            if self._wants_approval(proposal) and verdict.may_start(approved=True):
                self.event_sink(ClusterEvent(reason="ApprovalPending", sentence=str(_waits(proposal))))
        self.by_kind[kind] = proposal
        self.publish()
        if not self._may_start(proposal):
            self.refused(kind.value, verdict.code)
            return answer("proposed", outline=outline(plan), guard=verdict)
        if self._wants_approval(proposal):
            return _waits(proposal)
        return (
            self._drop_outdated(proposal)
            or self._why_held(proposal)
            or self._why_left_to_a_person(proposal)
            or self.start(proposal)
        )

    @_one_at_a_time
    def act(self) -> Said:
        """Start the weightiest proposal that may start by now; drop those whose cluster has changed under them."""
        if self.notice_end():
            return answer("run-ended")
        order = (ActionKind.REPAIR, ActionKind.ELECTIONS, ActionKind.REPLICA_LIST_CHANGES, ActionKind.MOVES)
        for proposal in (self.asked, *(self.by_kind.get(kind) for kind in order)):
            if proposal is None or not self._may_start(proposal):
                continue
            if outdated := self._drop_outdated(proposal):
                return outdated
            # A broker of the rack may have returned since this was planned.
            held = self._why_held(proposal) or self._why_left_to_a_person(proposal)
            if not self._wants_approval(proposal) and not held:
                return self.start(proposal)
        waits = [p for p in self.list_proposals() if p.approved_by and not self._may_start(p)]
        said = [answer("guarded", plan=p.id, guard=self.permissions.of(p.kind)) for p in waits]
        if waiting := tuple(p.id for p in self.list_proposals() if self._wants_approval(p)):
            said.append(answer("approvals-pending", plans=waiting))
        return Messages(said or [answer("nothing-pending")])

    @_one_at_a_time
    def drop_all(self, why: str, **values: str) -> None:
        """Forget every plan, for a cause of ``withdrawn``: the cluster that they were made for cannot be seen, or is being changed."""
        view, ended = self.board.view, self.access.unfinished_run() is None
        if view.plans or self.list_proposals() or view.balance != BalanceView() or (ended and view.run is not None):
            self._withdraw_asked(why, **values)
            self.by_kind.clear()
            self.asked_elsewhere = None
            self.publish(balance=BalanceView(), **({"run": None} if ended else {}))

    def discard(self, proposal: Proposal) -> None:
        """Drop one plan."""
        if self.asked is proposal:
            self.asked = None
        else:
            self.by_kind.pop(proposal.kind, None)
            self._forget_approval(proposal.kind)
        self.publish()

    def approve(self, proposal: Proposal, by: str) -> Said:
        """A person wants it: it starts now, or once nothing keeps it any more, after a restart and a fail-over, too."""
        if proposal is self.asked:
            self.show_asked(replace(proposal, approved_by=by))
            return self.act()
        kind = proposal.kind
        self.by_kind[kind] = replace(proposal, approved_by=by)
        said = self.propose(kind, proposal.plan)
        waits = self.by_kind.get(kind)
        if waits is not None and waits.id == proposal.id:
            approval = Approval(plan=proposal.id, by=by)
            self.approved[kind] = approval
            self.access.write(approval_record(kind, approval))
        self.publish()
        return said

    def want(self, request: Request | None) -> None:
        """The plan of this request is to be made, whichever was wanted before; None when it is being made."""
        self.wanted = request

    @_one_at_a_time
    def show_asked(self, proposal: Proposal | None) -> None:
        """In the place of the one before, unless a person is just deciding of that."""
        self.asked = proposal
        self.publish()

    def reject(self, proposal: Proposal) -> None:
        """A person does not want it: it is not proposed again, not by another process either, until the cluster wants another.

        Whether it was asked for or not: the checks would make the same one.  No check wants a drain that has not begun.
        """
        kind, name = proposal.kind, name_of(proposal.kind, proposal.plan)
        if proposal.request is None or proposal.request.body.get("intent") != "drain":
            self.rejected[kind] = name
            self.access.write(rejection_record(kind, name))
            if (same := self.by_kind.get(kind)) is not None and same.id == name:
                self.discard(same)
        if proposal.request is not None:
            self.discard(proposal)

    def list_proposals(self) -> list[Proposal]:
        """Every plan that exists, the one that a person asked for first, and once where the checks made the same."""
        if (asked := self.asked) is None:
            return list(self.by_kind.values())
        same = name_of(asked.kind, asked.plan)
        return [asked, *(p for p in self.by_kind.values() if p.id != same)]

    @_one_at_a_time
    def withdraw(self, kind: ActionKind) -> None:
        """There is nothing to do of this kind any more."""
        self._forget_approval(kind)
        if self.by_kind.pop(kind, None) is not None:
            self.publish()

    def start(self, proposal: Proposal) -> Message:
        """Begin the run; the caller has checked the permission."""
        if self.access.run_controller is None:
            raise refusal("cannot-start")
        if self.board.view.role is not Role.ACTIVE:
            return answer("lock-gone", plan=proposal.id)
        kind = proposal.kind
        # Before the run begins: an approval that stays would start the same plan again once the run was undone.
        self._forget_approval(kind)
        run = self.access.run_controller.start(proposal.plan)
        self.runs.note_start(kind, run, self.clock.now_ms())
        # The others were made from what is being changed now.
        if proposal.request is None:
            self._withdraw_asked("run-began", run=run, outline=outline(proposal.plan))
        self.by_kind.clear()
        self.asked = None
        by = f", approved by {proposal.approved_by}" if proposal.approved_by else ""
        log_event(log, f"Started: {outline(proposal.plan)}{by}", run=run, plan=proposal.id, action=kind.value)
        self.publish(run=self.access.unfinished_run(), balance=BalanceView())
        said = answer("run-started", run=run, by=proposal.approved_by, outline=outline(proposal.plan))
        self.event_sink(ClusterEvent(reason="RunStarted", sentence=str(said)))
        return said

    @_one_at_a_time
    def notice_end(self) -> bool:
        """Has the run in progress just ended?  Then the cool-down begins, and what was seen before is old.

        Proposals and the reading under them are dropped: they may want what the run has done already.
        """
        if run := self.runs.in_flight():
            self.runs.note_in_flight()
            self.drop_all("run-in-progress", run=run)
            return False
        if not self.runs.end_pending:
            return False
        kind = self.runs.take_end()
        self.reading.drop()
        self.drop_all("run-ended")
        self.look_again()
        if kind is not None:
            self.runs.note_end(kind, self.clock.now_ms())
        return True

    @_one_at_a_time
    def publish(self, **more: object) -> None:
        """Show every plan that exists and whether a person's word would start it, and at the same moment what else changes with them."""
        policy = self.reading.execution()
        state = self.reading.state
        elsewhere = self.asked_elsewhere if self.board.view.role is not Role.ACTIVE else None
        self.board.publish(
            plans=(() if elsewhere is None else (elsewhere,))
            + tuple(
                plan_view(
                    p,
                    pending_approval=self._wants_approval(p),
                    policy=policy,
                    pace=None if state is None else first_pace(p.plan, state, policy),
                )
                for p in self.list_proposals()
            ),
            **more,
        )

    @_one_at_a_time
    def load_decisions(self, decided: Decisions) -> None:
        """Take over from the journal what people have decided of plans, whichever process they told."""
        self.rejected |= decided.rejected
        self.approved = dict(decided.approved)
        before = dict(self.by_kind), self.asked_elsewhere
        for kind, proposal in before[0].items():
            if self.rejected.get(kind) == proposal.id:
                self.by_kind.pop(kind, None)
            elif proposal.approved_by != (by := self._approval_of(kind, proposal.id)):
                self.by_kind[kind] = replace(proposal, approved_by=by)
        self.asked_elsewhere, self._shared = decided.asked, (decided.asked, decided.answers)
        if (self.by_kind, self.asked_elsewhere) != before:
            self.publish()

    def share(self, journal: Journal) -> None:
        """Let the other replicas' pages show the plan that was asked for, and the answers: the person who asked may look at any of them."""
        view = self.board.view
        known = next((p for p in view.plans if p.requested_by), None), view.answers
        if known != self._shared:
            journal.append(shared_records(*known))
            self._shared = known

    def _approval_of(self, kind: ActionKind, plan: str) -> str | None:
        """Who approved this plan; None where it is not approved."""
        approval = self.approved.get(kind)
        return approval.by if approval is not None and approval.plan == plan else None

    def _forget_approval(self, kind: ActionKind) -> None:
        """The plan that was approved has started, or another one is wanted by now: an old approval starts nothing later."""
        if kind in self.approved:
            self.access.write(approval_record(kind, None))
            del self.approved[kind]

    def _drop_outdated(self, proposal: Proposal) -> Message | None:
        """Drop a plan that was made for another assignment than the newest one; None where it is the same."""
        state = self.reading.fresh()
        if proposal.plan.fingerprint == fingerprint(state) and not find_recreated(proposal.plan, state):
            return None
        if proposal.request is not None and self.wanted is None:
            self.wanted = proposal.request
        self.discard(proposal)
        self.look_again()
        return answer("plan-outdated", plan=proposal.id)

    def _wants_approval(self, proposal: Proposal) -> bool:
        mode = self.policy.now.mode_of(proposal.kind)
        by_person = mode is Mode.AUTO and proposal.request is not None
        asked = mode is Mode.APPROVE or by_person or bool(proposal.objections)
        return asked and proposal.approved_by is None

    def _may_start(self, proposal: Proposal) -> bool:
        """May it start now, or once a person approves it?"""
        approved = bool(proposal.approved_by) or self._wants_approval(proposal)
        return self.permissions.of(proposal.kind).may_start(approved=approved)

    def _why_held(self, proposal: Proposal) -> Message | None:
        """Why a repair without approval does not begin: a broker that it rebuilds may follow the rest of its rack; None where none does."""
        if proposal.kind is not ActionKind.REPAIR or _approved(proposal):
            return None
        held = self.reading.list_held({b for move in proposal.plan.moves for b in move.removing})
        return answer("held", held=held) if held else None

    def _why_left_to_a_person(self, proposal: Proposal) -> Message | None:
        """Why a run without approval does not begin: it would withdraw the plan that a person asked for and looks at now.

        None where no such plan waits, for repairs, and once the plan has been there for a while.
        """
        asked = self.asked
        if asked is None or asked.request is None or proposal.kind is ActionKind.REPAIR or _approved(proposal):
            return None
        # A clock that jumped back must not have it keep them from beginning for longer.
        if not 0 <= self.clock.now_ms() - asked.plan.created_at_ms < ASKED_WAITS_S * 1000:
            return None
        shown = outline(proposal.plan)
        return answer("left-to-person", plan=proposal.id, asked=asked.id, by=asked.request.by, outline=shown)

    def _withdraw_asked(self, why: str, **values: str) -> None:
        """The plan that a person was told to be ready goes, and they hear of it."""
        asked, self.asked = self.asked, None
        if asked is not None and asked.request is not None:
            said = answer("withdrawn", why, plan=asked.id, **values)
            self.board.tell(asked.request.id, str(said), ok=False, at_ms=self.clock.now_ms())


def _approved(proposal: Proposal) -> bool:
    return proposal.request is not None or proposal.approved_by is not None


def _waits(proposal: Proposal) -> Message:
    shown = outline(proposal.plan)
    return answer("approval-pending", plan=proposal.id, objections=proposal.objections, outline=shown)
