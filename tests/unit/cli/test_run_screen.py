"""What people and programs see of a run, and what Ctrl-C does to it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from typing import Any

import click
import pytest
from rich.console import Console
from tests.unit.executor.scenes import MB, T, scene

from ballast.cli.run_options import GUARD_TIMEOUT_S, Rate, Throttle, ThrottleType, execution_options, policy_from
from ballast.cli.run_screen import LEAVES_WITHIN_S, JsonScreen, LineScreen, LiveScreen, execute, screen_for
from ballast.core.plan import Move
from ballast.errors import Interrupted, UsageError
from ballast.executor.driver.events import RunResult
from ballast.executor.machine.policy import ExecutionPolicy

THROTTLED = ExecutionPolicy(throttle=5 * MB)


def run_with(screen: JsonScreen | LineScreen | LiveScreen) -> RunResult:
    """A throttled move on the simulated cluster, heard by this screen."""
    s = scene()
    s.driver.listen(screen)
    return s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")


def test_json_lines_tell_the_whole_story(capsys: pytest.CaptureFixture[str]) -> None:
    """Every line is a JSON document; the last one is the result, in between bytes grow and the move passes its stages."""
    screen = JsonScreen()
    run_with(screen)
    screen.draw()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["kind"] == "RunBegan"
    assert lines[-1] == {**lines[-1], "kind": "RunEnded", "status": "done", "throttlesToRestore": []}
    stages = [line["after"] for line in lines if line["kind"] == "MoveChanged"]
    assert stages == ["throttled", "submitted", "moving", "unthrottled", "verified"]
    done = [line["bytesDone"] for line in lines if line["kind"] == "RunProgress"]
    assert done == sorted(done)
    assert done[-1] == 100 * MB


def test_plain_lines_name_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal the story is plain lines on stderr, and stdout stays empty."""
    screen = LineScreen()
    run_with(screen)
    screen.draw()
    captured = capsys.readouterr()
    assert "Run r begins: test (1 move)." in captured.err
    assert "0 of 1 partition done" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("width", [80, 140])
def test_bars_show_the_move_and_the_whole(width: int) -> None:
    """On a terminal each move in flight has a bar, and so has the whole, with rate and time left; none of it is broken."""
    out = io.StringIO()
    screen = LiveScreen(Console(file=out, force_terminal=True, width=width, _environ={"TERM": "xterm"}))
    s = scene()

    class Both:
        """Draws after everything it hears."""

        def on_event(self, event: object) -> None:
            """Hear and draw."""
            screen.on_event(event)  # type: ignore[arg-type]
            screen.draw()

    s.driver.listen(Both())
    with screen.show():
        s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 100 * MB)), THROTTLED, run_id="r")
    text = out.getvalue()
    assert "0 of 1 partition done, 1 in progress" in text
    assert "t-0" in text
    assert "MiB/s" in text
    assert "left" in text


