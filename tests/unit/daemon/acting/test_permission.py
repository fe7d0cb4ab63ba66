"""The table of reasons: which guard speaks first, and what each says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.daemon.acting.action_history import NO_ACTIONS
from ballast.daemon.acting.permission import CODES, Situation, permission, permissions
from ballast.daemon.context.view import Other, Outage, Role
from ballast.daemon.policy import ActionKind, ActionPolicy, Actions, DaemonPolicy, LeaderPolicy, Mode, Window
from ballast.executor.journal.pause import Pause

NOON_MS = 1_795_262_400_000  # 2026-11-21 12:00 UTC
AUTO = DaemonPolicy(mode=Mode.AUTO)
CALM = Situation(now_ms=NOON_MS, role=Role.ACTIVE, reading_age_s=5)
FOREIGN = Other(code="foreign-reassignment", detail="Another tool moves orders-0.", blocking=True)
HARMLESS = Other(code="msk", detail="This is MSK.", blocking=False)


def code(kind: ActionKind, policy: DaemonPolicy, situation: Situation) -> str:
    """The verdict in one word."""
    return permission(kind, policy, situation).code


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (CALM, "allowed"),
        (replace(CALM, role=Role.STOPPING), "stopping"),
        (replace(CALM, reading_age_s=None), "no-reading"),
        (replace(CALM, reading_age_s=121), "no-reading"),
        (replace(CALM, role=Role.STANDBY), "standby"),
        (replace(CALM, pause=Pause(by="Ada", since_ms=NOON_MS, reason="night")), "paused"),
        (replace(CALM, run="r1"), "run-in-progress"),
        (replace(CALM, release_for="Ada"), "releasing-lock"),
        (replace(CALM, others=(HARMLESS, FOREIGN)), "foreign-activity"),
        (replace(CALM, others=(HARMLESS,)), "allowed"),
        (replace(CALM, quiet_reason="a broker returned."), "replicas-not-in-sync"),
    ],
)
def test_each_guard_refuses_with_its_own_word(situation: Situation, expected: str) -> None:
    """One thing wrong at a time."""
    verdict = permission(ActionKind.MOVES, AUTO, situation)
    assert verdict.code == expected
    assert expected in CODES
    assert verdict.allowed is (expected == "allowed")
    assert verdict.detail.endswith(".")


@pytest.mark.parametrize(
    ("changes", "cause", "parameters", "told"),
    [
        ({"role": Role.STARTING}, "", {}, "This process does not hold the cluster's lock."),
        ({"role": Role.STANDBY}, "", {}, "This process does not hold the cluster's lock."),
        (
            {"role": Role.STANDBY, "lock_holder": "ada@kafka-7"},
            "held",
            {"holder": "ada@kafka-7"},
            "Another process holds the cluster's lock: ada@kafka-7.",
        ),
        (
            {"role": Role.STANDBY, "lock_holder": "ada@kafka-7", "journal_problem": "it is deleted."},
            "journal",
            {"why": "it is deleted."},
            "The journal cannot be used: it is deleted.",
        ),
        ({"reading_age_s": None}, "", {}, "There is no reading of the cluster yet."),
        (
            {"reading_age_s": 121.0},
            "old",
            {"age_s": 121.0},
            "The newest reading of the cluster is 2 min old; nothing is decided from it.",
        ),
        (
            {"outage": Outage(code="unreachable", detail="No broker answers.", since_ms=NOON_MS)},
            "outage",
            {"since_ms": NOON_MS, "why": "No broker answers."},
            "The cluster cannot be read since 2026-11-21 12:00 UTC: No broker answers.",
        ),
    ],
)
def test_one_code_has_several_causes(
    changes: dict[str, Any], cause: str, parameters: dict[str, object], told: str
) -> None:
    """Another process is named only where one is known: after an outage of the journal the lock may be free, or this process's own."""
    found = permission(ActionKind.MOVES, AUTO, replace(CALM, **changes))
    assert found.code == ("standby" if "role" in changes else "no-reading")
    assert (found.cause, found.parameters, found.detail) == (cause, parameters, told)


def test_repair_does_not_wait_for_replicas_to_be_in_sync() -> None:
    """Repair is what makes the cluster quiet: waiting for that would wait for ever."""
    assert (
        code(ActionKind.REPAIR, AUTO, replace(CALM, quiet_reason="12 partitions have replicas out of sync."))
        == "allowed"
    )


def test_observe_is_said_before_everything_but_the_end() -> None:
    """Whatever else holds, what is never allowed is told as that."""
    busy = replace(CALM, role=Role.STANDBY, run="r", others=(FOREIGN,))
    assert code(ActionKind.MOVES, DaemonPolicy(), busy) == "observe-only"


def test_kafkas_switch_lets_elections_act_and_nothing_else() -> None:
    """``auto.leader.rebalance.enable`` is about elections."""
    policy = DaemonPolicy(leaders=LeaderPolicy(auto=True))
    assert [s.action for s in permissions(policy, CALM) if s.allowed] == ["elections"]


