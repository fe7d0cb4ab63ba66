"""What is decided on one look: which moves are taken further, with which orders, and which are left as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ballast.core.cluster import UNKNOWN, Broker, PartitionRow, Topic, TopicPartition, build
from ballast.core.guards import verdict
from ballast.core.plan import Move
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, LOG_DIR_RATE, DesiredThrottles, Setting, entries
from ballast.executor.machine.decide import decide, submit_throttled, wanted_throttle
from ballast.executor.machine.notes import note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run, Status
from ballast.executor.machine.stages import (
    Cancelling,
    Failed,
    Moved,
    Moving,
    Planned,
    Relocating,
    Restoring,
    RolledBack,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
    Verified,
)
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import BrokerLogs, PartitionState, Reassignment, ReplicaLog

NOW = Now(1_000_000, 1_000.0)
SAID = note("not-shown")
PLAIN = ExecutionPolicy(throttle="none", max_attempts=3)
FIXED = ExecutionPolicy(throttle=5_000, max_attempts=3)


def name(n: int) -> TopicPartition:
    """Partition n of the one topic."""
    return TopicPartition("t", n)


def moves(*stages: Stage, move: Move | None = None, **known: Any) -> dict[TopicPartition, MoveRun]:
    """A move from [1, 2] to [3, 2] in each of these stages, a partition each."""
    copies = move or Move("t", 0, (1, 2), (3, 2), 10)
    known = {"note": SAID, "entered_s": 900.0, **known}
    return {name(n): MoveRun(replace(copies, partition=n), stage=s, **known) for n, s in enumerate(stages)}


def run_of(of: Mapping[TopicPartition, MoveRun], policy: ExecutionPolicy = PLAIN, **known: Any) -> Run:
    """A run of them."""
    return Run("r", "test", "c", policy, of, {}, **{"applied": {}, **known})


def seen(
    *states: tuple[int, ...] | None,
    listed: tuple[int, ...] = (),
    isr: tuple[int, ...] = (1, 2),
    alive: tuple[int, ...] = (1, 2, 3),
    logs: Mapping[int, BrokerLogs] | None = None,
) -> Picture:
    """A look in which partition n has these replicas; those ``listed`` are on their way to [3, 2]."""
    found = {name(n): PartitionState(1, s, isr) for n, s in enumerate(states) if s is not None}
    on_their_way = {name(n): Reassignment((3, 2, 1), (3,), (1,)) for n in listed}
    return Picture(on_their_way, found, frozenset(map(name, range(len(states)))), frozenset(alive), logs=logs)


def stages(run: Run) -> list[Stage]:
    """Where its moves stand."""
    return [m.stage for m in run.moves.values()]


def of_kind(effects: tuple[Effect, ...], kind: EffectKind) -> list[Effect]:
    """The effects of this kind."""
    return [e for e in effects if e.kind is kind]


def test_another_order_that_a_cancel_left_is_put_back() -> None:
    """Where the old brokers have it, nothing moves them and their order is another; each of the others is left alone."""
    untouched = Cancelling(replicas_after_cancel=(2, 1))
    of = moves(*[untouched] * 5, Verified(), untouched, untouched)
    looks = seen((2, 1), (1, 2), (3, 2), None, (2, 1), (2, 1), (2, 1), (2, 1), listed=(4,))
    run, effects = decide(run_of(of, replace(PLAIN, submit_chunk=2)), looks, NOW)
    asked = Restoring(retry_at_s=1_005.0)
    assert stages(run) == [asked, *[untouched] * 4, Verified(), asked, asked]
    put_back = run.moves[name(0)]
    assert (put_back.attempts, put_back.note, put_back.since_ms, put_back.entered_s) == (1, SAID, NOW.ms, NOW.s)
    assert run.moves[name(1)] is of[name(1)]
    orders = of_kind(effects, EffectKind.RESTORE)
    assert [dict(e.targets) for e in orders] == [{name(0): (1, 2), name(6): (1, 2)}, {name(7): (1, 2)}]
    assert len(effects) == 2


@pytest.mark.parametrize(
    ("retry_at_s", "attempts", "asks"), [(1_000.0, 2, True), (1_000.5, 2, False), (990.0, 3, False), (990.0, 0, True)]
)
def test_an_order_to_put_back_that_does_not_show_is_given_again(
    retry_at_s: float, attempts: int, *, asks: bool
) -> None:
    """When its time has come, as often as the policy allows."""
    of = moves(Restoring(retry_at_s=retry_at_s), attempts=attempts)
    run, effects = decide(run_of(of), seen((2, 1)), NOW)
    m = run.moves[name(0)]
    assert m == (
        replace(of[name(0)], attempts=attempts + 1, stage=Restoring(retry_at_s=1_005.0)) if asks else of[name(0)]
    )
    assert [dict(e.targets) for e in effects] == ([{name(0): (1, 2)}] if asks else [])


@pytest.mark.parametrize(("status", "outcome"), [(Status.OPEN, "not-started"), (Status.REFUSED, "refused")])
def test_what_has_not_begun_ends_with_a_run_that_is_cancelled(status: Status, outcome: str) -> None:
    """With the reason why it waited, of which a person may want to know; what has ended stays as it ended."""
    of = moves(Planned(), Throttled(), Verified(), Unthrottled(), Planned())
    run, effects = decide(run_of(of, phase=Phase.CANCELLING, status=status), seen(*[(1, 2)] * 5), NOW)
    ended = RolledBack(outcome)
    assert stages(run) == [ended, ended, Verified(), Unthrottled(), ended]
    assert [m.note for m in run.moves.values()] == [SAID] * 5
    assert effects == ()


def test_reassignments_of_a_run_that_is_cancelled_are_cancelled() -> None:
    """Those that the controller lists and metadata knows, once a refused cancel has waited its time."""
    racing = Moving(replicas_after_cancel=(1, 2), raced=True)
    of = moves(
        Moving(cancel_at_s=1_001.0), racing, Moving(), Moving(), Stalled(cause="slow", cancel_at_s=1_000.0), Moved()
    )
    looks = seen((3, 2, 1), (3, 2, 1), (3, 2, 1), None, (3, 2, 1), (3, 2), listed=(0, 1, 3, 4))
    run, effects = decide(run_of(of, replace(PLAIN, submit_chunk=1), phase=Phase.CANCELLING), looks, NOW)
    assert stages(run)[:5] == [of[name(0)].stage, Cancelling((1, 2), raced=True), Moving(), Moving(), Cancelling()]
    assert (run.moves[name(1)].note, run.moves[name(1)].entered_s) == (SAID, NOW.s)
    orders = of_kind(effects, EffectKind.CANCEL)
    assert [dict(e.targets) for e in orders] == [{name(1): None}, {name(4): None}]


@pytest.mark.parametrize(
    ("stage", "patience_s", "cancels"),
    [
        (Moving(), 50.0, False),
        (Moving(raced=True), None, True),
        (Stalled(), 100.0, True),
        (Stalled(), 101.0, False),
        (Stalled(), None, False),
        (Stalled(raced=True), None, True),
    ],
)
def test_a_run_that_goes_on_cancels_what_has_stood_still_for_too_long(
    stage: Stage, patience_s: float | None, *, cancels: bool
) -> None:
    """And what met another list than the one planned for, at once; a move that copies is left to it."""
    policy = replace(PLAIN, cancel_stalled_after_s=patience_s)
    run, effects = decide(run_of(moves(stage), policy), seen((3, 2, 1), listed=(0,)), NOW)
    assert isinstance(stages(run)[0], Cancelling) is cancels
    assert bool(of_kind(effects, EffectKind.CANCEL)) is cancels


@pytest.mark.parametrize(
    ("replicas_after_cancel", "isr", "alive", "safe"),
    [
        ((), (1,), (1, 3), True),
        ((), (3,), (1, 2, 3), False),
        ((4, 5), (1, 2), (1, 2, 3), False),
        ((4, 5), (5, 3), (3, 5), True),
        ((), (1, 2), (3,), False),
    ],
)
def test_a_cancel_that_would_leave_no_leader_waits(
    replicas_after_cancel: tuple[int, ...], isr: tuple[int, ...], alive: tuple[int, ...], *, safe: bool
) -> None:
    """By the list that the cancel would leave, which may be another than the plan's; said once, and not journaled anew."""
    run = run_of(
        moves(Moving(replicas_after_cancel=replicas_after_cancel), Moving(replicas_after_cancel=(1, 2))),
        phase=Phase.CANCELLING,
    )
    looks = seen((3, 2, 1), listed=(0,), isr=isr, alive=alive)
    after, effects = decide(run, looks, NOW)
    m = after.moves[name(0)]
    assert bool(effects) is safe
    if safe:
        assert isinstance(m.stage, Cancelling)
        return
    assert (m.stage, m.note) == (
        Moving(replicas_after_cancel=replicas_after_cancel),
        note("cancel-unsafe", replicas=replicas_after_cancel or (1, 2)),
    )
    assert decide(after, looks, NOW)[0].moves[name(0)] is m


