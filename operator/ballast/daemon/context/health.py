"""The probes: is the process alive, is its page served, and is all well with the cluster?  Each answer is a sentence.

Alive means that every loop has beaten lately, and the run in progress too; it says nothing of the cluster, since restarting a
pod repairs no broker.  Ready means that the page is served: it explains an outage, so a Service leads to it during one.
Healthy means that the cluster was read lately and the journal can be used; no pod is killed or hidden for want of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ballast.core.wording import human_time
from ballast.daemon.context.heartbeat import Heartbeat
from ballast.daemon.context.view import Role, View

STUCK_AFTER_S: Final = 180.0
"""A loop that has not beaten for this long is stuck: longer than any timeout of a client, with room to spare."""
PLAN: Final = "plan"
"""What the thread of the plan in progress does."""
STUCK_IN_PLAN_AFTER_S: Final = 1800.0
"""The same for a plan: millions of replicas take minutes of a busy processor, and a pod that is killed over its
plan would be killed over it for ever."""
STUCK_IN_RUN_AFTER_S: Final = 600.0
"""The same for a run, one step of which asks many brokers, each within its own time."""
RUN: Final = "run"
"""What the thread of the run in progress does."""
FRESH_S: Final = 90.0
"""Oldest reading of a healthy process, on top of the interval between readings."""


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict and its sentence."""

    ok: bool
    sentence: str


def alive(heartbeats: Mapping[str, Heartbeat], now_s: float) -> Health:
    """Has every loop shown a sign of life in time?"""
    for name, heartbeat in heartbeats.items():
        silent_s = now_s - heartbeat.at_s
        if silent_s > _patience_s(heartbeat):
            doing = f" while in {heartbeat.doing}" if heartbeat.doing else ""
            return Health(ok=False, sentence=f"The {name} loop has not moved for {human_time(silent_s)}{doing}.")
    return Health(ok=True, sentence="ok")


def _patience_s(heartbeat: Heartbeat) -> float:
    if heartbeat.doing == PLAN:
        return STUCK_IN_PLAN_AFTER_S
    return STUCK_IN_RUN_AFTER_S if heartbeat.doing == RUN else STUCK_AFTER_S


def ready(view: View) -> Health:
    """Can the page be served?  It tells what is wrong with the cluster, so it is shown above all while something is."""
    if view.role is Role.STOPPING:
        return Health(ok=False, sentence="The daemon is stopping.")
    return Health(ok=True, sentence="The page is served; /healthz reports on the cluster.")


def healthy(view: View, *, now_ms: int, observe_s: float) -> Health:
    """Is the cluster read, and the journal usable?"""
    if view.role is Role.STOPPING:
        return Health(ok=False, sentence="The daemon is stopping.")
    if view.figures is None:
        return Health(ok=False, sentence=view.outage.detail if view.outage else "The cluster has not been read yet.")
    age_s = (now_ms - view.figures.taken_at_ms) / 1000
    if age_s > observe_s + FRESH_S:
        why = f": {view.outage.detail}" if view.outage else ""
        return Health(ok=False, sentence=f"The newest reading of the cluster is {human_time(age_s)} old{why}")
    if view.lock.journal_readable is False:
        return Health(ok=False, sentence=f"The journal cannot be used: {view.lock.journal_problem}")
    if view.role is Role.STARTING:
        return Health(ok=False, sentence="The lock has not been asked for yet.")
    return Health(ok=True, sentence=f"The cluster was read {human_time(age_s)} ago; this process is {view.role.value}.")