def test_windows_caps_and_cool_down_are_per_kind() -> None:
    """Each limit binds the kind it is set for, and says when it ends."""
    window = Window(opens="0 1 * * *", lasts_minutes=60)
    policy = replace(
        AUTO, actions=Actions(moves=ActionPolicy(windows=(window,)), elections=ActionPolicy(per_day=2, cool_down_s=60))
    )
    closed = permission(ActionKind.MOVES, policy, CALM)
    assert (closed.code, closed.parameters) == ("outside-window", {"opens_ms": NOON_MS + 13 * 3_600_000})
    assert "2026-11-22 01:00 UTC" in closed.detail
    used = NO_ACTIONS.add_start(NOON_MS, "a").add_start(NOON_MS, "b")
    at = replace(CALM, acts={ActionKind.ELECTIONS: used})
    assert code(ActionKind.ELECTIONS, policy, at) == "cap-reached"
    tomorrow = replace(at, now_ms=NOON_MS + 86_400_000)
    assert code(ActionKind.ELECTIONS, policy, tomorrow) == "allowed"
    cooling = replace(tomorrow, acts={ActionKind.ELECTIONS: used.add_end(tomorrow.now_ms - 30_000)})
    assert code(ActionKind.ELECTIONS, policy, cooling) == "cooling-down"
    assert code(ActionKind.ELECTIONS, policy, replace(cooling, now_ms=cooling.now_ms + 31_000)) == "allowed"


@pytest.mark.parametrize("kind", list(ActionKind))
def test_what_a_person_approved_waits_for_no_cool_down_and_for_everything_else(kind: ActionKind) -> None:
    """A cool-down keeps the daemon from acting too often by itself; windows and caps are what people set for all."""
    policy = replace(AUTO, actions=Actions(**{kind.value: ActionPolicy(per_day=2, cool_down_s=60)}))
    cooling = replace(CALM, acts={kind: NO_ACTIONS.add_start(NOON_MS, "a").add_end(NOON_MS - 30_000)})
    verdict = permission(kind, policy, cooling)
    assert (verdict.code, verdict.may_start(approved=False), verdict.may_start(approved=True)) == (
        "cooling-down",
        False,
        True,
    )
    assert "approve" in verdict.detail
    capped = replace(cooling, acts={kind: cooling.acts[kind].add_start(NOON_MS, "b")})
    for otherwise in (
        capped,
        replace(cooling, pause=Pause(by="Ada", since_ms=NOON_MS, reason="")),
        replace(cooling, run="r1"),
    ):
        assert not permission(kind, policy, otherwise).may_start(approved=True)
    assert permission(kind, policy, CALM).may_start(approved=False)


@given(end=st.integers(-(10**9), 10**9), cool_down=st.floats(0, 10**5))
def test_a_clock_that_jumps_never_stretches_a_cool_down(end: int, cool_down: float) -> None:
    """Whatever the wall clock does, the cool-down is over at the latest its own length after now."""
    policy = replace(AUTO, actions=Actions(moves=ActionPolicy(cool_down_s=cool_down)))
    acts = {ActionKind.MOVES: NO_ACTIONS.add_end(NOON_MS + end)}
    later = replace(CALM, now_ms=max(NOON_MS, NOON_MS + end) + int(cool_down * 1000) + 1, acts=acts)
    assert code(ActionKind.MOVES, policy, later) == "allowed"


def test_an_end_noted_by_a_clock_far_ahead_holds_nothing() -> None:
    """Otherwise everything waits until that time has come; the next end replaces it."""
    policy = replace(AUTO, actions=Actions(moves=ActionPolicy(cool_down_s=60)))
    acts = NO_ACTIONS.add_end(NOON_MS + 9 * 86_400_000)
    assert code(ActionKind.MOVES, policy, replace(CALM, acts={ActionKind.MOVES: acts})) == "allowed"
    assert acts.add_end(NOON_MS).last_end_ms == NOON_MS


@given(
    role=st.sampled_from(list(Role)),
    age=st.none() | st.floats(0, 1000),
    run=st.none() | st.just("r"),
    mode=st.sampled_from(list(Mode)),
)
def test_only_the_holder_with_a_fresh_reading_ever_acts(
    role: Role, age: float | None, run: str | None, mode: Mode
) -> None:
    """Nothing is allowed to anyone else, from an old reading, or beside another run; to them, in ``auto``, everything is."""
    situation = replace(CALM, role=role, reading_age_s=age, run=run)
    may_act = role is Role.ACTIVE and run is None and age is not None and age <= 120 and mode is not Mode.OBSERVE
    verdicts = permissions(DaemonPolicy(mode=mode), situation)
    assert len(verdicts) == len(ActionKind)
    for verdict in verdicts:
        assert verdict.code in CODES
        assert may_act or not verdict.allowed
        assert verdict.allowed or not (may_act and mode is Mode.AUTO), verdict
