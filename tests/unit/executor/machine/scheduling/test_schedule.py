"""Which moves start on one look, with which orders, and what is said of those that do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move
from ballast.core.throttles import SAFE_SHARE
from ballast.executor.machine.notes import note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Phase, Run, Status
from ballast.executor.machine.scheduling.batches import json_bytes
from ballast.executor.machine.scheduling.schedule import select_next, start
from ballast.executor.machine.stages import (
    Cancelling,
    Failed,
    Moving,
    Planned,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
    Verified,
)
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import Reassignment
from ballast.ports.journal import STANDS_ON

MB: Final = 1 << 20
NOW: Final = Now(1_000_000, 1_000.0)
SAID: Final = note("not-shown")
PLAIN: Final = ExecutionPolicy(throttle="none")
FIXED: Final = ExecutionPolicy(throttle=10 * MB)
DISK: Final = (LogDir("/d", total_bytes=1000 * MB, usable_bytes=500 * MB),)


def move(n: int, old: tuple[int, ...], new: tuple[int, ...], size: int = 10 * MB, **known: Any) -> Move:
    """A move of partition n."""
    return Move(known.pop("topic", "t"), n, old, new, size, **known)


def waiting(*moves: Move, stages: Mapping[int, Stage] | None = None, **known: Any) -> dict[TopicPartition, MoveRun]:
    """These moves, planned where ``stages`` does not say otherwise by partition."""
    known = {"note": SAID, "entered_s": 900.0, "attempts": 1, **known}
    return {m.name: MoveRun(m, (stages or {}).get(m.partition, Planned()), **known) for m in moves}


def run_of(moves: Mapping[TopicPartition, MoveRun], policy: ExecutionPolicy = PLAIN, **known: Any) -> Run:
    """A run of them."""
    return Run("r", "test", "c", policy, moves, {}, **known)


def state_of(
    *moves: Move,
    disks: Mapping[int, tuple[LogDir, ...]] | None = None,
    without: tuple[int, ...] = (),
    lacking: str = "",
) -> ClusterState:
    """Brokers 1 to 9, with each partition on its old brokers and the first of them its leader."""
    told = dict.fromkeys(range(1, 10), DISK) | dict(disks or {})
    brokers = tuple(
        Broker(b, host="h", alive=b not in without, log_dirs=d, log_dirs_known=True) for b, d in told.items()
    )
    rows = [
        PartitionRow(
            m.topic,
            m.partition,
            m.old[0],
            m.old,
            m.old[:1] if m.topic == lacking else m.old,
            sizes=(max(m.size_bytes, 0),) * len(m.old),
            log_dirs=(0,) * len(m.old),
        )
        for m in moves
    ]
    return build("c", brokers, tuple(Topic(t, min_isr=0) for t in sorted({m.topic for m in moves})), rows)


def look(state: ClusterState | None, **known: Any) -> Picture:
    """A look with this whole reading."""
    return Picture(
        **{"reassignments": {}, "partitions": {}, "names": frozenset(), "alive": frozenset(range(1, 10)), **known},
        state=state,
    )


def started(run: Run, picture: Picture | None = None) -> tuple[Run, list[Effect]]:
    """The run and its effects after one look."""
    effects: list[Effect] = []
    after = start(run, picture or look(state_of(*(m.move for m in run.moves.values()))), NOW, effects)
    return after, effects


def begun(run: Run) -> list[int]:
    """Partitions whose moves are on their way."""
    return [n.partition for n, m in run.moves.items() if isinstance(m.stage, Submitted | Throttled)]


def codes(run: Run) -> list[tuple[str, str]]:
    """Code and subject of what is refused now."""
    return [(v.code, v.subject) for v in run.verdicts]


A, B, C = move(0, (1, 2), (3, 2)), move(1, (4, 5), (6, 5)), move(2, (7, 8), (9, 8))
ORDER = move(5, (1, 2), (2, 1))


@pytest.mark.parametrize(
    ("run", "picture"),
    [
        pytest.param(run_of(waiting(A), phase=Phase.PAUSED), look(state_of(A)), id="paused"),
        pytest.param(run_of(waiting(A), phase=Phase.CANCELLING), look(state_of(A)), id="cancelled"),
        pytest.param(run_of(waiting(A)), look(None), id="no-reading"),
        pytest.param(run_of(waiting(A, stages={0: Planned(retry_at_s=1_000.5)})), look(state_of(A)), id="not-yet"),
        pytest.param(run_of(waiting(A, stages={0: Unthrottled()})), look(state_of(A)), id="nothing-waits"),
        pytest.param(
            run_of(waiting(A, B, stages={1: Moving()}), replace(PLAIN, one_batch_at_a_time=True)),
            look(state_of(A, B)),
            id="a-batch-is-in-flight",
        ),
        pytest.param(
            run_of(waiting(A, B, stages={1: Moving()}), replace(PLAIN, moves_at_once=1)),
            look(state_of(A, B)),
            id="full",
        ),
    ],
)
def test_nothing_starts_and_nothing_is_judged(run: Run, picture: Picture) -> None:
    """The run is left as it is."""
    assert started(run, picture) == (run, [])
    assert started(run, picture)[0] is run


def test_a_move_starts_when_its_wait_is_over() -> None:
    """On the moment; the others go on waiting."""
    run = run_of(waiting(A, B, stages={0: Planned(retry_at_s=1_000.0), 1: Planned(retry_at_s=1_001.0)}))
    after, effects = started(run)
    assert begun(after) == [0]
    assert [dict(e.targets) for e in effects] == [{A.name: (3, 2)}]


def test_each_move_takes_the_step_that_it_needs() -> None:
    """What copies waits for its throttle, what changes log dirs for its order, and the rest is submitted at once."""
    dirs = move(3, (7, 8), (7, 8), log_dirs=("/d", "any"))
    run = run_of(waiting(A, ORDER, dirs), FIXED)
    after, effects = started(run)
    assert [m.stage for m in after.moves.values()] == [Throttled(), Submitted(), Throttled()]
    assert [(m.attempts, m.note, m.entered_s) for m in after.moves.values()] == [
        (1, None, NOW.s),
        (2, None, NOW.s),
        (1, None, NOW.s),
    ]
    assert effects == [Effect(EffectKind.SUBMIT, targets={ORDER.name: (2, 1)})]
    after, effects = started(replace(run, policy=PLAIN))
    assert [m.stage for m in after.moves.values()] == [Submitted(), Submitted(), Throttled()]
    assert [m.attempts for m in after.moves.values()] == [2, 2, 1]


def test_log_dirs_are_told_before_the_submission_and_counts_apart() -> None:
    """Only of brokers that are added, and where one is named; requests are of the size that the policy says."""
    dirs = (
        move(0, (1, 2), (3, 2), log_dirs=("/d", "/d")),
        move(1, (4, 5), (5, 6), log_dirs=("any", "/d")),
        move(2, (7, 8), (9, 8), log_dirs=("any", "any")),
    )
    more, fewer = move(3, (1, 2), (1, 2, 4)), move(4, (5, 6), (5,))
    run = run_of(waiting(more, *dirs, fewer), replace(PLAIN, submit_chunk=2))
    _, effects = started(run)
    assert effects[0] == Effect(EffectKind.ALTER_LOG_DIRS, log_dirs={(dirs[0].name, 3): "/d", (dirs[1].name, 6): "/d"})
    sent = [(sorted(n.partition for n in e.targets), e.allow_replication_factor_change) for e in effects[1:]]
    assert [len(names) for names, _ in sent] == [2, 1, 2]
    assert sorted(n for names, other in sent if not other for n in names) == [0, 1, 2]
    assert sent[-1] == ([3, 4], True)


@pytest.mark.parametrize(
    ("policy", "allowed"), [(PLAIN, True), (replace(PLAIN, replication_factor_change="refuse"), False)]
)
def test_the_cluster_refuses_another_count_where_the_policy_does(policy: ExecutionPolicy, *, allowed: bool) -> None:
    """A count that has changed since it was looked at is the cluster's to refuse."""
    _, effects = started(run_of(waiting(move(0, (1, 2), (1, 2, 4))), policy))
    assert [e.allow_replication_factor_change for e in effects if e.kind is EffectKind.SUBMIT] == [allowed]


