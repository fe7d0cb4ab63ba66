"""What the machine makes of each event: what it asks to be read, what an answer changes, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import DesiredThrottles, Setting, entries
from ballast.executor.machine.notes import note
from ballast.executor.machine.observation import Needs, Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run
from ballast.executor.machine.stages import (
    STAGES,
    Cancelling,
    Ended,
    Failed,
    HoldsThrottle,
    Moved,
    Moving,
    Planned,
    Relocating,
    Restoring,
    Stage,
    Submitted,
    Throttled,
    Unthrottled,
)
from ballast.executor.machine.step import (
    HOPELESS,
    Command,
    CommandRequested,
    Observed,
    Performed,
    Unanswered,
    needs,
    step,
)
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import OK, Outcome, PartitionState

NOW: Final = Now(1_000_000, 1_000.0)
POLICY: Final = ExecutionPolicy(throttle="none", max_attempts=4)
FIXED: Final = ExecutionPolicy(throttle=5_000, max_attempts=4)
MOVE: Final = Move("t", 0, (1, 2), (3, 2), 10)
DIRS: Final = Move("t", 0, (1, 2), (3, 2), 10, log_dirs=("/d", "any"))
ORDER: Final = Move("t", 0, (1, 2), (2, 1), 10)
SAID: Final = note("not-shown")
LISTS: Final = entries([MOVE, replace(MOVE, topic="u")])


def run_of(*moves: tuple[Move, Stage], policy: ExecutionPolicy = POLICY, **known: Any) -> Run:
    """A run of these moves, a partition each."""
    of = [MoveRun(replace(m, partition=n), s, attempts=1, note=SAID) for n, (m, s) in enumerate(moves)]
    return Run("r", "test", "c", policy, {m.move.name: m for m in of}, {}, **known)


def name(n: int, topic: str = "t") -> TopicPartition:
    """A partition."""
    return TopicPartition(topic, n)


def no(code: str) -> Outcome:
    """The cluster said no."""
    return Outcome(ok=False, code=code)


# What is to be read.


@pytest.mark.parametrize("stage", [kind() for kind in STAGES], ids=lambda s: s.code)
@pytest.mark.parametrize(("move", "brokers"), [(MOVE, {3}), (ORDER, {1, 2}), (DIRS, {2, 3})])
def test_a_move_on_its_way_is_looked_at(stage: Stage, move: Move, brokers: set[int]) -> None:
    """Its partition from its first step to its end, and log dirs while it copies or has a place to be found in."""
    watched = not isinstance(stage, Planned | Ended)
    read = isinstance(stage, HoldsThrottle) or (isinstance(stage, Moved) and move is DIRS)
    run = run_of((move, stage))
    assert needs(run) == Needs(frozenset([name(0)] if watched else []), frozenset(brokers if read else []))
    ordered = frozenset(brokers if read or isinstance(stage, Planned) else [])
    assert needs(replace(run, in_order=True)).logs == ordered


def test_all_that_moves_need_is_read_together() -> None:
    """Each partition and each broker once."""
    far = Move("t", 0, (4, 5), (6, 5), 10)
    run = run_of((MOVE, Moving()), (far, Submitted()), (MOVE, Unthrottled()), (far, Planned()))
    assert needs(run) == Needs(frozenset({name(0), name(1), name(2)}), frozenset({3, 6}))


# Events.


def test_a_run_that_has_ended_answers_no_event() -> None:
    """Whatever comes late."""
    run = run_of((MOVE, Moving()), phase=Phase.ENDED)
    effect = Effect(EffectKind.SUBMIT, targets={name(0): (3, 2)})
    picture = Picture({}, {}, frozenset({name(0)}), frozenset())
    for event in (
        Observed(picture),
        Performed(effect, {name(0): no("X")}),
        Unanswered(effect, ""),
        CommandRequested(Command.CANCEL),
    ):
        after, effects = step(run, event, NOW)
        assert after is run
        assert effects == ()


def test_a_look_brings_what_partitions_grew_by() -> None:
    """Of those that no measurement told before."""
    run = run_of((MOVE, Planned()), (MOVE, Planned()), unmeasured=frozenset({name(0)}), inbound={name(1): 7.0})
    picture = Picture({}, {}, frozenset(), frozenset({1, 2, 3}), growth={name(0): 5.0, name(1): 9.0})
    after, effects = step(run, Observed(picture), NOW)
    assert (after.inbound, after.unmeasured, effects) == ({name(0): 5.0, name(1): 7.0}, frozenset(), ())
    assert step(run, Observed(replace(picture, growth=None)), NOW)[0].inbound == {name(1): 7.0}


def test_a_look_is_taken_in_and_acted_upon_at_once() -> None:
    """A move that is seen to have arrived leaves its throttle, and a run without another one ends, in the same step."""
    state = PartitionState(3, (3, 2), (3, 2))
    look = Picture({}, {name(0): state}, frozenset({name(0)}), frozenset({1, 2, 3}))
    after, effects = step(run_of((MOVE, Moving()), policy=FIXED, applied=LISTS), Observed(look), NOW)
    assert (type(after.moves[name(0)].stage), [e.kind for e in effects]) == (Unthrottled, [EffectKind.UNTHROTTLE])
    after, effects = step(run_of((MOVE, Moving()), applied={}), Observed(look), NOW)
    assert (after.ended, effects) == (True, ())


@pytest.mark.parametrize("command", list(Command))
@pytest.mark.parametrize("before", ["", "ann"])
def test_each_command(command: Command, before: str) -> None:
    """The first who stopped a run is named; a pause or a resumption is no stop."""
    run, effects = step(run_of((MOVE, Moving()), stopped_by=before), CommandRequested(command, "ben"), NOW)
    stops = command in {Command.CANCEL, Command.ROLLBACK}
    phases = {Command.PAUSE: Phase.PAUSED, Command.RESUME: Phase.RUNNING}
    assert run.phase is phases.get(command, Phase.CANCELLING)
    assert (run.stopped_by, effects) == (before or ("ben" if stops else ""), ())
    assert run.rollback_when_cancelled is (command is Command.ROLLBACK)


# Answers.


def answered(kind: EffectKind, stage: Stage, outcome: Outcome, **known: Any) -> MoveRun:
    """The move after this answer to this effect."""
    run = run_of((MOVE, stage))
    run = replace(run, moves={n: replace(m, **known) for n, m in run.moves.items()})
    after, effects = step(run, Performed(Effect(kind, targets={name(0): None}), {name(0): outcome}), NOW)
    assert effects == ()
    return after.moves[name(0)]


@pytest.mark.parametrize("code", sorted(HOPELESS))
def test_what_trying_again_does_not_cure_ends_a_move(code: str) -> None:
    """At once, in the cluster's words; its cancel is asked for again much later, and its log dir given up."""
    rejected = answered(EffectKind.SUBMIT, Submitted(), no(code))
    assert (rejected.stage, rejected.note, rejected.entered_s) == (
        Failed("rejected"),
        note("answer", answer=no(code)),
        NOW.s,
    )
    misplaced = answered(EffectKind.ALTER_LOG_DIRS, Relocating(), no(code))
    assert (misplaced.stage, misplaced.note) == (Failed("log-dir"), note("answer", answer=no(code)))
    kept = answered(EffectKind.CANCEL, Cancelling((2, 1), raced=True), no(code))
    assert kept.stage == Moving(1_000.0, 1_000.0, 10, replicas_after_cancel=(2, 1), raced=True, cancel_at_s=1_300.0)
    assert kept.note == note("cancel-refused", answer=no(code))


