"""Runs a scenario: the production planner, machine and driver on a simulated cluster, and what was expected of them.

A scenario says what the cluster is, what happens to it and when, what Ballast is asked to do, and what must hold.  Each
intent (``balance``, ``decommission 3``, …) plans from what the cluster says at that moment and executes it; ``crash
after=20s`` kills the process that long into the next intent, and another one takes over.  See ``docs/simulator.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.kraft import place_kraft
from ballast.core.planner import Balance, Decommission, Demote, Evacuate, Expand, Intent, Leaders, PlannerPolicy, Racks
from ballast.core.planner import plan as make_plan
from ballast.core.snapshot.file import loads as read_snapshot
from ballast.core.throttles import RATES
from ballast.executor.driver.driver import Driver
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.journal import Holder
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.crash import ProcessKilled
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import Physics, SimBroker
from ballast.sim.picture import world_of
from ballast.sim.scenario_claims import ClaimOutcome, bound_s, judge, throttles
from ballast.sim.scenario_text import Statement, brokers, parse, partition, quantity
from ballast.sim.world import SimWorld


def _throttle(s: Statement) -> Literal["auto", "none"] | int:
    """``auto``, as a run has it by default, ``none``, or a rate."""
    match s.keys.get("throttle", "auto"):
        case "auto":
            return "auto"
        case "none":
            return "none"
        case _:
            return int(s.number("throttle"))


def _die() -> None:
    raise ProcessKilled("the scenario says so")


class Scenario:
    """One scenario with its world; ``run`` answers its outcome."""

    def __init__(self, text: str, *, seed: int = 0, folder: Path | None = None) -> None:
        self.statements = parse(text)
        self.folder = folder
        """Where the files that it names lie."""
        self.seed = seed
        self.clock = SimClock()
        self.store = JournalStore()
        self.outcome = ClaimOutcome()
        self._world: SimWorld | None = None
        self._policy = ExecutionPolicy(measure_s=0.0)
        self._planner = PlannerPolicy(prove=False)
        self._crash_after_s: list[float] = []
        self._last_intent: Statement | None = None

    @property
    def world(self) -> SimWorld:
        """The simulated world; there is one from the ``cluster`` statement on."""
        assert self._world is not None
        return self._world

    def run(self) -> ClaimOutcome:
        """Execute every statement in order."""
        for statement in self.statements:
            if self._world is None and statement.verb not in {"cluster", "snapshot"}:
                raise statement.fail("the first statement is cluster brokers=… or snapshot FILE")
            handler = HANDLERS.get(statement.verb)
            if handler is None:
                raise statement.fail(f"there is no {statement.verb!r}; there are {', '.join(HANDLERS)}.")
            if statement.at_s is None:
                handler(self, statement)
            elif statement.verb in LEVERS:
                self.clock.at(statement.at_s, lambda s=statement, h=handler: h(self, s))  # type: ignore[misc]
            else:
                raise statement.fail(f"{statement.verb} cannot be put at a time; {', '.join(LEVERS)} can.")
        return self.outcome

    # The cluster

    def cluster(self, s: Statement) -> None:
        """``cluster brokers=6 racks=3 nic=100MB/s disk=1TB dirs=1 lag=0.5s``."""
        s.only("brokers", "racks", "nic", "disk", "dirs", "lag")
        racks = s.count("racks", 0)
        made = [
            SimBroker(
                id=i,
                rack=f"r{i % racks}" if racks else None,
                nic_bytes_per_s=s.number("nic", 100e6),
                dir_bytes=(s.number("disk", 1e12),) * s.count("dirs", 1),
            )
            for i in range(1, s.count("brokers") + 1)
        ]
        self._world = SimWorld(self.clock, made, physics=Physics(metadata_lag_s=s.number("lag", 0.5)), seed=self.seed)

    def snapshot(self, s: Statement) -> None:
        """``snapshot case.json nic=100MB/s lag=0.5s``: the cluster that ``ballast snapshot`` wrote."""
        s.only("nic", "lag")
        if len(s.words) != 1 or self.folder is None:
            raise s.fail("snapshot names one file beside the scenario.")
        file = self.folder / s.words[0]
        if not file.is_file():
            raise s.fail(f"there is no file {s.words[0]} beside the scenario.")
        taken = read_snapshot(file.read_bytes(), source=file.name)
        self._world = world_of(
            taken.state,
            taken.loads,
            self.clock,
            nic_bytes_per_s=s.number("nic", 100e6),
            physics=Physics(metadata_lag_s=s.number("lag", 0.5)),
        )

    def topic(self, s: Statement) -> None:
        """``topic orders partitions=24 rf=3 size=1GB in=1MB/s on=1,2,3``, placed as KRaft places."""
        s.only("partitions", "rf", "size", "in", "on", "min_isr")
        if len(s.words) != 1:
            raise s.fail("a topic has one name.")
        allowed = set(brokers(s.keys["on"], s)) if "on" in s.keys else set(self.world.brokers)
        count, factor = s.count("partitions"), s.count("rf", 3)
        live = [b for b in self.world.brokers.values() if b.id in allowed]
        if factor > len(live):
            raise s.fail(f"{factor} replicas need as many brokers.")
        self.world.add_topic(
            s.words[0],
            place_kraft(live, count, factor, JavaRandom(self.seed)),
            size_bytes=s.number("size", 0.0),
            inbound_bytes_per_s=s.number("in", 0.0),
            configs={"min.insync.replicas": str(s.count("min_isr", max(factor - 1, 1)))},
        )

    def throttle(self, s: Statement) -> None:
        """``throttle broker=1 rate=10MB/s``: a foreign rate from before."""
        s.only("broker", "rate")
        for key in RATES[:2]:
            self.world.brokers[s.count("broker")].configs[key] = str(int(s.number("rate")))

    # Levers, now or at a time

    def kill(self, s: Statement) -> None:
        """``kill 2``."""
        for broker in brokers(",".join(s.words), s):
            self.world.kill(broker)

    def freeze(self, s: Statement) -> None:
        """``freeze 2``."""
        for broker in brokers(",".join(s.words), s):
            self.world.freeze(broker)

    def start(self, s: Statement) -> None:
        """``start 2``."""
        for broker in brokers(",".join(s.words), s):
            self.world.start(broker)

    def add(self, s: Statement) -> None:
        """``add broker=7 rack=r1``."""
        s.only("broker", "rack")
        like = next(iter(self.world.brokers.values()))
        broker = SimBroker(
            id=s.count("broker"),
            rack=s.keys.get("rack"),
            nic_bytes_per_s=like.nic_bytes_per_s,
            dir_bytes=like.dir_bytes,
        )
        self.world.add_broker(broker)

    def delete(self, s: Statement) -> None:
        """``delete orders``."""
        for topic in s.words:
            self.world.delete_topic(topic)

    def load(self, s: Statement) -> None:
        """``load orders in=2MB/s``."""
        for topic in s.words:
            self.world.set_load(topic, s.only("in").number("in"))

    def move(self, s: Statement) -> None:
        """``move orders-0 to=4,5,6``: a foreign reassignment."""
        name = partition(" ".join(s.words), s)
        outcome = self.world.controller.alter(name, brokers(s.only("to").keys["to"], s), allow_rf_change=False)
        if not outcome.ok:
            raise s.fail(f"the controller refuses it: {outcome}")

    # Ballast

    def policy(self, s: Statement) -> None:
        """``policy throttle=20MB/s in=5 out=10 cluster=200 one_batch=1 guard_timeout=60s``; a throttle of ``auto`` where none is said."""
        s.only("throttle", "in", "out", "cluster", "one_batch", "guard_timeout", "band")
        self._policy = ExecutionPolicy(
            throttle=_throttle(s),
            moves_in_per_broker=s.count("in", 5),
            moves_out_per_broker=s.count("out", 10),
            moves_at_once=s.count("cluster", 200),
            one_batch_at_a_time=bool(s.count("one_batch", 0)),
            guard_timeout_s=s.number("guard_timeout") if "guard_timeout" in s.keys else None,
            measure_s=0.0,
        )
        self._planner = PlannerPolicy(prove=False, band=s.number("band", self._planner.band))

    def crash(self, s: Statement) -> None:
        """``crash after=20s``: the process of the next intent dies then."""
        self._crash_after_s.append(s.only("after").number("after"))

    def intent(self, s: Statement) -> None:
        """Plan and execute; a crashed process is followed by another, which finishes what it finds."""
        began = self.clock.monotonic_s()
        self.outcome.throttles_before = throttles(self.world)
        while True:
            self.outcome.lives += 1
            if self._crash_after_s:
                self.clock.after(self._crash_after_s.pop(0), _die)
            try:
                self._live(s)
            except ProcessKilled:
                continue
            break
        self.outcome.seconds += self.clock.monotonic_s() - began
        self._last_intent = s

    def _live(self, s: Statement) -> None:
        """One process: finish what the journal says is open, else plan and begin."""
        cluster = SimCluster(self.world)
        journal = MemoryJournal(self.store, self.clock)
        life = f"life {self.outcome.lives}"
        journal.acquire(Holder(life, life), wait_s=600)
        driver = Driver(cluster, journal, self.clock)
        left = driver.open_runs()
        for run in left:
            self.outcome.status = driver.resume(run).status
        if not left:
            plan = make_plan(cluster.snapshot(), intent_of(s), policy=self._planner, seed=self.seed)
            self.outcome.status = plan.status
            if not plan.is_empty:
                self.outcome.moves += len(plan.moves)
                self.outcome.bytes += plan.bytes_moved
                self.outcome.bound_s += bound_s(plan, self.world, self._policy)
                self.outcome.status = driver.execute(plan, self._policy, run_id=f"line-{s.line}").status
        driver.restore_throttles()
        journal.release()

    def wait(self, s: Statement) -> None:
        """``wait 10m``."""
        self.clock.sleep(quantity(" ".join(s.words), s))

    def expect(self, s: Statement) -> None:
        """``expect status=done moves<=40 bytes<=1GB time<=1.15bound lost=0 throttles_unchanged steady fullest<=1.1``."""
        if "steady" in s.words and self._last_intent is not None:
            state = SimCluster(self.world).snapshot()
            plan = make_plan(state, intent_of(self._last_intent), policy=self._planner, seed=self.seed)
            self.outcome.plan_now_is_empty = plan.is_empty
        for claim in s.words:
            otherwise = judge(claim, s, self.outcome, self.world)
            if otherwise is not None:
                self.outcome.failures.append(f"line {s.line}: expected {claim}, {otherwise}")


def intent_of(s: Statement) -> Intent:
    """The planner's intent that a line names."""
    if s.verb in _OF_THE_WHOLE:
        return _OF_THE_WHOLE[s.verb]()
    return _OF_BROKERS[s.verb](brokers=frozenset(brokers(",".join(s.words), s)))


_OF_THE_WHOLE: Final[Mapping[str, Callable[[], Intent]]] = {"balance": Balance, "leaders": Leaders, "racks": Racks}
_OF_BROKERS: Final[Mapping[str, Callable[..., Intent]]] = {
    "decommission": Decommission,
    "demote": Demote,
    "expand": Expand,
    "evacuate": Evacuate,
}
Handler = Callable[[Scenario, Statement], None]
LEVERS: Final[Mapping[str, Handler]] = {
    "kill": Scenario.kill,
    "freeze": Scenario.freeze,
    "start": Scenario.start,
    "add": Scenario.add,
    "delete": Scenario.delete,
    "load": Scenario.load,
    "move": Scenario.move,
}
"""What can also be put at a time."""
HANDLERS: Final[Mapping[str, Handler]] = {
    "cluster": Scenario.cluster,
    "snapshot": Scenario.snapshot,
    "topic": Scenario.topic,
    "throttle": Scenario.throttle,
    "policy": Scenario.policy,
    "crash": Scenario.crash,
    "wait": Scenario.wait,
    "expect": Scenario.expect,
    **dict.fromkeys((*_OF_THE_WHOLE, *_OF_BROKERS), Scenario.intent),
    **LEVERS,
}
