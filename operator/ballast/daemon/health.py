"""The probes: is the process alive, is it ready?  Both answers are sentences, so that ``kubectl describe`` explains them.

Alive means that every loop has beaten lately; it says nothing of the cluster, since restarting a pod repairs no broker.
Ready means that the cluster was read lately and the journal can be read; a standby that is warm is ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ballast.daemon.loop import Beat
from ballast.daemon.view import Role, View

STUCK_AFTER_S: Final = 180.0
"""A loop that has not beaten for this long is stuck: longer than any timeout of a client, with room to spare."""
PLANNING: Final = frozenset({"level", "repair"})
STUCK_IN_PLAN_AFTER_S: Final = 1800.0
"""The same for ticks that plan: millions of replicas take minutes of a busy processor, and a pod that is killed over its
plan would be killed over it for ever."""
READY_AGE_S: Final = 90.0
"""Oldest reading of a ready process, on top of the interval between readings."""


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict and its sentence."""

    ok: bool
    sentence: str


def alive(beats: Mapping[str, Beat], now_s: float) -> Health:
    """Do all loops move?"""
    for name, beat in beats.items():
        silent_s = now_s - beat.at_s
        if silent_s > (STUCK_IN_PLAN_AFTER_S if beat.doing in PLANNING else STUCK_AFTER_S):
            doing = f" while in {beat.doing}" if beat.doing else ""
            return Health(ok=False, sentence=f"The {name} loop has not moved for {silent_s:.0f} s{doing}.")
    return Health(ok=True, sentence="Every loop moves.")


def ready(view: View, *, now_ms: int, observe_s: float) -> Health:
    """Is the cluster read, and the journal readable?"""
    if view.role is Role.STOPPING:
        return Health(ok=False, sentence="The daemon is stopping.")
    if view.figures is None:
        return Health(ok=False, sentence=view.figures_error or "The cluster has not been read yet.")
    age_s = (now_ms - view.figures.taken_at_ms) / 1000
    if age_s > observe_s + READY_AGE_S:
        why = f": {view.figures_error}" if view.figures_error else ""
        return Health(ok=False, sentence=f"The newest reading of the cluster is {age_s:.0f} s old{why}")
    if view.lock.journal_readable is False:
        return Health(ok=False, sentence="The journal cannot be read.")
    if view.role is Role.STARTING:
        return Health(ok=False, sentence="The lock has not been asked for yet.")
    return Health(
        ok=True, sentence=f"The cluster was read {max(age_s, 0):.0f} s ago; this process is {view.role.value}."
    )
