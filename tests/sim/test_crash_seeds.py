"""Thousands of seeded runs: random clusters, plans, faults, other people and deaths; the same invariants every time.

``BALLAST_CRASH_SEEDS=N`` runs N seeds instead of the default; ``BALLAST_CRASH_SEED=S`` replays one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest
from tests.sim.proof import Proof

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver import Driver
from ballast.executor.events import Listener
from ballast.executor.machine import Wish
from ballast.executor.policy import ExecutionPolicy
from ballast.sim import Physics, SimBroker, SimClock, SimWorld
from ballast.sim.crash import Point, Reaper

MB = 1e6
SEEDS = int(os.environ.get("BALLAST_CRASH_SEEDS", "2000"))
ONE = os.environ.get("BALLAST_CRASH_SEED")
BATCHES = [range(first, min(first + 100, SEEDS)) for first in range(0, SEEDS, 100)]
if ONE is not None:
    BATCHES = [range(int(ONE), int(ONE) + 1)]
QUIET_AFTER_S = 400.0
"""Faults end by then, so that every run can end."""


def make(seed: int) -> Proof:
    """One world with its plan, its troubles and its deaths, all from the seed."""
    random = Random(seed)
    physics = Physics(
        metadata_lag_s=random.choice([0.0, 0.5, 3.0]),
        tick_s=1.0,
        timeout_s=random.choice([2.0, 5.0]),
        auto_leader_rebalance_s=random.choice([None, None, 60.0]),
    )
    dirs = random.choice([1, 1, 2])
    count = random.randint(4, 6)
    brokers = [
        SimBroker(id=i, rack=f"r{i % 3}", nic_bytes_per_s=20 * MB, dir_bytes=(1e10,) * dirs)
        for i in range(1, count + 1)
    ]
    world = SimWorld(SimClock(), brokers, physics=physics, seed=seed)
    for topic in range(random.randint(1, 3)):
        factor = random.choice([1, 2, 3, 3])
        world.add_topic(
            f"t{topic}",
            {p: tuple(random.sample(range(1, count + 1), factor)) for p in range(random.randint(1, 4))},
            size_bytes=random.choice([0, 1, 10, 80]) * MB,
            inbound_bytes_per_s=random.choice([0, 0, 0.2]) * MB,
            configs={"min.insync.replicas": str(max(factor - 1, 1))},
        )
    _prior_throttles(random, world)
    moves = tuple(m for m in (_move(random, world, p.name, dirs) for p in list(world.partitions())) if m is not None)
    elections = tuple(m.name for m in moves if random.random() < 0.3)
    proof = Proof(world, moves, _policy(random), elections=elections)
    _trouble(random, proof)
    proof.on_life = _lives(random)
    return proof


def _prior_throttles(random: Random, world: SimWorld) -> None:
    """What somebody had set before: rates, a cluster default, lists, everything."""
    for broker in world.brokers.values():
        if random.random() < 0.2:
            broker.configs["leader.replication.throttled.rate"] = str(random.randint(10**7, 10**8))
        if random.random() < 0.2:
            broker.static_configs["follower.replication.throttled.rate"] = "60000000"
    if random.random() < 0.3:
        world.cluster_configs["follower.replication.throttled.rate"] = "50000000"
    for topic in world.topics.values():
        for side in ("leader", "follower"):
            if random.random() < 0.3:
                value = random.choice(["*", "0:1", "7:9,0:2", ""])
                topic.configs[f"{side}.replication.throttled.replicas"] = value


def _move(random: Random, world: SimWorld, name: TopicPartition, dirs: int) -> Move | None:
    """A move of the same replica count, or a reorder, sometimes with log dirs."""
    old = tuple(world.partition(*name).replicas)
    others = [b for b in world.brokers if b not in old]
    new = list(old)
    random.shuffle(new)
    for i in range(len(new)):
        if others and random.random() < 0.5:
            new[i] = others.pop(random.randrange(len(others)))
    places = None
    if dirs > 1 and random.random() < 0.4:
        places = tuple(random.choice(["any", "/data/0", "/data/1"]) for _ in new)
    if tuple(new) == old and places is None:
        return None
    size = int(world.partition(*name).end_bytes)
    return Move(name.topic, name.partition, old, tuple(new), size_bytes=size, log_dirs=places)


def _policy(random: Random) -> ExecutionPolicy:
    return ExecutionPolicy(
        throttle=random.choice(["auto", "none", int(5 * MB), int(20 * MB)]),
        log_dir_throttle_bytes_per_s=random.choice([None, None, int(30 * MB)]),
        moves_in_per_broker=random.choice([1, 2, 5]),
        moves_in_cluster=random.choice([1, 3, 200]),
        one_batch_at_a_time=random.random() < 0.2,
        submit_chunk=random.choice([1, 2, 1000]),
        poll_s=random.choice([1.0, 3.0]),
        measure_s=random.choice([0.0, 2.0]),
        stall_after_s=random.choice([20.0, 60.0]),
        cancel_stalled_after_s=random.choice([None, 30.0]),
        timeout_floor_s=random.choice([20.0, 300.0]),
        # After the quiet has come every run must end by itself, refused moves included.
        refusal_patience_s=600.0,
        keep_existing_rates=random.random() < 0.2,
    )


def _trouble(random: Random, proof: Proof) -> None:
    """Brokers die and return, the controller goes away, others move and delete; all of it ends."""
    world, clock = proof.world, proof.clock
    for _ in range(random.choice([0, 0, 1, 2])):
        broker, at = random.choice(list(world.brokers)), random.uniform(0, QUIET_AFTER_S / 2)
        harm = random.choice([world.kill, world.freeze])
        clock.at(at, lambda harm=harm, broker=broker: harm(broker))  # type: ignore[misc]
    for broker in world.brokers:
        clock.at(QUIET_AFTER_S, lambda broker=broker: world.start(broker))  # type: ignore[misc]
    if random.random() < 0.2:
        at = random.uniform(0, QUIET_AFTER_S / 2)
        clock.at(at, lambda: setattr(world, "controller_up", False))
        clock.at(at + random.uniform(5, 60), lambda: setattr(world, "controller_up", True))
    if random.random() < 0.2:
        at = random.uniform(0, QUIET_AFTER_S / 2)
        clock.at(at, lambda: setattr(proof.store, "available", False))
        clock.at(at + random.uniform(5, 40), lambda: setattr(proof.store, "available", True))
    if random.random() < 0.25:
        clock.at(random.uniform(1, 100), lambda: _somebody_moves(random, proof))
    if random.random() < 0.15:
        clock.at(random.uniform(1, 100), lambda: _somebody_deletes(random, proof))


def _somebody_moves(random: Random, proof: Proof) -> None:
    if not proof.world.topics:
        return
    partition = random.choice(list(proof.world.partitions()))
    target = tuple(random.sample(list(proof.world.brokers), len(partition.replicas) - len(partition.adding)))
    proof.by_others.add(partition.name)
    proof.world.controller.alter(partition.name, target, allow_rf_change=False)


def _somebody_deletes(random: Random, proof: Proof) -> None:
    if not proof.world.topics:
        return
    topic = random.choice(list(proof.world.topics))
    proof.by_others.update(p.name for p in proof.world.topics[topic].partitions.values())
    proof.world.delete_topic(topic)


def _lives(random: Random) -> Callable[[Proof, Driver, Reaper], Listener | None]:
    """Each life may die at any point it passes, lose answers, and be asked for a cancel; later lives die less."""
    deaths = random.choice([1, 1, 2, 4])
    wish_at = random.uniform(1, 120) if random.random() < 0.3 else None
    lossy = random.choice([0.0, 0.0, 0.1])

    def arm(proof: Proof, driver: Driver, reaper: Reaper) -> Listener | None:
        doomed = [random.randint(0, 40) if proof.lives <= deaths else -1]

        def strikes(_: Point) -> bool:
            doomed[0] -= 1
            return doomed[0] == 0

        def loses(_: str) -> bool | None:
            if proof.clock.monotonic_s() > QUIET_AFTER_S or random.random() >= lossy:
                return None
            return random.random() < 0.5

        reaper.strikes, reaper.loses_answer = strikes, loses
        if wish_at is not None and proof.clock.monotonic_s() < wish_at:
            proof.clock.at(wish_at, lambda: driver.ask(random.choice([Wish.CANCEL, Wish.PAUSE, Wish.RESUME])))
            proof.clock.at(wish_at + 50, lambda: driver.ask(Wish.RESUME))
        return None

    return arm


def replay(seed: int) -> None:
    """Run one seed; whatever is wrong is said with the line that runs it again."""
    proof = make(seed)
    try:
        proof.run()
    except BaseException as wrong:
        wrong.add_note(f"replay: BALLAST_CRASH_SEED={seed} python -m pytest tests/sim/test_crash_seeds.py")
        raise


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda seeds: f"from-{seeds[0]}")
def test_whatever_happens_the_run_ends_and_nothing_is_left(seeds: range) -> None:
    """Every invariant holds for each of these seeds."""
    for seed in seeds:
        replay(seed)
