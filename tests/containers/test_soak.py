"""As many minutes as ``BALLAST_SOAK_MINUTES`` says of random moves, random deaths of Ballast and random faults of brokers.

Each round begins with a seed that is printed; ``BALLAST_SOAK_SEED`` begins with a certain one.  What is drawn repeats, when
it happens does not: a real cluster has its own time.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from contextlib import suppress
from random import Random

import pytest
from tests.containers.cluster import CONTROLLER, ContainerCluster
from tests.containers.proof import Assignment, Life, Lives, Proof
from tests.containers.test_hurt import WAYS
from tests.real.execution_scene import Scene
from tests.waiting import until

pytestmark = pytest.mark.containers

MINUTES = float(os.environ["BALLAST_SOAK_MINUTES"])
BROKERS = (1, 2, 3, 4)
RESUME = ("runs", "resume", "--lock-wait", "60", "--timeout", "10")
MOST_LIVES = 30
DONE, INCOMPLETE = 0, 7


@pytest.mark.timeout(MINUTES * 60 + 1200)
def test_soak(at: Scene, lives: Lives, containers_cluster: ContainerCluster) -> None:
    """Whatever happens: no record lost, every partition where it was or where it was to go, throttles as before."""
    proof = Proof.of(at, "soak", {p: (*BROKERS, *BROKERS)[p : p + 3] for p in range(4)}, mib=3)
    seed = int(os.environ.get("BALLAST_SOAK_SEED") or secrets.randbits(32))
    ends_s = time.monotonic() + MINUTES * 60
    with proof.traffic(most_s=MINUTES * 60 + 900).running():
        while time.monotonic() < ends_s:
            print(f"BALLAST_SOAK_SEED={seed}")  # noqa: T201 — a failure is repeated with it
            wanted = a_round(proof, lives, containers_cluster, Random(seed))
            settle(proof, wanted)
            seed += 1
    proof.forget()


def a_round(proof: Proof, lives: Lives, cluster: ContainerCluster, rng: Random) -> Assignment:
    """A plan of random moves, disturbed one to four times, and carried on until it has ended; what it wanted."""
    wanted = {p: tuple(rng.sample(BROKERS, 3)) for p in proof.before}
    wanted = {p: new for p, new in wanted.items() if new != proof.before[p]}
    plan = proof.at.plan(proof.topic, wanted)
    life = lives.begin("apply", str(plan), "--yes", "--throttle", "1MB", "--timeout", "10")
    for _ in range(rng.randint(1, 4)):
        passes(life, rng.uniform(0.5, 8))
        if rng.random() < 0.5:
            life.process.kill()
            life = lives.begin(*RESUME)
        else:
            hurt, heal = WAYS[rng.choice(sorted(WAYS))]
            node = rng.choice((*BROKERS, CONTROLLER))
            hurt(cluster, node)
            try:
                passes(life, rng.uniform(1, 12))
            finally:
                heal(cluster, node)
    for _ in range(MOST_LIVES):
        if life.process.wait(timeout=600) in {DONE, INCOMPLETE} and not open_runs(proof):
            return wanted
        life = lives.begin(*RESUME)
    raise AssertionError(f"still not ended after {MOST_LIVES} lives:\n{life.said}")


def passes(life: Life, seconds: float) -> None:
    """Some time, or the end of the process."""
    with suppress(subprocess.TimeoutExpired):
        life.process.wait(timeout=seconds)


def open_runs(proof: Proof) -> list[str]:
    """Runs that are not over."""
    return [r.id for r in proof.at.runs().values() if not r.ended]


def settle(proof: Proof, wanted: Assignment) -> None:
    """Everything stands still, and what stands is what was there or what was wanted; it is where the next round begins."""
    until(proof.is_whole, within_s=300)
    stands = {p: proof.at.replicas(proof.name(p)) for p in proof.before}
    for p, replicas in stands.items():
        assert replicas in {proof.before[p], wanted.get(p, proof.before[p])}, f"{proof.name(p)} has {replicas}"
    proof.holds(stands)
    proof.before = stands