@pytest.mark.parametrize(
    ("isr", "min_isr", "held"),
    [
        ((1, 3), 2, True),
        ((1, 2, 3), 2, False),
        # They are refused already.
        ((1,), 2, False),
        ((1, 3), 1, False),
        ((1, 3), UNKNOWN, False),
        # Brokers ask for no more replicas in sync than there are.
        ((1, 2, 3), 3, False),
    ],
)
def test_a_cancel_that_would_stop_writes_waits(isr: tuple[int, ...], min_isr: int, *, held: bool) -> None:
    """What the move added is in sync, and too few of the old replicas are."""
    run = run_of(moves(Moving()), phase=Phase.CANCELLING)
    row = PartitionRow("t", 0, 1, (3, 2, 1), isr, adding=(3,), removing=(1,))
    state = build("c", tuple(map(Broker, (1, 2, 3))), (Topic("t", min_isr=min_isr),), [row])
    after, effects = decide(run, replace(seen((3, 2, 1), listed=(0,), isr=isr), state=state), NOW)
    assert bool(effects) is not held
    if held:
        assert after.moves[name(0)].note == note("cancel-below-min-isr", replicas=(1, 2), in_sync=1, min_isr=2)


# Log dirs.

HERE, THERE = "/data/0", "/data/1"
STAYS = Move("t", 0, (1, 2), (1, 2), 10, log_dirs=(THERE, "any"))
COPIED = Move("t", 0, (4, 2), (1, 2), 10, log_dirs=(THERE, "any"))