@pytest.mark.parametrize(
    ("code", "stage", "unconfirmed"),
    [
        ("CHANGED_MEANWHILE", Planned(retry_at_s=1_002.0), False),
        ("REASSIGNMENT_IN_PROGRESS", Planned(retry_at_s=1_002.0), False),
        ("UNKNOWN_TOPIC_OR_PARTITION", Failed("deleted"), False),
        ("UNKNOWN_TOPIC_ID", Failed("deleted"), False),
        ("REQUEST_TIMED_OUT", Submitted(), True),
    ],
)
def test_a_submission_that_is_refused(code: str, stage: Stage, *, unconfirmed: bool) -> None:
    """Not begun, over, or not known to be either."""
    m = answered(EffectKind.SUBMIT, Submitted(), no(code))
    assert (m.stage, m.unconfirmed, m.note) == (stage, unconfirmed, note("answer", answer=no(code)))


@pytest.mark.parametrize("kind", [EffectKind.SUBMIT, EffectKind.CANCEL, EffectKind.RESTORE, EffectKind.ALTER_LOG_DIRS])
@pytest.mark.parametrize(
    "code", ["INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION", "CHANGED_MEANWHILE", "REQUEST_TIMED_OUT"]
)
def test_an_answer_to_what_is_no_longer_waited_for_changes_nothing(kind: EffectKind, code: str) -> None:
    """The move has gone on since; nor does a yes, but for a cancel's."""
    for stage in (Moving(), Unthrottled(), Planned()):
        assert answered(kind, stage, no(code)) == run_of((MOVE, stage)).moves[name(0)]
        assert answered(kind, stage, OK) == run_of((MOVE, stage)).moves[name(0)]


