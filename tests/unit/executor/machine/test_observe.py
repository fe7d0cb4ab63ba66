"""What one look says of a move in each stage: that it goes on, that it has ended, or nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from ballast.core.cluster import Broker, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move
from ballast.executor.machine.notes import MoveNote, journaled_note, note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.observe import observe
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run
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
from ballast.executor.machine.stalls import is_broken
from ballast.ports.cluster import BrokerLogs, Outcome, PartitionState, Reassignment, ReplicaLog

NAME: Final = TopicPartition("t", 0)
NOW: Final = Now(1_000_000, 1_000.0)
POLICY: Final = ExecutionPolicy(throttle="none", max_attempts=3, submit_grace_s=15.0, stall_after_s=60.0)
MOVE: Final = Move("t", 0, (1, 2), (3, 2), 100)
SAID: Final = note("not-shown")
OURS: Final = Reassignment((3, 2, 1), (3,), (1,))
THEIRS: Final = Reassignment((4, 2, 1), (4,), (1,))
RESTORED: Final = Reassignment((1, 2), (), ())
"""As clusters with ZooKeeper list it until the controller has taken it."""
UNION: Final = (3, 2, 1)
LATE: Final = {"entered_s": 985.0}
"""In its stage for as long as the grace."""
EARLY: Final = {"entered_s": 985.5}
DIR: Final = LogDir("/data/0")
BROKEN: Final = LogDir("/data/9", error="KAFKA_STORAGE_ERROR")


def seen(
    replicas: tuple[int, ...] | None = UNION,
    listed: Reassignment | None = None,
    *,
    isr: tuple[int, ...] = (1, 2),
    logs: Mapping[int, BrokerLogs] | None = None,
    alive: tuple[int, ...] = (1, 2, 3, 4),
    **known: Any,
) -> Picture:
    """A look at the one partition."""
    return Picture(
        {} if listed is None else {NAME: listed},
        {} if replicas is None else {NAME: PartitionState(1, replicas, isr)},
        frozenset({NAME}),
        frozenset(alive),
        logs=logs,
        **known,
    )


def after(
    stage: Stage, picture: Picture, *, move: Move = MOVE, run: Mapping[str, Any] | None = None, **known: Any
) -> MoveRun:
    """The move after this look."""
    m = MoveRun(move, stage, **{"entered_s": 900.0, "note": SAID, "attempts": 1, **known})
    return observe(Run("r", "test", "c", POLICY, {NAME: m}, {}, **dict(run or {})), picture, NOW).moves[NAME]


def seen_note(code: str, *replicas: int) -> MoveNote:
    """A note on the partition's replicas."""
    return note(code, partition="t-0", replicas=replicas)


REFUSED: Final = Outcome(ok=False, code="POLICY_VIOLATION", message="no")
OTHER_ORDER: Final = note("other-order", partition="t-0", replicas=(2, 1), wanted=(1, 2), answer=None)
CANCELLED: Final = {"run": {"phase": Phase.CANCELLING}}


