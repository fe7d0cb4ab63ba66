"""A journal that takes no records, or is lost: what is told, how often, and what is put back without it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import Scene, T, fail, scene

from ballast.core.plan import Move
from ballast.core.throttles import FOLLOWER_RATE, Op, Setting
from ballast.errors import AuthorizationFailed, JournalLost, Unavailable
from ballast.executor.journal.ledger import BELIEVED_S, Sent, Throttler, resource_of
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.run_journal import SILENCE_S, STOOD_STILL_S, RunJournal, restore_from_memory
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, Run, new_run, with_moves
from ballast.executor.machine.stages import Moving
from ballast.ports.cluster import ConfigChange
from ballast.ports.journal import Record

COMMAND = RunNote("restore-command", {"command": "put it back"})
RATE = Setting("broker", "1", FOLLOWER_RATE)
EVERYBODY = {1, 2, 3, 4}


@pytest.fixture
def s() -> Scene:
    """A process that has been up for some time."""
    s = scene()
    s.world.clock.sleep(1000)
    return s


def run_journal(s: Scene, notes: list[RunNote]) -> RunJournal:
    """It owes one setting."""
    return RunJournal(s.journal, s.world.clock, notes.append, lambda: ["put it back"])


def run_of(s: Scene) -> Run:
    """Nothing of it has begun."""
    return new_run("r", s.plan(Move(T, 0, (1, 2), (3, 2))), ExecutionPolicy(), Now(0, 0.0))


def test_a_silent_journal_is_told_once_and_so_is_its_return(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """After half a minute, with the commands; the next silence counts from its own beginning."""
    notes: list[RunNote] = []
    own = run_journal(s, notes)

    def fall_silent(_: str) -> None:
        raise Unavailable("No answer.")

    for _ in range(2):
        with monkeypatch.context() as silent:
            silent.setattr(s.journal, "renew", fall_silent)
            assert not own.renew("work")
            s.world.clock.sleep(SILENCE_S - 1)
            assert not own.renew("work")
            assert notes == []
            s.world.clock.sleep(1)
            assert not own.renew("work")
            told = notes.copy()
            assert [n.code for n in told] == ["journal-silent", "restore-by-hand", "restore-command"]
            assert told[0].values == {"silent_s": SILENCE_S, "error": "unavailable", "message": "No answer."}
            assert told[-1] == COMMAND
            s.world.clock.sleep(SILENCE_S)
            assert not own.renew("work")
            assert notes == told
        assert own.renew("work")
        assert own.renew("work")
        assert [n.code for n in notes[len(told) :]] == ["journal-answers"]
        notes.clear()


def test_a_silence_that_no_waiting_ends_is_raised(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a right that was taken away."""

    def refuse(_: str) -> None:
        raise AuthorizationFailed("No.")

    monkeypatch.setattr(s.journal, "renew", refuse)
    with pytest.raises(AuthorizationFailed):
        run_journal(s, []).renew("work")