def test_the_topics_of_the_journal_go_last() -> None:
    """When no other can start and none is on its way, but for one that has stalled."""
    own = MoveRun(move(0, (1, 2), (3, 2), topic=min(STANDS_ON)))
    other, flying, stalled = (MoveRun(A, s) for s in (Planned(), Moving(), Stalled(cause="slow")))
    own_flying = replace(own, stage=Moving())
    assert select_next([own, other], []) == [other]
    assert select_next([own], [flying]) == []
    assert select_next([own], [stalled]) == [own]
    assert select_next([own], [stalled, flying]) == []
    assert select_next([own], [own_flying]) == [own]
    assert select_next([own], []) == [own]


@pytest.mark.parametrize(
    ("foreign", "says", "not_says"),
    [((7,), "moves t-7, and only one", "more"), ((8, 7, 9), "t-7 and 2 more partitions", "t-8")],
)
def test_where_one_batch_may_be_in_flight_that_of_others_is_waited_for(
    foreign: tuple[int, ...], says: str, not_says: str
) -> None:
    """It is named, and counts against the run's patience."""
    listed = {TopicPartition("t", n): Reassignment((1, 2), (2,), (1,)) for n in foreign}
    run = run_of(waiting(A, B), replace(PLAIN, one_batch_at_a_time=True))
    after, effects = started(run, look(state_of(A, B), reassignments=listed))
    assert (codes(after), effects, after.refused_since_s) == ([("another-batch", "t-7")], [], NOW.s)
    assert says in after.verdicts[0].detail
    assert not_says not in after.verdicts[0].detail
    late = replace(run, refused_since_s=990.0, policy=replace(run.policy, guard_timeout_s=10.0))
    ended, _ = started(late, look(state_of(A, B), reassignments=listed))
    assert (ended.phase, ended.status) == (Phase.CANCELLING, Status.REFUSED)
    assert [m.note and m.note.code for m in ended.moves.values()] == ["guard-for-too-long"] * 2


