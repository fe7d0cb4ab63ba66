"""Partitions of unknown size are balanced as if they were the median one; their plans say that it is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from tests.unit.core.planner.clusters import cluster

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.plan import Plan
from ballast.core.planner import Evacuate, Loads, Place, PlannerPolicy, plan
from ballast.core.planner.checker.checker import check
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.executor.machine.scheduling.schedule import start
from ballast.executor.machine.stages import Planned, Submitted
from ballast.ports.cluster import PartitionState

LISTS = [(1, 2), (2, 1), (1, 2), (2, 1)]
INTENT = Evacuate(brokers=frozenset({1}))


def state_of(told: int = 3) -> ClusterState:
    """Four partitions of 100 bytes on brokers 1 and 2; of the last ones no broker tells the size."""
    state = cluster(*LISTS, brokers=3)
    sizes = state.partitions.size_bytes.copy()
    sizes[told * 2 :] = UNKNOWN
    return replace(state, partitions=replace(state.partitions, size_bytes=sizes))


def made(state: ClusterState, loads: Loads | None = None) -> Plan:
    """Broker 1 emptied."""
    return plan(state, INTENT, loads=loads)


def test_a_move_does_not_tell_a_size_that_was_assumed() -> None:
    """Nor does the plan tell a sum, or more as the least than it knows to copy; what was assumed is among its assumptions."""
    found = made(state_of())
    assert {m.partition: m.size_bytes for m in found.moves} == {0: 100, 1: 100, 2: 100, 3: UNKNOWN}
    assert (found.unknown_sizes, found.known_bytes, found.bytes_moved) == (1, None, 300)
    assert found.bound_bytes == 300
    assert found.summary["bytes_moved"] is None
    assert any("1 partitions of unknown size" in a for a in found.assumptions)
    whole = made(state_of(4))
    assert (whole.unknown_sizes, whole.known_bytes, whole.bound_bytes) == (0, 400, 400)


def test_the_checker_takes_no_assumed_size_for_one_that_was_told() -> None:
    """A plan that states one is unsound, and so is one that keeps back a size that is known."""
    state = state_of()
    found = made(state)
    loads = Loads.from_state(state)
    assert check(state, found, INTENT, loads=loads, policy=PlannerPolicy()) == []
    for partition, size in ((3, 100), (0, UNKNOWN)):
        moves = tuple(replace(m, size_bytes=size) if m.partition == partition else m for m in found.moves)
        findings = check(state, replace(found, moves=moves), INTENT, loads=loads, policy=PlannerPolicy())
        assert ("sum", f"t-{partition}") in {(f.code, f.subject) for f in findings}


def test_kafkas_own_placement_tells_no_assumed_size_either() -> None:
    """Its moves go by lists, and its bytes are as unknown."""
    found = plan(state_of(), Place(algorithm="naive"))
    moving = {m.partition: m.size_bytes for m in found.moves if m.adding}
    assert moving
    assert all(size == (UNKNOWN if number == 3 else 100) for number, size in moving.items())
    assert found.bound_bytes is not None
    assert found.bound_bytes <= found.bytes_moved


@pytest.mark.parametrize(("remembered", "size"), [((0, 3), 70), ((0,), UNKNOWN)])
def test_a_size_that_history_tells_is_known(remembered: tuple[int, ...], size: int) -> None:
    """A partition without history gets the model's median, which is assumed as well."""
    columns = {
        "topic": np.array(["t"] * len(remembered)),
        "partition": np.array(remembered, np.int64),
        "size_bytes": np.full(len(remembered), 70.0),
    }
    state = state_of()
    loads = Loads.from_model(state, columns)
    assert loads.size_bytes.tolist() == [100, 100, 100, 70]
    assert loads.unknown_sizes == (size == UNKNOWN)
    assert {m.partition: m.size_bytes for m in made(state, loads).moves}[3] == size


@pytest.mark.parametrize("policy", ["refuse", "allow"])
def test_a_copy_whose_size_was_assumed_waits_until_it_is_known(policy: Literal["refuse", "allow"]) -> None:
    """As every other of unknown size, by ``unknown_disk_space``; a reading that tells it lets it go."""
    state = state_of()
    found = made(state)
    run = new_run("r", found, ExecutionPolicy(unknown_disk_space=policy, throttle="none"), Now(0, 0.0))
    names = frozenset(run.moves)
    picture = Picture(
        reassignments={},
        partitions={n: PartitionState(LISTS[n.partition][0], LISTS[n.partition], LISTS[n.partition]) for n in names},
        names=names,
        alive=state.alive,
        state=state,
    )
    name = TopicPartition("t", 3)
    after = start(run, picture, Now(0, 1.0), [])
    assert [(v.code, v.subject) for v in after.verdicts] == ([("size-unknown", "t-3")] if policy == "refuse" else [])
    assert isinstance(after.moves[name].stage, Planned if policy == "refuse" else Submitted)
    told = start(run, replace(picture, sizes={name: 100}), Now(0, 1.0), [])
    assert told.verdicts == ()
    assert isinstance(told.moves[name].stage, Submitted)