def test_a_cancel_that_is_answered_with_yes_is_known_to_be() -> None:
    """Its stage goes on; an answer for a partition that is not the run's changes nothing."""
    assert answered(EffectKind.CANCEL, Cancelling((2, 1)), OK).stage == Cancelling((2, 1), acknowledged=True)
    for kind in (EffectKind.SUBMIT, EffectKind.ALTER_LOG_DIRS, EffectKind.RESTORE):
        assert answered(kind, Cancelling((2, 1)), OK).stage == Cancelling((2, 1))
    run = run_of((MOVE, Cancelling()), (MOVE, Cancelling()), (MOVE, Cancelling()))
    answers = {name(9): OK, name(8): no("X"), name(0): no("REQUEST_TIMED_OUT"), name(1): OK}
    after, _ = step(run, Performed(Effect(EffectKind.CANCEL), answers), NOW)
    assert [m.stage for m in after.moves.values()] == [Cancelling(), Cancelling(acknowledged=True), Cancelling()]
    assert [m.note for m in after.moves.values()] == [SAID] * 3


@pytest.mark.parametrize(("code", "wait_s"), [("CHANGED_MEANWHILE", 8.0), ("INVALID_REQUEST", 300.0)])
def test_a_refused_cancel_is_asked_for_later(code: str, wait_s: float) -> None:
    """By its attempts, or much later."""
    m = answered(EffectKind.CANCEL, Cancelling(), no(code), attempts=3)
    assert isinstance(m.stage, Moving)
    assert m.stage.cancel_at_s == NOW.s + wait_s


def test_an_old_order_that_is_refused_stays_wanted() -> None:
    """In the cluster's words."""
    m = answered(EffectKind.RESTORE, Restoring(7.0), no("INVALID_REQUEST"), attempts=9)
    assert (m.stage, m.note) == (Restoring(7.0), note("order-refused", answer=no("INVALID_REQUEST")))


@pytest.mark.parametrize(("attempts", "code", "ended"), [(3, "X", False), (4, "X", True), (0, "X", False)])
def test_a_log_dir_is_given_up_with_the_last_attempt(attempts: int, code: str, *, ended: bool) -> None:
    """Before it, the answer is noted."""
    m = answered(EffectKind.ALTER_LOG_DIRS, Relocating(retry_at_s=7.0), no(code), attempts=attempts)
    assert m.stage == (Failed("log-dir") if ended else Relocating(retry_at_s=7.0))
    assert m.note == note("answer", answer=no(code))


# Throttles.