# What is refused.


def test_one_that_is_refused_holds_up_no_other() -> None:
    """All waiting moves are judged then; what may start does, and each refusal is told once."""
    down = [move(n, (1, 2), (9, 2)) for n in (6, 7)]
    picture = look(state_of(A, *down, B, without=(9,)))
    after, effects = started(run_of(waiting(A, *down, B)), picture)
    assert begun(after) == [0, 1]
    assert [sorted(n.partition for n in e.targets) for e in effects] == [[0, 1]]
    assert {c for c, _ in codes(after)} == {"destination-down"}
    assert len(after.verdicts) == 2
    assert after.refused_since_s is None
    assert [after.moves[m.name].note for m in down] == [SAID, SAID]


def test_refusals_of_before_are_judged_anew_while_others_are_on_their_way() -> None:
    """What no longer holds a move is no longer told."""
    down = move(6, (4, 5), (9, 5))
    run = run_of(waiting(A, down, stages={0: Moving()}))
    refused, _ = started(run, look(state_of(A, down, without=(9,))))
    assert (codes(refused), refused.refused_since_s) == ([("destination-down", "broker 9")], None)
    again, effects = started(refused, look(state_of(A, down)))
    assert (again.verdicts, begun(again), len(effects)) == ((), [6], 1)


def test_moves_that_are_over_end_with_their_verdict() -> None:
    """Done already, deleted, or changed by others: they are no longer waited for, and nothing is held against the run."""
    there, gone, other = move(6, (2, 1), (1, 2)), move(7, (1,), (2,)), move(8, (1, 2), (3, 2))
    state = build(
        "c",
        tuple(Broker(b, host="h") for b in range(1, 10)),
        (Topic("t"),),
        [PartitionRow("t", 6, 1, (1, 2), (1, 2)), PartitionRow("t", 8, 4, (4, 5), (4, 5))],
    )
    after, effects = started(run_of(waiting(there, gone, other)), look(state))
    ended = [m.stage for m in after.moves.values()]
    assert ended == [Verified("already-there"), Failed("deleted"), Failed("modified-externally")]
    assert [m.note and m.note.code for m in after.moves.values()] == ["guard"] * 3
    assert "4,5" in after.moves[other.name].detail
    assert {m.entered_s for m in after.moves.values()} == {NOW.s}
    assert (after.verdicts, after.refused_since_s, after.phase, effects) == ((), None, Phase.RUNNING, [])