@pytest.mark.parametrize(
    ("stage", "picture", "known", "expected", "why"),
    [
        # Before it has begun.
        pytest.param(
            Planned(),
            seen(UNION, OURS),
            {},
            Moving(replicas_after_cancel=(2, 1)),
            note("followed"),
            id="planned-and-listed",
        ),
        pytest.param(
            Throttled(),
            seen(UNION, OURS),
            {},
            Moving(replicas_after_cancel=(2, 1)),
            note("followed"),
            id="throttled-and-listed",
        ),
        pytest.param(Throttled(), seen((4, 2, 1), THEIRS), {}, Throttled(), SAID, id="throttled-and-theirs-is-listed"),
        pytest.param(Throttled(), seen((1, 2)), {}, Throttled(), SAID, id="throttled"),
        # Submitted.
        pytest.param(
            Submitted(), seen((4, 2, 1), THEIRS), {}, Failed("overridden"), seen_note("overridden", 4, 2), id="other"
        ),
        pytest.param(
            Submitted(), seen(UNION, OURS), {}, Moving(replicas_after_cancel=(2, 1)), None, id="submitted-and-listed"
        ),
        pytest.param(Submitted(), seen((3, 2)), {}, Moved(), None, id="submitted-and-arrived"),
        pytest.param(Submitted(), seen((1, 2)), EARLY, Submitted(), SAID, id="submitted-within-the-grace"),
        pytest.param(Submitted(), seen((1, 2)), {**LATE, "attempts": 2}, Planned(), SAID, id="submitted-again"),
        pytest.param(Submitted(), seen((1, 2)), {**LATE, "note": None}, Planned(), note("not-shown"), id="not-shown"),
        pytest.param(Submitted(), seen((1, 2)), {"attempts": 3}, Failed("rejected"), SAID, id="rejected"),
        pytest.param(
            Submitted(),
            seen((1, 2)),
            {"attempts": 3, "note": None},
            Failed("not-taken"),
            note("never-shown", partition="t-0", attempts=3),
            id="never-shown",
        ),
        # Moving.
        pytest.param(
            Moving(), seen((4, 2, 1), THEIRS), {}, Failed("overridden"), seen_note("overridden", 4, 2), id="overridden"
        ),
        pytest.param(Moving(), seen((3, 2)), {}, Moved(), None, id="arrived"),
        pytest.param(Moving(), seen(UNION), {}, Moving(unlisted_since_s=1_000.0), SAID, id="no-longer-listed"),
        pytest.param(
            Moving(unlisted_since_s=985.5), seen(UNION), {}, Moving(unlisted_since_s=985.5), SAID, id="a-moment"
        ),
        pytest.param(
            Moving(unlisted_since_s=985.0),
            seen((1, 2)),
            {},
            Failed("cancelled-externally"),
            seen_note("not-moving", 1, 2),
            id="cancelled-by-others",
        ),
        pytest.param(
            Stalled(unlisted_since_s=985.0, cause="slow"),
            seen((1, 2)),
            {},
            Failed("cancelled-externally"),
            seen_note("not-moving", 1, 2),
            id="stalled-and-cancelled-by-others",
        ),
        pytest.param(
            Moving(unlisted_since_s=1.0, replicas_after_cancel=(1, 2), cancel_at_s=7.0),
            seen(UNION, OURS),
            {},
            Moving(replicas_after_cancel=(2, 1), cancel_at_s=7.0),
            SAID,
            id="listed-again",
        ),
        pytest.param(
            Moving(unlisted_since_s=1.0, replicas_after_cancel=(2, 1)),
            seen(UNION, OURS),
            {},
            Moving(replicas_after_cancel=(2, 1)),
            SAID,
            id="listed-as-before",
        ),
        pytest.param(
            Stalled(cause="slow"),
            seen(UNION, OURS),
            {},
            Stalled(replicas_after_cancel=(2, 1), cause="slow"),
            SAID,
            id="stalled",
        ),
        # Cancelling.
        pytest.param(
            Cancelling(), seen((4, 2, 1), THEIRS), {}, Failed("overridden"), seen_note("overridden", 4, 2), id="c-other"
        ),
        pytest.param(Cancelling(), seen(UNION, OURS), EARLY, Cancelling(), SAID, id="cancel-on-its-way"),
        pytest.param(
            Cancelling((2, 1), raced=True),
            seen(UNION, OURS),
            LATE,
            Moving(replicas_after_cancel=(2, 1), raced=True),
            note("cancel-without-effect"),
            id="cancel-lost",
        ),
        pytest.param(
            Cancelling(raced=True), seen((1, 4)), {}, Failed("modified-externally"), SAID, id="raced-and-cancelled"
        ),
        pytest.param(
            Cancelling(), seen((1, 2)), {**EARLY, **CANCELLED}, Cancelling(), SAID, id="back-by-metadata-alone"
        ),
        pytest.param(
            Cancelling(), seen((1, 2)), {**LATE, **CANCELLED}, RolledBack("rolled-back"), None, id="back-for-long"
        ),
        pytest.param(Cancelling(), seen((1, 2)), LATE, RolledBack("timed-out"), SAID, id="back-as-its-time-was-up"),
        pytest.param(
            Cancelling((1, 2), acknowledged=True),
            seen((1, 2)),
            {"entered_s": 1e3},
            RolledBack("timed-out"),
            SAID,
            id="certain",
        ),
        pytest.param(
            Cancelling((1, 2), acknowledged=True),
            seen((1, 2)),
            {**EARLY, "unconfirmed": True},
            Cancelling((1, 2), acknowledged=True),
            SAID,
            id="a-submission-may-come",
        ),
        pytest.param(
            Cancelling((2, 1), acknowledged=True),
            seen((1, 2)),
            EARLY,
            Cancelling((2, 1), acknowledged=True),
            SAID,
            id="another-order-is-left",
        ),
        pytest.param(Cancelling((1, 2)), seen((1, 2)), EARLY, Cancelling((1, 2)), SAID, id="not-acknowledged"),
        pytest.param(Cancelling(), seen((3, 2)), EARLY, Cancelling(), SAID, id="arrived-by-metadata-alone"),
        pytest.param(Cancelling(), seen((3, 2)), LATE, Moved(), note("arrived-before-cancel"), id="arrived-before"),
        pytest.param(Cancelling(), seen((2, 1)), LATE, Cancelling(), SAID, id="old-brokers-in-another-order"),
        # Restoring.
        pytest.param(Restoring(), seen((1, 2)), EARLY, RolledBack("timed-out"), SAID, id="restored"),
        pytest.param(Restoring(), seen((1, 2)), CANCELLED, RolledBack("rolled-back"), None, id="restored-as-asked"),
        pytest.param(Restoring(), seen((1, 2)), {**EARLY, "unconfirmed": True}, Restoring(), SAID, id="may-come-still"),
        pytest.param(
            Restoring(), seen((1, 2)), {**LATE, "unconfirmed": True}, RolledBack("timed-out"), SAID, id="quiet"
        ),
        pytest.param(
            Restoring(),
            seen((1, 2), OURS),
            EARLY,
            Moving(replicas_after_cancel=(2, 1)),
            note("reassignment-reappeared"),
            id="reassignment-reappeared",
        ),
        pytest.param(
            Restoring(),
            seen(None, OURS),
            {},
            Moving(replicas_after_cancel=(2, 1)),
            note("reassignment-reappeared"),
            id="begun-and-not-shown",
        ),
        pytest.param(
            Restoring(), seen(None, THEIRS), {}, Failed("overridden"), seen_note("overridden", 4, 2), id="theirs"
        ),
        pytest.param(Restoring(), seen(None, RESTORED), {}, Restoring(), SAID, id="being-restored-and-not-shown"),
        pytest.param(Restoring(), seen((1, 2), RESTORED), {}, Restoring(), SAID, id="being-restored"),
        pytest.param(Restoring(), seen((2, 1)), {"attempts": 2}, Restoring(), SAID, id="other-order"),
        pytest.param(Restoring(), seen((2, 1)), {"attempts": 3}, Failed("rejected"), OTHER_ORDER, id="in-vain"),
        pytest.param(
            Restoring(),
            seen((2, 1)),
            {"attempts": 3, "note": note("order-refused", answer=REFUSED)},
            Failed("rejected"),
            note("other-order", **{**OTHER_ORDER.values, "answer": REFUSED}),
            id="in-vain-and-answered",
        ),
        pytest.param(
            Restoring(), seen((2, 1)), {"attempts": 3, "note": None}, Failed("rejected"), OTHER_ORDER, id="no-note"
        ),
        pytest.param(
            Restoring(),
            seen((2, 1)),
            {"attempts": 3, "note": journaled_note("Refused.", "order-refused", {"answer": "POLICY_VIOLATION: no"})},
            Failed("rejected"),
            OTHER_ORDER,
            id="answered-to-a-process-before",
        ),
        pytest.param(
            Restoring(1_000.0),
            seen((2, 1)),
            {"attempts": 3, "entered_s": 970.0},
            Failed("rejected"),
            OTHER_ORDER,
            id="due",
        ),
        pytest.param(
            Restoring(1_001.0), seen((2, 1)), {"attempts": 3}, Restoring(1_001.0), SAID, id="last-one-on-its-way"
        ),
        pytest.param(
            Restoring(), seen((2, 1)), {"attempts": 3, "entered_s": 970.5}, Restoring(), SAID, id="twice-the-grace"
        ),
        pytest.param(
            Restoring(),
            seen((5, 1)),
            {},
            Failed("modified-externally"),
            note("changed-after-cancel", partition="t-0", replicas=(5, 1), wanted=(1, 2)),
            id="other-brokers",
        ),
        # Arrived, and its throttle gone.
        pytest.param(Unthrottled(), seen((3, 2), isr=(3, 2)), {}, Verified(), None, id="in-sync"),
        pytest.param(
            Unthrottled(), seen((3, 2)), {"entered_s": 940.5}, Unthrottled(), SAID, id="out-of-sync-for-a-moment"
        ),
        pytest.param(
            Unthrottled(),
            seen((3, 2)),
            {"entered_s": 940.0},
            Failed("out-of-sync"),
            note("fell-out-of-sync", partition="t-0", broker=3),
            id="out-of-sync",
        ),
        pytest.param(Unthrottled(), seen((1, 2), isr=(3, 2)), EARLY, Unthrottled(), SAID, id="older-metadata"),
        pytest.param(
            Unthrottled(),
            seen((1, 2), isr=(3, 2)),
            LATE,
            Failed("modified-externally"),
            seen_note("changed-after-arrival", 1, 2),
            id="changed-after-arrival",
        ),
        pytest.param(
            Unthrottled(),
            seen((3, 2), THEIRS),
            EARLY,
            Failed("modified-externally"),
            seen_note("changed-after-arrival", 3, 2),
            id="moved-on-by-others",
        ),
    ],
)
def test_each_stage_after_one_look(
    stage: Stage, picture: Picture, known: dict[str, Any], expected: Stage, why: MoveNote | None
) -> None:
    """The stage, what is said of it, and since when it is in it."""
    m = after(stage, picture, **known)
    if isinstance(m.stage, Moving) and not isinstance(stage, Moving | Cancelling):
        assert (m.stage.grown_at_s, m.stage.mark_s, m.stage.mark_left_bytes) == (1_000.0, 1_000.0, 100)
    if isinstance(m.stage, Moving | Stalled):
        m = replace(m, stage=replace(m.stage, grown_at_s=0.0, mark_s=0.0, mark_left_bytes=0))
    assert m.stage == expected
    assert m.note == why
    entered = (NOW.s, NOW.ms) if type(stage) is not type(expected) else (known.get("entered_s", 900.0), 0)
    assert (m.entered_s, m.since_ms) == entered