def lies(*places: str, n: int = 0, brokers: tuple[int, ...] = (1,)) -> dict[int, BrokerLogs]:
    """The partition's replicas on these brokers; a path with a plus is a copy on its way."""
    there = tuple(ReplicaLog(p.removeprefix("+"), 10, 0, is_future=p.startswith("+")) for p in places)
    return {b: BrokerLogs((), {name(n): there}) for b in brokers}


@pytest.mark.parametrize(
    ("stage", "logs", "attempts", "expected", "asks"),
    [
        pytest.param(Moved(), lies(HERE), 0, Relocating, True, id="arrived-elsewhere"),
        pytest.param(Moved(), lies(THERE), 0, Unthrottled, False, id="arrived-there"),
        pytest.param(Moved(), None, 0, Moved, False, id="not-read"),
        pytest.param(Moved(), {}, 0, Relocating, False, id="silent"),
        pytest.param(Moved(), lies(HERE), 3, Relocating, True, id="last-attempt"),
        pytest.param(Moved(), lies(HERE), 4, Failed, False, id="tried-often-enough"),
        pytest.param(Relocating(), lies(HERE), 1, Relocating, True, id="does-not-show"),
        pytest.param(Relocating(), lies(HERE, f"+{THERE}"), 1, Relocating, False, id="on-its-way"),
        pytest.param(Relocating(), lies(HERE, "+/data/2"), 1, Relocating, True, id="on-its-way-elsewhere"),
        pytest.param(Relocating(), lies(HERE, THERE), 1, Relocating, True, id="in-both"),
        pytest.param(Relocating(), {1: BrokerLogs((), {})}, 1, Relocating, True, id="nowhere"),
        pytest.param(Relocating(), lies(HERE), 4, Failed, False, id="ordered-often-enough"),
        pytest.param(Relocating(retry_at_s=1_000.0), lies(HERE), 1, Relocating, True, id="time-has-come"),
        pytest.param(Relocating(retry_at_s=1_001.0), lies(HERE), 1, Relocating, False, id="not-yet"),
        pytest.param(Relocating(), {}, 1, Relocating, False, id="ordered-and-silent"),
    ],
)
def test_a_replica_is_ordered_to_its_log_dir_until_it_is_there(
    stage: Stage, logs: Mapping[int, BrokerLogs] | None, attempts: int, expected: type[Stage], *, asks: bool
) -> None:
    """By what its broker says, at most so often, and not while it is on its way; an unreachable broker is waited for."""
    of = moves(stage, move=COPIED, attempts=attempts, total_bytes=10)
    run, effects = decide(
        run_of(of, replace(FIXED, throttle="auto"), rates={1: 5, 2: 5, 4: 5}), seen((1, 2), logs=logs), NOW
    )
    m = run.moves[name(0)]
    assert type(m.stage) is expected
    orders = of_kind(effects, EffectKind.ALTER_LOG_DIRS)
    assert [dict(e.log_dirs) for e in orders] == ([{(name(0), 1): THERE}] if asks else [])
    assert m.attempts == attempts + asks
    if asks:
        assert isinstance(m.stage, Relocating)
        assert m.stage.retry_at_s == 1_005.0
    if expected is Failed:
        assert m.stage == Failed("log-dir")
        assert (m.note, m.entered_s) == (note("not-in-log-dir", broker=1, path=THERE, attempts=4), NOW.s)


