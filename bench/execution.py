"""Time of a throttled rebalance against the physical bound and against the stock tool's single shot.

The bound is the bytes over the busiest link (a broker's receiving or sending side) divided by the rate.  Both tools get the
same cluster, the same moves and the same rate; the caps of Ballast's run are watched all the while.

    python bench/execution.py              # on the simulated cluster, seconds of simulated time
    python bench/execution.py --real       # on a sandbox of four brokers, wall time; needs Java and Kafka's jars
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, brokers_involved, entries
from ballast.executor.driver.driver import Driver
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource
from ballast.ports.journal import Holder
from ballast.sim import SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.journal import JournalStore, MemoryJournal

if TYPE_CHECKING:
    from tests.real.execution_scene import Scene

MB = 1_000_000
ALLOWED = 1.15
"""Ballast's time may be at most this many times the bound."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One bench line."""

    scenario: str
    bound_s: float
    ballast_s: float
    single_shot_s: float
    most_in_flight: int
    cap: int

    @property
    def ratio(self) -> float:
        """Ballast's time over the bound."""
        return self.ballast_s / self.bound_s


def bound_s(moves: Sequence[Move], leaders: dict[TopicPartition, int], rate: int) -> float:
    """Bytes over the busiest link, divided by the rate."""
    into: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for m in moves:
        for b in m.adding:
            into[b] += m.size_bytes
        out[leaders[m.name]] += m.size_bytes * len(m.adding)
    return max([*into.values(), *out.values()]) / rate


def skewed(partitions: int, brokers: int, size: int) -> tuple[dict[int, tuple[int, ...]], list[Move]]:
    """Everything on the first half of the brokers; half of the partitions move one replica to the second half."""
    half = brokers // 2
    assignment: dict[int, tuple[int, ...]] = {i: (1 + i % half, 1 + (i + 1) % half) for i in range(partitions)}
    moves = [
        Move("t", i, r, (r[0], half + 1 + i % (brokers - half)), size * (1 + i % 4))
        for i, r in assignment.items()
        if i % 2 == 0
    ]
    return assignment, moves


def simulated(partitions: int, brokers: int, rate: int) -> Measured:
    """Both ways on the simulator."""
    size = 20 * MB
    assignment, moves = skewed(partitions, brokers, size)
    leaders = {TopicPartition("t", i): r[0] for i, r in assignment.items()}
    caps = ExecutionPolicy(throttle=rate, moves_in_per_broker=4, moves_out_per_broker=6)

    def world() -> SimWorld:
        made = SimWorld(
            SimClock(), [SimBroker(id=i, rack=f"r{i}", nic_bytes_per_s=200 * MB) for i in range(1, brokers + 1)]
        )
        made.add_topic("t", {})
        for i, r in assignment.items():
            made.add_partitions("t", {i: r}, size_bytes=size * (1 + i % 4))
        return made

    first = world()
    cluster = SimCluster(first)
    journal = MemoryJournal(JournalStore(), first.clock)
    journal.acquire(Holder("bench", "bench"))
    state = cluster.snapshot()
    plan = Plan("bench", state.cluster_id, fingerprint(state), tuple(moves))
    most = 0

    def watch() -> None:
        nonlocal most
        most = max(most, *Counter(b for p in first.partitions() for b in p.adding).values(), 0)
        first.clock.after(0.5, watch)

    first.clock.after(0.5, watch)
    result = Driver(cluster, journal, first.clock).execute(plan, caps, run_id="bench")
    if result.status != "done":
        raise SystemExit(f"the run ended {result.status}")
    second = SimCluster(world())
    began = second.world.clock.monotonic_s()
    set_throttle(second, moves, rate)
    second.alter_reassignments({m.name: m.new for m in moves})
    while second.reassignments():
        second.world.clock.sleep(0.5)
    shot = second.world.clock.monotonic_s() - began
    name = f"simulated: {len(moves)} moves, {brokers} brokers, {rate // MB} MB/s"
    return Measured(name, bound_s(moves, leaders, rate), result.seconds, shot, most, caps.moves_in_per_broker)