def test_a_reassignment_is_ours_whatever_its_order() -> None:
    """Kafka may list the replicas of the union in any."""
    m = after(Submitted(), seen((1, 2, 3), Reassignment((1, 2, 3), (3,), (1,))))
    assert isinstance(m.stage, Moving)
    assert m.stage.replicas_after_cancel == (1, 2)


def test_a_move_between_log_dirs_alone_follows_no_reassignment() -> None:
    """One to the brokers that it has copies nothing of its own."""
    move = Move("t", 0, (1, 2), (1, 2), 100, log_dirs=("/data/1", "any"))
    assert after(Throttled(), seen((1, 2), Reassignment((1, 2), (), ())), move=move).stage == Throttled()


STATE: Final = build(
    "c",
    tuple(Broker(b, host="h") for b in (1, 2, 3)),
    (Topic("t", topic_id="T"), Topic("s", topic_id="S")),
    [PartitionRow("t", 0, 1, (1, 2), (1, 2)), PartitionRow("s", 0, 1, (1, 2), (1, 2))],
    api=frozenset({"reassign"}),
)


@pytest.mark.parametrize(
    ("listed", "state", "unconfirmed", "raced"),
    [
        pytest.param(Reassignment((3, 2, 4), (3,), (4,)), STATE, False, True, id="another-list"),
        pytest.param(OURS, STATE, False, False, id="the-planned-one"),
        pytest.param(Reassignment((3, 2), (), ()), STATE, False, False, id="arriving"),
        pytest.param(Reassignment((3, 2, 4), (3,), (4,)), STATE, True, False, id="perhaps-not-ours"),
        pytest.param(Reassignment((3, 2, 4), (3,), (4,)), None, False, False, id="no-reading"),
        pytest.param(
            Reassignment((3, 2, 4), (3,), (4,)), replace(STATE, api=frozenset()), False, False, id="list-does-not-tell"
        ),
    ],
)
def test_a_move_that_began_from_another_list_is_known_by_its_way_back(
    listed: Reassignment, state: Any, *, unconfirmed: bool, raced: bool
) -> None:
    """Only where the list tells and the submission is known to be this process's own."""
    m = after(Submitted(), seen(UNION, listed, state=state), unconfirmed=unconfirmed)
    assert isinstance(m.stage, Moving)
    assert (m.stage.raced, m.stage.replicas_after_cancel) == (
        raced,
        tuple(b for b in listed.replicas if b not in listed.adding),
    )
    assert m.note == (seen_note("assignment-changed-during-submit", 2, 4) if raced else None)


