"""What the machine makes of the cluster's answers: when it tries again, how often, and when it gives up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.executor.scenes import scene

from ballast.core.cluster import TopicPartition
from ballast.core.guards import cancel_is_safe, verdict
from ballast.core.plan import Move, Plan
from ballast.core.throttles import Setting, entries, shortfall
from ballast.executor.journal.ledger import Throttler
from ballast.executor.machine.notes import journaled_note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run, new_run
from ballast.executor.machine.stages import (
    Cancelling,
    Failed,
    Moving,
    Planned,
    Relocating,
    Restoring,
    RolledBack,
    Stage,
    Submitted,
    Throttled,
)
from ballast.executor.machine.step import Command, CommandRequested, Performed, Unanswered, step
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import OK, Outcome
from ballast.ports.journal import Record

MOVE = Move("t", 0, (1, 2), (3, 2))
NAME = MOVE.name
POLICY = ExecutionPolicy(throttle=5_000_000, max_attempts=4)
NOW = Now(1_000_000, 1_000.0)
LIST = Setting("topic", "t", "follower.replication.throttled.replicas")
AGAIN = Outcome(ok=False, code="PREFERRED_LEADER_NOT_AVAILABLE")


def moving(stage: Stage, **known: object) -> Run:
    """A run whose only move is in this stage."""
    run = new_run("r", Plan("test", "c", "f", moves=(MOVE,)), POLICY, Now(0, 0.0))
    return replace(run, moves={NAME: replace(run.moves[NAME], stage=stage, **known)})  # type: ignore[arg-type]


def electing(**elections: ElectionRun) -> Run:
    """A run of these elections alone; each is named by its topic."""
    run = new_run("r", Plan("test", "c", "f", moves=()), POLICY, Now(0, 0.0))
    return replace(run, elections={TopicPartition(t, 0): e for t, e in elections.items()})


def after_election(run: Run, outcomes: Mapping[TopicPartition, Outcome]) -> Mapping[str, ElectionRun]:
    """The elections once all of them have been asked for and these were answered."""
    effect = Effect(EffectKind.ELECT, names=tuple(run.elections))
    return {n.topic: e for n, e in step(run, Performed(effect, outcomes), NOW)[0].elections.items()}


@pytest.mark.parametrize(("attempts", "wait_s"), [(1, 2), (2, 4), (3, 8)])
def test_a_refused_election_is_asked_for_later_and_later(attempts: int, wait_s: float) -> None:
    """Two seconds, four, eight; what the cluster said is kept."""
    run = electing(t=ElectionRun(ElectionStage.REQUESTED, attempts))
    told = after_election(run, {NAME: replace(AGAIN, message="broker 1 is down")})["t"]
    assert (told.stage, told.attempts, told.retry_at_s) == (ElectionStage.WAITING, attempts, NOW.s + wait_s)
    assert told.detail == "PREFERRED_LEADER_NOT_AVAILABLE: broker 1 is down"
    assert after_election(run, {NAME: AGAIN})["t"].detail == AGAIN.code


def test_an_election_ends_when_it_is_held_hopeless_or_tried_often_enough() -> None:
    """Every answer is its own partition's, and what was not answered or not asked for stays as it is."""
    asked = ElectionRun(ElectionStage.REQUESTED, 1)
    run = electing(
        held=asked,
        gone=asked,
        denied=asked,
        last=replace(asked, attempts=POLICY.max_attempts),
        unheard=asked,
        waiting=ElectionRun(ElectionStage.WAITING, 1),
        again=asked,
    )
    answers = {
        "held": OK,
        "gone": Outcome(ok=False, code="UNKNOWN_TOPIC_OR_PARTITION"),
        "denied": Outcome(ok=False, code="CLUSTER_AUTHORIZATION_FAILED"),
        "last": AGAIN,
        "waiting": OK,
        "again": AGAIN,
    }
    told = after_election(run, {TopicPartition(t, 0): outcome for t, outcome in answers.items()})
    assert {t: e.stage.value for t, e in told.items()} == {
        "held": "completed",
        "gone": "failed",
        "denied": "failed",
        "last": "failed",
        "unheard": "requested",
        "waiting": "waiting",
        "again": "waiting",
    }
    assert told["unheard"] is asked
    assert told["last"].detail == AGAIN.code