@pytest.mark.parametrize(
    ("since_s", "patience_s", "gives_up", "told_since_s"),
    [
        (None, 10.0, False, 1_000.0),
        (990.5, 10.0, False, 990.5),
        (990.0, 10.0, True, 990.0),
        (1.0, None, False, 1.0),
        (None, 0.0, True, 1_000.0),
    ],
)
def test_a_run_of_which_every_move_is_refused_gives_up_when_its_patience_is_over(
    since_s: float | None, patience_s: float | None, told_since_s: float, *, gives_up: bool
) -> None:
    """Each move keeps its own reason; those that are over keep theirs."""
    down, gone = move(6, (4, 5), (9, 5)), move(7, (1,), (2,))
    policy = replace(PLAIN, guard_timeout_s=patience_s)
    run = run_of(waiting(down, gone), policy, refused_since_s=since_s)
    after, _ = started(run, look(state_of(down, without=(9,))))
    assert after.refused_since_s == told_since_s
    assert (after.phase, after.status) == (
        (Phase.CANCELLING, Status.REFUSED) if gives_up else (Phase.RUNNING, Status.OPEN)
    )
    held, ended = after.moves[down.name], after.moves[gone.name]
    assert held.stage == Planned()
    assert held.note == (note("guard-for-too-long", verdict=after.verdicts[0]) if gives_up else SAID)
    assert (ended.stage, ended.note and ended.note.code) == (Failed("deleted"), "guard")
    assert codes(after) == [("destination-down", "broker 9")]


@pytest.mark.parametrize("stage", [Moving(), Stalled(cause="slow"), Cancelling()])
def test_a_run_with_a_move_on_its_way_is_not_refused(stage: Stage) -> None:
    """Its patience begins when nothing moves any more."""
    down = move(6, (4, 5), (9, 5))
    run = run_of(waiting(A, down, stages={0: stage}), replace(PLAIN, guard_timeout_s=0.0), refused_since_s=1.0)
    after, _ = started(run, look(state_of(A, down, without=(9,))))
    assert (after.refused_since_s, after.phase) == (None, Phase.RUNNING)


def test_a_fresher_list_of_reassignments_is_judged_by_as_well() -> None:
    """A foreign one holds the move, and the very same one does not."""
    theirs, ours = Reassignment((4, 2, 1), (4,), (1,)), Reassignment((3, 2, 1), (3,), (1,))
    run = run_of(waiting(A))
    after, effects = started(run, look(state_of(A), reassignments={A.name: theirs}))
    assert (codes(after), effects) == ([("foreign-reassignment", "t-0")], [])
    same = look(state_of(A), reassignments={A.name: ours}, sizes={A.name: 10 * MB})
    assert begun(started(run, same)[0]) == [0]


