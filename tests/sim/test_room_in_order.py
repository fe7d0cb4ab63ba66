"""Plans in order on nearly full disks, under faults and deaths: no disk overflows, and no run comes to a halt by itself.

``BALLAST_ROOM_SEEDS=N`` runs N seeds instead of the default.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from tests.sim.nemesis import Fault, Mortality, unleash
from tests.sim.proof import Proof

from ballast.core.plan import Move
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Status
from ballast.executor.machine.stages import Failed
from ballast.sim import Physics, SimBroker, SimClock, SimWorld

MB = 1e6
SEEDS = int(os.environ.get("BALLAST_ROOM_SEEDS", "240"))
BATCH = 40
LIMIT, RESERVE = 0.9, 0.05
"""How full the plan makes a disk, and what a run leaves free."""
OF_OTHERS = {
    Fault.DISK_FULL,
    Fault.TOPIC_DELETED,
    Fault.TOPIC_RECREATED,
    Fault.FOREIGN_MOVE,
    Fault.FOREIGN_CANCEL,
}
"""Faults that take or make room which no plan knows of."""


def make(seed: int) -> Proof:
    """Unlike brokers whose disks are nearly full, one of them over the limit; moves that fit at their turn."""
    random = Random(seed)
    count = random.randint(3, 6)
    held: Counter[int] = Counter()
    topics: list[tuple[str, tuple[int, ...], int]] = []
    for number in range(random.randint(6, 16)):
        replicas = tuple(random.sample(range(1, count + 1), random.choice([1, 1, 2])))
        topics.append((f"t{number}", replicas, random.choice([5, 10, 10, 20, 40])))
        held.update(dict.fromkeys(replicas, topics[-1][2]))
    disk = {b: (max(held[b], 20) + random.choice([0, 5, 5, 10, 40])) / LIMIT for b in range(1, count + 1)}
    over = random.randint(1, count)
    disk[over] = max(held[over], 20) / 0.93
    brokers = [SimBroker(id=b, nic_bytes_per_s=20 * MB, dir_bytes=(d * MB,)) for b, d in disk.items()]
    world = SimWorld(SimClock(), brokers, physics=Physics(tick_s=1.0, timeout_s=random.choice([2.0, 5.0])), seed=seed)
    for name, replicas, size in topics:
        world.add_topic(name, {0: replicas}, size_bytes=size * MB)
    moves = _fitting(random, topics, held, {b: d * LIMIT for b, d in disk.items()})
    proof = Proof(world, moves, _policy(random), in_order=True)
    if seed % 3:
        unleash(proof, random, [f for f in Fault if f not in OF_OTHERS])
        proof.on_life = Mortality(random).arm
    return proof


def _fitting(
    random: Random, topics: list[tuple[str, tuple[int, ...], int]], held: Counter[int], most: dict[int, float]
) -> tuple[Move, ...]:
    """One move of a topic at most, each of which fits once those before it have ended."""
    left = dict(held)
    out: list[Move] = []
    for _ in range(3):
        for name, old, size in random.sample(topics, len(topics)):
            target = random.choice([b for b in most if b not in old])
            if any(m.topic == name for m in out) or left.get(target, 0) + size > most[target]:
                continue
            out.append(Move(name, 0, old, (target, *old[1:]), size_bytes=int(size * MB)))
            left[target] = left.get(target, 0) + size
            left[old[0]] -= size
    return tuple(out)


def _policy(random: Random) -> ExecutionPolicy:
    return ExecutionPolicy(
        throttle=random.choice(["auto", "none", int(5 * MB)]),
        moves_in_per_broker=random.choice([1, 5]),
        moves_at_once=random.choice([2, 200]),
        one_batch_at_a_time=random.random() < 0.2,
        measure_s=0.0,
        disk_reserve_fraction=RESERVE,
        guard_timeout_s=600.0,
    )


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_moves_that_need_room_of_others_all_arrive_in_whatever_weather(first: int) -> None:
    """A run is given up only where a move that it waited for had ended otherwise."""
    tight = 0
    for seed in range(first, min(first + BATCH, SEEDS)):
        proof = make(seed)
        before = proof.world.disks()
        past: list[str] = []

        def watch(
            _: float, proof: Proof = proof, before: dict[tuple[int, int], float] = before, past: list[str] = past
        ) -> None:
            for (broker, n), used in proof.world.disks().items():
                most = max(proof.world.brokers[broker].dir_bytes[n] * (1 - RESERVE), before[broker, n])
                if used > most + 1:
                    past.append(f"disk of broker {broker} holds {used / MB:.0f} of {most / MB:.0f} MB")

        proof.clock.subscribe(watch)
        try:
            proof.run()
            proof.require(not past, "; ".join(past[:3]))
            for run in proof.runs().values():
                halted = run.status is Status.REFUSED and not run.moves_in(Failed)
                proof.require(not halted, f"run {run.id} came to a halt")
                calm = seed % 3 == 0
                proof.require(not calm or run.status is Status.DONE, f"run {run.id} ended {run.status}")
        except BaseException as wrong:
            wrong.add_note(f"seed {seed}, faults: {dict(proof.faults)}")
            raise
        arriving: Counter[int] = Counter()
        for m in proof.moves:
            arriving.update(dict.fromkeys(m.adding, m.size_bytes))
        tight += any(
            before[b, 0] + more > proof.world.brokers[b].dir_bytes[0] * (1 - RESERVE) for b, more in arriving.items()
        )
    assert tight > BATCH / 4, "too few of the plans needed an order"
