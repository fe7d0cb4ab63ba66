"""What is asked of a run before it has begun, and after it has ended: nothing is written for the one, no other run hears the other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.plan import Move, Plan
from ballast.errors import Unavailable
from ballast.executor.driver.events import MoveChanged, RunEnded
from ballast.executor.driver.notes import Note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.step import Command
from ballast.ports.journal import FORGOTTEN, JOURNAL_TOPIC, Record, Request

POLICY = ExecutionPolicy(throttle=5 * MB)
MINUTE_MS = 60_000


def one_move(s: Scene, topic: str = T) -> Plan:
    """From broker 1 to broker 3."""
    return s.plan(Move(topic, 0, (1, 2), (3, 2), 100 * MB))


def notes(s: Scene) -> list[Note]:
    """What the driver told."""
    return [h for h in s.ears.heard if isinstance(h, Note)]


def send_request(s: Scene, minutes_old: float, **body: object) -> None:
    """A request for the lock, so old."""
    at_ms = s.world.clock.now_ms() - int(minutes_old * MINUTE_MS)
    s.journal.request(Request("q", "take-over", "Ada", at_ms, body))


def test_a_run_that_is_to_leave_before_it_began_is_not_written_down() -> None:
    """While it waits for the cluster to stand still nothing has been done, and no later start is to take anything up."""
    s = scene()
    s.world.clock.after(0.5, s.driver.leave)
    result = s.driver.execute(one_move(s), POLICY, run_id="r")
    assert (result.status, result.exit_code, result.left) == ("not-begun", 130, 1)
    assert [h.result for h in s.ears.heard if isinstance(h, RunEnded)] == [result]
    assert list(s.journal.read()) == []
    assert s.cluster.reassignments() == {}
    assert notes(s) == [Note("not-begun", {"run": "r"})]


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
    """The person meant the run that they saw; the next one is carried out, and it is said that it was too late."""
    s = scene()
    s.world.add_topic("u", {0: (1, 2)}, size_bytes=100 * MB)
    assert s.driver.execute(one_move(s), POLICY, run_id="first").status == "done"
    s.driver.ask(Command.CANCEL)
    assert s.driver.execute(one_move(s, "u"), POLICY, run_id="second").status == "done"
    assert Note("asked-too-late", {"command": Command.CANCEL, "run": "first"}) in notes(s)


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
        (-5, {}, "left"),
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
    assert request.answer == (FORGOTTEN if status == "done" else "run r is left for you")


def test_a_request_that_cannot_be_read_is_told_once() -> None:
    """It may be a cancel of a newer version, whose sender waits; the run goes on."""
    s = scene()
    s.store.requests["q"] = b'{"version":99,"value":{}}'
    assert s.driver.execute(one_move(s), POLICY, run_id="r").status == "done"
    why = "The journal was written by a newer Ballast (version 99; this one reads 1)."
    assert [n for n in notes(s) if n.code == "request-not-read"] == [
        Note("request-not-read", {"request": "q", "message": why})
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
    assert [n for n in notes(s) if n.code == "journal-not-read"] == [Note("journal-not-read", told)]