@pytest.mark.parametrize(
    ("state", "given", "code"),
    [
        pytest.param(
            state_of(A, disks={3: ()}), {"unknown_disk_space": "refuse"}, "destination-space-unknown", id="no-room-told"
        ),
        pytest.param(state_of(A, disks={3: ()}), {"unknown_disk_space": "allow"}, None, id="trusted-to-fit"),
        pytest.param(
            state_of(A, move(0, (3, 5), (3, 5), topic="u"), lacking="u"), {}, "under-replicated", id="neighbour"
        ),
        pytest.param(
            state_of(A, move(0, (3, 5), (3, 5), topic="u"), lacking="u"),
            {"guard_under_replicated_neighbours": False},
            None,
            id="neighbours-do-not-count",
        ),
        pytest.param(
            state_of(A, disks={3: (LogDir("/d", total_bytes=100 * MB, usable_bytes=15 * MB),)}), {}, None, id="fits"
        ),
        pytest.param(
            state_of(A, disks={3: (LogDir("/d", total_bytes=100 * MB, usable_bytes=15 * MB),)}),
            {"disk_reserve_fraction": 0.06},
            "destination-full",
            id="reserve",
        ),
    ],
)
def test_guards_judge_by_the_policy(state: ClusterState, given: dict[str, Any], code: str | None) -> None:
    """Each knob reaches the guard that it is for."""
    after, _ = started(run_of(waiting(A), replace(PLAIN, **given)), look(state))
    assert [c for c, _ in codes(after)] == ([] if code is None else [code])
    assert begun(after) == ([] if code else [0])


def test_what_is_on_its_way_takes_room_from_what_waits() -> None:
    """Of this run and of others, and a copy of unknown size takes all of it."""
    first, second = move(0, (1, 2), (3, 2), 30 * MB), move(1, (4, 5), (3, 5), 30 * MB)
    disks = {3: (LogDir("/d", total_bytes=100 * MB, usable_bytes=60 * MB),)}
    run = run_of(waiting(first, second, stages={0: Moving()}))
    assert begun(started(run, look(state_of(first, second, disks=disks)))[0]) == []
    assert begun(started(run_of(waiting(second)), look(state_of(second, disks=disks)))[0]) == [1]
    theirs = {TopicPartition("u", 0): Reassignment((3, 1), (3,), (1,))}
    picture = look(state_of(second, disks=disks), reassignments=theirs, sizes={TopicPartition("u", 0): 30 * MB})
    assert codes(started(run_of(waiting(second)), picture)[0]) == [("destination-full", "broker 3")]
    unknown = run_of(waiting(replace(first, size_bytes=-1), second, stages={0: Moving()}))
    held, _ = started(unknown, look(state_of(second, disks=disks)))
    assert codes(held) == [("destination-space-unknown", "broker 3")]
    grown, _ = started(run_of(waiting(second)), look(state_of(second, disks=disks), sizes={second.name: 56 * MB}))
    assert codes(grown) == [("destination-full", "broker 3")]


def test_a_run_in_order_holds_what_would_take_room_that_an_earlier_move_needs() -> None:
    """It is told with the others that are refused, and does not start."""
    first, second = move(0, (1, 2), (3, 2), 40 * MB), move(1, (4, 5), (3, 5), 30 * MB)
    disks = {3: (LogDir("/d", total_bytes=100 * MB, usable_bytes=50 * MB),)}
    run = run_of(waiting(first, second, stages={0: Planned(retry_at_s=2_000.0)}), in_order=True)
    after, _ = started(run, look(state_of(first, second, disks=disks)))
    assert (codes(after), begun(after)) == ([("space-reserved", "broker 3")], [])
    assert begun(started(replace(run, in_order=False), look(state_of(first, second, disks=disks)))[0]) == [1]


# Throttles.