def test_a_down_broker_s_log_dir_is_waited_for_without_a_reading() -> None:
    """Nothing would be read of it; one that lives is read first."""
    for alive, expected in (((2, 3), Relocating), ((1, 2, 3), Moved)):
        run, effects = decide(run_of(moves(Moved(), move=STAYS), applied={}), seen((1, 2), alive=alive), NOW)
        assert (type(stages(run)[0]), of_kind(effects, EffectKind.ALTER_LOG_DIRS)) == (expected, [])


def test_one_order_covers_every_replica_that_is_not_in_its_log_dir() -> None:
    """Of every move; those that ask for none, or wait, hold up no other."""
    both = replace(STAYS, log_dirs=(THERE, THERE))
    of = moves(Moved(), move=Move("t", 0, (1, 2), (2, 1)))
    of |= {name(1): MoveRun(replace(both, partition=1), stage=Relocating(retry_at_s=2_000.0))}
    of |= {name(2): MoveRun(replace(both, partition=2), stage=Moved())}
    of |= {name(3): MoveRun(replace(both, partition=3), stage=Moved())}
    logs = {
        1: BrokerLogs((), {name(n): (ReplicaLog(HERE, 10, 0),) for n in range(4)}),
        2: BrokerLogs((), {name(n): (ReplicaLog(THERE if n == 2 else HERE, 10, 0),) for n in range(4)}),
    }
    run, effects = decide(run_of(of), seen(*[(1, 2)] * 4, logs=logs), NOW)
    (order,) = of_kind(effects, EffectKind.ALTER_LOG_DIRS)
    assert order.log_dirs == {(name(2), 1): THERE, (name(3), 1): THERE, (name(3), 2): THERE}
    assert [type(s) for s in stages(run)] == [Verified, Relocating, Relocating, Relocating]


def test_a_run_that_is_cancelled_orders_no_replica_to_another_log_dir() -> None:
    """What arrived stays where it is and says so; a copy on its way is stopped."""
    of = moves(Moved(), Relocating(), move=COPIED)
    logs = {
        1: BrokerLogs((), {name(0): (ReplicaLog(HERE, 10, 0),), name(1): lies(HERE, f"+{THERE}")[1].replicas[name(0)]})
    }
    run, effects = decide(run_of(of, phase=Phase.CANCELLING), seen((1, 2), (1, 2), logs=logs), NOW)
    assert stages(run)[0] == Failed("log-dir")
    assert (run.moves[name(0)].note, run.moves[name(0)].since_ms) == (note("log-dirs-cancelled"), NOW.ms)
    assert [dict(e.log_dirs) for e in of_kind(effects, EffectKind.ALTER_LOG_DIRS)] == [{(name(1), 1): HERE}]


