"""The checks that need the planner: repair before improvement, free moves before dear ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.planner import Balance, Evacuate, Intent, Leaders, Loads, Racks, plan
from ballast.core.planner.place import following
from ballast.core.wording import human_brokers
from ballast.daemon.acting.policy import ActionKind
from ballast.daemon.acting.propose import outline, propose, withdraw
from ballast.daemon.context.daemon_context import DaemonContext
from ballast.daemon.context.view import BalanceView, Role
from ballast.daemon.planning import bounds
from ballast.errors import Infeasible, Unavailable, UsageError

_RACKLESS = 2
"""Fewer racks than this cannot be spread over."""
_NAMED = 4
"""Throttles that a sentence names."""


def check_balance(context: DaemonContext) -> str:
    """Is the load within its bands?  If not: reorders, which are free, and only when they do not suffice, moves."""
    state = context.fresh_state()
    if run := context.run_in_flight():
        return f"Nothing is planned from a half-moved cluster: run {run} is in progress."
    down = sorted(state.missing)
    if down:
        withdraw(context, ActionKind.REORDERS)
        withdraw(context, ActionKind.MOVES)
        return f"No balancing while {human_brokers(down)} {_be(down)} down: repair comes first."
    free = make(context, state, Leaders())
    said = []
    if free.moves:
        said.append(propose(context, ActionKind.REORDERS, free))
    else:
        withdraw(context, ActionKind.REORDERS)
    dear = make(context, state, Balance())
    if any(m.adding for m in dear.moves):
        said.append(propose(context, ActionKind.MOVES, dear))
    else:
        withdraw(context, ActionKind.MOVES)
    conclude(context, dear, said)
    if not said:
        balance = (
            f"As balanced as it can be: {dear.obstacles[0].detail}."
            if dear.obstacles
            else "Every resource is within its range."
        )
        said.append(balance)
    broken = [told for told, _ in warnings(dear)]
    return " ".join([*said, *broken, *_emptied(context, state)])


def _emptied(context: DaemonContext, state: ClusterState) -> list[str]:
    """Say of brokers that were to be drained that they are."""
    empty = sorted(b for b in context.balance.draining & state.alive if not (state.partitions.replica == b).any())
    if not empty:
        return []
    return [f"{human_brokers(empty).capitalize()} {_be(empty)} empty and may be stopped."]


def conclude(context: DaemonContext, dear: Plan, proposed: list[str]) -> None:
    """Show what the check found, in one word and one sentence."""
    if proposed:
        balance = BalanceView(verdict="unbalanced", sentence=f"Proposed plan: {outline(dear)}.")
    elif dear.obstacles:
        balance = BalanceView(verdict="stuck", sentence=f"{dear.obstacles[0].detail}.")
    else:
        balance = BalanceView(verdict="balanced", sentence="Every resource is within its range.")
    context.board.publish(balance=balance)


def check_repair(context: DaemonContext) -> str:
    """What slows replicas down by our own doing is removed first; then whatever else is broken is repaired."""
    state = context.fresh_state()
    return " ".join([*take_back(context, state), repair(context, state)])


def take_back(context: DaemonContext, state: ClusterState) -> list[str]:
    """Take back throttles that an ended run could not, most often because their broker was down, as soon as that can be done.

    A broker that returns under such a throttle catches up slowly, or never.  This is no action that a mode or a window could
    forbid: it ends one that was permitted.
    """
    if (
        context.run_controller is None
        or context.board.view.role is not Role.LEADER
        or context.run_controller.current() is not None
    ):
        return []
    due = [
        d
        for d in context.memory.journal_view.throttles_to_restore
        if d.kind != "broker" or not d.name or int(d.name) in state.alive
    ]
    if not due:
        return []
    context.run_controller.adopt()
    return [f"Taking back what an earlier run has left: {', '.join(map(str, due[:_NAMED]))}."]


def repair(context: DaemonContext, state: ClusterState) -> str:
    """Are brokers gone for good, log dirs of live ones failed, or partitions without a rack for each replica?"""
    grace_s = context.policy.caution.dead_broker_grace_s
    now_s = context.clock.monotonic_s()
    gone = context.memory.presence.gone_since_s
    dead = context.memory.presence.dead(grace_s, now_s)
    if dead:
        made = make(context, state, Evacuate(brokers=dead, keep_racks=True))
        have = "has" if len(dead) == 1 else "have"
        headline = f"{human_brokers(sorted(dead)).capitalize()} {have} been gone for longer than {grace_s:.0f} s."
        if made.is_empty:
            withdraw(context, ActionKind.REPAIR)
            worst = next((f"{o.subject}: {o.detail}." for o in made.obstacles), "There is nothing to rebuild.")
            return f"{headline} {worst}"
        return f"{headline} {propose(context, ActionKind.REPAIR, made, _beyond(context, state, made))}{_kept(made)}"
    if gone:
        withdraw(context, ActionKind.REPAIR)
        broker, since = max(gone.items(), key=lambda item: item[1])
        left_s = grace_s - (now_s - since)
        return f"Broker {broker} is down; it has {left_s:.0f} s to return before its replicas are rebuilt elsewhere."
    if context.memory.failed_disks.since_s:
        return _rebuild_offline(context, state)
    return _replace_lists(context, state)


def _rebuild_offline(context: DaemonContext, state: ClusterState) -> str:
    """Rebuild on other brokers what lies on failed log dirs of live ones, once nobody has replaced the disk in time."""
    failed, grace_s = context.memory.failed_disks, context.policy.caution.dead_broker_grace_s
    now_s = context.clock.monotonic_s()
    named = human_brokers(sorted(failed.since_s))
    headline = f"Replicas of {named} are offline since a log dir failed."
    due = failed.lasting(grace_s, now_s)
    if not due:
        withdraw(context, ActionKind.REPAIR)
        left_s = grace_s - (now_s - min(failed.since_s.values()))
        return f"{headline} They are rebuilt elsewhere unless the disk is replaced within {left_s:.0f} s."
    # One broker at a time: of partitions that have lost a replica on it, those on other failing brokers stay.
    made = make(context, state, Evacuate(brokers=frozenset({min(due)}), keep_racks=True, offline_only=True))
    if made.is_empty:
        withdraw(context, ActionKind.REPAIR)
        worst = next((f"{o.subject}: {o.detail}." for o in made.obstacles), "There is nothing to rebuild.")
        return f"{headline} {worst}"
    beyond = tuple(o.sentence for o in bounds.beyond(context.policy.repair, state, failed.since_s, made))
    return f"{headline} {propose(context, ActionKind.REPAIR, made, beyond)}{_kept(made)}"


def _replace_lists(context: DaemonContext, state: ClusterState) -> str:
    """Lists that are not as racks, or the rule of a topic to follow Kafka's placement, want them."""
    racks = {b.rack for b in state.brokers if b.rack is not None}
    if len(racks) >= _RACKLESS:
        made = make(context, state, Racks())
        if made.moves:
            beyond = _beyond(context, state, made)
            return f"Racks are not respected. {propose(context, ActionKind.REPAIR, made, beyond)}"
    wanted, refusals = following(state, context.balance)
    refused = _unplaced(refusals)
    if wanted is not None:
        try:
            made = make(context, state, wanted)
            if made.moves:
                beyond = _beyond(context, state, made)
                said = propose(context, ActionKind.REPAIR, made, beyond)
                return f"Topics do not follow Kafka's placement. {said}{refused}"
        except (Infeasible, UsageError) as refusal:
            refused = _unplaced((refusal.message, *refusals))
    withdraw(context, ActionKind.REPAIR)
    return f"Nothing needs repair: every broker is up and racks are respected.{refused}"