@pytest.mark.parametrize(
    ("policy", "others", "held"),
    [
        pytest.param(FIXED, {2: 5 * MB, 3: 7 * MB}, "broker 2", id="theirs"),
        pytest.param(FIXED, {9: 5 * MB}, None, id="elsewhere"),
        pytest.param(PLAIN, {2: 5 * MB}, None, id="unthrottled"),
        pytest.param(replace(FIXED, keep_existing_rates=True), {2: 5 * MB}, None, id="shared"),
        pytest.param(replace(FIXED, override_rates_of_others=True), {2: 5 * MB}, None, id="overridden"),
    ],
)
def test_a_broker_that_throttles_moves_of_others_is_left_to_them(
    policy: ExecutionPolicy, others: dict[int, int], held: str | None
) -> None:
    """The first such broker is named with their rate; a repair does not wait."""
    after, _ = started(run_of(waiting(A), policy, rates_of_others=others))
    assert codes(after) == ([] if held is None else [("foreign-throttle", held)])
    assert begun(after) == ([0] if held is None else [])
    if held is not None:
        assert "5.0 MiB/s" in after.verdicts[0].detail
        assert "t-0" in after.verdicts[0].detail
        assert "--keep-rates" in after.verdicts[0].remedy
        repair = move(0, (2, 1), (2, 3))
        mended, _ = started(
            run_of(waiting(repair), policy, rates_of_others=others), look(state_of(repair, without=(1,)))
        )
        assert (codes(mended), begun(mended)) == ([], [0])


def test_a_move_that_is_refused_already_is_not_refused_for_its_throttle() -> None:
    """The guard's own reason comes first."""
    run = run_of(waiting(A), FIXED, rates_of_others={2: MB}, inbound={A.name: 99.0 * MB})
    assert codes(started(run, look(state_of(A, without=(3,))))[0]) == [("destination-down", "broker 3")]


FAST: Final = {A.name: 20.0 * MB}
AUTO: Final = ExecutionPolicy(throttle="auto", auto_start_bytes_per_s=10 * MB, auto_small_copy_s=0.0)


@pytest.mark.parametrize(
    ("policy", "known", "remedy"),
    [
        pytest.param(FIXED, {}, "--raise-throttle", id="fixed"),
        pytest.param(
            replace(AUTO, throttle_per_broker={3: 10 * MB}), {}, "--raise-throttle", id="fixed-for-this-broker"
        ),
        pytest.param(replace(AUTO, auto_max_bytes_per_s=20 * MB), {}, "lower traffic", id="over-the-maximum"),
        pytest.param(
            replace(FIXED, keep_existing_rates=True, raise_throttle=True),
            {"rates_of_others": {3: 12 * MB}},
            "until they have ended",
            id="theirs",
        ),
    ],
)
def test_a_throttle_below_the_inbound_rate_is_refused_with_what_helps(
    policy: ExecutionPolicy, known: dict[str, Any], remedy: str
) -> None:
    """With the arithmetic; the other moves start."""
    run = run_of(waiting(A, B), policy, inbound=FAST, **known)
    after, _ = started(run)
    assert (codes(after), begun(after), after.rates) == ([("throttle-too-low", "t-0")], [1], {})
    assert remedy in after.verdicts[0].remedy
    assert "20.0 MiB/s" in after.verdicts[0].detail
    if remedy == "lower traffic":
        assert "broker 3 at most 20.0 MiB/s" in after.verdicts[0].detail
    if "ended" in remedy:
        assert "12.0 MiB/s" in after.verdicts[0].detail


@pytest.mark.parametrize(
    "policy",
    [replace(FIXED, raise_throttle=True), AUTO, replace(FIXED, raise_throttle=True, override_rates_of_others=True)],
)
def test_a_rate_that_may_be_raised_is_raised_on_each_side(policy: ExecutionPolicy) -> None:
    """Of the destinations and of the leader, which sends to each of them; the others keep theirs."""
    two = move(0, (1, 2), (3, 4))
    run = run_of(
        waiting(two, B), policy, inbound=FAST, rates_of_others={3: 1} if policy.override_rates_of_others else {}
    )
    after, _ = started(run)
    assert (begun(after), after.verdicts) == ([0, 1], ())
    assert after.rates.keys() == {1, 3, 4}
    assert after.rates[3] == after.rates[4] > 20 * MB
    assert after.rates[1] > 40 * MB


