"""Execute a plan that was made before: only what a person has seen, and only while it still fits the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ballast.app.change import settled_snapshot
from ballast.app.journal_reading import read_drained, refuse_filling
from ballast.app.replan import replan
from ballast.app.runs import Session
from ballast.core.cluster import ClusterState
from ballast.core.guards.drift import drift, keep_valid
from ballast.core.plan import Plan, work
from ballast.core.plan.file import is_plan, loads
from ballast.core.stock.files import parse_reassignment
from ballast.core.stock.plan import plan_of_entries
from ballast.core.wording import ShowLine, human_many
from ballast.errors import Interrupted, Refused, UsageError
from ballast.executor.driver.events import RunResult
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.scheduling.speeds import require_rates

OnDrift = Literal["refuse", "replan", "valid-only"]
"""When the cluster is no longer as the plan saw it: refuse, plan the same again, or execute the part that still holds."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a plan."""

    result: RunResult
    before: ClusterState
    after: ClusterState | None
    """None where the run was left."""


def apply(session: Session, text: str, source: str, policy: ExecutionPolicy, on_drift: OnDrift) -> Applied | None:
    """Execute the plan in this text (a plan file, or Kafka's reassignment JSON); None where nothing is to be done."""
    opened, on_line = session.opened, session.user_interface.show_line
    state = opened.cluster.snapshot()
    drained = read_drained(opened, state, on_line)
    plan = resolve_drift(read_plan(text, source, state), state, on_drift, drained, on_line)
    refuse_filling(plan, drained)
    if plan.is_empty:
        on_line("Nothing to do: the cluster already is as the plan wants it.")
        return None
    require_rates(policy, plan.moves, [b.id for b in state.brokers])
    session.tell_pace(state, plan, policy)
    session.user_interface.confirm(f"{outline(plan)}. Execute it?")
    result = session.execute(plan, policy)
    if result.exit_code == Interrupted.exit_code:
        return Applied(result, state, None)
    after = settled_snapshot(opened.cluster, plan) if result.exit_code == 0 else opened.cluster.snapshot(configs=False)
    return Applied(result, state, after)


def read_plan(text: str, source: str, state: ClusterState) -> Plan:
    """A plan file, or Kafka's reassignment JSON taken as a plan for the present assignment."""
    if is_stock(text):
        return plan_of_entries(parse_reassignment(text, source=source), state, source=source)
    return loads(text, source=source)


def is_stock(text: str) -> bool:
    """Is it the JSON of kafka-reassign-partitions, rather than a plan file?"""
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and "partitions" in document and not is_plan(document)


def resolve_drift(
    plan: Plan, state: ClusterState, on_drift: OnDrift, drained: Iterable[int], on_line: ShowLine
) -> Plan:
    """Refuse a plan that was made for another picture, make it again, or keep what of it still holds."""
    require_cluster(plan, state)
    found = drift(plan, state)
    if found.same_fingerprint and not found.recreated:
        return plan
    if not found.touches_plan:
        on_line(f"The cluster has changed since the plan was made: {found.explain()}. The plan still holds.")
        return plan
    if found.all_done:
        on_line(f"The plan has been executed already: {human_many(len(plan.moves), 'partition')} as it wants them.")
        return keep_valid(plan, found, state)
    if on_drift == "refuse":
        raise Refused(
            f"The cluster has changed since the plan was made: {found.explain()}.",
            hint="Give --on-drift replan to plan the same again now, or --on-drift valid-only to execute the part that still holds.",
        )
    if on_drift == "replan":
        on_line(f"The cluster has changed since the plan was made: {found.explain()}.")
        return replan(plan, state, drained, on_line)
    kept = keep_valid(plan, found, state)
    on_line(
        f"The cluster has changed: {found.explain()}. "
        f"Of the plan's {human_many(len(plan.moves), 'move')} {len(kept.moves)} can still be made."
    )
    return kept


def require_cluster(plan: Plan, state: ClusterState) -> None:
    """Raise where the plan was made for another cluster than this."""
    if plan.cluster_id != state.cluster_id:
        raise UsageError(
            f"The plan was made for cluster {plan.cluster_id}, and this is {state.cluster_id}.",
            hint="Give the right --bootstrap-server.",
        )


def outline(plan: Plan) -> str:
    """A plan in half a sentence."""
    return f"{plan.intent}: {', '.join(work.outline(plan))}"
