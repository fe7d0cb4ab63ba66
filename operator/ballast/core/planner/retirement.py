"""Taking brokers away in phases: leadership first, then data, then the word that they can be stopped.

Which phase comes next is told from the cluster alone, so that a later call (by another process, after a crash, in a week)
goes on where things are, and partitions that landed on the brokers meanwhile are followed.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.planner import Decommission, Demote, Loads, PlannerPolicy, plan
from ballast.core.wording import human_brokers, human_many


class DecommissionPhase(Enum):
    """What is to be done next."""

    LEADERSHIP = "leadership"
    """They still lead, or are preferred to, where another broker could: free to change."""
    DATA = "data"
    """They still hold replicas that can go."""
    WAITING = "waiting"
    """What they hold is in a reassignment already, Ballast's or foreign."""
    STUCK = "stuck"
    """They hold replicas that cannot go."""
    SAFE = "safe"
    """They hold nothing and lead nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The next step, with the plan for it where there is one."""

    phase: DecommissionPhase
    sentence: str
    then: str
    """The same, said after the sentence of a step before it."""
    plan: Plan | None = None


def next_step(
    state: ClusterState,
    brokers: frozenset[int],
    *,
    loads: Loads | None = None,
    policy: PlannerPolicy | None = None,
    leadership: bool = True,
) -> Step:
    """What to do now; ``leadership=False`` passes that phase over, for a caller who has tried it in vain."""
    named = _name_brokers(brokers)
    demoted = plan(state, Demote(brokers=brokers), loads=loads, policy=policy)
    if leadership and not demoted.is_empty:
        count = len({*(m.name for m in demoted.moves), *demoted.elections})
        goes = f"leadership of {human_many(count, 'partition')} moves to other brokers (no data copied)."
        return Step(DecommissionPhase.LEADERSHIP, f"{named}: {goes}", f"Then {goes}", demoted)
    emptied = plan(state, Decommission(brokers=brokers), loads=loads, policy=policy)
    if emptied.moves:
        go = f"{human_many(len(emptied.moves), 'replica')} {'moves' if len(emptied.moves) == 1 else 'move'} to other brokers."
        return Step(DecommissionPhase.DATA, f"{named}: {go}", f"Then {go}", emptied)
    held, moving = count_held(state, brokers), count_held(state, brokers, moving=True)
    if moving:
        busy = f"{moving:,} partitions on it are being moved already."
        return Step(DecommissionPhase.WAITING, f"{named}: {busy}", f"Then it waits: {busy}")
    if held:
        first = emptied.obstacles[0] if emptied.obstacles else None
        why = f": {first.subject}: {first.detail}" if first is not None else ""
        holds = f"holds {human_many(held, 'partition')} that cannot go{why}."
        return Step(DecommissionPhase.STUCK, f"{named} still {holds}", f"Then it still {holds}", emptied)
    stops = f"holds no replica and leads nothing: it can be stopped safely.{_besides(state, brokers)}"
    return Step(DecommissionPhase.SAFE, f"{named} {stops}", f"Then it {stops}")


def count_held(state: ClusterState, brokers: frozenset[int], *, moving: bool = False) -> int:
    """Partitions with a replica on these brokers, unions of moves in flight included; ``moving``: only those in flight."""
    p = state.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    mine = np.isin(p.replica, sorted(brokers))
    if moving:
        mine &= state.moving[row]
    return len(np.unique(row[mine]))


def _besides(state: ClusterState, brokers: frozenset[int]) -> str:
    active = state.controller_id in brokers or any(b.controller for b in state.brokers if b.id in brokers)
    return " It is the active controller now; another takes over when it stops." if active else ""


def _name_brokers(brokers: frozenset[int]) -> str:
    return human_brokers(sorted(brokers), len(brokers), start=True)