# The topic, and whether it is there.


@pytest.mark.parametrize(
    ("known", "told", "expected"),
    [("T", "T", None), (None, "T", "T"), ("S", "T", "failed"), ("T", None, None)],
)
@pytest.mark.parametrize("looked_at", [True, False])
def test_another_topic_of_the_name_is_left_alone(
    known: str | None, told: str | None, expected: str | None, *, looked_at: bool
) -> None:
    """By its id, which is kept once it is told; a move that waits is told by the whole reading."""
    state = replace(STATE, topics=tuple(replace(t, topic_id=told if t.name == "t" else "S") for t in STATE.topics))
    picture = seen((1, 2), state=state)
    if looked_at:
        picture = replace(picture, partitions={NAME: PartitionState(1, (1, 2), (1, 2), told)}, state=None)
    else:
        picture = replace(picture, names=frozenset())
    m = after(Planned(), picture, topic_id=known)
    if expected == "failed":
        assert m.stage == Failed("topic-recreated")
        assert (m.note, m.entered_s) == (note("topic-recreated", topic="t", was="S", now="T"), NOW.s)
    else:
        assert (m.stage, m.topic_id, m.note) == (Planned(), expected or known, SAID)


def test_a_move_that_waits_is_not_looked_for_in_vain() -> None:
    """Without a whole reading, or one that lacks it, nothing is concluded."""
    other = build("c", (), (Topic("s", topic_id="S"),), [])
    for state in (None, other):
        m = after(Planned(), replace(seen(None), names=frozenset(), state=state), topic_id="T")
        assert (m.stage, m.down_since_s) == (Planned(), None)


@pytest.mark.parametrize(
    ("down_since_s", "grace_s", "gone"),
    [(None, 15.0, False), (995.5, 15.0, False), (995.0, 15.0, True), (998.0, 2.0, True), (998.5, 2.0, False)],
)
def test_what_neither_list_knows_is_deleted(down_since_s: float | None, grace_s: float, *, gone: bool) -> None:
    """After five seconds, or the grace where that is shorter; the controller's list alone is enough to go on."""
    m = MoveRun(MOVE, Moving(), down_since_s=down_since_s, entered_s=900.0)
    run = Run("r", "test", "c", replace(POLICY, submit_grace_s=grace_s), {NAME: m}, {})
    found = observe(run, seen(None), NOW).moves[NAME]
    if gone:
        assert (found.stage, found.note) == (Failed("deleted"), note("deleted", partition="t-0"))
        assert found.entered_s == NOW.s
    else:
        assert (found.stage, found.down_since_s) == (Moving(), NOW.s if down_since_s is None else down_since_s)
    listed = observe(run, seen(None, OURS), NOW).moves[NAME]
    assert (listed.stage, listed.down_since_s) == (Moving(replicas_after_cancel=(2, 1)), None)