def set_throttle(cluster: Cluster, moves: Sequence[Move], rate: int) -> None:
    """As the stock tool does: lists on the topics, rates on every broker involved."""
    changes = [
        ConfigChange(ConfigResource(s.kind, s.name), s.key, "set", ",".join(sorted(v)))
        for s, v in entries(moves).items()
    ]
    changes += [
        ConfigChange(ConfigResource("broker", str(b)), key, "set", str(rate))
        for b in brokers_involved(moves)
        for key in (LEADER_RATE, FOLLOWER_RATE)
    ]
    cluster.alter_configs(changes)


def real(partitions: int, mib: int, rate: int) -> Measured:
    """Both ways on a sandbox: Ballast first, then everything back, then the stock tool."""
    import tempfile

    from tests.real.execution_scene import scene

    from ballast.sandbox import Sandbox, SandboxSpec
    from ballast.wiring.cluster import open_cluster
    from ballast.wiring.runs import new_run_id, open_writer

    half = {i: (1 + i % 2, 2 - i % 2) for i in range(partitions)}
    with (
        tempfile.TemporaryDirectory() as scratch,
        Sandbox.up(SandboxSpec(brokers=4, racks=0)) as sandbox,
        scene(sandbox, Path(scratch)) as at,
        open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened,
    ):
        at.topic("t", half, mib=mib)
        state = at.cluster.snapshot()
        moves = [at.move(state, "t", i, (r[0], 3 + i // 2 % 2)) for i, r in half.items()]
        leaders = {m.name: int(state.partitions.leader[state.index[m.name]]) for m in moves}
        policy = ExecutionPolicy(throttle=rate, moves_in_per_broker=2, moves_out_per_broker=4)
        plan = Plan("bench", state.cluster_id, fingerprint(state), tuple(moves))
        most = [0]
        done = threading.Event()
        watcher = threading.Thread(target=watch_real, args=(at.cluster, most, done))
        with open_writer(opened, command="bench") as own:
            watcher.start()
            result = own.apply(plan, policy, run_id=new_run_id())
            done.set()
            watcher.join()
            if result.status != "done" or own.driver.run is None or own.rollback(own.driver.run).status != "done":
                raise SystemExit(f"the run ended {result.status}")
        shot = single_shot(at, moves, rate)
    name = f"real: {len(moves)} moves of {mib} MiB, 4 brokers, {rate / MB:.0f} MB/s"
    return Measured(name, bound_s(moves, leaders, rate), result.seconds, shot, most[0], policy.moves_in_per_broker)


def single_shot(at: Scene, moves: Sequence[Move], rate: int) -> float:
    """The stock tool starts everything at once; seconds until nothing moves."""
    from tests.real.stock_tool import stock_reassign
    from tests.waiting import until

    path = at.folder / "moves.json"
    wanted = [{"topic": m.topic, "partition": m.partition, "replicas": list(m.new)} for m in moves]
    path.write_text(json.dumps({"version": 1, "partitions": wanted}))
    arguments = ("--execute", "--reassignment-json-file", str(path), "--throttle", str(rate))
    answer = stock_reassign(at.sandbox.bootstrap_server, *arguments)
    if answer.code:
        raise SystemExit(answer.out)
    began = time.monotonic()
    until(lambda: not at.cluster.reassignments(), within_s=600)
    return time.monotonic() - began


def watch_real(cluster: Cluster, most: list[int], done: threading.Event) -> None:
    """The most replicas that one broker was receiving at a time."""
    while not done.wait(0.3):
        into = Counter(b for r in cluster.reassignments().values() for b in r.adding)
        most[0] = max(most[0], *into.values(), 0)


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true", help="on a sandbox of real brokers")
    parser.add_argument("--mib", type=int, default=24, help="size of each partition there (%(default)s)")
    arguments = parser.parse_args()
    lines = (
        [real(12, arguments.mib, 4 * MB)]
        if arguments.real
        else [simulated(60, 6, 10 * MB), simulated(400, 12, 20 * MB)]
    )
    bad = 0
    for m in lines:
        over = m.ratio > ALLOWED or m.most_in_flight > m.cap
        bad += over
        sys.stdout.write(
            f"{m.scenario}: bound {m.bound_s:.1f} s, Ballast {m.ballast_s:.1f} s ({m.ratio:.2f} x), single shot "
            f"{m.single_shot_s:.1f} s; at most {m.most_in_flight} into one broker (cap {m.cap})"
            f"{'  OVER' if over else ''}\n"
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