def _unplaced(refusals: Sequence[str]) -> str:
    """Topics whose rule asks for Kafka's placement, and why they do not get it."""
    if not refusals:
        return ""
    more = f" And {len(refusals) - _NAMED} more." if len(refusals) > _NAMED else ""
    return f" Topics that are to follow Kafka's placement stay as they are: {' '.join(refusals[:_NAMED])}{more}"


def _beyond(context: DaemonContext, state: ClusterState, made: Plan) -> tuple[str, ...]:
    """Why this repair is not begun without a person's word."""
    gone = context.memory.presence.gone_since_s
    return tuple(o.sentence for o in bounds.beyond(context.policy.repair, state, gone, made))


def _kept(made: Plan) -> str:
    """What the repair leaves as it is, and why."""
    return f" Not rebuilt: {made.obstacles[0].subject}: {made.obstacles[0].detail}." if made.obstacles else ""


def _be(brokers: Sequence[int]) -> str:
    return "is" if len(brokers) == 1 else "are"


def make(context: DaemonContext, state: ClusterState, intent: Intent) -> Plan:
    """One plan from a reading, by the settings in force; raises ``Unavailable`` where brokers came or went, or all of them, meanwhile."""
    policy = context.balance

    def compute() -> tuple[Loads | None, Plan]:
        loads = context.loads(state)
        return loads, plan(state, intent, loads=loads, policy=policy)

    loads, made = context.in_background(compute)
    if context.fresh_state().alive != state.alive:
        context.look_again()
        raise Unavailable("A broker came or went while this was planned: the plan is dropped.")
    context.memory.loads = None if loads is None else (state, loads)
    return replace(made, created_at_ms=context.clock.now_ms(), summary={**made.summary, "outline": outline(made)})
