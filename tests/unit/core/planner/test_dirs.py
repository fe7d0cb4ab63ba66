"""Log dirs of arriving replicas, on brokers that have several disks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import Move
from ballast.core.planner import Expand, Loads, PlannerPolicy, plan
from ballast.core.planner.checker.checker import check
from ballast.core.planner.dirs import room_by_dir, with_dirs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.sim.play import play

INTENT = Expand(brokers=frozenset({3}))
QUICK = PlannerPolicy(prove=False, slack_bytes=0)


def scene(*dirs: LogDir, sizes: tuple[int, ...] = (100, 90, 80, 70, 60, 50, 40, 30, 20)) -> ClusterState:
    """Partitions on two brokers, and a new one with these log dirs."""
    rows = [PartitionRow("t", n, 1, (1, 2), (1, 2), sizes=(s, s), log_dirs=(0, 0)) for n, s in enumerate(sizes)]
    old = (LogDir("/a", 2000, 1400),)
    brokers = (
        Broker(1, log_dirs=old, log_dirs_known=True),
        Broker(2, log_dirs=old, log_dirs_known=True),
        Broker(3, log_dirs=dirs, log_dirs_known=True),
    )
    return build("c", brokers, (Topic("t"),), rows, api=frozenset({"reassign", "reassign-v1"}))


def arrivals(state: ClusterState) -> dict[str, int]:
    """Bytes by log dir of the new broker."""
    out: dict[str, int] = {}
    for m in plan(state, INTENT, policy=QUICK).moves:
        for b, path in zip(m.new, m.log_dirs or ("any",) * len(m.new), strict=True):
            if b == 3:
                out[path] = out.get(path, 0) + m.size_bytes
    return out


def test_replicas_go_where_most_room_is() -> None:
    """Two equal disks share the bytes; one that is nearly full gets none."""
    even = arrivals(scene(LogDir("/x", 1000, 1000), LogDir("/y", 1000, 1000)))
    assert set(even) == {"/x", "/y"}
    assert abs(even["/x"] - even["/y"]) <= 50
    assert set(arrivals(scene(LogDir("/x", 1000, 20), LogDir("/y", 1000, 1000)))) == {"/y"}


def test_cordoned_and_failed_dirs_take_nothing() -> None:
    """The choice is among the others."""
    dirs = (LogDir("/x", 1000, 1000, cordoned=True), LogDir("/y", 1000, 900), LogDir("/z", 1000, 950, error="gone"))
    assert set(arrivals(scene(*dirs))) == {"/y"}


def test_without_a_choice_kafka_chooses() -> None:
    """One dir, or dirs that do not say how full they are: the plan asks for none."""
    assert set(arrivals(scene(LogDir("/x", 2000, 2000)))) == {"any"}
    assert room_by_dir(Broker(1, log_dirs=(LogDir("/x"), LogDir("/y")))) is None


def test_a_replica_that_fits_no_single_disk_is_an_obstacle() -> None:
    """The broker has room, its disks one by one have not."""
    state = scene(*(LogDir(f"/d{i}", 600, 55) for i in range(4)), sizes=(60, 60, 60, 60, 60, 60))
    made = plan(state, INTENT, policy=QUICK)
    assert made.status == "misses-some-goals"
    assert {(o.code, o.cause) for o in made.obstacles} == {("log-dir", "")}


def test_replicas_without_a_disk_are_counted_after_the_first_twenty() -> None:
    """Each of the first is named, the rest is a number."""
    state = scene(LogDir("/x", 600, 55), LogDir("/y", 600, 55), sizes=(60,) * 23)
    moves = tuple(Move("t", n, (1, 2), (3, 2), size_bytes=60) for n in range(23))
    _, tight = with_dirs(state, moves)
    assert len(tight) == 21
    assert (tight[-1].subject, tight[-1].cause, tight[-1].values) == ("3 more replicas", "more", {"count": 3})


@pytest.mark.parametrize("path", ["/nowhere", "/x"])
def test_the_checker_finds_a_dir_that_cannot_be(path: str) -> None:
    """Not there, or cordoned."""
    state = scene(LogDir("/x", 1000, 1000, cordoned=True), LogDir("/y", 1000, 1000))
    made = plan(state, INTENT, policy=QUICK)
    at = next(i for i, m in enumerate(made.moves) if m.adding)
    wrong = replace(made.moves[at], log_dirs=tuple(path if b == 3 else "any" for b in made.moves[at].new))
    moves = (*made.moves[:at], wrong, *made.moves[at + 1 :])
    found = check(state, replace(made, moves=moves), INTENT, loads=Loads.from_state(state), policy=QUICK)
    assert [f.code for f in found] == ["log-dirs"]


def test_the_executor_brings_them_there() -> None:
    """Played on the simulator, every move ends verified in the log dir that was asked for."""
    state = scene(LogDir("/x", 1000, 1000), LogDir("/y", 1000, 1000))
    made = plan(state, INTENT, policy=QUICK)
    out = play(state, made, ExecutionPolicy(measure_s=0.0), loads=Loads.from_state(state), nic_bytes_per_s=100.0)
    assert (out.status, out.moves_ended) == ("done", len(made.moves))
