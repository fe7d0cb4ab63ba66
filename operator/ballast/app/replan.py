"""The same question asked again: a new plan for what a saved plan wanted, and how the two differ."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ballast.core.cluster import ClusterState
from ballast.core.plan import Move, Plan
from ballast.core.planner import Loads
from ballast.core.planner import plan as make_plan
from ballast.core.planner.request import load_request
from ballast.core.wording import ShowLine, human_many, human_replicas, human_total
from ballast.errors import NoPlanFound, UsageError
from ballast.wiring.loads import HistoryPolicy, loads_from_history

SHOWN: Final = 5
"""Moves of each kind of difference that are named."""


def replan(plan: Plan, state: ClusterState, drained: Iterable[int], on_line: ShowLine) -> Plan:
    """What the planner answers now to what this plan was made for; the difference is told on the way.

    ``drained`` are the brokers that people drain now.
    """
    if not plan.request:
        raise UsageError(
            "The plan does not say what was asked for, so it cannot be made again.",
            hint="Make a new plan with ballast plan, or give --on-drift valid-only to execute the part that still holds.",
        )
    intent, policy, seed = load_request(plan.request)
    history = plan.request.get("history")
    if history is not None:
        loads = loads_from_history(state, HistoryPolicy(store=str(history)), now=datetime.now(UTC))
    else:
        loads = Loads.from_state(state)
    made = make_plan(state, intent, loads=loads, policy=policy.with_drained(drained), seed=seed)
    made = replace(made, created_at_ms=int(time.time() * 1000), request=plan.request)
    if made.status == "no-plan-found":
        first = made.obstacles[0]
        raise NoPlanFound(f"Planned again, {first.subject}: {first.detail}.", hint=first.remedy or None)
    for line in difference(plan, made):
        on_line(line)
    return made


def _copies(plan: Plan) -> str:
    return human_total(plan.bytes_moved, plan.unknown_sizes)


def difference(before: Plan, after: Plan) -> list[str]:
    """How the new plan differs from the old one, in lines for people."""
    old, new = {m.name: m for m in before.moves}, {m.name: m for m in after.moves}
    same = [n for n, m in new.items() if n in old and (old[n].old, old[n].new) == (m.old, m.new)]
    whole = (
        f"Planned again ({after.intent}): {human_many(len(new), 'move')} instead of {len(old)}, "
        f"{_copies(after)} to copy instead of {_copies(before)}; "
        f"{human_many(len(same), 'move')} the same."
    )
    lines = [whole]
    lines += _list_moves("no longer", [m for n, m in old.items() if n not in new])
    lines += _list_moves("new", [m for n, m in new.items() if n not in old])
    lines += _list_moves("other", [m for n, m in new.items() if n in old and n not in same])
    return lines


def _list_moves(word: str, moves: list[Move]) -> list[str]:
    lines = [f"  {word}: {m.name} {human_replicas(m.old)} → {human_replicas(m.new)}" for m in moves[:SHOWN]]
    return [*lines, f"  {word}: … and {len(moves) - SHOWN} more"] if len(moves) > SHOWN else lines
