"""The harness of the crash proof: a world, a chain of processes that die, and what must hold whatever happened.

A *life* is one process from its start to its end or death.  The harness starts the next life until one ends by itself; every
life does what a real start does: take the lock, look into the journal for open runs, go on with them or begin, restore throttles.

What the journal has lost before a process that remembers it has made it again is forgotten: then no process can end
the run or restore throttles, and only what concerns the data must hold.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.planner import Balance, PlannerPolicy
from ballast.core.planner import plan as make_plan
from ballast.core.throttles import LISTS
from ballast.errors import Fenced, LockHeld, Refused, Unavailable
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Listener, RunEvent, RunResult
from ballast.executor.driver.pauses import is_transient
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Now, Run
from ballast.executor.machine.stages import Failed
from ballast.ports.journal import Holder
from ballast.sim import JournalStore, MemoryJournal, SimClock, SimCluster, SimWorld
from ballast.sim.crash import CrashingCluster, CrashingJournal, ProcessKilled, Reaper
from ballast.sim.model import SimPartition

RUN_ID = "r1"
LIMIT_S = 5_000.0
"""A run that has not ended by then, in simulated seconds, hangs."""
LOCK_WAIT_S = 120.0
"""How long a process waits for the lock."""
MOST_PLANS = 3
"""So many plans, one after another, balance any cluster of the proof."""
SETTLES_S = 120.0
"""By so long after the last fault every replica is in sync."""
STILL_S = 900.0
"""A balanced cluster is watched for so long."""

Config = tuple[str, str, str]
"""``topic`` or ``broker``, its name (empty: the default for all brokers), and the key."""


class Hung(BaseException):
    """The simulated time is up."""


class Broken(AssertionError):
    """An invariant does not hold; the message says which."""


@dataclass
class Proof:
    """One world and one plan, and everything that was seen of them."""

    world: SimWorld
    moves: tuple[Move, ...]
    policy: ExecutionPolicy
    elections: tuple[TopicPartition, ...] = ()
    in_order: bool = False
    """Moves need room that moves before them free."""
    on_life: Callable[[Proof, Driver, Reaper], Listener | None] = lambda *_: None
    """Prepares each life: what it hears, what is asked of it, when it dies."""
    by_others: set[TopicPartition] = field(default_factory=set)
    """Partitions that another user has changed or deleted: Ballast answers for nothing but their replica count."""
    another: set[str] = field(default_factory=set)
    """Topics that were deleted and recreated after the run had seen them: nothing of theirs is the run's."""
    shown_at_s: dict[str, float] = field(default_factory=dict)
    """When metadata shows such a topic: until then no process can tell it from the old one, and requests name no id."""
    mistaken: set[str] = field(default_factory=set)
    """Topics that something was sent to all the same: their configs are what they are."""
    faults: Counter[str] = field(default_factory=Counter)
    """What has befallen it, by kind."""
    forgotten: bool = False
    """No process is left that knows what the journal has lost."""
    lives: int = 0
    results: list[RunResult] = field(default_factory=list)
    store: JournalStore = field(default_factory=JournalStore)

    def __post_init__(self) -> None:
        self.clock: SimClock = self.world.clock
        self.before = {p.name: tuple(p.replicas) for p in self.world.partitions()}
        self.configs = configs_of(self.world)
        """As people have left them: every config that must stand in the end."""
        self.sending = False
        """What was read is being written and sent: a user's change in that moment is overwritten, by any client."""
        state = SimCluster(self.world).snapshot()
        self.plan = Plan(
            "proof", state.cluster_id, fingerprint(state), self.moves, elections=self.elections, in_order=self.in_order
        )
        self._unsafe: list[str] = []
        self._isr_before: dict[TopicPartition, int] = {}
        self.clock.subscribe(self._watch_isr)
        self.clock.at(self.clock.monotonic_s() + LIMIT_S, self._time_is_up)

    def run(self, *, most_lives: int = 80) -> None:
        """Live until a life ends by itself with nothing left to do; then everything must hold."""
        while not self.live():
            if self.lives > most_lives:
                raise Broken(f"still dying after {most_lives} lives")
        self.check()

    def live(self) -> bool:
        """One process from its start to its end; False where it leaves something to the next."""
        self.lives += 1
        try:
            result = self._live(f"life-{self.lives}")
        except (ProcessKilled, Fenced):
            return False
        except LockHeld:
            self.clock.sleep(5)
            return False
        except (Unavailable, Refused) as failure:
            # The command ends with "try again", which is what the next life does.
            self.require(is_transient(failure), str(failure))
            self.clock.sleep(5)
            return False
        finally:
            # The process that remembered it is gone.
            self._forget_what_is_lost()
        if result is not None and result.restore_commands:
            self._put_back_by_hand(result)
            return True
        return all(run.ended for run in self.runs().values())

    def _forget_what_is_lost(self) -> None:
        self.forgotten |= bool(self.store.lost)
        self.store.lost = ""

    def _live(self, life: str) -> RunResult | None:
        reaper, self.sending = Reaper(), False
        journal = CrashingJournal(self.store, self.clock, reaper)
        cluster = CrashingCluster(self.world, reaper, partial(self._witness, life, journal))
        driver = Driver(cluster, journal, self.clock, None)
        if (listener := self.on_life(self, driver, reaper)) is not None:
            driver.listen(listener)
        journal.acquire(Holder(life, "the proof"), wait_s=LOCK_WAIT_S)
        self._forget_what_is_lost()
        result = None
        if self.runs():
            for run in driver.open_runs():
                result = driver.roll_back_if_asked(driver.resume(run))
                self.results.append(result)
        else:
            result = driver.roll_back_if_asked(driver.execute(self.plan, self.policy, run_id=RUN_ID))
            self.results.append(result)
        while driver.restore_throttles():
            self.clock.sleep(10)
        journal.release()
        return result

    def runs(self) -> Mapping[str, Any]:
        """The journal's runs."""
        return load_runs(self.store.view.records(), Now(0, 0.0))

    def _put_back_by_hand(self, result: RunResult) -> None:
        """What a person does who is left with commands: wait until nothing moves any more, then run them."""
        self._wait_until_nothing_moves()
        for command in result.restore_commands:
            obey(command, self.world)

    # Invariants

    def check(self) -> None:
        """Everything that must hold once a life has ended by itself."""
        if self.forgotten:
            self._wait_until_nothing_moves()
        runs = self.runs()
        for run in runs.values():
            self.require(run.ended or self.forgotten, f"run {run.id} has not ended")
        for partition in self.world.partitions():
            self.require(partition.lost_bytes == 0, f"{partition.name} lost {partition.lost_bytes} acked bytes")
            if partition.led:
                held = partition.copies[partition.leader].end_bytes
                self.require(held >= partition.acked_bytes, f"{partition.name}: its leader lacks acked records")
            if partition.name not in self.by_others:
                self._check_replicas(partition, runs)
        self.require(not self._unsafe, "; ".join(self._unsafe[:3]))
        if self.forgotten:
            return
        after, want = configs_of(self.world), self.configs
        wrong = {
            k: (want.get(k), after.get(k))
            for k in {*after, *want}
            if (after.get(k) or "") != (want.get(k) or "") and not (k[0] == "topic" and k[1] in self.mistaken)
        }
        self.require(not wrong, f"configs are not as people left them (wanted, found): {wrong}")
        ledger = [r.key for r in self.store.view.records() if r.key.startswith("throttle/")]
        self.require(not ledger, f"throttles to restore are left in the journal: {ledger}")

    def _wait_until_nothing_moves(self) -> None:
        end = self.clock.monotonic_s() + LIMIT_S / 2
        while self.clock.monotonic_s() < end and any(
            p.reassigning for p in self.world.partitions() if p.name not in self.by_others
        ):
            self.clock.sleep(10)

    def _check_replicas(self, partition: SimPartition, runs: Mapping[str, Run]) -> None:
        """As before, or where the plan wanted it."""
        name, replicas = partition.name, tuple(partition.replicas)
        self.require(not partition.reassigning, f"{name} is still being reassigned")
        if name.topic in self.another and not self.forgotten:
            self.require(replicas == self.before[name], f"{name} is another topic's and has {replicas} now")
            return
        allowed = {self.before[name]} | {m.new for m in self.moves if m.name == name}
        # The cluster has refused to put the order back, and the run has said so.
        refused = any(_order_refused(run.moves[name]) for run in runs.values() if name in run.moves)
        held = any(set(replicas) == set(a) for a in allowed) if refused or self.forgotten else replicas in allowed
        self.require(held, f"{name} ended as {replicas}, allowed are {allowed}")

    def becomes_still(self, quiet_after_s: float) -> None:
        """Once no fault is to come a few plans balance the cluster; then there is nothing to plan, and nothing changes."""
        self.clock.sleep(max(quiet_after_s - self.clock.monotonic_s(), 0.0) + SETTLES_S)
        for topic in self.world.topics:
            self.world.set_load(topic, 0.0)
        cluster, journal = SimCluster(self.world), MemoryJournal(JournalStore(), self.clock)
        driver = Driver(cluster, journal, self.clock)
        journal.acquire(Holder("balance", "the proof"))
        policy = PlannerPolicy(prove=False)
        for number in range(MOST_PLANS):
            made = make_plan(cluster.snapshot(), Balance(), policy=policy)
            if made.is_empty:
                break
            result = driver.execute(made, ExecutionPolicy(throttle="none", measure_s=0.0), run_id=f"balance-{number}")
            self.require(result.status == "done", f"balancing ended {result.status}: {result.endings[:3]}")
        before = [(p.name, p.leader, tuple(p.replicas)) for p in self.world.partitions()]
        self.clock.sleep(STILL_S)
        again = make_plan(cluster.snapshot(), Balance(), policy=policy)
        self.require(again.is_empty, f"after {MOST_PLANS} plans there is still one: {again.moves[:3]}")
        after = [(p.name, p.leader, tuple(p.replicas)) for p in self.world.partitions()]
        self.require(before == after, "the cluster does not stay still")

    def _witness(self, life: str, journal: MemoryJournal, call: str, what: Mapping[Any, Any]) -> None:
        """No write to the cluster without its journaled intent, and none without the lock."""
        if journal.is_behind:
            # What the intent was written to is gone since; nothing else is begun, and what is owed is paid from memory.
            return
        records = {r.key: r.value or {} for r in self.store.view.records()}
        self._excuse({k[0].name if call == "alter_configs" else k.topic for k in what if call != "alter_log_dirs"})
        lease = self.store.view.lease()
        self.require(lease is not None and lease[0].id == life, f"{call} without the lock")
        match call:
            case "alter_reassignments":
                for name, target in what.items():
                    intent = self._intent(records, name)
                    expected = {"submitted": intent.get("new"), "cancelling": None, "restoring": intent.get("old")}
                    stage = str(intent.get("stage"))
                    wanted = expected.get(stage, "nothing")
                    given = None if target is None else list(target)
                    self.require(given == wanted, f"{name} → {given} while the journal says {stage} {wanted}")
            case "alter_configs":
                for resource, key in what:
                    line = f"throttle/{resource.kind}/{resource.name}/{key}"
                    self.require(line in records, f"{line} is changed without a ledger line")
            case "elect_leaders":
                for name in what:
                    run_id = next(run.id for run in self.runs().values() if not run.ended)
                    stage = str(records.get(f"election/{run_id}/{name}", {}).get("stage"))
                    self.require(stage == "requested", f"election of {name} while the journal says {stage}")
            case "alter_log_dirs":
                for name, _ in what:
                    stage = str(self._intent(records, name).get("stage"))
                    self.require(
                        stage in {"relocating", "submitted"},
                        f"{name} changes its log dir while the journal says {stage}",
                    )

    def _excuse(self, topics: set[str]) -> None:
        """What is sent to a new topic that metadata does not show yet was meant for the old one."""
        for topic in topics & self.another:
            if self.clock.monotonic_s() <= self.shown_at_s[topic]:
                self.another.discard(topic)
                self.by_others.update(n for n in self.before if n.topic == topic)
                self.mistaken.add(topic)

    def _intent(self, records: Mapping[str, Any], name: TopicPartition) -> Mapping[str, Any]:
        """What the run that is open says of this partition."""
        (run_id,) = [run.id for run in self.runs().values() if not run.ended]
        return records.get(f"move/{run_id}/{name}") or {}

    def _watch_isr(self, _elapsed: float) -> None:
        """Only down brokers may push a partition under its min ISR."""
        least_of = {name: topic.min_isr for name, topic in self.world.topics.items()}
        for partition in self.world.partitions():
            least = least_of[partition.topic]
            fell = self._isr_before.get(partition.name, 0) >= least > len(partition.isr)
            if fell and all(self.is_well(b) for b in partition.replicas):
                self._unsafe.append(f"{partition.name} has the ISR {partition.isr} of {partition.replicas}")
            self._isr_before[partition.name] = len(partition.isr)

    def is_well(self, broker: int) -> bool:
        """Nothing has befallen this broker that takes replicas out of sync."""
        record = self.world.brokers[broker]
        return record.up and record.registered and not record.failed and not any(broker in p for p in self.world.cut)

    def _time_is_up(self) -> None:
        stages = {
            str(n): f"{m.stage.code} {m.detail}"
            for r in self.runs().values()
            for n, m in r.moves.items()
            if not r.ended
        }
        raise Hung(f"nothing has ended after {LIMIT_S:.0f} simulated seconds; {stages}")

    @staticmethod
    def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 — it is the claim itself
        """Raise ``Broken`` with what is wrong."""
        if not holds:
            raise Broken(otherwise)


