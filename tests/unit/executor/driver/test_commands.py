"""What is asked of a run before it has begun, and after it has ended: nothing is written for the one, no other run hears the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.plan import Move, Plan
from ballast.errors import Unavailable
from ballast.executor.driver.events import MoveChanged, RunEnded
from ballast.executor.journal.answers import RequestAnswer
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.pause import Pause, find_pause
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.step import Command
from ballast.ports.journal import (
    CLOCKS_DIFFER_S,
    EXPIRES_S,
    JOURNAL_TOPIC,
    Record,
    Request,
    find_restart,
    restart_record,
)
from ballast.sim.journal import MemoryJournal

POLICY = ExecutionPolicy(throttle=5 * MB)
MINUTE_MS = 60_000


def one_move(s: Scene, topic: str = T) -> Plan:
    """From broker 1 to broker 3."""
    return s.plan(Move(topic, 0, (1, 2), (3, 2), 100 * MB))


def notes(s: Scene) -> list[RunNote]:
    """What the driver told."""
    return [h for h in s.ears.heard if isinstance(h, RunNote)]


def send_request(s: Scene, minutes_old: float, **body: object) -> None:
    """A request for the lock, so old."""
    at_ms = s.world.clock.now_ms() - int(minutes_old * MINUTE_MS)
    s.journal.request(Request("q", "take-over", "Ada", at_ms, body))


def test_a_run_that_is_to_leave_before_it_began_is_not_written_down() -> None:
    """While it waits for the cluster to stand still nothing has been done, and no later start is to take anything up."""
    s = scene()
    s.world.clock.after(0.5, s.driver.leave)
    result = s.driver.execute(one_move(s), POLICY, run_id="r")
    assert (result.status, result.exit_code, result.still_open) == ("not-begun", 130, 1)
    assert [h.result for h in s.ears.heard if isinstance(h, RunEnded)] == [result]
    assert list(s.journal.read()) == []
    assert s.cluster.reassignments() == {}
    assert notes(s) == [RunNote("not-begun", {"run": "r"})]


def test_the_journals_own_copies_are_not_waited_for_by_one_that_leaves() -> None:
    """They are in the journal, and the next start goes on with them."""
    s = scene()
    s.world.add_topic(JOURNAL_TOPIC, {0: (1,)}, size_bytes=1000 * MB)
    began_s = s.world.clock.monotonic_s()
    s.world.clock.after(8, s.driver.leave)
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "not-begun"
    assert s.world.clock.monotonic_s() - began_s < 12
    assert [r.key for r in s.journal.read()] == ["journal-replication/replicas"]


def test_a_command_that_comes_after_the_last_look_is_not_the_next_runs() -> None:
    """The person meant the run that they saw; the next one is executed, and it is said that it was too late."""
    s = scene()
    s.world.add_topic("u", {0: (1, 2)}, size_bytes=100 * MB)
    assert s.driver.execute(one_move(s), POLICY, run_id="first").status == "done"
    s.driver.ask(Command.CANCEL)
    assert s.driver.execute(one_move(s, "u"), POLICY, run_id="second").status == "done"
    assert RunNote("requested-too-late", {"command": Command.CANCEL, "run": "first"}) in notes(s)


def test_a_cancel_before_the_next_run_begins_is_for_that_run() -> None:
    """The driver has finished one run and prepares the next: a cancel in between is not taken for the one that has ended."""
    s = scene()
    s.world.add_topic("u", {0: (1, 2)}, size_bytes=100 * MB)
    assert s.driver.execute(one_move(s), POLICY, run_id="first").status == "done"
    s.world.clock.after(0.5, lambda: s.driver.ask(Command.CANCEL))
    assert s.driver.execute(one_move(s, "u"), POLICY, run_id="second").status == "cancelled"


def test_a_cancel_before_the_first_run_is_for_that_run() -> None:
    """A process that resumes a run in order to cancel it asks for the cancel first."""
    s = scene()
    s.driver.ask(Command.CANCEL)
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "cancelled"


@pytest.mark.parametrize(
    ("minutes_old", "body", "status"),
    [
        (0, {}, "left"),
        (2, {}, "left"),
        (5, {}, "done"),
        (5, {"wait_s": 600}, "left"),
        (60, {"wait_s": 600}, "done"),
        (5, {"wait_s": "long"}, "done"),
        (-1, {}, "left"),
    ],
)
def test_a_request_counts_as_long_as_its_sender_may_wait(
    minutes_old: float, body: dict[str, object], status: str
) -> None:
    """So long as it says, and what two clocks may differ by; older ones are answered, and the run goes on."""
    s = scene()
    send_request(s, minutes_old, **body)
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == status
    (request,) = s.journal.requests()
    assert request.answer == (
        str(RequestAnswer("too-late")) if status == "done" else str(RequestAnswer("run-left", {"run": "r"}))
    )


def ask_page(s: Scene, request_id: str, kind: str, **body: object) -> None:
    """What a daemon's page writes down, while a command holds the lock."""
    s.journal.request(Request(request_id, kind, "Ada", s.world.clock.now_ms(), body))


