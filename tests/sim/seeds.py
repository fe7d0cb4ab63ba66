"""Seeded runs: a cluster, a plan, faults, other people and deaths, all from one number; the same claims every time.

``python -m tests.sim.seeds --seeds 10000`` runs that many, on every core, and prints the faults by kind and the rate;
Ctrl-C ends it, and what has been counted until then is printed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from random import Random

from tests.sim.nemesis import QUIET_AFTER_S, Fault, Mortality, unleash
from tests.sim.proof import Proof

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.sim import Physics, SimBroker, SimClock, SimWorld

MB = 1e6
STILL_EACH = 20
"""Of so many seeds one is balanced afterwards, and must stay still."""
CHUNK = 25
"""Seeds that a process takes at a time."""


def make(seed: int) -> Proof:
    """One world with its plan, its faults and its deaths, all from the seed."""
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
    unleash(proof, random)
    proof.on_life = Mortality(random).arm
    return proof


def replay(seed: int) -> Counter[str]:
    """Run one seed and answer the faults that came; whatever is wrong is said with the line that runs it again."""
    proof = make(seed)
    try:
        proof.run()
        if seed % STILL_EACH == 0:
            proof.becomes_still(QUIET_AFTER_S)
    except BaseException as wrong:
        wrong.add_note(f"faults: {dict(proof.faults)}")
        wrong.add_note(f"replay: BALLAST_CRASH_SEED={seed} python -m pytest tests/sim/test_crash_seeds.py")
        raise
    return proof.faults


def tell(faults: Counter[str]) -> str:
    """A line for each kind of fault, also for those that never came."""
    return "\n".join(f"{faults[fault]:9,}  {fault}" for fault in Fault)


def _prior_throttles(random: Random, world: SimWorld) -> None:
    """What a user had set before: rates, a cluster default, lists, everything."""
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
    """A move of the same replica count, or a replica list change, sometimes with log dirs."""
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
        moves_at_once=random.choice([1, 3, 200]),
        one_batch_at_a_time=random.random() < 0.2,
        submit_chunk=random.choice([1, 2, 1000]),
        poll_s=random.choice([1.0, 3.0]),
        measure_s=random.choice([0.0, 2.0]),
        stall_after_s=random.choice([20.0, 60.0]),
        cancel_stalled_after_s=random.choice([None, 30.0]),
        stall_min_s=random.choice([20.0, 300.0]),
        # After the quiet has come every run must end by itself, refused moves included.
        guard_timeout_s=600.0,
        keep_existing_rates=random.random() < 0.2,
        journal_lost=random.choice(["finish", "finish", "leave"]),
    )


def _some(first: int, count: int) -> tuple[Counter[str], dict[int, str]]:
    """The faults of so many seeds, and what was wrong with which."""
    faults: Counter[str] = Counter()
    wrong = {}
    for seed in range(first, first + count):
        try:
            faults += replay(seed)
        except BaseException as failure:  # noqa: BLE001 — Hung and Broken, and bugs: each is told with its seed
            wrong[seed] = f"{type(failure).__name__}: {failure}"
    return faults, wrong


def main(arguments: Iterable[str] | None = None) -> int:
    """Run seeds on every core; 1 where one of them is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.seeds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(None if arguments is None else list(arguments))
    began_s = time.monotonic()
    faults: Counter[str] = Counter()
    wrong: dict[int, str] = {}
    count = 0
    # Ctrl-C is the parent's to answer.
    with ProcessPoolExecutor(asked.processes, initializer=_ignore_interrupts) as pool:
        firsts = range(asked.first, asked.first + asked.seeds, CHUNK)
        try:
            for more, failures in pool.map(_some, firsts, repeat(CHUNK)):
                count += CHUNK
                faults += more
                wrong |= failures
                for seed, sentence in failures.items():
                    print(f"seed {seed}: {sentence}", flush=True)  # noqa: T201 — this is the command's answer
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    seconds = time.monotonic() - began_s
    print(tell(faults))  # noqa: T201
    rate = f"{count / seconds * 3600:,.0f} an hour on {asked.processes} processes"
    print(f"{count:,} seeds in {seconds:.0f} s ({rate}), {faults.total():,} faults, {len(wrong)} wrong")  # noqa: T201
    return int(bool(wrong))


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