def throttled(
    failed: Mapping[Setting, Outcome], kind: EffectKind = EffectKind.THROTTLE, desired: DesiredThrottles = LISTS
) -> tuple[Run, tuple[Effect, ...]]:
    """Moves of two topics that wait for their throttle, after this answer."""
    run = run_of((MOVE, Throttled()), policy=FIXED)
    other = replace(MOVE, topic="u", new=(4, 2))
    run = replace(run, moves={**run.moves, other.name: MoveRun(other, Throttled(), attempts=1)})
    wanted = {**desired, **entries([MOVE, other])}
    return step(run, Performed(Effect(kind, desired=wanted), failed=failed), NOW)


RATE_3: Final = Setting("broker", "3", "follower.replication.throttled.rate")
LIST_T: Final = Setting("topic", "t", "follower.replication.throttled.replicas")


@pytest.mark.parametrize("kind", [EffectKind.THROTTLE, EffectKind.UNTHROTTLE])
def test_moves_whose_throttle_stands_are_submitted(kind: EffectKind) -> None:
    """At once, and together."""
    run, effects = throttled({}, kind)
    assert [m.stage for m in run.moves.values()] == [Submitted(), Submitted()]
    assert [dict(e.targets) for e in effects] == [{name(0): (3, 2), name(0, "u"): (4, 2)}]
    assert run.applied == entries([MOVE, replace(MOVE, topic="u", new=(4, 2))])


@pytest.mark.parametrize(("setting", "value"), [(RATE_3, "5000"), (LIST_T, "0:3")])
def test_a_move_whose_own_throttle_failed_goes_back(setting: Setting, value: str) -> None:
    """A list of its topic or the rate of a broker that it adds; the other move goes on."""
    desired = {setting: frozenset({value})}
    run, effects = throttled({setting: no("POLICY_VIOLATION")}, desired=desired)
    assert [m.stage for m in run.moves.values()] == [Planned(retry_at_s=1_004.0), Submitted()]
    back = run.moves[name(0)]
    assert (back.attempts, back.note) == (2, note("throttle-refused", answer=no("POLICY_VIOLATION")))
    assert [dict(e.targets) for e in effects] == [{name(0, "u"): (4, 2)}]
    assert setting not in (run.applied or {})
    assert (run.applied or {}).keys() >= entries([replace(MOVE, topic="u", new=(4, 2))]).keys()


def test_the_rate_of_a_broker_that_only_sends_holds_no_move_up() -> None:
    """Nor that of one that is to lose its rate, nor a list that is to be emptied."""
    leads = Setting("broker", "1", "leader.replication.throttled.rate")
    run, _ = throttled({leads: no("X")}, desired={leads: frozenset({"5000"})})
    assert [m.stage for m in run.moves.values()] == [Submitted(), Submitted()]
    run, _ = throttled({RATE_3: no("X")}, desired={RATE_3: frozenset()})
    assert [m.stage for m in run.moves.values()] == [Submitted(), Submitted()]


# Silence.


def test_a_submission_without_an_answer_may_be_on_its_way() -> None:
    """That of the partitions that it named; its moves stay where they are."""
    run = run_of((MOVE, Submitted()), (MOVE, Submitted()))
    after, effects = step(run, Unanswered(Effect(EffectKind.SUBMIT, targets={name(1): (3, 2)}), "silence"), NOW)
    assert [m.unconfirmed for m in after.moves.values()] == [False, True]
    assert [m.stage for m in after.moves.values()] == [Submitted(), Submitted()]
    assert effects == ()


def test_an_election_without_an_answer_is_left_to_the_next_look() -> None:
    """It may have been held."""
    run = replace(run_of(), elections={name(0): ElectionRun(ElectionStage.REQUESTED, 1)})
    assert step(run, Unanswered(Effect(EffectKind.ELECT, names=(name(0),)), "silence"), NOW) == (run, ())


def test_elections_that_were_not_answered_leave_the_run_as_it_is() -> None:
    """Nothing is journaled of an answer that tells nothing."""
    run = replace(run_of(), elections={name(0): ElectionRun(ElectionStage.REQUESTED, 1), name(1): ElectionRun()})
    after, _ = step(run, Performed(Effect(EffectKind.ELECT, names=(name(0), name(1))), {name(1): OK}), NOW)
    assert after is run
