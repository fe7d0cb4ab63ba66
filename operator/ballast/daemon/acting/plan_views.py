"""Plans as the page and the log show them; ``run_views`` does the same for runs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ballast.core.cluster import UNKNOWN
from ballast.core.plan import Move, Plan, work
from ballast.core.plan.log_dirs import warnings
from ballast.core.wording import human_bytes
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.acting.run_views import SHOWN_MOVES
from ballast.daemon.context.view import MoveView, Note, PlanReason, PlanView
from ballast.executor.driver.pace import Pace
from ballast.executor.machine.policy import ExecutionPolicy

SHOWN_BROKERS: Final = 200
"""Brokers of a plan whose loads the page draws before and after."""
NOT_PREFERRED: Final = "not-preferred"
"""The reason of elections: the preferred leader does not lead."""


def outline(plan: Plan) -> str:
    """A plan in half a sentence."""
    return ", ".join(_changes(plan)) or "do nothing"


def _changes(plan: Plan) -> list[str]:
    """What it does, in parts of a sentence."""
    parts = work.outline(plan)
    told = plan.summary.get("cross_rack")
    if told and (saved := told["before"]["bytes_per_s"] - told["after"]["bytes_per_s"]) > 0:
        parts.append(f"{human_bytes(saved)}/s less between racks")
    return parts


def plan_view(proposal: Proposal, *, pending_approval: bool, policy: ExecutionPolicy, pace: Pace | None) -> PlanView:
    """A plan as the page shows it, with the pace that a run of it would begin at; None where no reading tells."""
    plan = proposal.plan
    reasons = Counter(m.reason.code for m in plan.moves)
    # Elections that its own moves make necessary are no reason for it.
    if led_elsewhere := len(set(plan.elections) - {m.name for m in plan.moves}):
        reasons[NOT_PREFERRED] = led_elsewhere
    busiest = pace.busiest if pace else None
    return PlanView(
        id=proposal.id,
        action=proposal.kind.value,
        intent=plan.intent,
        purpose=plan.purpose,
        created_at_ms=plan.created_at_ms,
        moves=len(plan.moves),
        elections=len(plan.elections),
        copies=sum(bool(m.adding) for m in plan.moves),
        changes=tuple(_changes(plan)),
        bytes_moved=plan.known_bytes,
        bound_bytes=plan.bound_bytes,
        status=plan.status,
        pending_approval=pending_approval,
        approved_by=proposal.approved_by or "",
        reasons=tuple(PlanReason(*found) for found in reasons.most_common()),
        resources=tuple(plan.summary.get("resources", ())),
        brokers=tuple(plan.summary.get("brokers", ()))[:SHOWN_BROKERS],
        replica_list_changes=sum(m.is_list_change for m in plan.moves),
        throttle=policy.throttle if isinstance(policy.throttle, str) else "fixed",
        throttle_bytes_per_s=busiest.bytes_per_s if busiest else None,
        seconds=pace.seconds if pace and busiest else None,
        requested_by=proposal.request.by if proposal.request else "",
        examples=tuple(_move_view(m) for m in plan.moves[:SHOWN_MOVES]),
        objections=tuple(map(Note.of, proposal.objections)) if pending_approval else (),
        obstacles=tuple(f"{w.detail} {w.remedy}" for w in warnings(plan))
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
        stage="planned",
        detail=str(move.reason),
    )