def test_a_move_that_none_write_to_hides_no_other_whose_throttle_is_too_low() -> None:
    """Each is judged, whatever comes before it."""
    after, _ = started(run_of(waiting(B, A), FIXED, inbound=FAST))
    assert (begun(after), [v.code for v in after.verdicts]) == ([1], ["throttle-too-low"])


def test_auto_may_give_a_broker_all_of_its_maximum() -> None:
    """To the byte; one that needs a byte more is refused."""
    most = int(FAST[A.name] / SAFE_SHARE) + 1
    for maximum, starts in ((most, [0]), (most - 1, [])):
        after, _ = started(run_of(waiting(A), replace(AUTO, auto_max_bytes_per_s=maximum), inbound=FAST))
        assert begun(after) == starts


@pytest.mark.parametrize(
    ("policy", "inbound"), [(FIXED, {}), (FIXED, {A.name: 0.0}), (FIXED, {A.name: 5.0 * MB}), (PLAIN, FAST)]
)
def test_rates_are_left_alone_where_they_are_above_the_inbound_rate(
    policy: ExecutionPolicy, inbound: dict[TopicPartition, float]
) -> None:
    """Or where there are none."""
    after, _ = started(run_of(waiting(A, B), policy, inbound=inbound))
    assert (begun(after), after.rates, after.verdicts) == ([0, 1], {}, ())


# Caps.


def test_moves_that_copy_nothing_start_together_up_to_their_number() -> None:
    """Those on their way count; moves that copy have their own caps."""
    orders = [move(n, (1, 2), (2, 1)) for n in range(5)]
    policy = replace(PLAIN, no_copy_batch=3, moves_at_once=1)
    copies = move(8, (4, 5), (6, 5))
    assert begun(started(run_of(waiting(*orders, copies), policy))[0]) == [0, 1, 2, 8]
    flying = run_of(waiting(*orders, copies, stages={0: Submitted(), 1: Submitted()}), policy)
    assert begun(started(flying)[0]) == [0, 1, 2, 8]
    full = run_of(waiting(*orders, stages={n: Submitted() for n in range(4)}), policy)
    assert begun(started(full)[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [0, 1, 2]),
        ({"moves_in_per_broker": 2}, [0, 1]),
        ({"moves_out_per_broker": 1}, [0]),
        ({"moves_at_once": 2}, [0, 1]),
        ({"bytes_at_once": 20 * MB}, [0, 1]),
        ({"bytes_at_once": 19 * MB}, [0]),
    ],
)
def test_moves_that_copy_start_within_every_cap(given: dict[str, Any], expected: list[int]) -> None:
    """All of one broker to one other, 10 MiB each."""
    moves = [move(n, (1, 2), (3, 2)) for n in range(3)]
    assert begun(started(run_of(waiting(*moves), replace(PLAIN, **given)))[0]) == expected


def test_what_is_on_its_way_counts_with_what_it_has_left() -> None:
    """By its own progress, by the last reading, and by the plan; one of unknown size fills every bound."""
    moves = [move(n, (1, 2), (3, 2)) for n in range(2)]
    policy = replace(PLAIN, bytes_at_once=20 * MB)

    def fits(sizes: Mapping[TopicPartition, int] | None = None, size: int = 10 * MB, **known: Any) -> bool:
        of = waiting(replace(moves[0], size_bytes=size), stages={0: Moving()}, **known) | waiting(moves[1])
        picture = look(state_of(*moves), sizes=sizes or {})
        return 1 in begun(started(run_of(of, policy), picture)[0])

    assert fits()
    assert not fits({moves[0].name: 11 * MB})
    assert not fits(total_bytes=12 * MB, copied_bytes=1 * MB)
    assert fits(total_bytes=12 * MB, copied_bytes=2 * MB)
    assert not fits({moves[0].name: 5 * MB}, size=11 * MB)
    wide = replace(moves[0], new=(3, 4))
    of = waiting(wide, stages={0: Moving()}) | waiting(moves[1])
    assert begun(started(run_of(of, policy), look(state_of(*moves)))[0]) == []