@pytest.mark.parametrize(("attempts", "left"), [(3, 2), (1, 0), (0, 0)])
def test_silence_at_the_old_order_is_not_counted_as_a_refusal(attempts: int, left: int) -> None:
    """It is asked for again at once; a move that is further by then is left as it is."""
    effect = Effect(EffectKind.RESTORE, targets={NAME: MOVE.old})
    run, effects = step(moving(Restoring(retry_at_s=NOW.s + 50), attempts=attempts), Unanswered(effect, "silence"), NOW)
    m = run.moves[NAME]
    assert (m.stage, m.attempts, effects) == (Restoring(retry_at_s=NOW.s), left, ())
    done = moving(RolledBack(), attempts=attempts)
    assert step(done, Unanswered(effect, "silence"), NOW)[0].moves == done.moves


@pytest.mark.parametrize(("attempts", "wait_s"), [(0, 2), (1, 4), (2, 8)])
def test_a_throttle_that_cannot_be_set_is_tried_later_and_later(attempts: int, wait_s: float) -> None:
    """The move waits; nothing is sent."""
    m, effects = _without_throttle(attempts)
    assert (m.stage, m.attempts, effects) == (Planned(retry_at_s=NOW.s + wait_s), attempts + 1, ())
    assert m.detail.endswith("POLICY_VIOLATION: no lists")


def test_a_throttle_that_could_not_be_set_often_enough_ends_the_move() -> None:
    """With the last attempt that the policy allows."""
    m, effects = _without_throttle(POLICY.max_attempts - 1)
    assert (m.stage, m.attempts, effects) == (Failed("throttle-not-set"), POLICY.max_attempts, ())
    assert "POLICY_VIOLATION: no lists" in m.detail


def test_what_cannot_be_restored_holds_no_move_up() -> None:
    """A setting that is to go, and not one that the move needs."""
    desired = entries([MOVE])
    stale = {Setting("topic", "t", "stale"): AGAIN, Setting("broker", "3", "stale"): AGAIN}
    effect = Effect(EffectKind.THROTTLE, desired=desired)
    run, effects = step(moving(Throttled()), Performed(effect, failed=stale), NOW)
    assert (run.moves[NAME].stage, run.applied) == (Submitted(), desired)
    assert [e.kind for e in effects] == [EffectKind.SUBMIT]


def _without_throttle(attempts: int) -> tuple[MoveRun, object]:
    effect = Effect(EffectKind.THROTTLE, desired={LIST: frozenset({"0:3"})})
    failed = {LIST: Outcome(ok=False, code="POLICY_VIOLATION", message="no lists")}
    run, effects = step(moving(Throttled(), attempts=attempts), Performed(effect, failed=failed), NOW)
    return run.moves[NAME], effects


@pytest.mark.parametrize(("attempts", "wait_s"), [(1, 2), (2, 4), (3, 8)])
def test_what_was_not_sent_is_judged_again_later_and_later(attempts: int, wait_s: float) -> None:
    """Another user's move was in the way."""
    m = _submitted("CHANGED_MEANWHILE", attempts)
    assert (m.stage, m.unconfirmed) == (Planned(retry_at_s=NOW.s + wait_s), False)
    assert m.detail == "CHANGED_MEANWHILE: no"


