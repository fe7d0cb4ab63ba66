"""The probes: which loop is stuck, and when all is well."""

from __future__ import annotations

from ballast.daemon.context.health import PLAN, STUCK_AFTER_S, STUCK_IN_PLAN_AFTER_S, alive, healthy, ready
from ballast.daemon.context.heartbeat import Heartbeat
from ballast.daemon.context.view import Outage, Role, View


def test_a_stuck_loop_is_not_alive_and_says_where() -> None:
    """The probe names the loop and the check it hangs in."""
    heartbeats = {"work": Heartbeat(at_s=0, doing="observe"), "pulse": Heartbeat(at_s=STUCK_AFTER_S)}
    assert alive(heartbeats, STUCK_AFTER_S).ok
    stuck = alive(heartbeats, STUCK_AFTER_S + 1)
    assert not stuck.ok
    assert "work" in stuck.sentence
    assert "observe" in stuck.sentence


def test_a_long_plan_is_no_stuck_loop() -> None:
    """The largest clusters take minutes to plan; half an hour is too long for any."""
    heartbeats = {"plan": Heartbeat(at_s=0, doing=PLAN)}
    assert alive(heartbeats, STUCK_AFTER_S + 1).ok
    assert not alive(heartbeats, STUCK_IN_PLAN_AFTER_S + 1).ok


def test_healthy_wants_a_reading() -> None:
    """Before the first reading, with its reason; a process that stops is neither healthy nor ready."""
    view = View(outage=Outage(code="unreachable", detail="No broker answers.", since_ms=0))
    assert healthy(view, now_ms=0, observe_s=15).sentence == "No broker answers."
    assert not healthy(View(role=Role.STOPPING), now_ms=0, observe_s=15).ok
    assert not ready(View(role=Role.STOPPING)).ok