def test_a_copy_between_log_dirs_that_stood_still_is_stopped() -> None:
    """When the run's patience is over, counted from when it was named."""
    policy = replace(PLAIN, cancel_stalled_after_s=60.0)
    stood, stands = (Relocating(cause="log-dir-copy", named_s=s) for s in (940.0, 941.0))
    logs = {1: BrokerLogs((), {name(n): lies(HERE, f"+{THERE}")[1].replicas[name(0)] for n in (0, 1)})}
    run, effects = decide(run_of(moves(stood, stands, move=STAYS), policy), seen((1, 2), (1, 2), logs=logs), NOW)
    found = stages(run)
    assert [isinstance(s, Relocating) and s.given_up for s in found] == [True, False]
    assert [dict(e.log_dirs) for e in of_kind(effects, EffectKind.ALTER_LOG_DIRS)] == [{(name(0), 1): HERE}]


@pytest.mark.parametrize("given_up", [False, True])
def test_a_copy_between_log_dirs_that_is_cancelled_was_no_timeout(*, given_up: bool) -> None:
    """Also where the run had given it up before: it ends as the person asked, with nothing said of a cause."""
    run = run_of(moves(Relocating(given_up=given_up), move=STAYS), phase=Phase.CANCELLING)
    after, effects = decide(run, seen((1, 2), logs=lies(HERE)), NOW)
    assert (stages(after), after.moves[name(0)].note, effects) == ([RolledBack("rolled-back")], None, ())


# Throttles.


def rates(*brokers: int, value: int = 5_000) -> DesiredThrottles:
    """Both rates of these brokers."""
    return {
        Setting("broker", str(b), key): frozenset({str(value)}) for b in brokers for key in (LEADER_RATE, FOLLOWER_RATE)
    }


def test_rates_stay_between_two_moves_of_a_run_and_entries_do_not() -> None:
    """A rate is set for what is in flight, and kept for what waits; of others, and of brokers that are down, none is begun."""
    of = moves(Moving(), Planned(), Verified())
    other = Move("t", 1, (4, 5), (6, 5), 10)
    of[name(1)] = replace(of[name(1)], move=other)
    run = run_of(of, FIXED, rates_of_others={2: 99}, applied=rates(4))
    lists = entries([of[name(0)].move])
    assert wanted_throttle(run, frozenset({1, 2, 3, 4, 5, 6})) == {**lists, **rates(1, 3, 4)}
    assert wanted_throttle(run, frozenset({2, 3})) == {**lists, **rates(3, 4)}
    ours = replace(run, policy=replace(FIXED, override_rates_of_others=True))
    assert wanted_throttle(ours, frozenset({1, 2, 3})) == {**lists, **rates(1, 2, 3, 4)}
    assert wanted_throttle(replace(run, applied=None), frozenset({1, 2, 3})) == {**lists, **rates(1, 3)}
    assert wanted_throttle(replace(run, policy=PLAIN), frozenset({1, 2, 3})) == {}


def test_the_rate_between_log_dirs_is_set_where_a_move_in_flight_names_one() -> None:
    """On every live broker of the move, whether or not replication is throttled."""
    of = moves(Relocating(), Planned(), move=STAYS)
    of |= {name(2): MoveRun(Move("t", 2, (1,), (3,), 10), stage=Moving())}
    policy = replace(PLAIN, log_dir_throttle_bytes_per_s=7)
    expected = {Setting("broker", "2", LOG_DIR_RATE): frozenset({"7"})}
    assert wanted_throttle(run_of(of, policy), frozenset({2, 3})) == expected
    assert wanted_throttle(run_of(of, PLAIN), frozenset({1, 2, 3})) == {}


def test_moves_that_have_arrived_leave_the_throttle() -> None:
    """Those that were in it; what copied nothing, or was not throttled, is done, and what is not in its log dir is neither."""
    of = moves(Moved(), Moved(), Moved(), Moving())
    of[name(1)] = replace(of[name(1)], move=Move("t", 1, (1, 2), (2, 1)))
    of[name(2)] = replace(of[name(2)], move=replace(COPIED, partition=2), stage=Moved(in_log_dirs=True))
    run, effects = decide(run_of(of, FIXED, applied=rates(1, 2, 3)), seen(*[(3, 2)] * 4), NOW)
    assert stages(run) == [Unthrottled(), Verified(), Unthrottled(), Moving()]
    assert (run.moves[name(0)].note, run.moves[name(0)].since_ms) == (None, NOW.ms)
    (effect,) = effects
    assert effect.kind is EffectKind.THROTTLE
    run, _ = decide(run_of(moves(Moved())), seen((3, 2)), NOW)
    assert stages(run) == [Verified()]


