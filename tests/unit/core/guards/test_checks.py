"""Whom each guard names and with which figures, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Topic, build
from ballast.core.cluster import TopicPartition as Name
from ballast.core.guards import Verdict, judge, repairs, rooms
from ballast.core.guards.checks import unhealthy_partitions
from ballast.core.plan import Move

MB = 1 << 20
DISK = LogDir("/d", total_bytes=1000 * MB, usable_bytes=500 * MB)
SMALL = LogDir("/small", total_bytes=40 * MB, usable_bytes=30 * MB)
FAILED = tuple(LogDir(path, error="KAFKA_STORAGE_ERROR") for path in ("/bad", "/worse"))
WELL = PartitionRow("a", 0, 1, (1, 2), (1, 2))


def cluster(
    *rows: PartitionRow,
    down: tuple[int, ...] = (),
    min_isr: Mapping[str, int] | None = None,
    dirs: Mapping[int, tuple[LogDir, ...]] | None = None,
    deleting: str = "",
) -> ClusterState:
    """Brokers 0 to 6 with a disk each; every partition without sizes of its own holds 9 MiB."""
    disks = dict.fromkeys(range(7), (DISK,)) | dict(dirs or {})
    brokers = tuple(
        Broker(b, alive=b not in down, host="h", log_dirs=of, log_dirs_known=bool(of)) for b, of in disks.items()
    )
    topics = tuple(
        Topic(name, min_isr=(min_isr or {}).get(name, 1), deleting=name == deleting)
        for name in sorted({row.topic for row in rows})
    )
    return build("c", brokers, topics, [r if r.sizes else replace(r, sizes=(9 * MB,) * len(r.replicas)) for r in rows])


def verdicts(state: ClusterState, *moves: Move, **given: Any) -> dict[Name, Verdict]:
    """What the guards say to these moves."""
    return judge(moves, state, ours={m.name: m for m in moves}, room=rooms(state, {}, 0.0), **given)


def codes(state: ClusterState, *moves: Move, **given: Any) -> list[tuple[str, str]]:
    """Code and subject of each refusal."""
    return [(v.code, v.subject) for v in verdicts(state, *moves, **given).values()]


def a(*new: int, old: tuple[int, ...] = (1, 2), size: int = 9 * MB, dirs: tuple[str, ...] | None = None) -> Move:
    """A move of partition a-0."""
    return Move("a", 0, old, new, size, log_dirs=dirs)


B = Move("b", 0, (4, 5), (4, 6), 9 * MB)
LACKING = PartitionRow("b", 0, 4, (4, 5), (4,))
FOREIGN = PartitionRow("a", 0, 1, (4, 2, 1), (1, 2), adding=(4,), removing=(1,))
CORDONED = {3: (replace(DISK, cordoned=True),)}


@pytest.mark.parametrize(
    ("state", "move", "code", "subject", "says"),
    [
        pytest.param(cluster(WELL), Move("a", 7, (1,), (2,)), "deleted", "a-7", ["a-7"], id="gone"),
        pytest.param(cluster(WELL, deleting="a"), a(3, 2), "deleted", "a-0", ["a-0"], id="being-deleted"),
        pytest.param(cluster(FOREIGN), a(3, 2), "foreign-reassignment", "a-0", ["a-0", "4,2"], id="foreign"),
        pytest.param(cluster(WELL), a(1, 2, old=(2, 1)), "already-there", "a-0", ["1,2"], id="there"),
        pytest.param(cluster(WELL), a(3, 5, old=(4, 5)), "modified-externally", "a-0", ["1,2", "4,5"], id="modified"),
        pytest.param(
            cluster(PartitionRow("a", 0, -1, (1, 2), ())),
            a(3, 2),
            "no-leader",
            "a-0",
            ["a-0", "1,2"],
            id="leaderless",
        ),
        pytest.param(cluster(WELL, down=(3,)), a(3, 2), "destination-down", "broker 3", ["a-0"], id="down"),
        pytest.param(cluster(WELL), a(9, 2), "destination-down", "broker 9", ["a-0"], id="never-heard-of"),
        pytest.param(
            cluster(WELL, dirs=CORDONED),
            a(3, 2),
            "destination-cordoned",
            "broker 3",
            ["Broker 3", "a-0"],
            id="cordoned",
        ),
        pytest.param(
            cluster(WELL, dirs={3: (SMALL, *FAILED)}),
            a(3, 2, size=31 * MB),
            "destination-full",
            "broker 3",
            ["Broker 3", "30.0 MiB", "31.0 MiB", "Failed there: /bad, /worse."],
            id="full",
        ),
        pytest.param(
            cluster(WELL, dirs={3: FAILED}),
            a(3, 2),
            "destination-space-unknown",
            "broker 3",
            ["for a-0", "Failed there: /bad, /worse.", "Check that broker", "--unknown-disk-space"],
            id="every-dir-failed",
        ),
        pytest.param(
            cluster(WELL, dirs={3: ()}),
            a(3, 2),
            "destination-space-unknown",
            "broker 3",
            ["for a-0", "did not report its log dirs"],
            id="no-dirs-told",
        ),
        pytest.param(
            cluster(replace(WELL, sizes=(UNKNOWN, UNKNOWN))),
            a(3, 2, size=UNKNOWN),
            "size-unknown",
            "a-0",
            ["1,2", "--unknown-disk-space allow"],
            id="size-unknown",
        ),
        pytest.param(
            cluster(PartitionRow("a", 0, 1, (1, 2, 3), (3, 1))),
            a(1, 2, old=(1, 2, 3)),
            "drops-in-sync",
            "a-0",
            ["replica on broker 2", "the one on broker 3", "1,3"],
            id="drops-in-sync",
        ),
        pytest.param(
            cluster(PartitionRow("a", 0, 1, (1,), (1,)), min_isr={"a": 2}),
            a(2, old=(1,)),
            "replicas-below-min-isr",
            "a-0",
            ["1 replica ", "is 2"],
            id="below-min-isr",
        ),
        pytest.param(cluster(WELL, LACKING), a(4, 2), "at-min-isr", "b-0", ["ISR: 4)"], id="at-min-isr"),
        pytest.param(
            cluster(WELL, LACKING, min_isr={"b": UNKNOWN}),
            a(3, 2),
            "min-isr-unknown",
            "b-0",
            ["ISR: 4)"],
            id="unknown",
        ),
        pytest.param(
            cluster(WELL, LACKING, min_isr={"b": 0}),
            a(4, 2),
            "under-replicated",
            "b-0",
            ["broker 4", "ISR: 4)", "a-0"],
            id="ur",
        ),
    ],
)
def test_each_refusal_has_its_code_and_names_what_it_is_about(
    state: ClusterState, move: Move, code: str, subject: str, says: list[str]
) -> None:
    """The subject is what a person looks at next; the figures are those that were judged by."""
    (found,) = verdicts(state, move).values()
    assert (found.code, found.subject) == (code, subject)
    assert [s for s in says if s not in str(found)] == []
    assert found.ends is (code in {"deleted", "already-there", "modified-externally"})
    assert bool(found.remedy) is (code not in {"deleted", "already-there"})


def test_a_disk_without_a_failed_log_dir_is_not_said_to_have_one() -> None:
    """Neither where it is full, nor by its path."""
    (full,) = verdicts(cluster(WELL, dirs={3: (SMALL,)}), a(3, 2, size=31 * MB)).values()
    assert "ailed" not in full.detail
    assert full.detail.endswith("31.0 MiB.")


@pytest.mark.parametrize(
    ("state", "move"),
    [
        pytest.param(cluster(WELL, dirs={3: (SMALL,)}), a(3, 2, size=30 * MB), id="fits-to-the-byte"),
        pytest.param(cluster(PartitionRow("a", 0, 0, (0, 2), (0, 2))), a(0, 3, old=(0, 2)), id="broker-0-leads"),
        pytest.param(cluster(PartitionRow("a", 0, -1, (1, 2), ())), a(2, 1), id="order-without-a-leader"),
        pytest.param(cluster(PartitionRow("a", 0, 1, (2, 1), (1, 2))), a(3, 2), id="order-changed-meanwhile"),
        pytest.param(cluster(PartitionRow("a", 0, 3, (2, 3), (2, 3))), a(3, 2), id="new-brokers-in-another-order"),
        pytest.param(
            cluster(PartitionRow("a", 0, 1, (3, 2, 1), (1, 2), adding=(3,), removing=(1,))), a(3, 2), id="the-same-move"
        ),
        pytest.param(cluster(WELL, LACKING), a(2, 1), id="order-beside-a-partition-at-min-isr"),
        pytest.param(cluster(WELL, LACKING), a(1), id="fewer-beside-a-partition-at-min-isr"),
        pytest.param(cluster(WELL, LACKING, deleting="b"), a(4, 2), id="unhealthy-one-is-being-deleted"),
        pytest.param(
            cluster(WELL, PartitionRow("b", 0, 4, (4, 5, 6), (4, 5), adding=(6,))), a(4, 2), id="only-a-new-one-lacks"
        ),
    ],
)
def test_what_no_guard_is_against(state: ClusterState, move: Move) -> None:
    """Each of these looks like a refusal and is none."""
    assert codes(state, move) == []


def test_every_waiting_move_is_judged_by_itself() -> None:
    """A refusal ends neither the judging nor another move."""
    rows = [PartitionRow("a", n, 1, (1, 2), (1, 2)) for n in range(3)]
    moves = [Move("a", 0, (1, 2), (3, 2)), Move("a", 1, (1, 2), (4, 2)), Move("a", 2, (1, 2), (3, 2))]
    found = verdicts(cluster(*rows, down=(3,)), *moves)
    assert {n.partition: v.code for n, v in found.items()} == {0: "destination-down", 2: "destination-down"}


def test_a_repair_begins_beside_what_is_at_its_minimum() -> None:
    """Its own partition and others; what is no repair waits for them, and is told the first of each kind."""
    lacking = [LACKING, PartitionRow("b", 1, 4, (4, 5), (4,)), PartitionRow("c", 0, 4, (4, 6), (4,))]
    assert codes(cluster(WELL, *lacking), B) == []
    assert codes(cluster(WELL, *lacking), B, a(3, 2)) == [("at-min-isr", "b-1")]
    later = cluster(WELL, *lacking, min_isr={"b": 0})
    assert codes(later, a(3, 2)) == [("at-min-isr", "c-0")]
    unknown = cluster(WELL, *lacking, min_isr={"b": UNKNOWN, "c": UNKNOWN})
    assert codes(unknown, a(3, 2)) == [("min-isr-unknown", "b-0")]


@pytest.mark.parametrize(
    ("row", "down", "move", "expected"),
    [
        pytest.param(LACKING, (), B, True, id="out-of-sync"),
        pytest.param(replace(LACKING, isr=(4, 5)), (5,), B, True, id="down-and-still-in-the-isr"),
        pytest.param(replace(LACKING, isr=(4, 5)), (), B, False, id="well"),
        pytest.param(LACKING, (), replace(B, new=(5, 6)), False, id="another-one-goes"),
        pytest.param(replace(LACKING, replicas=(4, 5, 6), adding=(6,)), (), B, True, id="begun-already"),
    ],
)
def test_a_repair_takes_away_what_is_offline_or_out_of_sync(
    row: PartitionRow, down: tuple[int, ...], move: Move, *, expected: bool
) -> None:
    """A move that takes away a healthy replica is none, whatever else ails its partition."""
    assert repairs(move, cluster(row, down=down), 0) is expected


def test_only_brokers_of_the_move_count_where_a_partition_lacks_a_replica() -> None:
    """Those that hold it and those that are to; nothing counts where the policy says so, but for a partition at its minimum."""
    rows = [WELL, LACKING]
    state = cluster(*rows, min_isr={"b": 0})
    assert codes(state, a(3, 2)) == []
    assert codes(state, a(2, 5)) == [("under-replicated", "b-0")]
    assert codes(state, a(5, 2), under_replicated_neighbours=False) == []
    held = cluster(PartitionRow("a", 0, 4, (4, 2), (4, 2)), LACKING, min_isr={"b": 0})
    assert codes(held, a(3, 2, old=(4, 2))) == [("under-replicated", "b-0")]
    assert codes(cluster(*rows), a(3, 2), under_replicated_neighbours=False) == [("at-min-isr", "b-0")]


def test_the_first_unhealthy_partition_of_each_broker_is_named() -> None:
    """With its ISR; those that a move of ours repairs are not."""
    rows = [WELL, LACKING, PartitionRow("b", 1, 4, (5, 4), (4,)), PartitionRow("c", 0, 6, (6, 5), (6,))]
    rows.append(PartitionRow("d", 0, 3, (3, 2), (3, 2)))
    found = unhealthy_partitions(cluster(*rows, min_isr={"b": 0, "c": 0}), {})
    assert found.neighbours == {4: Name("b", 0), 5: Name("b", 0), 6: Name("c", 0)}
    assert found.isr == {Name("b", 0): (4,), Name("b", 1): (4,), Name("c", 0): (6,)}
    assert (found.at_min_isr, found.min_isr_unknown) == (None, None)
    repaired = unhealthy_partitions(cluster(*rows, min_isr={"b": 0, "c": 0}), {B.name: B})
    assert repaired.neighbours == {4: Name("b", 1), 5: Name("b", 1), 6: Name("c", 0)}
    assert repaired.isr.keys() == {Name("b", 1), Name("c", 0)}


def test_a_log_dir_is_that_of_the_own_replica() -> None:
    """Neither that of another replica of it, nor that of another partition on the broker."""
    rows = [
        PartitionRow("a", n, 2, (2, 3), (2, 3), sizes=(50 * MB, 50 * MB), log_dirs=(at, 1 - at))
        for n, at in enumerate((1, 0, 1))
    ]
    state = cluster(*rows, dirs={2: (DISK, SMALL), 3: (DISK, SMALL)})
    moves = [Move("a", n, (2, 3), (2, 3), 50 * MB, log_dirs=("/small", "any")) for n in range(3)]
    assert codes(state, *moves) == [("destination-full", "broker 2")]
    assert list(verdicts(state, *moves)) == [Name("a", 1)]
    elsewhere = [Move("a", n, (2, 3), (2, 3), 50 * MB, log_dirs=("any", "/small")) for n in range(3)]
    assert [n.partition for n in verdicts(state, *elsewhere)] == [0, 2]


def test_a_move_with_new_brokers_must_fit_where_it_stays_as_well() -> None:
    """Its replica on a broker that stays and changes its log dir is a copy beside the one that is there."""
    row = PartitionRow("a", 0, 2, (1, 2), (1, 2), sizes=(50 * MB, 50 * MB), log_dirs=(0, 0))
    state = cluster(row, dirs={2: (DISK, SMALL)})
    assert codes(state, a(3, 2, size=50 * MB, dirs=("/d", "/small"))) == [("destination-full", "broker 2")]
    assert codes(state, a(3, 2, size=50 * MB, dirs=("/d", "/d"))) == []
    assert codes(state, a(2, 3, size=50 * MB, dirs=("any", "/d"))) == []


def test_a_broker_that_takes_a_copy_of_unknown_size_takes_no_other() -> None:
    """It is named; one of unknown room had none to lose, and a person may trust it to fit."""
    on_its_way = {3: Name("z", 7)}
    (found,) = verdicts(cluster(WELL), a(3, 2), unsized=on_its_way).values()
    assert (found.code, found.subject) == ("destination-space-unknown", "broker 3")
    assert "z-7 is being copied there" in found.detail
    assert found.remedy == "Log dirs are read again within a minute, or say --unknown-disk-space allow."
    assert codes(cluster(WELL), a(4, 2), unsized=on_its_way) == []
    assert codes(cluster(WELL), a(3, 2), unsized=on_its_way, allow_unknown_disk_space=True) == []
    silent = cluster(WELL, dirs=dict.fromkeys(range(7), ()))
    assert codes(silent, a(3, 2), unsized=on_its_way) == []


def test_what_is_on_its_way_and_the_reserve_take_room() -> None:
    """Of the broker and of the log dir, each by its own size; a place of unknown room is not named."""
    state = cluster(dirs={0: (DISK, SMALL), 1: (), 2: (DISK, LogDir("/old"))})
    found = rooms(state, {0: 10 * MB, (0, "/small"): 5 * MB}, 0.1)
    assert {p: found.get(p) for p in (0, (0, "/d"), (0, "/small"), 1, 2, (2, "/d"), (2, "/old"))} == {
        0: (530 - 10 - 104) * MB,
        (0, "/d"): (500 - 100) * MB,
        (0, "/small"): (30 - 5 - 4) * MB,
        1: None,
        2: None,
        (2, "/d"): 400 * MB,
        (2, "/old"): None,
    }


def test_a_refusal_that_waits_for_an_isr_tells_when_that_is_settled() -> None:
    """By the leader of the partition that it waits for, of every refusal that does."""
    for state, move in (
        (cluster(PartitionRow("a", 0, 1, (1, 2, 3), (1, 3))), a(1, 2, old=(1, 2, 3))),
        (cluster(PartitionRow("a", 0, 2, (1, 2), (1, 2)), replace(LACKING, leader=1)), a(3, 2)),
        (cluster(WELL, replace(LACKING, leader=1), min_isr={"b": UNKNOWN}), a(3, 2)),
        (cluster(WELL, replace(LACKING, leader=1), min_isr={"b": 0}), a(4, 2)),
    ):
        lag = {1: {"replica.lag.time.max.ms": ConfigValue("4000", "STATIC_BROKER_CONFIG")}}
        (found,) = verdicts(replace(state, broker_configs=lag), move).values()
        assert found.isr_within_s == 6.0
        assert "6 s" in str(found)
        assert "  " not in str(found)
    (full,) = verdicts(cluster(WELL, dirs={3: (SMALL,)}), a(3, 2, size=31 * MB)).values()
    assert (full.isr_within_s, str(full)) == (UNKNOWN, f"{full.detail} {full.remedy}")