def test_a_move_on_its_way_whose_partition_the_reading_does_not_show_counts_for_no_leader() -> None:
    """Who leads it is unknown, which is not broker 1."""
    unseen = move(6, (4, 5), (6, 5))
    run = run_of(waiting(A, unseen, stages={6: Moving()}), replace(PLAIN, moves_out_per_broker=1))
    assert begun(started(run, look(state_of(A)))[0]) == [0]
    assert begun(started(run, look(state_of(A, replace(unseen, old=(1, 5)))))[0]) == []


@pytest.mark.parametrize(
    ("size", "sizes", "bound", "together"),
    [
        pytest.param(-1, {}, 100 * MB, False, id="unknown"),
        pytest.param(-1, {}, None, True, id="unknown-without-a-bound"),
        pytest.param(0, {}, 100 * MB, True, id="empty-by-the-plan"),
        pytest.param(-1, {TopicPartition("t", 0): 0}, 100 * MB, True, id="empty-by-a-reading"),
    ],
)
def test_a_move_of_unknown_size_starts_alone_where_bytes_in_flight_are_bounded(
    size: int, sizes: dict[TopicPartition, int], bound: int | None, *, together: bool
) -> None:
    """It may be any number of bytes; an empty partition is none."""
    moves = (move(0, (1, 2), (3, 2), size), B)
    policy = replace(PLAIN, unknown_disk_space="allow", bytes_at_once=bound)
    after, _ = started(run_of(waiting(*moves), policy), look(state_of(*moves), sizes=sizes))
    assert len(begun(after)) == (2 if together else 1)


@pytest.mark.parametrize(("written", "expected"), [(2 * MB, [0, 1]), (6 * MB, [0])])
def test_moves_start_together_only_while_their_rate_keeps_up_with_producers(written: int, expected: list[int]) -> None:
    """What is written to all of them comes to the destination of both."""
    moves = (A, move(1, (4, 5), (3, 5)))
    run = run_of(waiting(*moves), FIXED, inbound={m.name: float(written) for m in moves})
    assert begun(started(run)[0]) == expected


def test_a_full_disk_is_relieved_first() -> None:
    """One that is fuller than 85 %; to its hundredth part, and of brokers that tell both figures."""
    moves = [move(0, (4, 5), (6, 5), 90 * MB), move(1, (1, 2), (3, 2), 1 * MB)]

    def first(usable: int, total: int = 1000) -> int:
        disks = {1: (LogDir("/d", total_bytes=total * MB, usable_bytes=usable * MB),)}
        (n,) = begun(
            started(run_of(waiting(*moves), replace(PLAIN, moves_at_once=1)), look(state_of(*moves, disks=disks)))[0]
        )
        return n

    assert [first(usable) for usable in (500, 151, 150, 149, 0)] == [0, 0, 0, 1, 1]
    assert first(0, total=0) == 0


def test_one_batch_holds_what_one_znode_can() -> None:
    """The first move always goes; what copies nothing goes before what does."""
    orders = [move(n, (1, 2), (2, 1)) for n in range(4)]
    limit = 60 + 2 * json_bytes(orders[0])
    for bytes_, expected in ((limit, [0, 1]), (limit - 1, [0]), (1, [0]), (10**6, [0, 1, 2, 3])):
        policy = replace(PLAIN, one_batch_at_a_time=True, batch_json_bytes=bytes_)
        assert begun(started(run_of(waiting(*orders, move(9, (4, 5), (6, 5))), policy))[0]) == expected
    copies = [move(n, (1, 2), (3, 2)) for n in range(4)]
    policy = replace(PLAIN, one_batch_at_a_time=True, batch_json_bytes=60 + 2 * json_bytes(copies[0]))
    assert begun(started(run_of(waiting(*copies), policy))[0]) == [0, 1]
    assert begun(started(run_of(waiting(*copies), replace(policy, one_batch_at_a_time=False)))[0]) == [0, 1, 2, 3]