@pytest.mark.parametrize(
    ("code", "attempts", "outcome"),
    [
        ("CHANGED_MEANWHILE", POLICY.max_attempts, "rejected"),
        ("INVALID_REPLICA_ASSIGNMENT", 1, "rejected"),
        ("UNKNOWN_TOPIC_OR_PARTITION", 1, "deleted"),
    ],
)
def test_a_move_that_cannot_be_submitted_ends(code: str, attempts: int, outcome: str) -> None:
    """It was never begun, and the cluster has said so."""
    m = _submitted(code, attempts)
    assert (m.stage, m.detail) == (Failed(outcome), f"{code}: no")


@pytest.mark.parametrize("attempts", [1, POLICY.max_attempts])
def test_after_any_other_error_a_move_may_have_begun(attempts: int) -> None:
    """The next looks say whether it has."""
    m = _submitted("UNKNOWN_SERVER_ERROR", attempts)
    assert (m.stage, m.unconfirmed, m.detail) == (Submitted(), True, "UNKNOWN_SERVER_ERROR: no")


@pytest.mark.parametrize(
    ("code", "attempts", "stage"),
    [
        ("LOG_DIR_NOT_FOUND", 1, Failed("log-dir")),
        ("KAFKA_STORAGE_ERROR", 1, Relocating()),
        ("KAFKA_STORAGE_ERROR", POLICY.max_attempts, Failed("log-dir")),
    ],
)
def test_a_log_dir_that_does_not_take_a_replica_ends_its_move(code: str, attempts: int, stage: Stage) -> None:
    """At once where asking again does not help, else with the last attempt."""
    effect = Effect(EffectKind.ALTER_LOG_DIRS, log_dirs={(NAME, 3): "/data/1"})
    answer = Performed(effect, {NAME: Outcome(ok=False, code=code)})
    m = step(moving(Relocating(), attempts=attempts), answer, NOW)[0].moves[NAME]
    assert (m.stage, m.detail) == (stage, code)


def test_an_old_order_that_is_refused_says_so() -> None:
    """The move waits for the next attempt."""
    effect = Effect(EffectKind.RESTORE, targets={NAME: MOVE.old})
    answer = Performed(effect, {NAME: Outcome(ok=False, code="UNKNOWN_SERVER_ERROR")})
    m = step(moving(Restoring(), attempts=1), answer, NOW)[0].moves[NAME]
    assert (m.stage, m.attempts) == (Restoring(), 1)
    assert m.detail.endswith("UNKNOWN_SERVER_ERROR")


@pytest.mark.parametrize("kind", [EffectKind.THROTTLE, EffectKind.UNTHROTTLE])
def test_after_silence_the_throttle_that_stands_is_unknown(kind: EffectKind) -> None:
    """It is settled anew; a move that waited for it is judged again, and one in flight goes on."""
    waiting = replace(moving(Throttled(), note=journaled_note("said before")), applied={LIST: frozenset({"0:3"})})
    run, effects = step(waiting, Unanswered(Effect(kind), "silence"), NOW)
    m = run.moves[NAME]
    assert (run.applied, m.stage, m.detail, effects) == (None, Planned(), "said before", ())
    flying = step(replace(moving(Moving()), applied={}), Unanswered(Effect(kind), "silence"), NOW)[0]
    assert (flying.applied, flying.moves[NAME].stage) == (None, Moving())


@pytest.mark.parametrize(("code", "wait_s"), [("CLUSTER_AUTHORIZATION_FAILED", 300), ("CHANGED_MEANWHILE", 4)])
def test_a_cancel_that_is_refused_is_asked_for_again(code: str, wait_s: float) -> None:
    """Much later where only a right that is granted meanwhile helps."""
    effect = Effect(EffectKind.CANCEL, targets={NAME: None})
    answer = Performed(effect, {NAME: Outcome(ok=False, code=code)})
    m = step(moving(Cancelling(), attempts=2), answer, NOW)[0].moves[NAME]
    assert isinstance(m.stage, Moving)
    assert m.stage.cancel_at_s == NOW.s + wait_s