def test_an_intent_that_took_longer_than_a_lease_sends_nothing(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was judged by may be another cluster by now."""
    own, took_s = run_journal(s, []), STOOD_STILL_S
    monkeypatch.setattr(s.journal, "append", lambda _: s.world.clock.sleep(took_s))
    monkeypatch.setattr(s.journal, "check", lambda: None)
    own.write_and_check(None, [Record("intent", {})])
    took_s += 5
    with pytest.raises(Unavailable, match=f"{STOOD_STILL_S + 5:.0f} s"):
        own.write_and_check(None, [Record("intent", {})])


def test_what_of_a_run_is_written_is_not_written_again(s: Scene) -> None:
    """Its changes go with the records that are given, in one append; with neither nothing is appended."""
    own, run = run_journal(s, []), run_of(s)
    own.begin(run)
    own.write(run)
    assert s.journal.read() == ()
    ended = replace(run, phase=Phase.ENDED, ended_ms=5)
    own.write(ended, [Record("pause", {"by": "Ada"})])
    assert [r.key for r in s.journal.read()] == ["ended/r", "run/r", "pause"]
    s.journal.append([Record("run/r", None)])
    own.write(ended)
    assert "run/r" not in {r.key for r in s.journal.read()}


@pytest.mark.parametrize("fault", [Unavailable("not yet"), JournalLost("deleted", "not yet")])
def test_a_loss_is_told_once_until_it_is_another_one(
    s: Scene, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Each try to make the journal again is told, and that it succeeded."""
    notes: list[RunNote] = []
    own = run_journal(s, notes)

    def fail() -> None:
        raise fault

    monkeypatch.setattr(s.journal, "remake", fail)
    for how, told in (("deleted", 1), ("deleted", 1), ("recreated", 2)):
        assert own.recreate(JournalLost(how, "It is gone."), alone=True, finish=True)
        assert notes.count(COMMAND) == told
        assert (notes[-1].code, notes[-1].values["message"]) == ("journal-not-recreated", "not yet")
        with pytest.raises(JournalLost):
            own.require()
    monkeypatch.setattr(s.journal, "remake", lambda: None)
    before = len(notes)
    assert own.recreate(JournalLost("recreated", "It is gone."), alone=True, finish=True)
    assert [n.code for n in notes[before:]] == ["journal-recreated"]
    own.require()


def test_throttles_are_put_back_from_memory_without_the_lost_lock(s: Scene) -> None:
    """A reading that does not show our own change yet is waited for, and nothing asks the journal for its lock meanwhile."""
    throttler = Throttler(s.cluster, s.world.clock, renew=pytest.fail)
    assert throttler.settle({RATE: frozenset({"5"})}, EVERYBODY, lambda _: None, fail) == {}
    throttler.sent[RATE] = Sent(Op("set", "6"), s.world.clock.monotonic_s())
    restore_from_memory(s.cluster, throttler, run_of(s), {}, fail)
    assert s.throttles() == {}


@pytest.mark.parametrize("ended", [True, False])
def test_a_move_in_flight_keeps_its_rate_until_its_run_has_ended(s: Scene, *, ended: bool) -> None:
    """A run that gave a move up owes nothing for it."""
    plan = s.plan(Move(T, 0, (1, 2), (3, 2)))
    run = new_run("r", plan, ExecutionPolicy(throttle=5), Now(0, 0.0))
    run = with_moves(run, {n: replace(m, stage=Moving()) for n, m in run.moves.items()})
    throttler = Throttler(s.cluster, s.world.clock, renew=pytest.fail)
    assert throttler.settle({RATE: frozenset({"5"})}, EVERYBODY, lambda _: None, fail) == {}
    restore_from_memory(s.cluster, throttler, replace(run, phase=Phase.ENDED) if ended else run, {}, fail)
    assert (RATE in throttler.ledger) is not ended


def test_what_could_not_be_put_back_from_memory_is_told(s: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate that another user has set since, one of a broker that is down, and a cluster that does not answer."""
    throttler = Throttler(s.cluster, s.world.clock, renew=pytest.fail)
    down = Setting("broker", "2", FOLLOWER_RATE)
    rates = {RATE: frozenset({"5"}), down: frozenset({"5"})}
    assert throttler.settle(rates, EVERYBODY, lambda _: None, fail) == {}
    s.cluster.alter_configs([ConfigChange(resource_of(RATE), FOLLOWER_RATE, "set", "7")])
    s.world.clock.sleep(BELIEVED_S)
    s.world.kill(2)
    s.world.clock.sleep(60)
    notes: list[RunNote] = []
    restore_from_memory(s.cluster, throttler, run_of(s), {}, notes.append)
    assert [(n.code, n.values["setting"]) for n in notes] == [
        ("throttle-changed-externally", str(RATE)),
        ("throttle-not-removed", str(down)),
    ]

    def fall_silent(**asked: bool) -> None:
        assert asked == {"log_dirs": False, "configs": False}, "a frozen broker would hold it up"
        raise Unavailable("No answer.")

    notes.clear()
    run = run_of(s)
    monkeypatch.setattr(s.cluster, "snapshot", fall_silent)
    restore_from_memory(s.cluster, throttler, run, {}, notes.append)
    assert notes == [RunNote("throttles-not-removed", {"error": "unavailable", "message": "No answer."})]