@pytest.mark.parametrize(("term", "kind"), [("xterm", LiveScreen), ("dumb", LineScreen)])
def test_a_terminal_that_cannot_show_bars_gets_lines(monkeypatch: pytest.MonkeyPatch, term: str, kind: type) -> None:
    """With TERM=dumb the progress comes as lines; bars would never be drawn there."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(screen_for("table"), kind)
    assert isinstance(screen_for("json"), JsonScreen)


def test_interrupt_without_a_terminal_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGINT tells the driver to leave; what it was doing ends by itself."""
    s = scene()
    left = threading.Event()
    monkeypatch.setattr(s.driver, "leave", left.set)

    def act() -> RunResult:
        os.kill(os.getpid(), signal.SIGINT)
        assert left.wait(30)
        return RunResult("r", "left")

    before = signal.getsignal(signal.SIGINT)
    assert execute(act, s.driver, LineScreen()).exit_code == 130
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_while_it_leaves_does_not_wait_and_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cluster or the journal does not answer, and the person has seen that: neither these nor the lock are waited for."""
    s = scene()
    ended = threading.Event()
    monkeypatch.setattr(s.driver, "leave", lambda: threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start())

    def act() -> RunResult:
        os.kill(os.getpid(), signal.SIGINT)
        assert ended.wait(30)
        return RunResult("r", "left")

    began_s = time.monotonic()
    try:
        with pytest.raises(Interrupted, match="nothing was sent"):
            execute(act, s.driver, LineScreen())
    finally:
        ended.set()
    assert time.monotonic() - began_s < LEAVES_WITHIN_S / 2
    assert s.driver.abandoned
    assert capsys.readouterr().err.count("Leaving") == 1


def test_failures_of_the_run_reach_the_command() -> None:
    """Whatever the driver raises is raised in the main thread."""
    s = scene()

    def act() -> RunResult:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        execute(act, s.driver, LineScreen())


@pytest.mark.parametrize(
    ("text", "rate"),
    [("50MB", 50_000_000), ("50MiB", 52_428_800), ("1.5 gb/s", 1_500_000_000), ("900", 900), ("4k", 4000)],
)
def test_rates_as_people_write_them(text: str, rate: int) -> None:
    """Decimal and binary units, with and without per second."""
    assert Rate().convert(text, None, None) == rate


@pytest.mark.parametrize("text", ["auto", "0", "-1", "fast", "5 parsecs"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    """Nonsense, zero and an ``auto`` where none is known are usage errors."""
    with pytest.raises(click.BadParameter):
        Rate().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("50MB", Throttle(50_000_000)),
        ("auto", Throttle(auto=True)),
        ("1=20MB,default=auto", Throttle(None, {1: 20_000_000}, auto=True)),
        ("1=20MB, 2=50MiB/s,default=30MB", Throttle(30_000_000, {1: 20_000_000, 2: 52_428_800})),
        ("7=1gb", Throttle(None, {7: 1_000_000_000})),
    ],
)
def test_throttles_as_people_write_them(text: str, said: Throttle) -> None:
    """One figure, one for each broker, or auto."""
    assert ThrottleType().convert(text, None, None) == said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1=20MB,50MB", "'50mb' is not BROKER=RATE"),
        ("all=20MB", "'all=20mb' is not BROKER=RATE"),
        ("1=20MB,1=30MB", "1 is given twice"),
        ("default=1MB,default=2MB", "default is given twice"),
        ("1=auto,default=1MB", "auto is for the brokers that are not named"),
        ("1=,2=5MB", "'' is not a rate"),
        ("1=0", "would stop replication"),
    ],
)
def test_a_throttle_that_makes_no_sense_is_told_what_is_wrong(text: str, words: str) -> None:
    """The part that is wrong is quoted, with an example of what is right."""
    with pytest.raises(click.BadParameter, match=re.escape(words)):
        ThrottleType().convert(text, None, None)


def test_policy_from_options() -> None:
    """Options become the policy; what was not given keeps its default."""
    options = dict.fromkeys(
        ("throttle", "network", "moves_in", "moves_out", "moves_at_once", "bytes_at_once", "cancel_stalled_after")
    )
    flags = {"no_throttle": False, "keep_rates": False, "one_batch": False}
    given = {
        **options,
        **flags,
        "guard_timeout": 5.0,
        "journal_lost": "finish",
        "unknown_disk_space": "refuse",
        "replicas_below_min_isr": "refuse",
        "raise_throttle": True,
    }
    assert policy_from(given) == ExecutionPolicy(guard_timeout_s=5.0, raise_throttle=True)
    assert policy_from(given).throttle == "auto", "throttled unless an option says otherwise"
    assert policy_from({**given, "no_throttle": True}).throttle == "none"
    assert policy_from({**given, "network": 5}) == ExecutionPolicy(
        guard_timeout_s=5.0, raise_throttle=True, network_bytes_per_s=5
    )
    by_broker = policy_from({**given, "throttle": Throttle(3, {1: 2})})
    assert [by_broker.rate(b) for b in (1, 2)] == [2, 3]
    others_follow = policy_from({**given, "throttle": Throttle(None, {1: 2}, auto=True)})
    assert [(others_follow.rate(b), others_follow.follows(b)) for b in (1, 2)] == [(2, False), (None, True)]
    with pytest.raises(UsageError, match="only means something to --throttle auto"):
        policy_from({**given, "throttle": Throttle(5), "network": 5})
    fixed = ExecutionPolicy(throttle=7, throttle_per_broker={1: 2}, keep_existing_rates=True)
    held = policy_from(given, fixed)
    assert (held.throttle, held.rate(1), held.keep_existing_rates) == (7, 2, True), (
        "the settings hold where nothing is said"
    )
    assert policy_from({**given, "throttle": Throttle(5)}, fixed).throttle_per_broker == {}
    with pytest.raises(UsageError, match="only means something to --throttle auto"):
        policy_from({**given, "network": 5}, fixed)
    with pytest.raises(UsageError, match="exclude each other"):
        policy_from({**given, "throttle": Throttle(5), "no_throttle": True})


def test_an_option_that_is_not_given_leaves_what_the_settings_say() -> None:
    """Also where the option has a default of its own."""

    @click.command()
    @execution_options
    def command(policy_options: dict[str, Any]) -> None:
        made.append(policy_from(policy_options, settings))

    made: list[ExecutionPolicy] = []
    settings = ExecutionPolicy(guard_timeout_s=7.0, unknown_disk_space="allow", replicas_below_min_isr="allow")
    command.main([], standalone_mode=False)
    assert made == [settings]
    command.main(["--guard-timeout", "5", "--unknown-disk-space", "refuse"], standalone_mode=False)
    assert made[1] == replace(settings, guard_timeout_s=5.0, unknown_disk_space="refuse")
    settings = ExecutionPolicy()
    command.main([], standalone_mode=False)
    assert made[2] == replace(settings, guard_timeout_s=GUARD_TIMEOUT_S)
