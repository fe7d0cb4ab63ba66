"""From a plan to a run: propose it, let it wait for a person, or start it, and keep the counts that caps need."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from dataclasses import replace

from ballast.core.cluster import UNKNOWN
from ballast.core.cluster.fingerprint import fingerprint, recreated
from ballast.core.plan import Move, Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.wording import human_many, human_total, planned_elections
from ballast.daemon.acting.decisions import Approval, approval_record, rejection_record
from ballast.daemon.acting.permission import Acts, permission
from ballast.daemon.acting.policy import ActionKind, Mode
from ballast.daemon.context.daemon_context import DaemonContext, Proposal
from ballast.daemon.context.view import MoveView, PlanView, Role
from ballast.daemon.process.logs import say
from ballast.errors import Refused
from ballast.executor.driver.pace import Pace, pace_of
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.ports.event_sink import ClusterEvent
from ballast.ports.journal import Record

log = logging.getLogger("ballast.daemon")

SHOWN_BROKERS = 200
"""Brokers of a plan whose loads the page draws before and after."""
ASKED_WAITS_S = 600
"""How long a plan that was asked for keeps runs that nobody approved from beginning."""
SHOWN_MOVES = 50
"""Moves of a waiting plan that the page lists; the rest it counts."""


def propose(context: DaemonContext, kind: ActionKind, plan: Plan, beyond: tuple[str, ...] = ()) -> str:
    """Show the plan; start it if its kind may act by itself now; say what came of it."""
    if notice_end(context):
        return "A run has just ended: the cluster is read again before anything is decided."
    if run := context.run_in_flight():
        withdraw(context, kind)
        return f"Nothing is planned from a half-moved cluster: run {run} is in progress."
    verdict = permission(kind, context.policy, context.situation())
    before, name = context.memory.proposals.get(kind), name_of(kind, plan)
    if context.memory.rejected.get(kind) == name:
        withdraw(context, kind)
        return f"{name} was rejected; another plan is proposed when the cluster has changed."
    if before is not None and before.id == name:
        # What a person approved stays approved, and what has waited since yesterday is not new because it was made again.
        proposal = replace(before, plan=replace(plan, created_at_ms=before.plan.created_at_ms), beyond=beyond)
    else:
        proposal = Proposal(
            id=name, kind=kind, plan=plan, beyond=beyond, approved_by=context.memory.approval_of(kind, name)
        )
        if proposal.approved_by is None:
            forget_approval(context, kind)
        say(log, f"Planned: {outline(plan)}", plan=proposal.id, action=kind.value)
        if verdict.allowed and _wants_approval(context, proposal):
            context.event_sink(ClusterEvent(reason="ApprovalWanted", sentence=_waits(proposal)))
    context.memory.proposals[kind] = proposal
    publish_proposals(context)
    if not verdict.allowed:
        context.refused(kind.value, verdict.code)
        return f"Proposed plan: {outline(plan)}. {verdict.sentence}"
    if _wants_approval(context, proposal):
        return _waits(proposal)
    return _drop_outdated(context, proposal) or _left_to_a_person(context, proposal) or start(context, proposal)


def _drop_outdated(context: DaemonContext, proposal: Proposal) -> str:
    """Drop a plan that was made for another assignment than the newest one; empty where it is the same."""
    state = context.fresh_state()
    if proposal.plan.fingerprint == fingerprint(state) and not recreated(proposal.plan, state):
        return ""
    if proposal.request is not None:
        context.memory.wanted = proposal.request
    discard(context, proposal)
    context.look_again()
    return f"The assignment changed since {proposal.id} was planned; it is planned anew."


def act(context: DaemonContext) -> str:
    """Start the weightiest proposal that may start by now; drop those whose cluster has changed under them."""
    if notice_end(context):
        return "A run has ended; the cluster is read again before anything is decided."
    order = (ActionKind.REPAIR, ActionKind.ELECTIONS, ActionKind.REORDERS, ActionKind.MOVES)
    for proposal in (context.memory.asked, *(context.memory.proposals.get(kind) for kind in order)):
        if proposal is None or not permission(proposal.kind, context.policy, context.situation()).allowed:
            continue
        if outdated := _drop_outdated(context, proposal):
            return outdated
        if not _wants_approval(context, proposal) and not _left_to_a_person(context, proposal):
            return start(context, proposal)
    waiting = [p.id for p in shown_proposals(context) if _wants_approval(context, p)]
    return f"Waiting for approval: {', '.join(waiting)}." if waiting else "No pending action."


def drop_plans(context: DaemonContext, why: str) -> None:
    """Forget every plan: the cluster that they were made for cannot be seen, or is being changed."""
    if context.board.view.plans or shown_proposals(context):
        _withdraw_asked(context, why)
        context.memory.proposals.clear()
        context.memory.asked_elsewhere = None
        publish_proposals(context)


def discard(context: DaemonContext, proposal: Proposal) -> None:
    """Drop one plan."""
    if context.memory.asked is proposal:
        context.memory.asked = None
    else:
        context.memory.proposals.pop(proposal.kind, None)
        forget_approval(context, proposal.kind)
    publish_proposals(context)


def approve(context: DaemonContext, proposal: Proposal, by: str) -> str:
    """A person wants it: it starts now, or once nothing keeps it any more, after a restart and a fail-over, too."""
    kind = proposal.kind
    context.memory.proposals[kind] = replace(proposal, approved_by=by)
    sentence = propose(context, kind, proposal.plan)
    waits = context.memory.proposals.get(kind)
    if waits is not None and waits.id == proposal.id:
        approval = Approval(plan=proposal.id, by=by)
        context.memory.approved[kind] = approval
        write(context, approval_record(kind, approval))
    publish_proposals(context)
    return sentence


def forget_approval(context: DaemonContext, kind: ActionKind) -> None:
    """The plan that was approved has started, or another one is wanted by now: an old approval starts nothing later."""
    if context.memory.approved.pop(kind, None) is not None:
        write(context, approval_record(kind, None))


def write(context: DaemonContext, record: Record) -> None:
    """Into the journal, where this process is the one that may."""
    if context.journal is not None and context.board.view.role is Role.LEADER:
        context.journal.append([record])


def reject(context: DaemonContext, proposal: Proposal) -> None:
    """A person does not want it: it is not proposed again, not by another process either, until the cluster wants another."""
    if proposal.request is None:
        context.memory.rejected[proposal.kind] = proposal.id
        write(context, rejection_record(proposal.kind, proposal.id))
    discard(context, proposal)


def shown_proposals(context: DaemonContext) -> list[Proposal]:
    """Every plan that exists, the one that a person asked for first."""
    asked = [context.memory.asked] if context.memory.asked else []
    return [*asked, *context.memory.proposals.values()]


def withdraw(context: DaemonContext, kind: ActionKind) -> None:
    """There is nothing to do of this kind any more."""
    forget_approval(context, kind)
    if context.memory.proposals.pop(kind, None) is not None:
        publish_proposals(context)


def _wants_approval(context: DaemonContext, proposal: Proposal) -> bool:
    mode = context.policy.mode_of(proposal.kind)
    by_person = mode is Mode.AUTO and proposal.request is not None
    asked = mode is Mode.APPROVE or by_person or bool(proposal.beyond)
    return asked and proposal.approved_by is None


def _left_to_a_person(context: DaemonContext, proposal: Proposal) -> str:
    """Why a run that nobody approved does not begin: it would take away the plan that somebody asked for and looks at now.

    Empty where nobody does, for repairs, and once the plan has been there for a while.
    """
    asked = context.memory.asked
    if asked is None or asked.request is None or proposal.kind is ActionKind.REPAIR or _approved(proposal):
        return ""
    if context.clock.now_ms() - asked.plan.created_at_ms >= ASKED_WAITS_S * 1000:
        return ""
    return f"{proposal.id} waits for {asked.id}, which {asked.request.by} asked for: {outline(proposal.plan)}."


def _approved(proposal: Proposal) -> bool:
    return proposal.request is not None or proposal.approved_by is not None


def _withdraw_asked(context: DaemonContext, why: str) -> None:
    """The plan that a person was told to be ready goes, and they hear of it."""
    asked, context.memory.asked = context.memory.asked, None
    if asked is not None and asked.request is not None:
        context.tell(asked.request.id, f"{asked.id} was withdrawn, since {why}. Ask again afterwards.", ok=False)


def _waits(proposal: Proposal) -> str:
    why = f", since {'; '.join(proposal.beyond)}" if proposal.beyond else ""
    return f"Waiting for approval of {proposal.id}{why}: {outline(proposal.plan)}."


def start(context: DaemonContext, proposal: Proposal) -> str:
    """Begin the run; whoever calls this has checked the permission."""
    if context.run_controller is None:
        raise Refused("This process only observes: it cannot start a run.")
    kind = proposal.kind
    run = context.run_controller.start(proposal.plan)
    # The others were made from what is being changed now.
    if proposal.request is None:
        _withdraw_asked(context, f"run {run} began ({outline(proposal.plan)})")
    context.memory.proposals.clear()
    context.memory.asked = None
    forget_approval(context, kind)
    context.memory.running = kind
    context.hold_run()
    remember(context, kind, context.memory.acts.get(kind, Acts()).started(context.clock.now_ms(), run))
    by = f", approved by {proposal.approved_by}" if proposal.approved_by else ""
    say(log, f"Started: {outline(proposal.plan)}{by}", run=run, plan=proposal.id, action=kind.value)
    publish_proposals(context)
    sentence = f"Run {run} started{by}: {outline(proposal.plan)}."
    context.event_sink(ClusterEvent(reason="RunStarted", sentence=sentence))
    return sentence


def notice_end(context: DaemonContext) -> bool:
    """Has the run in flight just ended?  Then the cool-down begins, and what was seen before is old.

    Proposals and the reading under them are dropped: they may want what the run has done already.
    """
    memory = context.memory
    if run := context.run_in_flight():
        memory.saw_run = True
        drop_plans(context, f"run {run} is in progress")
        return False
    kind = memory.running
    if kind is None and not memory.saw_run:
        return False
    memory.running, memory.saw_run, memory.read_at_s = None, False, None
    drop_plans(context, "a run has changed the cluster")
    context.look_again()
    if kind is None:
        return True
    remember(context, kind, context.memory.acts.get(kind, Acts()).ended(context.clock.now_ms()))
    return True


def remember(context: DaemonContext, kind: ActionKind, acts: Acts) -> None:
    """Keep a kind's counts, in the journal too: a restart must not grant a second day's worth."""
    context.memory.acts = {**context.memory.acts, kind: acts}
    write(context, Record(acts_key(kind), acts.to_json()))


def acts_key(kind: ActionKind) -> str:
    """The journal key of a kind's counts."""
    return f"daemon/acts/{kind.value}"