def answers(s: Scene) -> dict[str, tuple[str | None, bool]]:
    """By request: its answer, and whether that refuses."""
    return {r.id: (r.answer, r.refused) for r in s.journal.requests()}


def two_moves(s: Scene) -> Plan:
    """One after the other, of twenty seconds each."""
    s.world.add_topic("u", {0: (1, 2)}, size_bytes=100 * MB)
    return s.plan(*(Move(topic, 0, (1, 2), (3, 2), 100 * MB) for topic in (T, "u")))


ONE_BY_ONE = ExecutionPolicy(throttle=5 * MB, moves_at_once=1)


def test_a_pause_from_the_page_holds_the_run_of_a_command_until_it_is_resumed() -> None:
    """No daemon can act while a command holds the lock: the command obeys, and the journal keeps the pause for who comes next."""
    s = scene()
    paused: list[tuple[object, object]] = []
    s.world.clock.after(5, lambda: ask_page(s, "stop", "pause", reason="release"))

    def look() -> None:
        assert s.driver.run is not None
        begun = {m.move.topic for m in s.driver.run.moves.values() if m.stage.code != "planned"}
        paused.append((find_pause(s.journal.read()), (s.driver.run.phase.value, sorted(begun))))

    s.world.clock.after(300, look)
    s.world.clock.after(301, lambda: ask_page(s, "go", "resume"))
    result = s.driver.execute(two_moves(s), ONE_BY_ONE, run_id="r")
    assert (result.status, result.verified) == ("done", 2)
    assert paused == [(Pause(by="Ada", since_ms=paused_ms(s), reason="release"), ("paused", [T]))]
    assert find_pause(s.journal.read()) is None
    assert answers(s) == {
        "stop": ("Paused by Ada: nothing new starts, moves in progress go on.", False),
        "go": ("Resumed by Ada.", False),
    }
    told = [n for n in notes(s) if n.code in {"paused", "resumed"}]
    assert told == [RunNote("paused", {"by": "Ada: release"}), RunNote("resumed", {"by": "Ada"})]


def paused_ms(s: Scene) -> int:
    """When the pause was asked for."""
    return next(r.at_ms for r in s.journal.requests() if r.kind == "pause")


def test_a_pause_holds_the_next_run_of_the_command_too() -> None:
    """It finishes what an earlier process left and then begins its own: nothing new starts means that one as well."""
    s = scene()
    plan = two_moves(s)
    s.world.clock.after(5, lambda: ask_page(s, "stop", "pause"))
    s.world.clock.after(60, s.driver.leave)
    assert s.driver.execute(plan, ONE_BY_ONE, run_id="first").status == "left"
    s.driver.stay()
    s.world.add_topic("v", {0: (1, 2)}, size_bytes=100 * MB)
    s.world.clock.after(60, s.driver.leave)
    left = s.driver.execute(s.plan(Move("v", 0, (1, 2), (3, 2), 100 * MB)), POLICY, run_id="second")
    assert (left.status, left.verified) == ("left", 0)
    assert s.cluster.reassignments() == {}


def test_resuming_tells_that_a_person_has_looked_after_the_loss_of_the_journal() -> None:
    """As it does where a daemon resumes: what a command resumed does not pause the next daemon again."""
    s = scene()
    s.journal.append([Record("journal-restart", {"at_ms": 1, "by": "laptop"})])
    s.world.clock.after(5, lambda: ask_page(s, "stop", "pause"))
    s.world.clock.after(10, lambda: ask_page(s, "go", "resume"))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    assert find_restart(s.journal.read()) is None
    assert restart_record(None).key not in {r.key for r in s.journal.read()}


def test_resuming_what_was_not_paused_changes_nothing() -> None:
    """As with a daemon: that the journal was lost is still to be looked at."""
    s = scene()
    s.journal.append([Record("journal-restart", {"at_ms": 1, "by": "laptop"})])
    s.world.clock.after(5, lambda: ask_page(s, "go", "resume"))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    assert answers(s) == {"go": ("It was not paused.", False)}
    assert find_restart(s.journal.read()) is not None