def test_every_move_is_looked_at_and_what_has_ended_is_not() -> None:
    """One that has ended may be moved by others; a look that tells nothing new leaves the run as it is."""
    names = [TopicPartition("t", n) for n in range(3)]
    stages = (Verified(), Submitted(), Submitted())
    of = {
        n: MoveRun(replace(MOVE, partition=n.partition), s, entered_s=999.0) for n, s in zip(names, stages, strict=True)
    }
    run = Run("r", "test", "c", POLICY, of, {})
    picture = Picture(
        {names[0]: THEIRS},
        {n: PartitionState(1, (3, 2), (3, 2)) for n in names},
        frozenset(names),
        frozenset({1, 2, 3}),
    )
    found = observe(run, picture, NOW)
    assert [m.stage for m in found.moves.values()] == [Verified(), Moved(), Moved()]
    assert found.moves[names[0]] is of[names[0]]
    quiet = replace(picture, partitions={n: PartitionState(1, (1, 2), (1, 2)) for n in names})
    assert observe(run, quiet, NOW) is run
    assert observe(run, replace(quiet, rates_of_others={3: 5}), NOW).rates_of_others == {3: 5}


# Bytes.


def logs(*sizes: int, on: tuple[int, ...] = (3,), path: str = "/data/0", future: bool = False) -> dict[int, BrokerLogs]:
    """These bytes of the partition on each of these brokers."""
    there = tuple(ReplicaLog(path, size, 0, is_future=future) for size in sizes)
    return {b: BrokerLogs((DIR,), {NAME: there} if there else {}) for b in on}


TWO: Final = Move("t", 0, (1, 2), (3, 4), 100)
BOTH: Final = Reassignment((3, 4, 1, 2), (3, 4), (1, 2))


@pytest.mark.parametrize(
    ("stage", "read", "sizes", "expected"),
    [
        pytest.param(Moving(), {**logs(30), **logs(20, on=(4,))}, {}, (50, 200), id="by-the-plan"),
        pytest.param(Moving(), {**logs(30), **logs(20, on=(4,))}, {NAME: 150}, (50, 300), id="grown-since"),
        pytest.param(Moving(), {**logs(30), **logs(20, on=(4,))}, {NAME: 50}, (50, 200), id="plan-says-more"),
        pytest.param(Moving(), logs(30), {}, (7, 190), id="one-is-silent"),
        pytest.param(Moving(), {}, {}, (7, 190), id="both-are-silent"),
        pytest.param(Moving(), None, {}, (7, 190), id="not-read"),
        pytest.param(Moving(), {**logs(), **logs(20, on=(4,))}, {}, (20, 200), id="not-created"),
        pytest.param(Cancelling(), {**logs(30), **logs(20, on=(4,))}, {}, (50, 200), id="while-it-is-cancelled"),
        pytest.param(Submitted(), {**logs(30), **logs(20, on=(4,))}, {}, (7, 190), id="not-begun"),
    ],
)
def test_bytes_that_arrive_are_counted_at_every_destination(
    stage: Stage, read: Mapping[int, BrokerLogs] | None, sizes: dict[TopicPartition, int], expected: tuple[int, int]
) -> None:
    """What an unreachable broker holds is not known, and what was known stands."""
    replicas, listed = ((1, 2), None) if isinstance(stage, Submitted) else ((3, 4, 1, 2), BOTH)
    picture = seen(replicas, listed, logs=read, sizes=sizes)
    m = after(stage, picture, move=TWO, copied_bytes=7, total_bytes=190, entered_s=999.0)
    assert (m.copied_bytes, m.total_bytes) == expected


def test_a_size_that_no_broker_tells_leaves_the_total_as_it_was() -> None:
    """Of the plan or of a reading, whichever there is."""
    move = replace(MOVE, size_bytes=-1)
    for total in (None, 90):
        m = after(Moving(), seen(UNION, OURS, logs=logs(30)), move=move, total_bytes=total)
        assert (m.copied_bytes, m.total_bytes) == (30, total)


@pytest.mark.parametrize(
    ("grown_at_s", "size", "expected"),
    [
        pytest.param(990.0, 25, (1_000.0, 0.0, 80), id="grown"),
        pytest.param(990.0, 30, (1_000.0, 1_000.0, 70), id="by-a-tenth"),
        pytest.param(990.0, 20, (990.0, 0.0, 80), id="the-same"),
        pytest.param(990.0, 10, (990.0, 0.0, 90), id="truncated"),
        pytest.param(940.0, 21, (1_000.0, 1_000.0, 79), id="after-a-standstill"),
        pytest.param(940.5, 21, (1_000.0, 0.0, 80), id="not-quite-a-standstill"),
    ],
)
def test_growth_is_noted_with_its_time(grown_at_s: float, size: int, expected: tuple[float, float, int]) -> None:
    """What goes on after a standstill gets its time anew."""
    stage = Moving(grown_at_s=grown_at_s, mark_left_bytes=80, replicas_after_cancel=(2, 1))
    m = MoveRun(MOVE, stage, copied_bytes=20, total_bytes=100, entered_s=999.0)
    run = Run("r", "test", "c", replace(POLICY, stall_min_s=5_000.0), {NAME: m}, {})
    found = observe(run, seen(UNION, OURS, logs=logs(size)), NOW).moves[NAME].stage
    assert isinstance(found, Moving)
    assert (found.grown_at_s, found.mark_s, found.mark_left_bytes) == expected