@pytest.mark.parametrize("first", [Command.CANCEL, Command.ROLLBACK])
@pytest.mark.parametrize("second", list(Command))
def test_a_rollback_can_be_asked_for_while_a_run_is_cancelled(first: Command, second: Command) -> None:
    """Once asked for it stays wanted, and a run that is cancelled is neither paused nor resumed; the first who asked is named."""
    run, _ = step(moving(Moving()), CommandRequested(first, "ann"), NOW)
    run, effects = step(run, CommandRequested(second, "ben"), NOW)
    assert (run.phase, run.stopped_by, effects) == (Phase.CANCELLING, "ann", ())
    assert run.rollback_when_cancelled is (Command.ROLLBACK in {first, second})


def test_a_run_that_is_paused_waits_without_a_reason_of_its_own() -> None:
    """What guards refused before is neither told any more nor counted against the run's patience, until it is resumed."""
    held = verdict("at-min-isr", NAME, partition=NAME, in_sync=(1,))
    run = replace(moving(Planned()), verdicts=(held,), refused_since_s=5.0)
    paused, _ = step(run, CommandRequested(Command.PAUSE, "ann"), NOW)
    assert (paused.phase, paused.verdicts, paused.refused_since_s, paused.stopped_by) == (Phase.PAUSED, (), None, "")
    assert step(paused, CommandRequested(Command.RESUME), NOW)[0].phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("stage", "effect"),
    [
        (Cancelling(), Effect(EffectKind.CANCEL, targets={NAME: None})),
        (Relocating(), Effect(EffectKind.ALTER_LOG_DIRS, log_dirs={(NAME, 3): "/data/1"})),
    ],
)
def test_after_any_other_silence_the_next_look_decides(stage: Stage, effect: Effect) -> None:
    """Nothing is concluded from it."""
    run = moving(stage)
    assert step(run, Unanswered(effect, "silence"), NOW) == (run, ())


def test_a_throttle_for_a_topic_that_is_gone_is_not_owed() -> None:
    """It is told as missing, and no line is struck that never stood in the ledger."""
    s = scene({0: (1, 2)})
    written: list[list[Record]] = []
    throttler = Throttler(s.cluster, s.world.clock, lambda: None)
    gone = Setting("topic", "gone", LIST.key)
    failed = throttler.settle({gone: frozenset({"0:3"})}, {1, 2}, written.append, lambda _: None)
    assert {setting: outcome.code for setting, outcome in failed.items()} == {gone: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert not any(written)


def _submitted(code: str, attempts: int) -> MoveRun:
    effect = Effect(EffectKind.SUBMIT, targets={NAME: MOVE.new})
    answer = {NAME: Outcome(ok=False, code=code, message="no")}
    return step(moving(Submitted(), attempts=attempts), Performed(effect, answer), NOW)[0].moves[NAME]


@pytest.mark.parametrize(
    ("isr", "alive", "safe"),
    [
        ({1}, {1, 3}, True),
        ({2}, {1, 2, 3}, True),
        ({1}, {2, 3}, False),
        ({3}, {1, 2, 3}, False),
        (set(), {1, 2}, False),
    ],
)
def test_a_cancel_needs_an_old_replica_that_is_alive_and_in_sync(isr: set[int], alive: set[int], *, safe: bool) -> None:
    """One that is only alive, or only in the ISR, cannot lead."""
    assert cancel_is_safe((1, 2), isr, alive) is safe


def test_a_broker_0_leads_and_one_that_is_not_there_does_not() -> None:
    """The leader's side counts for any broker that leads; without a leader only the destinations' does."""
    move = Move("t", 0, (0, 1), (2, 1))
    lack = shortfall(move, 0, 8.0, {0: 9, 2: 100})
    assert lack is not None
    assert (lack.broker, lack.side) == (0, "leader")
    assert shortfall(move, -1, 8.0, {-1: 1, 0: 1, 2: 100}) is None