@pytest.mark.parametrize(
    ("applied", "kind"),
    [
        pytest.param({}, EffectKind.THROTTLE, id="nothing-stands"),
        pytest.param(None, EffectKind.THROTTLE, id="nothing-is-known"),
        pytest.param({**rates(1, 2, 3), **rates(9)}, EffectKind.THROTTLE, id="lists-are-missing"),
        pytest.param(
            {**rates(1, 2, 3, 9), **entries([Move("t", 0, (1, 2), (3, 2)), Move("t", 7, (1, 2), (3, 2))])},
            EffectKind.UNTHROTTLE,
            id="too-much-stands",
        ),
        pytest.param({**rates(1, 2, 3), **entries([Move("t", 0, (1, 2), (3, 2))])}, None, id="all-stands"),
    ],
)
def test_what_is_to_stand_is_told_whole_and_only_where_it_differs(
    applied: DesiredThrottles | None, kind: EffectKind | None
) -> None:
    """An effect that adds anything is a throttle, one that only restores is none."""
    run = run_of(moves(Moving()), FIXED, applied=applied)
    after, effects = decide(run, seen((3, 2, 1), listed=(0,)), NOW)
    assert [e.kind for e in effects] == ([] if kind is None else [kind])
    assert after.applied == applied
    for e in effects:
        assert e.desired == {
            **entries([Move("t", 0, (1, 2), (3, 2))]),
            **{s: v for s, v in rates(1, 2, 3, 9).items() if s in e.desired},
        }
        assert rates(1, 2, 3).keys() <= e.desired.keys()


@pytest.mark.parametrize(
    ("policy", "move", "asks"),
    [
        pytest.param(FIXED, Move("t", 0, (1, 2), (3, 2)), True, id="throttled"),
        pytest.param(FIXED, Move("t", 0, (1, 2), (2, 1)), False, id="copies-nothing"),
        pytest.param(PLAIN, Move("t", 0, (1, 2), (3, 2)), False, id="unthrottled"),
        pytest.param(
            replace(PLAIN, log_dir_throttle_bytes_per_s=7), Move("t", 0, (1, 2), (2, 1)), True, id="between-log-dirs"
        ),
    ],
)
def test_after_a_restart_a_run_that_may_have_set_throttles_asks_what_stands(
    policy: ExecutionPolicy, move: Move, *, asks: bool
) -> None:
    """Before it ends, even though nothing is wanted any more; one that has never set any ends at once."""
    run, effects = decide(run_of(moves(Verified(), move=move), policy, applied=None), seen(move.new), NOW)
    assert [(e.kind, e.desired) for e in effects] == ([(EffectKind.UNTHROTTLE, {})] if asks else [])
    assert (run.ended, run.applied) == ((False, None) if asks else (True, {}))


def test_moves_are_submitted_once_their_own_lists_stand() -> None:
    """A move whose entries are missing waits; one that only changes log dirs needs none and goes first."""
    of = moves(Throttled(), Throttled(), attempts=1)
    of[name(1)] = replace(of[name(1)], move=Move("t", 1, (1, 2), (1, 2), 10, log_dirs=("any", THERE)))
    other = Move("u", 2, (1, 2), (3, 2), 10, log_dirs=(THERE, "any"))
    of[other.name] = replace(of[name(0)], move=other)
    policy = replace(FIXED, log_dir_throttle_bytes_per_s=7)
    run = run_of(of, policy)
    standing = wanted_throttle(run, frozenset({1, 2, 3}))
    run, effects = decide(replace(run, applied=standing), seen(*[(1, 2)] * 3), NOW)
    assert [type(s) for s in stages(run)] == [Submitted, Relocating, Submitted]
    assert [(m.attempts, m.note, m.entered_s) for m in run.moves.values()] == [(2, None, NOW.s)] * 3
    assert [(e.kind, dict(e.log_dirs or e.targets)) for e in effects] == [
        (EffectKind.ALTER_LOG_DIRS, {(name(1), 2): THERE}),
        (EffectKind.ALTER_LOG_DIRS, {(other.name, 3): THERE}),
        (EffectKind.SUBMIT, {name(0): (3, 2), other.name: (3, 2)}),
    ]
    lacking = {s: v for s, v in standing.items() if s.name != "u"}
    half, effects = submit_throttled(run_of(of, policy, applied=lacking), NOW)
    assert [type(s) for s in stages(half)] == [Submitted, Relocating, Throttled]
    assert [e.kind for e in effects] == [EffectKind.ALTER_LOG_DIRS, EffectKind.SUBMIT]
    assert submit_throttled(run_of(moves(Throttled()), policy, applied=None), NOW)[1] == ()