# Standstill.

QUIET: Final[dict[str, Any]] = {"copied_bytes": 20, "total_bytes": 100}


@pytest.mark.parametrize(
    ("stage", "entered_s", "alive", "expected", "cause"),
    [
        pytest.param(Moving(grown_at_s=941.0, mark_s=990.0), 900.0, 3, Moving, None, id="copied-lately"),
        pytest.param(Moving(grown_at_s=940.0, mark_s=990.0), 900.0, 3, Stalled, "fetch-errors", id="idle"),
        pytest.param(Moving(grown_at_s=999.0, mark_s=700.0, mark_left_bytes=90), 900.0, 3, Stalled, "slow", id="late"),
        pytest.param(Moving(grown_at_s=999.0, mark_s=990.0), 985.0, 0, Stalled, "destination-down", id="down"),
        pytest.param(Moving(grown_at_s=999.0, mark_s=990.0), 985.5, 0, Moving, None, id="down-a-moment-ago"),
        pytest.param(Stalled(grown_at_s=999.0, mark_s=990.0, cause="slow"), 998.0, 3, Moving, None, id="copies-again"),
        pytest.param(
            Stalled(grown_at_s=998.0, mark_s=990.0, cause="slow"),
            998.0,
            3,
            Stalled,
            "fetch-errors",
            id="no-growth-since",
        ),
        pytest.param(
            Stalled(grown_at_s=999.0, mark_s=990.0, cause="slow"),
            998.0,
            0,
            Stalled,
            "destination-down",
            id="died-since",
        ),
        pytest.param(
            Stalled(grown_at_s=940.0, mark_s=990.0, cause="fetch-errors"),
            900.0,
            3,
            Stalled,
            None,
            id="the-same-cause",
        ),
    ],
)
def test_a_move_that_stands_still_is_named_with_its_cause(
    stage: Moving | Stalled, entered_s: float, alive: int, expected: type[Stage], cause: str | None
) -> None:
    """Idle, late or broken; named anew only where the cause is another."""
    stage = replace(stage, replicas_after_cancel=(2, 1))
    picture = seen(UNION, OURS, logs=logs(20), alive=(1, 2, alive))
    m = after(stage, picture, entered_s=entered_s, **QUIET)
    assert type(m.stage) is expected
    if cause is not None:
        assert isinstance(m.stage, Stalled)
        assert (m.stage.cause, m.note and m.note.code) == (cause, cause)
    elif expected is type(stage):
        assert (m.stage, m.note) == (stage, SAID)
    else:
        assert (m.note, m.entered_s) == (None, NOW.s)
        assert isinstance(m.stage, Moving)
        assert m.stage.grown_at_s == NOW.s
    assert m.entered_s == (NOW.s if expected is not type(stage) else entered_s)


def test_what_producers_add_is_no_progress_of_the_copy() -> None:
    """A partition that is written to grows at every reading, and its copy is named as standing still all the same."""
    stage = Moving(grown_at_s=940.0, mark_s=990.0, replicas_after_cancel=(2, 1))
    m = after(stage, seen(UNION, OURS, logs=logs(20), sizes={NAME: 150}), **QUIET)
    assert (m.copied_bytes, m.total_bytes, m.cause) == (20, 150, "fetch-errors")


def test_the_rate_of_the_leader_counts_for_the_time_of_a_move() -> None:
    """One that sends slowly is given the time for that; and nothing at all is another cause than too little."""
    policy = replace(POLICY, throttle=1_000, throttle_per_broker={1: 1})
    stage = Moving(grown_at_s=999.0, mark_s=600.0, mark_left_bytes=10_000, replicas_after_cancel=(2, 1))
    m = MoveRun(replace(MOVE, size_bytes=10_000), stage, entered_s=900.0, total_bytes=10_000)
    run = Run("r", "test", "c", policy, {NAME: m}, {})
    picture = seen(UNION, OURS, logs=logs(0))
    assert isinstance(observe(run, picture, NOW).moves[NAME].stage, Moving)
    led_by_2 = replace(picture, partitions={NAME: PartitionState(2, UNION, (1, 2))})
    assert observe(run, led_by_2, NOW).moves[NAME].cause == "slow"
    idle = replace(run, moves={NAME: replace(m, stage=replace(stage, grown_at_s=600.0))})
    assert observe(idle, led_by_2, NOW).moves[NAME].cause == "fetch-errors"