def outline(plan: Plan) -> str:
    """A plan in half a sentence."""
    parts = []
    reorders = sum(m.is_reorder for m in plan.moves)
    moves = len(plan.moves) - reorders
    if moves:
        parts.append(f"move {human_many(moves, 'partition')} ({human_total(plan.bytes_moved, plan.unknown_sizes)})")
    if reorders:
        parts.append(f"reorder {human_many(reorders, 'replica list')}")
    if plan.elections:
        parts.append(planned_elections(len(plan.elections)))
    return ", ".join(parts) or "do nothing"


def publish_proposals(context: DaemonContext) -> None:
    """Show every plan that exists and whether a person's word would start it."""
    now = Now(context.clock.now_ms(), context.clock.monotonic_s())
    policy = context.execution()
    state = context.memory.state
    elsewhere = context.memory.asked_elsewhere if context.board.view.role is not Role.LEADER else None
    context.board.publish(
        plans=(() if elsewhere is None else (elsewhere,))
        + tuple(
            plan_view(
                p,
                waiting=_wants_approval(context, p),
                policy=policy,
                pace=None if state is None else pace_of(new_run(p.id, p.plan, policy, now), state),
            )
            for p in shown_proposals(context)
        )
    )


def plan_view(proposal: Proposal, *, waiting: bool, policy: ExecutionPolicy, pace: Pace | None) -> PlanView:
    """A plan as the page shows it, with the pace that a run of it would begin at; None where no reading tells."""
    plan = proposal.plan
    reasons = Counter(m.reason.code for m in plan.moves)
    if plan.elections:
        reasons["another replica than the preferred one leads"] = len(plan.elections)
    busiest = pace.busiest if pace else None
    return PlanView(
        id=proposal.id,
        kind=proposal.kind.value,
        intent=plan.intent,
        created_at_ms=plan.created_at_ms,
        moves=len(plan.moves),
        elections=len(plan.elections),
        copies=sum(bool(m.adding) for m in plan.moves),
        bytes_moved=plan.known_bytes,
        bound_bytes=plan.bound_bytes,
        status=plan.status,
        waiting=waiting,
        approved_by=proposal.approved_by or "",
        reasons=tuple(reasons.most_common()),
        resources=tuple(plan.summary.get("resources", ())),
        brokers=tuple(plan.summary.get("brokers", ()))[:SHOWN_BROKERS],
        reorders=sum(m.is_reorder for m in plan.moves),
        throttle=policy.throttle if isinstance(policy.throttle, str) else "fixed",
        throttle_bytes_per_s=busiest.bytes_per_s if busiest else None,
        seconds=pace.seconds if pace and busiest else None,
        asked_by=proposal.request.by if proposal.request else "",
        examples=tuple(_move_view(m) for m in plan.moves[:SHOWN_MOVES]),
        obstacles=tuple(f"Waits for approval: {why}." for why in proposal.beyond if waiting)
        + tuple(f"{told} {remedy}" for told, remedy in warnings(plan))
        + tuple(f"{o.subject}: {o.detail}. {o.remedy}".strip() for o in plan.obstacles),
    )


def _move_view(move: Move) -> MoveView:
    return MoveView(
        topic=move.topic,
        partition=move.partition,
        old=move.old,
        new=move.new,
        size_bytes=move.size_bytes if move.size_bytes != UNKNOWN else None,
        copied_bytes=0,
        phase="planned",
        reason=str(move.reason),
    )


def name_of(kind: ActionKind, plan: Plan) -> str:
    """A plan's name says what it would do: whichever replica makes it, and however often, it is the same name.

    So a person may approve on any replica's page what another one carries out.  Sizes are left out, since they grow while
    producers write, and so are log dirs, which go by the room of the moment: neither makes it another plan.
    """
    digest = hashlib.sha256(plan.fingerprint.encode())
    for move in plan.moves:
        digest.update(f"\n{move.topic} {move.partition} {move.old} {move.new}".encode())
    for name in plan.elections:
        digest.update(f"\n{name.topic} {name.partition}".encode())
    return f"{kind.value}-{digest.hexdigest()[:10]}"
