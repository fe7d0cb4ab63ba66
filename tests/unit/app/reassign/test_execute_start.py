"""``ballast reassign --execute`` starts all moves or none, also where it is paused or gives up the lock meanwhile."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.reassign.execute import CANCEL_S, start_all_or_none
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.wording import ShowLine
from ballast.executor.driver.driver import Driver
from ballast.executor.journal.records import dump_run
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, Run, new_run
from ballast.ports.journal import Record, Request
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

POLICY = ExecutionPolicy(throttle=5 * MB, measure_s=0)
ONE, OTHER = Move(T, 0, (1, 2), (3, 2), 100 * MB), Move(T, 1, (2, 1), (4, 1), 100 * MB)


def started(s: Scene, *moves: Move, on_line: ShowLine = lambda _: None) -> dict[TopicPartition, str]:
    """What was refused."""
    own = Writer(OpenCluster(s.cluster, "sim:1"), s.journal, s.driver, s.world.clock)
    return dict(start_all_or_none(own, s.plan(*moves), POLICY, "r", on_line))


def test_all_that_can_start_is_started() -> None:
    """And left in progress."""
    s = scene({0: (1, 2), 1: (2, 1)})
    assert started(s, ONE, OTHER) == {}
    assert len(s.cluster.reassignments()) == 2


@pytest.mark.parametrize(("kind", "why"), [("pause", "Paused by Ada"), ("take-over", "Another process takes the lock")])
def test_what_is_held_back_meanwhile_is_not_said_to_have_started(kind: str, why: str) -> None:
    """A pause from the page, or another process that asks for the lock: the stock tool's answer is never half true."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.journal.request(Request("q", kind, "Ada", s.world.clock.now_ms(), {"wait_s": 600}))
    found = started(s, ONE, OTHER)
    assert set(found) == {ONE.name, OTHER.name}
    assert all(reason.startswith(why) for reason in found.values())
    assert s.cluster.reassignments() == {}


@pytest.mark.parametrize("kind", ["pause", "take-over"])
@pytest.mark.parametrize("ahead_s", [-3600, 3600])
def test_only_its_own_run_is_cancelled(kind: str, ahead_s: int) -> None:
    """Another person's run is open, begun by a clock that differs: it stays as it is, and this one is cancelled to its end."""
    s = scene({0: (1, 2), 1: (2, 1), 2: (1, 2)})
    theirs = another_run(s, started_ms=s.world.clock.now_ms() + ahead_s * 1000)
    s.journal.request(Request("q", kind, "Ada", s.world.clock.now_ms(), {"wait_s": 600}))
    assert set(started(s, ONE, OTHER)) == {ONE.name, OTHER.name}
    (left,) = s.driver.open_runs()
    assert (left.id, left.phase, left.stopped_by) == (theirs.id, theirs.phase, "")
    assert (s.cluster.reassignments(), s.throttles()) == ({}, {})


def test_a_cancel_that_has_to_wait_for_brokers_is_left_to_a_follower() -> None:
    """The old replicas of what had begun are gone, so it cannot be cancelled yet: the person gets their terminal back."""
    s = scene({0: (1, 2), 1: (2, 1)}, size_bytes=50_000 * MB)
    clock = s.world.clock
    for broker in (1, 2):
        clock.after(30, partial(s.world.kill, broker))
    clock.after(40, lambda: s.journal.request(Request("q", "pause", "Ada", clock.now_ms(), {})))
    began_s = clock.monotonic_s()
    own = Writer(OpenCluster(s.cluster, "sim:1"), s.journal, s.driver, clock)
    refused = start_all_or_none(own, s.plan(ONE, OTHER), replace(POLICY, moves_at_once=1), "r", lambda _: None)
    assert refused
    assert [(run.id, run.phase) for run in s.driver.open_runs()] == [("r", Phase.CANCELLING)]
    assert clock.monotonic_s() - began_s < 40 + 2 * CANCEL_S


def another_run(s: Scene, started_ms: int) -> Run:
    """A run in the journal that another person has left open, and that has begun nothing."""
    plan = s.plan(Move(T, 2, (1, 2), (4, 2), 100 * MB))
    theirs = replace(new_run("theirs", plan, POLICY, Now(0, 0.0)), started_ms=started_ms)
    s.journal.append(dump_run(theirs))
    return theirs


def test_a_run_that_is_no_longer_in_the_journal_is_said_not_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are gone by the time it is to be cancelled: what it has begun goes on, and that is said."""
    s = scene({0: (1, 2), 1: (2, 1)})
    stay = Driver.stay

    def stay_without_records(driver: Driver) -> None:
        s.journal.append([Record(r.key, None) for r in s.journal.read() if "/r" in r.key])
        stay(driver)

    monkeypatch.setattr(Driver, "stay", stay_without_records)
    s.journal.request(Request("q", "pause", "Ada", s.world.clock.now_ms(), {}))
    told: list[str] = []
    assert set(started(s, ONE, OTHER, on_line=told.append)) == {ONE.name, OTHER.name}
    assert told[-1].startswith("Run r is not in the journal any more")