def test_a_standstill_is_judged_when_destinations_were_read_or_one_is_down() -> None:
    """A look without a reading tells nothing new of the others."""
    stage = Moving(grown_at_s=0.0, replicas_after_cancel=(2, 1))
    assert type(after(stage, seen(UNION, OURS)).stage) is Moving
    assert type(after(stage, seen(UNION, OURS, alive=(1, 2))).stage) is Stalled
    assert type(after(stage, seen(UNION, OURS, logs={})).stage) is Stalled
    assert type(after(stage, seen(None, OURS, logs={})).stage) is Stalled


@pytest.mark.parametrize(
    ("move", "read", "alive", "broken"),
    [
        pytest.param(MOVE, None, (1, 2, 3), False, id="not-read"),
        pytest.param(MOVE, None, (1, 2), True, id="down"),
        pytest.param(MOVE, None, (3,), False, id="only-old-brokers-are-down"),
        pytest.param(MOVE, {3: BrokerLogs((DIR, BROKEN), {})}, (1, 2, 3), True, id="failed-and-nothing-there"),
        pytest.param(MOVE, {3: BrokerLogs((DIR,), {})}, (1, 2, 3), False, id="nothing-there"),
        pytest.param(
            MOVE, {3: BrokerLogs((DIR, BROKEN), logs(0)[3].replicas)}, (1, 2, 3), False, id="copies-elsewhere"
        ),
        pytest.param(MOVE, {2: BrokerLogs((BROKEN,), {})}, (1, 2, 3), False, id="not-a-destination"),
        pytest.param(TWO, {4: BrokerLogs((BROKEN,), {})}, (3, 4), True, id="the-second-destination"),
        pytest.param(TWO, {}, (3,), True, id="the-second-destination-is-down"),
    ],
)
def test_a_destination_is_broken_when_it_plainly_cannot_take_the_copy(
    move: Move, read: Mapping[int, BrokerLogs] | None, alive: tuple[int, ...], *, broken: bool
) -> None:
    """Down, or a log dir of it failed and it has no replica yet; any one of them is enough."""
    assert is_broken(MoveRun(move, Moving()), seen(logs=read, alive=alive)) is broken


# Between log dirs.

STAYS: Final = Move("t", 0, (1, 2), (1, 2), 100, log_dirs=("/data/1", "any"))
HERE: Final = ReplicaLog("/data/0", 100, 0)
COPY: Final = ReplicaLog("/data/1", 40, 0, is_future=True)
THERE: Final = ReplicaLog("/data/1", 100, 0)


def of_one(*places: ReplicaLog) -> dict[int, BrokerLogs]:
    """What broker 1 says of its replica."""
    return {1: BrokerLogs((DIR,), {NAME: places})}


@pytest.mark.parametrize(
    ("read", "known", "expected"),
    [
        pytest.param(of_one(HERE, COPY), {}, Relocating, id="on-its-way"),
        pytest.param(of_one(THERE), {}, Moved, id="there"),
        pytest.param(None, {}, Relocating, id="not-read"),
        pytest.param({}, {}, Relocating, id="silent"),
        pytest.param(of_one(HERE), {"seen": True}, Failed, id="gone"),
        pytest.param(of_one(HERE), {}, Relocating, id="never-seen"),
        pytest.param(of_one(HERE), {"seen": True, **CANCELLED}, Relocating, id="gone-as-asked"),
    ],
)
def test_a_copy_between_log_dirs_after_one_look(
    read: Mapping[int, BrokerLogs] | None, known: dict[str, Any], expected: type[Stage]
) -> None:
    """It has arrived when its broker says so, and is over when others stopped it."""
    seen_on = frozenset({1}) if known.get("seen") else frozenset()
    stage = Relocating(grown_at_s=999.0, mark_s=999.0, seen_on=seen_on)
    m = after(stage, seen((1, 2), logs=read), move=STAYS, **{k: v for k, v in known.items() if k != "seen"})
    assert type(m.stage) is expected
    if expected is Failed:
        assert (m.stage, m.note, m.entered_s) == (Failed("log-dir"), note("copy-gone", broker=1), NOW.s)
    if expected is Moved:
        assert (m.stage, m.note, m.entered_s) == (Moved(), None, NOW.s)
    if isinstance(m.stage, Relocating):
        assert m.stage.seen_on == (seen_on | {1} if read == of_one(HERE, COPY) else seen_on)
    given_up = replace(stage, given_up=True, seen_on=frozenset({1}))
    assert isinstance(after(given_up, seen((1, 2), logs=of_one(HERE)), move=STAYS).stage, Relocating)


def test_bytes_between_log_dirs_come_on_top_of_those_from_other_brokers() -> None:
    """Those have arrived; where their size is not known, nothing is added up."""
    moved = Move("t", 0, (3, 2), (1, 2), 100, log_dirs=("/data/1", "any"))
    for move, expected in (
        (STAYS, (40, 100)),
        (moved, (140, 200)),
        (replace(moved, old=(3, 4)), (240, 300)),
        (replace(moved, size_bytes=-1), (7, 90)),
    ):
        m = after(Relocating(), seen((1, 2), logs=of_one(HERE, COPY)), move=move, copied_bytes=7, total_bytes=90)
        assert (m.copied_bytes, m.total_bytes) == expected
    told = seen((1, 2), logs=of_one(HERE, COPY), sizes={NAME: 120})
    m = after(Relocating(), told, move=moved, copied_bytes=7, total_bytes=90)
    assert (m.copied_bytes, m.total_bytes) == (160, 220)
    m = after(Relocating(), seen((1, 2), logs={}), move=STAYS, copied_bytes=7, total_bytes=90)
    assert (m.copied_bytes, m.total_bytes) == (7, 90)