def test_the_result_names_who_paused_and_has_not_resumed() -> None:
    """The moves in progress ended the run; a command that would go on with another one looks at it."""
    s = scene()
    s.world.clock.after(10, lambda: ask_page(s, "stop", "pause"))
    result = s.driver.execute(one_move(s), POLICY, run_id="r")
    assert (result.status, result.paused_by) == ("done", "Ada")
    s.world.clock.after(5, lambda: ask_page(s, "go", "resume"))
    s.world.add_topic("v", {0: (1, 2)}, size_bytes=100 * MB)
    result = s.driver.execute(one_move(s, "v"), POLICY, run_id="next")
    assert (result.status, result.paused_by) == ("done", "")


def test_a_pause_is_told_once_and_once_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer fails three times, and each time it is heard again."""
    s, answer, failing = scene(), MemoryJournal.answer, [1, 2, 3]
    told: list[object] = []

    def fails(self: MemoryJournal, *about: Any, **more: Any) -> None:
        told.append((find_pause(self.read()) is not None, sum(n.code == "paused" for n in notes(s))))
        if failing:
            failing.pop()
            raise Unavailable("silence")
        answer(self, *about, **more)

    monkeypatch.setattr(MemoryJournal, "answer", fails)
    s.world.clock.after(5, lambda: ask_page(s, "stop", "pause"))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    assert told == [(True, 1)] * 4


def test_a_cancel_is_told_while_the_page_pauses_the_run() -> None:
    """Who asked for it is told as at any other time."""
    s = scene()
    s.world.clock.after(5, lambda: ask_page(s, "stop", "pause"))
    s.world.clock.after(10, lambda: ask_page(s, "back", "cancel", run="r"))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "cancelled"
    assert [n for n in notes(s) if n.code in {"paused", "requested"}] == [
        RunNote("paused", {"by": "Ada"}),
        RunNote("requested", {"by": "Ada", "command": "cancel"}),
    ]


def test_a_pause_of_yesterday_does_not_hold_the_run_of_today() -> None:
    """It is answered: the sender may not mean what it would stop now."""
    s = scene()
    at_ms = s.world.clock.now_ms() - int((EXPIRES_S + CLOCKS_DIFFER_S + 1) * 1000)
    s.journal.request(Request("old", "pause", "Ada", at_ms, {}))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    assert find_pause(s.journal.read()) is None
    ((answer, refused),) = answers(s).values()
    assert answer is not None
    assert answer.startswith("Request expired: Ada asked to pause more than 5 min")
    assert refused


@pytest.mark.parametrize("kind", ["approve", "reject", "plan", "end-drain"])
def test_what_only_a_daemon_can_do_is_refused_at_once_by_a_command(kind: str) -> None:
    """It would expire meanwhile, and the person who asked would wait for nothing; what this version does not know is refused as well."""
    s = scene()
    ask_page(s, "q", kind, plan="moves-1")
    ask_page(s, "newer", "dance")
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    answer = "test first holds the lock and executes run r. Ask again when it has ended."
    assert answers(s) == {"q": (answer, True), "newer": (str(RequestAnswer("unknown", {"kind": "dance"})), True)}


def test_a_request_that_cannot_be_read_is_told_once() -> None:
    """It may be a cancel of a newer version, whose sender waits; the run goes on."""
    s = scene()
    s.store.requests["q"] = b'{"version":99,"value":{}}'
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    why = "The journal's record q has version 99, and this Ballast reads 1."
    assert [n for n in notes(s) if n.code == "request-not-read"] == [
        RunNote("request-not-read", {"request": "q", "message": why})
    ]


def test_the_lock_counts_one_move_as_one() -> None:
    """What it says of the holder is read by people."""
    s = scene()
    seen: list[str] = []

    def look() -> None:
        holder = s.journal.holder()
        seen.append(holder.doing if holder is not None else "")

    s.world.clock.after(10, look)
    s.driver.execute(one_move(s), POLICY, run_id="r")
    assert seen == ["run r: test, 0 of 1 move ended"]


def test_a_run_that_has_ended_is_told_so_though_its_journal_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be written: what the run owes is put back, and only the removal of old runs is left to the next one."""
    s = scene()
    read = s.journal.read

    def unreadable() -> Sequence[Record]:
        if any(m.after.code == "verified" for m in s.ears.heard if isinstance(m, MoveChanged)):
            raise Unavailable("A transaction does not end.", hint="Abort it.")
        return read()

    monkeypatch.setattr(s.journal, "read", unreadable)
    result = s.driver.execute(one_move(s), POLICY, run_id="r")
    assert (result.status, result.throttles_to_restore) == ("done", ())
    assert s.throttles() == {}
    told = {"error": "unavailable", "message": "A transaction does not end. Abort it."}
    assert [n for n in notes(s) if n.code == "journal-not-read"] == [RunNote("journal-not-read", told)]


