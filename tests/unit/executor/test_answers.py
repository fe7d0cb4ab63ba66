"""What the machine makes of the cluster's answers: when it tries again, how often, and when it gives up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.guards import cancel_is_safe
from ballast.core.plan import Move, Plan
from ballast.core.throttles import Setting, shortfall
from ballast.executor.machine import Performed, Unanswered, step
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.run import ElectionRun, ElectionStage, MoveRun, Now, Run, Stage, new_run
from ballast.executor.transitions import Effect, EffectKind
from ballast.ports.cluster import OK, Outcome

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
    run = electing(t=ElectionRun(ElectionStage.ASKED, attempts))
    told = after_election(run, {NAME: replace(AGAIN, message="broker 1 is down")})["t"]
    assert (told.stage, told.attempts, told.retry_at_s) == (ElectionStage.WAITING, attempts, NOW.s + wait_s)
    assert told.detail == "PREFERRED_LEADER_NOT_AVAILABLE: broker 1 is down"
    assert after_election(run, {NAME: AGAIN})["t"].detail == AGAIN.code


def test_an_election_ends_when_it_is_held_hopeless_or_tried_often_enough() -> None:
    """Every answer is its own partition's, and what was not answered or not asked for stays as it is."""
    asked = ElectionRun(ElectionStage.ASKED, 1)
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
        "held": "held",
        "gone": "failed",
        "denied": "failed",
        "last": "failed",
        "unheard": "asked",
        "waiting": "waiting",
        "again": "waiting",
    }
    assert told["unheard"] is asked
    assert told["last"].detail == AGAIN.code


@pytest.mark.parametrize(("attempts", "left"), [(3, 2), (1, 0), (0, 0)])
def test_silence_at_the_old_order_is_not_counted_as_a_refusal(attempts: int, left: int) -> None:
    """It is asked for again at once; a move that is further by then is left as it is."""
    effect = Effect(EffectKind.RESTORE, targets={NAME: MOVE.old})
    run, effects = step(
        moving(Stage.RESTORING, attempts=attempts, retry_at_s=NOW.s + 50), Unanswered(effect, "silence"), NOW
    )
    m = run.moves[NAME]
    assert (m.stage, m.attempts, m.retry_at_s, effects) == (Stage.RESTORING, left, NOW.s, ())
    done = moving(Stage.ROLLED_BACK, attempts=attempts)
    assert step(done, Unanswered(effect, "silence"), NOW)[0].moves == done.moves


@pytest.mark.parametrize(("attempts", "wait_s"), [(0, 2), (1, 4), (2, 8)])
def test_a_throttle_that_cannot_be_set_is_tried_later_and_later(attempts: int, wait_s: float) -> None:
    """The move waits; nothing is sent."""
    m, effects = _without_throttle(attempts)
    assert (m.stage, m.attempts, m.retry_at_s, effects) == (Stage.PLANNED, attempts + 1, NOW.s + wait_s, ())


def test_a_throttle_that_could_not_be_set_often_enough_ends_the_move() -> None:
    """With the last attempt that the policy allows."""
    m, effects = _without_throttle(POLICY.max_attempts - 1)
    assert (m.stage, m.outcome, m.attempts, effects) == (Stage.FAILED, "throttle-not-set", POLICY.max_attempts, ())
    assert "POLICY_VIOLATION no lists" in m.detail


def _without_throttle(attempts: int) -> tuple[MoveRun, object]:
    effect = Effect(EffectKind.THROTTLE, aim={LIST: frozenset({"0:3"})})
    failed = {LIST: Outcome(ok=False, code="POLICY_VIOLATION", message="no lists")}
    run, effects = step(moving(Stage.THROTTLED, attempts=attempts), Performed(effect, failed=failed), NOW)
    return run.moves[NAME], effects


@pytest.mark.parametrize(("attempts", "wait_s"), [(1, 2), (2, 4), (3, 8)])
def test_what_was_not_sent_is_judged_again_later_and_later(attempts: int, wait_s: float) -> None:
    """Somebody else's move was in the way."""
    m = _submitted("CHANGED_MEANWHILE", attempts)
    assert (m.stage, m.retry_at_s, m.loose) == (Stage.PLANNED, NOW.s + wait_s, False)


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
    assert (m.stage, m.outcome) == (Stage.FAILED, outcome)


@pytest.mark.parametrize("attempts", [1, POLICY.max_attempts])
def test_after_any_other_error_a_move_may_have_begun(attempts: int) -> None:
    """The next looks say whether it has."""
    m = _submitted("UNKNOWN_SERVER_ERROR", attempts)
    assert (m.stage, m.loose, m.detail) == (Stage.SUBMITTED, True, "UNKNOWN_SERVER_ERROR: no")


def _submitted(code: str, attempts: int) -> MoveRun:
    effect = Effect(EffectKind.SUBMIT, targets={NAME: MOVE.new})
    answer = {NAME: Outcome(ok=False, code=code, message="no")}
    return step(moving(Stage.SUBMITTED, attempts=attempts), Performed(effect, answer), NOW)[0].moves[NAME]


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