# Elections and the end.


def electing(*of: ElectionRun, policy: ExecutionPolicy = PLAIN, **known: Any) -> Run:
    """A run of these elections, a partition each."""
    return replace(run_of({}, policy, **known), elections={name(n): e for n, e in enumerate(of)})


WAITS, ASKED = ElectionRun(), ElectionRun(ElectionStage.REQUESTED, 1, retry_at_s=2_000.0)


def test_elections_are_asked_for_in_batches() -> None:
    """Those that were asked for and have no answer count; a wait that is not over is respected, and skipped."""
    later = replace(WAITS, retry_at_s=1_001.0)
    run = electing(
        later, ASKED, WAITS, replace(WAITS, retry_at_s=1_000.0), WAITS, policy=replace(PLAIN, election_batch=3)
    )
    for unclean in (False, True):
        after, effects = decide(replace(run, unclean=unclean), seen(), NOW)
        assert effects == (Effect(EffectKind.ELECT, names=(name(2), name(3)), unclean=unclean),)
        assert [e.stage for e in after.elections.values()] == [WAITS.stage, *[ASKED.stage] * 3, WAITS.stage]
        assert after.elections[name(2)] == ElectionRun(
            ElectionStage.REQUESTED, 1, retry_at_s=NOW.s + PLAIN.submit_grace_s
        )
    for phase in (Phase.PAUSED, Phase.CANCELLING):
        assert decide(replace(run, phase=phase), seen(), NOW)[1] == ()
    assert decide(electing(ASKED), seen(), NOW)[1] == ()


def test_an_election_waits_for_its_move_and_for_no_other() -> None:
    """A move that has ended, however it did, holds its election up no longer."""
    run = replace(run_of(moves(Moving(), Failed("deleted"), Verified())), elections={name(n): WAITS for n in range(4)})
    _, effects = decide(run, seen((3, 2, 1), listed=(0,)), NOW)
    assert [e.names for e in effects] == [(name(1), name(2), name(3))]


HELD, LOST = ElectionRun(ElectionStage.COMPLETED), ElectionRun(ElectionStage.FAILED)


@pytest.mark.parametrize(
    ("stage", "election", "known", "status"),
    [
        (Verified(), HELD, {}, Status.DONE),
        (Verified(), LOST, {}, Status.INCOMPLETE),
        (Failed("deleted"), HELD, {}, Status.INCOMPLETE),
        (RolledBack("rolled-back"), HELD, {"phase": Phase.CANCELLING}, Status.CANCELLED),
        (RolledBack("refused"), HELD, {"phase": Phase.CANCELLING, "status": Status.REFUSED}, Status.REFUSED),
        (Verified(), ASKED, {}, None),
        (Verified(), WAITS, {"phase": Phase.PAUSED}, None),
        (Unthrottled(), HELD, {}, None),
    ],
)
def test_a_run_ends_when_nothing_is_open(
    stage: Stage, election: ElectionRun, known: dict[str, Any], status: Status | None
) -> None:
    """It is done when every move arrived and every election was completed; what it was refused for is no longer told."""
    refused = (verdict("another-batch", name(7), partition=name(7), others=0),)
    run = replace(run_of(moves(stage), **known), elections={name(0): election}, verdicts=refused)
    after, _ = decide(run, seen((1, 2)), NOW)
    assert after.ended is (status is not None)
    if status is not None:
        assert (after.status, after.ended_ms, after.verdicts) == (status, NOW.ms, ())


@pytest.mark.parametrize("policy", [FIXED, PLAIN])
def test_a_run_does_not_end_while_a_throttle_of_its_own_stands(policy: ExecutionPolicy) -> None:
    """It is cancelled first, whatever the policy says of throttles."""
    after, effects = decide(run_of(moves(Verified()), policy, applied=rates(1)), seen((3, 2)), NOW)
    assert not after.ended
    assert [(e.kind, e.desired) for e in effects] == [(EffectKind.UNTHROTTLE, {})]