def test_a_cancel_is_answered_once_the_journal_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer fails once; each time the run is in the journal as one that is cancelled, and it is cancelled once."""
    s, answer, failing = scene(), MemoryJournal.answer, [1]
    phases: list[str] = []

    def fails(self: MemoryJournal, *about: Any, **more: Any) -> None:
        phases.extend(r.value["phase"] for r in self.read() if r.key == "run/r" and r.value is not None)
        if failing:
            failing.pop()
            raise Unavailable("silence")
        answer(self, *about, **more)

    monkeypatch.setattr(MemoryJournal, "answer", fails)
    s.world.clock.after(5, lambda: ask_page(s, "back", "cancel", run="r"))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "cancelled"
    assert phases
    assert set(phases) <= {"cancelling", "cancelled"}


@pytest.mark.parametrize("ahead_s", [CLOCKS_DIFFER_S + 60, 86_400])
@pytest.mark.parametrize("kind", ["pause", "take-over", "cancel"])
def test_an_order_of_a_clock_far_ahead_is_refused(kind: str, ahead_s: float) -> None:
    """How old it is cannot be told, and it would count as new for as long as that clock is ahead."""
    s = scene()
    at_ms = s.world.clock.now_ms() + int(ahead_s * 1000)
    s.journal.request(Request("q", kind, "Ada", at_ms, {"run": "r"} if kind == "cancel" else {}))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    ((answer, refused),) = answers(s).values()
    assert answer is not None
    assert "clock" in answer
    assert refused


@pytest.mark.parametrize("wait_s", [1e9, float("inf"), float("nan"), True])
def test_a_take_over_waits_no_longer_than_a_day(wait_s: float) -> None:
    """Whatever its request says."""
    s = scene()
    send_request(s, 2 * 24 * 60, wait_s=wait_s)
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"


@pytest.mark.parametrize("run", ["r", "other"])
@pytest.mark.parametrize("kind", ["cancel", "rollback", "pause"])
def test_an_order_for_a_run_expires_as_any_other(kind: str, run: str) -> None:
    """Its sender has given up; a person who resumes that run later does not mean it."""
    s = scene()
    at_ms = s.world.clock.now_ms() - int((EXPIRES_S + CLOCKS_DIFFER_S + 1) * 1000)
    s.journal.request(Request("old", kind, "Ada", at_ms, {"run": run}))
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    ((answer, refused),) = answers(s).values()
    assert answer is not None
    assert answer.startswith("Request expired")
    assert refused


@pytest.mark.parametrize("kind", ["cancel", "rollback"])
def test_a_cancel_that_names_no_run_is_refused(kind: str) -> None:
    """Which one is meant cannot be told."""
    s = scene()
    ask_page(s, "q", kind)
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    assert answers(s) == {"q": (str(RequestAnswer("names-no-run", {"kind": kind})), True)}


def test_a_command_that_no_look_took_up_is_told_at_the_end() -> None:
    """The run ends with the look during which it was asked."""
    s = scene()

    class Ears:
        """Asks when the move is verified."""

        def on_event(self, event: object) -> None:
            s.ears.on_event(event)  # type: ignore[arg-type]
            if isinstance(event, MoveChanged) and event.after.code == "verified":
                s.driver.ask(Command.ROLLBACK)

    s.driver.listen(Ears())
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    assert RunNote("requested-too-late", {"command": Command.ROLLBACK, "run": "r"}) in notes(s)


def test_old_runs_that_cannot_be_forgotten_cost_the_run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its throttles are removed all the same, and it is told as done."""
    s = scene()
    append = s.journal.append

    def refusing(records: Sequence[Record]) -> None:
        if [r.key for r in records] == ["run/old"]:
            raise Unavailable("No answer.")
        append(records)

    monkeypatch.setattr("ballast.executor.journal.run_journal.expire", lambda _: [Record("run/old", None)])
    monkeypatch.setattr(s.journal, "append", refusing)
    result = s.driver.execute(one_move(s), POLICY, run_id="r")
    assert (result.status, result.throttles_to_restore, s.throttles()) == ("done", (), {})
    told = {"error": "unavailable", "message": "No answer."}
    assert [n for n in notes(s) if n.code == "old-runs-kept"] == [RunNote("old-runs-kept", told)]
