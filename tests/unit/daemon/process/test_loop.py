"""The loop: rhythm, failures that sleep, bugs that do not kill."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from ballast.daemon.context.view import CheckReport, CheckResult
from ballast.daemon.process.loop import MAX_BACKOFF_S, Check, Loop
from ballast.errors import Unavailable
from ballast.sim.clock import SimClock


def make(
    clock: SimClock, run: Callable[[], str], every_s: float = 10, max_backoff_s: float = MAX_BACKOFF_S
) -> tuple[Loop, list[CheckReport]]:
    """A loop of one check and everything it reports."""
    reports: list[CheckReport] = []
    loop = Loop(
        checks=[Check(name="t", every_s=lambda: every_s, perform=run, max_backoff_s=max_backoff_s)],
        clock=clock,
        report=lambda _, report: reports.append(report),
        wait=clock.sleep,
    )
    return loop, reports


def test_a_check_keeps_its_rhythm() -> None:
    """Ten seconds from start to start, however long it takes, and never two at once."""
    clock = SimClock()
    began: list[float] = []

    def run() -> str:
        began.append(clock.monotonic_s())
        clock.sleep(3)
        return "done"

    loop, reports = make(clock, run)
    while clock.monotonic_s() < 35:
        clock.sleep(loop.pass_once())
    assert began == [0, 10, 20, 30]
    assert all(r.ok and r.duration_s == 3 for r in reports)


def test_failures_sleep_longer_each_time_and_recover_at_once() -> None:
    """The delay doubles up to a bound; the first success restores the rhythm."""
    clock = SimClock()
    began: list[float] = []

    def run() -> str:
        began.append(clock.monotonic_s())
        if len(began) < 8:
            raise Unavailable("No broker answers.")
        return "back"

    loop, reports = make(clock, run)
    while len(began) < 10:
        clock.sleep(loop.pass_once())
    gaps = [b - a for a, b in pairwise(began)]
    assert gaps == [20, 40, 80, 160, MAX_BACKOFF_S, MAX_BACKOFF_S, MAX_BACKOFF_S, 10, 10]
    assert [r.failures for r in reports] == [1, 2, 3, 4, 5, 6, 7, 0, 0, 0]
    assert [r.result for r in reports] == [CheckResult.FAILED] * 7 + [CheckResult.OK] * 3


def test_a_check_may_have_a_shorter_bound() -> None:
    """What is read from the cluster is asked for again soon; a rhythm that is slower than the bound stays as it is."""
    for every_s, gap_s in ((10.0, 30.0), (60.0, 60.0)):
        clock = SimClock()
        began: list[float] = []

        def run(clock: SimClock = clock, began: list[float] = began) -> str:
            began.append(clock.monotonic_s())
            raise Unavailable("No broker answers.")

        loop, _ = make(clock, run, every_s, max_backoff_s=30.0)
        while len(began) < 6:
            clock.sleep(loop.pass_once())
        assert began[-1] - began[-2] == gap_s


def test_a_bug_in_one_check_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback, told in a sentence, and the loop goes on."""
    clock = SimClock()
    ran: list[str] = []
    reports: dict[str, CheckReport] = {}

    def bad() -> str:
        raise ZeroDivisionError

    def good() -> str:
        ran.append("good")
        return "fine"

    loop = Loop(
        checks=[Check(name="bad", every_s=lambda: 1, perform=bad), Check(name="good", every_s=lambda: 1, perform=good)],
        clock=clock,
        report=reports.__setitem__,
        wait=clock.sleep,
    )
    loop.pass_once()
    assert ran == ["good"]
    assert "ZeroDivisionError" in reports["bad"].detail
    assert (reports["bad"].result, reports["good"].result) == (CheckResult.BUG, CheckResult.OK)
    assert "Traceback" in caplog.text


def test_run_now_makes_a_check_due_now() -> None:
    """What a person asks for does not wait for the rhythm."""
    clock = SimClock()
    loop, reports = make(clock, lambda: "ok", every_s=1000)
    loop.pass_once()
    loop.pass_once()
    assert len(reports) == 1
    loop.run_now("t")
    loop.pass_once()
    assert len(reports) == 2


def test_what_a_check_makes_due_goes_first_where_it_stands_first() -> None:
    """A run that ended drops the reading: the cluster is read again before the next check, which does not fail for want of it."""
    clock = SimClock()
    ran: list[str] = []
    ended = [True]

    def leaders() -> str:
        ran.append("leaders")
        if ended and ended.pop():
            for check in loop.checks:
                loop.run_now(check.name)
        return "done"

    def check(name: str, run: Callable[[], str]) -> Check:
        return Check(name=name, every_s=lambda: 1000, perform=run)

    def note(name: str) -> Callable[[], str]:
        def run() -> str:
            ran.append(name)
            return "done"

        return run

    loop = Loop(
        checks=[check("observe", note("observe")), check("leaders", leaders), check("balance", note("balance"))],
        clock=clock,
        report=lambda _name, _report: None,
        wait=clock.sleep,
    )
    loop.pass_once()
    assert ran == ["observe", "leaders", "observe", "leaders", "balance"]
    assert loop.pass_once() == 1000
    assert len(ran) == 5


def test_a_check_that_waits_lets_another_keep_its_rhythm() -> None:
    """The heartbeat of the one that waits goes on meanwhile, and is not begun again."""
    clock, ran = SimClock(), []

    def observe() -> str:
        ran.append((clock.monotonic_s(), loop.heartbeat.doing))
        return "read"

    def balance() -> str:
        while clock.monotonic_s() < 35:
            clock.sleep(min(loop.run_meanwhile("observe"), 1))
            assert (loop.heartbeat.doing, clock.monotonic_s() - loop.heartbeat.at_s <= 1) == ("balance", True)
        return "planned"

    loop = Loop(
        checks=[
            Check(name="observe", every_s=lambda: 10, perform=observe),
            Check(name="balance", every_s=lambda: 1000, perform=balance),
        ],
        clock=clock,
        report=lambda name, _: ran.append((clock.monotonic_s(), name)) if name == "balance" else None,
        wait=clock.sleep,
    )
    assert loop.pass_once() == 5
    assert ran == [(0, "observe"), (10, "observe"), (20, "observe"), (30, "observe"), (35, "balance")]


def test_what_fails_while_another_check_waits_sleeps_on_a_rising_delay() -> None:
    """As if nothing waited."""
    clock = SimClock()

    def run() -> str:
        raise Unavailable("no broker")

    loop, reports = make(clock, run)
    assert loop.run_meanwhile("t") == 20
    assert loop.run_meanwhile("t") == 20
    clock.sleep(20)
    assert loop.run_meanwhile("t") == 40
    assert [report.failures for report in reports] == [1, 2]
