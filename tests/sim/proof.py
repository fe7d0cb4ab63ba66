"""The harness of the crash proof: a world, a chain of processes that die, and what must hold whatever happened.

A *life* is one process from its start to its end or death.  The harness starts the next life until one ends by itself; every
life does what a real start does: take the lock, look into the journal for open runs, go on with them or begin, pay debts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ballast.core.cluster import TopicPartition
from ballast.core.fingerprint import fingerprint
from ballast.core.plan import Move, Plan
from ballast.core.throttles import LISTS, RATES
from ballast.errors import Unavailable
from ballast.executor.driver import Driver
from ballast.executor.events import Happening, Listener, RunResult
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.records import load_runs
from ballast.executor.run import Now
from ballast.ports.journal import Holder
from ballast.sim import JournalStore, SimClock, SimCluster, SimWorld
from ballast.sim.crash import MortalCluster, MortalJournal, ProcessKilled, Reaper

RUN_ID = "r1"
LIMIT_S = 5_000.0
"""A run that has not ended by then, in simulated seconds, hangs."""


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
    on_life: Callable[[Proof, Driver, Reaper], Listener | None] = lambda *_: None
    """Prepares each life: what it hears, what is asked of it, when it dies."""
    by_others: set[TopicPartition] = field(default_factory=set)
    """Partitions that somebody else has changed or deleted: Ballast answers for nothing but their replica count."""
    lives: int = 0
    results: list[RunResult] = field(default_factory=list)
    store: JournalStore = field(default_factory=JournalStore)

    def __post_init__(self) -> None:
        self.clock: SimClock = self.world.clock
        self.before = {p.name: tuple(p.replicas) for p in self.world.partitions()}
        self.throttles_before = throttles(self.world)
        state = SimCluster(self.world).snapshot()
        self.plan = Plan("proof", state.cluster_id, fingerprint(state), moves=self.moves, elections=self.elections)
        self._unsafe: list[str] = []
        self._isr_before: dict[TopicPartition, int] = {}
        self.clock.subscribe(self._watch_isr)
        self.clock.at(self.clock.monotonic_s() + LIMIT_S, self._time_is_up)

    def run(self, *, most_lives: int = 50) -> RunResult | None:
        """Live until a life ends by itself; None when the last one found nothing left to do."""
        while True:
            self.lives += 1
            if self.lives > most_lives:
                raise Broken(f"still dying after {most_lives} lives")
            try:
                result = self._live()
            except ProcessKilled:
                pass
            except Unavailable as silence:
                # The command ends with "try again", which is what the next life does.
                self._require(silence.retryable, str(silence))
                self.clock.sleep(5)
            else:
                self.check()
                return result

    def _live(self) -> RunResult | None:
        reaper = Reaper()
        journal = MortalJournal(self.store, self.clock, reaper)
        cluster = MortalCluster(self.world, reaper, self._witness)
        driver = Driver(cluster, journal, self.clock, None)
        driver._listener = self.on_life(self, driver, reaper) or driver._listener
        journal.acquire(Holder(f"life-{self.lives}", "the proof", self.clock.now_ms()), wait_s=120)
        result = None
        if self.runs():
            for run in driver.open_runs():
                result = driver.go_back(driver.resume(run))
                self.results.append(result)
        else:
            result = driver.go_back(driver.execute(self.plan, self.policy, run_id=RUN_ID))
            self.results.append(result)
        while driver.pay_debts():
            self.clock.sleep(10)
        journal.release()
        return result

    def runs(self) -> Mapping[str, Any]:
        """The journal's runs."""
        return load_runs(self.store.view.records(), Now(0, 0.0))

    # Invariants

    def check(self) -> None:
        """Everything that must hold once a life has ended by itself."""
        for run in self.runs().values():
            self._require(run.ended, f"run {run.id} has not ended")
        touched = {m.name: m for m in self.moves}
        for partition in self.world.partitions():
            name = partition.name
            self._require(partition.lost_bytes == 0, f"{name} lost {partition.lost_bytes} acked bytes")
            if partition.led:
                held = partition.copies[partition.leader].size_bytes
                self._require(held >= partition.acked_bytes, f"{name}: its leader lacks acked records")
            if name in self.by_others:
                continue
            replicas = tuple(partition.replicas)
            self._require(not partition.reassigning, f"{name} is still being reassigned")
            count = len(touched[name].new) if name in touched else len(self.before[name])
            self._require(len(replicas) in {count, len(self.before[name])}, f"{name} has the replicas {replicas} now")
            allowed = {self.before[name]} | ({touched[name].new} if name in touched else set())
            self._require(replicas in allowed, f"{name} ended as {replicas}, allowed are {allowed}")
        self._require(not self._unsafe, "; ".join(self._unsafe[:3]))
        after = throttles(self.world)
        gone = {k for k in self.throttles_before if k[0] == "topic" and k[1] not in self.world.topics}
        want = {k: v for k, v in self.throttles_before.items() if k not in gone}
        self._require(after == want, f"throttles are {after}, and were {want}")
        ledger = [r.key for r in self.store.view.records() if r.key.startswith("throttle/")]
        self._require(not ledger, f"debts are left in the journal: {ledger}")

    def _witness(self, call: str, what: Mapping[Any, Any]) -> None:
        """No write to the cluster without its journaled intent, and none without the lock."""
        records = {r.key: r.value or {} for r in self.store.view.records()}
        lease = self.store.view.lease()
        self._require(lease is not None and lease[0].id == f"life-{self.lives}", f"{call} without the lock")
        match call:
            case "alter_reassignments":
                for name, target in what.items():
                    intent = self._intent(records, name)
                    expected = {"submitted": intent.get("new"), "cancelling": None, "restoring": intent.get("old")}
                    stage = str(intent.get("stage"))
                    wanted = expected.get(stage, "nothing")
                    given = None if target is None else list(target)
                    self._require(given == wanted, f"{name} → {given} while the journal says {stage} {wanted}")
            case "alter_configs":
                for resource, key in what:
                    line = f"throttle/{resource.kind}/{resource.name}/{key}"
                    self._require(line in records, f"{line} is changed without a ledger line")
            case "elect_leaders":
                for name in what:
                    run_id = next(run.id for run in self.runs().values() if not run.ended)
                    stage = str(records.get(f"election/{run_id}/{name}", {}).get("stage"))
                    self._require(stage == "asked", f"election of {name} while the journal says {stage}")
            case "alter_log_dirs":
                for name, _ in what:
                    stage = str(self._intent(records, name).get("stage"))
                    self._require(
                        stage in {"relocating", "submitted"},
                        f"{name} changes its log dir while the journal says {stage}",
                    )

    def _intent(self, records: Mapping[str, Any], name: TopicPartition) -> Mapping[str, Any]:
        """What the run that is open says of this partition."""
        (run_id,) = [run.id for run in self.runs().values() if not run.ended]
        return records.get(f"move/{run_id}/{name}") or {}

    def _watch_isr(self, _elapsed: float) -> None:
        """Nobody but dead brokers may push a partition under its min ISR."""
        least_of = {name: topic.min_isr for name, topic in self.world.topics.items()}
        for partition in self.world.partitions():
            least = least_of[partition.topic]
            fell = self._isr_before.get(partition.name, 0) >= least > len(partition.isr)
            if fell and all(self.world.brokers[b].registered for b in partition.replicas):
                self._unsafe.append(f"{partition.name} has the ISR {partition.isr} of {partition.replicas}")
            self._isr_before[partition.name] = len(partition.isr)

    def _time_is_up(self) -> None:
        stages = {
            str(n): f"{m.stage} {m.detail}" for r in self.runs().values() for n, m in r.moves.items() if not r.ended
        }
        raise Hung(f"nothing has ended after {LIMIT_S:.0f} simulated seconds; {stages}")

    @staticmethod
    def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 — it is the claim itself
        if not holds:
            raise Broken(otherwise)


def throttles(world: SimWorld) -> dict[tuple[str, str, str], str]:
    """Every throttle setting that stands anywhere."""
    out: dict[tuple[str, str, str], str] = {}
    for b in world.brokers.values():
        out |= {("broker", str(b.id), k): v for k, v in b.configs.items() if k in RATES}
    out |= {("broker", "", k): v for k, v in world.cluster_configs.items() if k in RATES}
    for t in world.topics.values():
        out |= {("topic", t.name, k): v for k, v in t.configs.items() if k in LISTS}
    return out


@dataclass
class Ears:
    """Hands everything it hears on."""

    take: Callable[[Happening], None]

    def hear(self, happening: Happening) -> None:
        """Hand it on."""
        self.take(happening)