def configs_of(world: SimWorld) -> dict[Config, str]:
    """Every config that stands anywhere."""
    out = {("broker", str(b.id), k): v for b in world.brokers.values() for k, v in b.configs.items()}
    out |= {("broker", "", k): v for k, v in world.cluster_configs.items()}
    return out | {("topic", t.name, k): v for t in world.topics.values() for k, v in t.configs.items()}


def place_of(world: SimWorld, kind: str, name: str) -> dict[str, str]:
    """Where the configs of a topic, a broker or all brokers stand."""
    if kind == "topic":
        return world.topics[name].configs
    return world.brokers[int(name)].configs if name else world.cluster_configs


def obey(command: str, world: SimWorld) -> None:
    """Do what a line for a person says: set or delete a rate, or take our entries out of a list."""
    line, _, remark = command.partition("  # ")
    words = shlex.split(line)
    kind = words[words.index("--entity-type") + 1].removesuffix("s")
    name = "" if "--entity-default" in words else words[words.index("--entity-name") + 1]
    if kind == "topic" and name not in world.topics:
        return
    configs = place_of(world, kind, name)
    if "--add-config" in words:
        key, _, value = words[words.index("--add-config") + 1].partition("=")
        configs[key] = value
    elif "--delete-config" in words:
        configs.pop(words[words.index("--delete-config") + 1], None)
    else:
        key = next(k for k in LISTS if k in remark)
        ours = set(remark.partition(" without ")[2].partition(";")[0].split(","))
        left = [e for e in configs.get(key, "").split(",") if e and e not in ours]
        if left:
            configs[key] = ",".join(left)
        else:
            configs.pop(key, None)


def _order_refused(m: MoveRun) -> bool:
    return isinstance(m.stage, Failed) and m.outcome == "rejected"


@dataclass
class Ears:
    """Hands everything it hears on."""

    take: Callable[[RunEvent], None]

    def on_event(self, event: RunEvent) -> None:
        """Hand it on."""
        self.take(event)
