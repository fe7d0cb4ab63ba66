"""A topic with data on a real cluster, and Ballast as a process of its own that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import confluent_kafka as ck
import psutil
from tests.leash import leashed
from tests.waiting import PATIENCE_S, eventually, until

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.file import dumps
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.throttles.stale import all_settings
from ballast.errors import Refused
from ballast.executor.journal.ledger import resource_of
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.run import Now, Run
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource
from ballast.ports.journal import Holder
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class Brokers(Protocol):
    """A running cluster: a sandbox's, or one in containers."""

    @property
    def bootstrap_server(self) -> str:
        """Where clients connect."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of its brokers."""


@dataclass
class Scene:
    """One cluster as the tests of execution see it."""

    sandbox: Brokers
    cluster: Cluster
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    """Every process of Ballast's that the test has started."""

    def topic(self, name: str, assignment: Mapping[int, tuple[int, ...]], *, mib: int = 0) -> None:
        """A topic with this much data in each partition, every replica in sync and on disk."""
        self.cluster.create_topic(name, assignment)
        until(lambda: all(self.in_sync(TopicPartition(name, p)) == set(r) for p, r in assignment.items()))
        if mib:
            self.fill(name, assignment, mib=mib)

    def fill(self, name: str, partitions: Mapping[int, object] | range, *, mib: int) -> None:
        """Write records that do not compress, acknowledged by every replica."""
        producer = ck.Producer(
            {"bootstrap.servers": self.sandbox.bootstrap_server, "acks": "all", "linger.ms": 5, "batch.size": 120_000}
        )
        failures: list[object] = []
        block = os.urandom(100_000)
        for partition in partitions:
            for _ in range(mib * 10):
                producer.produce(
                    name, block, partition=partition, on_delivery=lambda e, _: failures.append(e) if e else None
                )
                producer.poll(0)
        assert producer.flush(120) == 0
        assert not failures

    def in_sync(self, name: TopicPartition) -> set[int]:
        """The ISR as metadata shows it."""
        state = self.cluster.partitions([name]).get(name)
        return set(state.isr) if state is not None else set()

    def replicas(self, name: TopicPartition) -> tuple[int, ...]:
        """The replica list as metadata shows it; empty where the broker that answers has not heard of the topic yet."""
        state = self.cluster.partitions([name]).get(name)
        return state.replicas if state is not None else ()

    def move(self, state: ClusterState, topic: str, partition: int, new: tuple[int, ...]) -> Move:
        """A move from where the partition is."""
        row = state.index[TopicPartition(topic, partition)]
        run = slice(state.partitions.start[row], state.partitions.start[row + 1])
        return Move(topic, partition, state.target(row), new, max(state.partitions.size_bytes[run].tolist()))

    def plan(
        self,
        topic: str,
        wanted: Mapping[int, tuple[int, ...]],
        elections: tuple[int, ...] = (),
        log_dirs: Mapping[int, tuple[str, ...]] | None = None,
    ) -> Path:
        """A plan file for one topic; ``log_dirs`` says where the new replicas of some partitions belong."""
        state = self.cluster.snapshot()
        plan = Plan(
            intent=f"test {topic}",
            cluster_id=state.cluster_id,
            fingerprint=fingerprint(state),
            moves=tuple(
                replace(self.move(state, topic, p, new), log_dirs=(log_dirs or {}).get(p)) for p, new in wanted.items()
            ),
            elections=tuple(TopicPartition(topic, p) for p in elections),
        )
        path = self.folder / f"{topic}.plan.json"
        path.write_text(dumps(plan))
        return path

    def ballast(self, *arguments: str) -> subprocess.Popen[str]:
        """Ballast as a process, its output kept apart."""
        process = subprocess.Popen(
            leashed(sys.executable, "-m", "ballast", *arguments, "--bootstrap-server", self.sandbox.bootstrap_server),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def finish(self, *arguments: str, code: int = 0, timeout_s: float = 240) -> str:
        """Run Ballast to its end; returns stdout."""
        process = self.ballast(*arguments)
        out, story = process.communicate(timeout=timeout_s)
        assert process.returncode == code, f"{arguments}: exit {process.returncode}\n{out}\n{story}"
        return out

    def told(self, *arguments: str) -> str:
        """Run Ballast to its end; returns stderr."""
        process = self.ballast(*arguments)
        _, story = process.communicate(timeout=240)
        return story

    def runs(self) -> dict[str, Run]:
        """Every run in the cluster's journal."""
        with open_cluster(bootstrap_server=self.sandbox.bootstrap_server) as opened:
            journal = journal_of(opened)
            try:
                return load_runs(journal.read(), Now(0, 0.0))
            finally:
                journal.close()

    def run_of(self, topic: str) -> Run | None:
        """The newest run of this topic's plan."""
        found = [r for r in self.runs().values() if r.intent == f"test {topic}"]
        return found[-1] if found else None

    def holder(self) -> Holder | None:
        """Who holds the lock."""
        with open_cluster(bootstrap_server=self.sandbox.bootstrap_server) as opened:
            journal = journal_of(opened)
            try:
                return journal.holder()
            finally:
                journal.close()

    def rests(self) -> bool:
        """Whether every run has ended and no process holds the lock: followers in the background have nothing to do."""
        return all(r.ended for r in self.runs().values()) and self.holder() is None

    def change(self, change: ConfigChange) -> None:
        """Change a setting as a person would, and wait until it can be read: a broker hears of it a moment later."""
        outcomes = self.cluster.alter_configs([change])
        assert all(o.ok for o in outcomes.values()), outcomes

        def read() -> str | None:
            entry = self.cluster.configs([change.resource]).get(change.resource, {}).get(change.key)
            return entry.value if entry is not None and entry.source.startswith("DYNAMIC") else None

        until(lambda: read() == change.value)

    def own_list(self, topic: str, key: str) -> list[str]:
        """The entries of the topic's own throttle list."""
        return [e for e in self.throttles(topic).get(f"topic {topic} {key}", "").split(",") if e]

    def change_list(self, topic: str, key: str, operation: str, entries: str) -> None:
        """Change a throttle list as a person would, and wait until it shows."""
        outcomes = self.cluster.alter_configs([ConfigChange(ConfigResource("topic", topic), key, operation, entries)])
        assert all(o.ok for o in outcomes.values()), outcomes
        until(lambda: set(entries.split(",")) <= set(self.own_list(topic, key)))

    def throttles(self, topic: str) -> dict[str, str]:
        """Throttle settings that stand: the topic's lists and the brokers' own rates."""
        resources = [ConfigResource("topic", topic)]
        resources += [ConfigResource("broker", str(b)) for b in self.sandbox.broker_ids]
        out = {}
        for resource, entries in self.cluster.configs(resources).items():
            for key, entry in entries.items():
                if key in (*RATES, *LISTS) and entry.source in {"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"}:
                    out[f"{resource.kind} {resource.name} {key}"] = entry.value or ""
        return out

    def followers(self) -> list[psutil.Process]:
        """The processes that ``reassign --execute`` and ``--cancel`` started on this cluster."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = process.cmdline()
                if "--give-up-after" in words and self.sandbox.bootstrap_server in words:
                    found.append(process)
        return found

    def clear(self) -> None:
        """Leave nothing to the next test: no process, also none that is only starting, no move, no throttle."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        if not eventually(lambda: not self.followers(), within_s=PATIENCE_S):
            for follower in self.followers():
                with suppress(psutil.Error):
                    follower.kill()
        with suppress(Refused):  # Kafka before 2.4, of which only its ZooKeeper tells.
            if moving := self.cluster.reassignments():
                self.cluster.alter_reassignments(dict.fromkeys(moving))
        until(self._without_throttles, "no throttle to stand")

    def _without_throttles(self) -> bool:
        """Whether none was there; those that were are deleted."""
        standing = [s.setting for s in all_settings(self.cluster.snapshot(log_dirs=False)) if not s.static]
        if standing:
            self.cluster.alter_configs([ConfigChange(resource_of(s), s.key, "delete") for s in standing])
        return not standing


@contextmanager
def scene(sandbox: Brokers, folder: Path) -> Iterator[Scene]:
    """The sandbox with an open connection."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        yield Scene(sandbox, opened.cluster, folder)


@contextmanager
def shared_scene(sandbox: Brokers, folder: Path) -> Iterator[Scene]:
    """The same on a cluster that other tests use as well: however the test ends, it is no business of theirs."""
    with scene(sandbox, folder) as at:
        try:
            yield at
        finally:
            at.clear()


def events(out: str) -> list[dict[str, object]]:
    """The JSON lines of a run."""
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]