def copying(*alive: int) -> Picture:
    """Broker 1 told of a copy on its way."""
    return seen((1, 2), logs=of_one(HERE, COPY), alive=alive)


def unread(*alive: int) -> Picture:
    """No log dir was read."""
    return seen((1, 2), alive=alive)


@pytest.mark.parametrize(
    ("stage", "picture", "known", "cause", "named_s"),
    [
        pytest.param(Relocating(grown_at_s=941.0), copying(1, 2), {}, "", 0.0, id="copied-lately"),
        pytest.param(Relocating(grown_at_s=940.0), copying(1, 2), {}, "log-dir-copy", 1e3, id="idle"),
        pytest.param(Relocating(), unread(1, 2), {}, "", 0.0, id="not-read"),
        pytest.param(Relocating(), unread(2), {}, "destination-down", 1e3, id="down-and-not-read"),
        pytest.param(Relocating(), copying(2), {}, "destination-down", 1e3, id="down"),
        pytest.param(
            Relocating(cause="log-dir-copy", named_s=5.0),
            copying(2),
            {},
            "destination-down",
            5.0,
            id="other",
        ),
        pytest.param(
            Relocating(cause="log-dir-copy", named_s=5.0),
            copying(1, 2),
            {},
            "log-dir-copy",
            5.0,
            id="the-same",
        ),
        pytest.param(Relocating(given_up=True), copying(1, 2), {}, "", 0.0, id="given-up"),
        pytest.param(Relocating(), copying(1, 2), CANCELLED, "", 0.0, id="cancelled"),
    ],
)
def test_a_copy_between_log_dirs_that_stands_still_is_named(
    stage: Relocating,
    picture: Picture,
    known: dict[str, Any],
    cause: str,
    named_s: float,
) -> None:
    """With the time of its first cause, by which the run's patience goes; another cause is said, the same is not again."""
    stage = replace(stage, mark_s=990.0, mark_left_bytes=60)
    m = after(stage, picture, move=STAYS, copied_bytes=40, total_bytes=100, **known)
    assert isinstance(m.stage, Relocating)
    assert (m.stage.cause, m.stage.named_s) == (cause, named_s)
    assert (m.note and m.note.code) == (cause if cause != stage.cause else SAID.code)


def test_a_copy_between_log_dirs_that_goes_on_has_no_cause_any_more() -> None:
    """Nor a note; one that had none keeps what was said of it."""
    stage = Relocating(grown_at_s=990.0, mark_s=990.0, mark_left_bytes=60, cause="log-dir-copy", named_s=5.0)
    m = after(stage, seen((1, 2), logs=of_one(HERE, COPY)), move=STAYS, copied_bytes=40, total_bytes=100)
    assert isinstance(m.stage, Relocating)
    assert (m.stage.cause, m.note) == ("", None)
    late = replace(stage, mark_s=700.0, cause="")
    m = after(late, seen((1, 2), logs=of_one(HERE, COPY)), move=STAYS, copied_bytes=40, total_bytes=100)
    assert (m.cause, m.note and m.note.code) == ("slow", "slow")


# Elections.


def test_an_election_without_an_answer_is_asked_for_again() -> None:
    """As often as the policy allows; what waits ends with a run that is cancelled."""
    asked = ElectionRun(ElectionStage.REQUESTED, 2, retry_at_s=1_000.0)
    of = {
        "again": asked,
        "last": replace(asked, attempts=3),
        "said": replace(asked, attempts=3, note=SAID),
        "later": replace(asked, retry_at_s=1_001.0),
        "waits": ElectionRun(),
        "held": ElectionRun(ElectionStage.COMPLETED),
    }
    run = Run("r", "test", "c", POLICY, {}, {TopicPartition(t, 0): e for t, e in of.items()})
    unheard = note("election-unanswered")
    for phase in (Phase.RUNNING, Phase.CANCELLING):
        told = {n.topic: e for n, e in observe(replace(run, phase=phase), seen(), NOW).elections.items()}
        assert (told["again"].stage, told["again"].note) == (ElectionStage.WAITING, unheard)
        assert (told["last"].stage, told["last"].note) == (ElectionStage.FAILED, unheard)
        assert (told["said"].stage, told["said"].note) == (ElectionStage.FAILED, SAID)
        assert told["later"] is of["later"]
        assert told["held"] is of["held"]
        if phase is Phase.RUNNING:
            assert told["waits"] is of["waits"]
        else:
            assert (told["waits"].stage, told["waits"].note) == (ElectionStage.FAILED, note("election-cancelled"))
