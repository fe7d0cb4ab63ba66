"""A small simulated cluster with a journal, and the driver on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Performing, RunEvent, RunResult
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.notes import code_of
from ballast.executor.machine.transitions import EffectKind
from ballast.ports.journal import Holder
from ballast.sim import Physics, SimBroker, SimClock, SimCluster, SimWorld
from ballast.sim.journal import JournalStore, MemoryJournal

MB = 1_000_000
T = "t"


@dataclass
class Ears:
    """Keeps everything it hears."""

    heard: list[RunEvent] = field(default_factory=list)

    def on_event(self, event: RunEvent) -> None:
        """Keep it."""
        self.heard.append(event)


@dataclass
class Scene:
    """A world, its journal and the parts a process needs; ``process`` starts a fresh one on the same world."""

    world: SimWorld
    cluster: SimCluster
    store: JournalStore
    journal: MemoryJournal
    ears: Ears
    driver: Driver

    def process(self, name: str = "second") -> Driver:
        """Another process that takes the lock over."""
        self.journal = MemoryJournal(self.store, self.world.clock)
        self.journal.acquire(holder(name), wait_s=60)
        self.ears = Ears()
        self.driver = Driver(self.cluster, self.journal, self.world.clock, self.ears)
        return self.driver

    def plan(self, *moves: Move, elections: tuple[TopicPartition, ...] = (), change_rf: bool = False) -> Plan:
        """A plan made from the present state."""
        state = self.cluster.snapshot()
        return Plan(
            intent="test",
            cluster_id=state.cluster_id,
            fingerprint=fingerprint(state),
            moves=moves,
            elections=elections,
            allow_replication_factor_change=change_rf,
        )

    def throttles(self) -> dict[str, str]:
        """Every throttle setting that stands in the world."""
        out: dict[str, str] = {}
        for b in self.world.brokers.values():
            out |= {f"broker {b.id} {k}": v for k, v in b.configs.items() if "throttled" in k}
        for t in self.world.topics.values():
            out |= {f"topic {t.name} {k}": v for k, v in t.configs.items() if "throttled" in k}
        return out


def holder(name: str) -> Holder:
    """A process that takes the lock."""
    return Holder(id=name, description=f"test {name}", lease_s=15)


def reasons(result: RunResult) -> list[tuple[str | None, dict[str, Any]]]:
    """Why moves and elections did not simply succeed: codes with figures."""
    return [(code_of(e.why), {} if e.why is None else e.why.parameters) for e in result.endings]


def fail(note: RunNote) -> None:
    """Nothing is to be told."""
    pytest.fail(str(note))


def scene(
    assignment: Mapping[int, tuple[int, ...]] | None = None,
    *,
    brokers: int = 4,
    size_bytes: float = 100 * MB,
    inbound_bytes_per_s: float = 0.0,
    configs: dict[str, str] | None = None,
    physics: Physics | None = None,
) -> Scene:
    """Brokers 1..n with 10 MB/s cards in racks of their own, and topic ``t``."""
    world = SimWorld(
        SimClock(),
        [SimBroker(id=i, rack=f"r{i}", nic_bytes_per_s=10 * MB) for i in range(1, brokers + 1)],
        physics=physics,
    )
    world.add_topic(
        T,
        assignment or {0: (1, 2)},
        size_bytes=size_bytes,
        inbound_bytes_per_s=inbound_bytes_per_s,
        configs=configs,
    )
    cluster = SimCluster(world)
    store = JournalStore()
    journal = MemoryJournal(store, world.clock)
    journal.acquire(holder("first"))
    ears = Ears()
    return Scene(world, cluster, store, journal, ears, Driver(cluster, journal, world.clock, ears))


def performed(ears: Ears) -> list[EffectKind]:
    """The effects that were sent, in order."""
    return [h.effect.kind for h in ears.heard if isinstance(h, Performing)]
