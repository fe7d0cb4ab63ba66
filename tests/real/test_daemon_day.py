"""A whole day of an operator, in minutes: the daemon alone keeps a real cluster balanced while things happen to it.

A broker dies and is repaired, returns, another is added, one is drained, and the acting replica is killed in the middle of
that, all under a producer that waits for every acknowledgement.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.acked_load import AckedLoad
from tests.real.daemon_process import Daemon, start, until

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.errors import Unavailable
from ballast.ports.cluster import Cluster, ConfigResource
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1500)]

PARTITIONS = 16
BLOCKS = 15
"""Of 100 kB, in each partition."""
GRACE_S = 12
PATIENCE_S = 300
"""Far beyond what any stage takes on a quiet machine, since a busy one is no defect."""
FAST: dict[str, Any] = {"throttle": 4_000_000, "moves_in_per_broker": 5}
SLOW: dict[str, Any] = {"throttle": 100_000, "moves_in_per_broker": 1}
"""One by one, since the first megabyte of each replica passes before a throttle is felt: a batch that lasts half a minute."""
SETTINGS: dict[str, Any] = {
    "mode": "auto",
    # Longer than a balance check and its plan take: one of them has to fall into the quiet time.
    "guards": {"membership_cool_down_s": 10, "down_broker_grace_s": GRACE_S},
    "actions": {
        "replica_list_changes": {"cool_down_s": 1},
        "moves": {"cool_down_s": 1, "per_day": 50},
        "repair": {"cool_down_s": 1},
    },
    # Few and small things: one replica more or less is a tenth of a broker's share.
    "balance": {"band": 0.2, "trigger": 0.25},
    "execution": {**FAST, "poll_s": 0.5, "progress_s": 1},
}
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@dataclass
class Day:
    """The cluster as it is, beside what the daemons say of it."""

    sandbox: Sandbox
    cluster: Cluster
    daemons: list[Daemon]

    @property
    def leader(self) -> Daemon:
        """The one that acts."""
        acting: list[Daemon] = until(
            "one that acts", lambda: [d for d in self.daemons if d.role == "active"], self.daemons
        )
        return acting[0]

    def until(self, what: str, probe: Callable[[], Any]) -> Any:
        """Poll; a cluster that does not answer just then is asked again."""

        def patient() -> Any:
            try:
                return probe()
            except Unavailable:
                return None

        return until(what, patient, self.daemons, PATIENCE_S)

    def truth(self) -> dict[str, Any]:
        """The cluster's own answer, counted here and not by the code under test."""
        state = self.cluster.snapshot(log_dirs=False, configs=False)
        rows = range(len(state.partitions))
        return {
            "underReplicated": sum(len(state.isr(r)) < len(state.replicas(r)) for r in rows),
            "reassigning": int(state.moving.sum()),
            "partitions": len(rows),
            "brokers": {
                b.id: {
                    "alive": b.alive,
                    "replicas": sum(b.id in state.replicas(r) for r in rows),
                    "leaders": sum(int(state.partitions.leader[r]) == b.id for r in rows),
                    "preferredLeaders": sum(state.replicas(r)[0] == b.id for r in rows),
                }
                for b in state.brokers
            },
        }

    def filled_replicas(self) -> list[int]:
        """How many replicas with data each live broker holds: empty ones weigh next to nothing."""
        state = self.cluster.snapshot(log_dirs=False, configs=False)
        rows = [state.index[TopicPartition("orders", p)] for p in range(PARTITIONS)]
        return [sum(broker in state.replicas(row) for row in rows) for broker in sorted(state.alive)]

    def throttles(self) -> set[str]:
        """Every throttle that stands on the cluster: topics by name, brokers by id."""
        state = self.cluster.snapshot(log_dirs=False, configs=False)
        resources = [ConfigResource("topic", t.name) for t in state.topics]
        resources += [ConfigResource("broker", str(b)) for b in sorted(state.alive)]
        return {
            resource.name
            for resource, entries in self.cluster.configs(resources).items()
            for key in (*RATES, *LISTS)
            if (entry := entries.get(key)) is not None and entry.value and entry.source.startswith("DYNAMIC")
        }

    def still(self, what: str, wanted: Callable[[ClusterState], bool]) -> None:
        """Wait until the cluster is as wanted, balanced, whole and left alone; then everything said of it is true."""
        seen: tuple[dict[str, Any], float] = {}, 0.0

        def judged() -> bool:
            """Is it balanced by a check that began when the daemon had seen the cluster as it is now?

            One from before may have missed a topic that was just made, and be followed by a run.
            """
            nonlocal seen
            leader, truth = self.leader, self.truth()
            if told(leader) != truth:
                seen = {}, 0.0
                return False
            if seen[0] != truth:
                seen = truth, time.time()
            status = leader.status
            check = (status.get("checks") or {}).get("balance") or {}
            return (
                "at" in check
                and datetime.fromisoformat(check["at"]).timestamp() >= seen[1]
                and status.get("run") is None
                and (status.get("balance") or {}).get("verdict") == "balanced"
            )

        def settled() -> bool:
            return judged() and not self.throttles() and wanted(self.cluster.snapshot(log_dirs=False, configs=False))

        self.until(what, settled)
        for daemon in self.daemons:
            self.agree(what, daemon)

    def agree(self, what: str, daemon: Daemon) -> None:
        """What this process says is what the cluster says, and it says that nothing is stale."""
        self.until(f"{daemon.name} to tell the truth after {what}", lambda: told(daemon) == self.truth())
        probes = ("/livez", "/healthz")
        self.until(f"{daemon.name} alive and ready", lambda: [daemon.get(p)[0] for p in probes] == [200, 200])
        left = [f"ballast_{name}" for name in ("throttled_topics", "throttled_brokers", "throttles_to_restore")]
        self.until(f"nothing left after {what}", lambda: [daemon.metrics.get(name) for name in left] == [0, 0, 0])


def told(daemon: Daemon) -> dict[str, Any]:
    """The same as the truth, in the daemon's words; empty where the API and the metrics contradict each other."""
    status, metrics = daemon.status, daemon.metrics
    cluster = status.get("cluster") or {}
    if not cluster:
        return {}
    brokers = {
        b["id"]: {k: b[k] for k in ("alive", "replicas", "leaders", "preferredLeaders")} for b in cluster["brokers"]
    }
    out = {**{k: cluster[k] for k in ("underReplicated", "reassigning", "partitions")}, "brokers": brokers}
    names = {"alive": "alive", "replicas": "replicas", "leaders": "leaders", "preferredLeaders": "preferred_leaders"}
    same = all(
        metrics.get(f'ballast_broker_{names[key]}{{broker="{broker}"}}') == value
        for broker, values in brokers.items()
        for key, value in values.items()
    )
    same = same and metrics["ballast_under_replicated_partitions"] == out["underReplicated"]
    same = same and metrics["ballast_reassigning_partitions"] == out["reassigning"]
    return out if same else {}


def replicas_of(state: ClusterState, broker: int) -> int:
    """How many replicas a broker holds."""
    return int((state.partitions.replica == broker).sum())


def codes(daemon: Daemon) -> dict[str, str]:
    """Per kind of action, what blocks it."""
    return {s["action"]: s["code"] for s in daemon.status.get("permissions", [])}


def waits_for_quiet(day: Day) -> int:
    """How often any of them has said that it waits for quiet."""
    return sum("Waiting for replicas to be in sync" in m for d in day.daemons for m in d.messages())


def orders(sandbox: Sandbox) -> None:
    """A topic on brokers 1 to 4, balanced, with data."""
    spread = [[1 + (p + k) % 4 for k in range(3)] for p in range(PARTITIONS)]
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    topic = NewTopic("orders", PARTITIONS, replica_assignment=spread, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])["orders"].result()
    producer = Producer({"bootstrap.servers": sandbox.bootstrap_server, "acks": "all", "linger.ms": 50})
    for n in range(PARTITIONS * BLOCKS):
        producer.produce("orders", os.urandom(100_000), partition=n % PARTITIONS)
        producer.poll(0)
    assert producer.flush(120) == 0


@contextmanager
def opened(sandbox: Sandbox) -> Iterator[Cluster]:
    """The cluster, read by a client of the test's own."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as found:
        yield found.cluster


def test_a_day_of_an_operator(own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path) -> None:
    """Down, repaired, returned, added, drained, one replica killed in mid-batch: balanced at the end, nothing lost or left."""
    sandbox = own_cluster(brokers=5, racks=1, heap_mib=192)
    sandbox.stop_broker(5)
    orders(sandbox)
    daemons += [start(name, tmp_path, sandbox.bootstrap_server, SETTINGS) for name in ("pod-0", "pod-1")]
    with opened(sandbox) as cluster, AckedLoad(sandbox.bootstrap_server, "orders") as load:
        day = Day(sandbox, cluster, daemons)
        day.until("two roles", lambda: sorted(d.role for d in daemons) == ["active", "standby"])
        day.still("the start", lambda s: s.alive == {1, 2, 3, 4})

        sandbox.kill_broker(1)
        day.until("the death seen", lambda: day.leader.metrics.get('ballast_broker_alive{broker="1"}') == 0)
        waited = "to return before its replicas are rebuilt"
        day.until("the grace", lambda: [m for m in day.leader.messages() if waited in m])
        day.still("the repair", lambda s: s.alive == {2, 3, 4} and not replicas_of(s, 1))

        before = waits_for_quiet(day)
        # Not waited for: the quiet time begins when the daemon sees it, which may be long before a client is served.
        sandbox.start_broker(1, wait=False)
        # Seen as it is, or read in the log where the moment was shorter than this test is slow.
        day.until(
            "quiet kept after a return",
            lambda: codes(day.leader).get("moves") == "replicas-not-in-sync" or waits_for_quiet(day) > before,
        )
        sandbox.wait_until_ready([1])
        day.still("the return", lambda s: s.alive == {1, 2, 3, 4} and replicas_of(s, 1) >= PARTITIONS * 3 // 5)

        sandbox.start_broker(5)
        day.still("the new broker", lambda s: len(s.alive) == 5 and replicas_of(s, 5) >= PARTITIONS * 3 // 6)

        drain_and_kill(day)
        day.still("the drain", lambda s: len(s.alive) == 5 and not replicas_of(s, 2))
        survivor = day.leader
        day.until("the drain shown", lambda: survivor.metrics['ballast_broker_draining{broker="2"}'] == 1)
        assert (
            "Broker 2 is empty and may be stopped"
            in day.until(
                "its word that the broker is empty",
                lambda: [m for m in survivor.messages() if "may be stopped" in m],
            )[-1]
        )

        sandbox.stop_broker(2)
        day.still("the last stop", lambda s: s.alive == {1, 3, 4, 5})
        held = day.filled_replicas()
        assert max(held) <= 1.25 * sum(held) / 4
        assert min(held) >= 0.75 * sum(held) / 4
        load.stop()
        assert load.refused == []
        assert len(load.acknowledged) > 100
        assert load.missing() == set()
    history = json.loads(survivor.get("/api/v1/history")[1])["runs"]
    assert {r["status"] for r in history} == {"done"}, [(r["intent"], r["status"]) for r in history]
    assert {"evacuate 1", "balance"} <= {r["intent"] for r in history}
    assert survivor.stop() == 0
    assert not [m for d in daemons for m in d.messages() if m.startswith("A bug")]


def drain_and_kill(day: Day) -> None:
    """Ask for broker 2 to be drained in the settings, slowly; kill -9 the leading daemon while moves are in flight."""
    for daemon in day.daemons:
        daemon.reconfigure(balance={"draining": [2]}, execution=SLOW)

    def in_mid_batch() -> tuple[Daemon, str] | None:
        # Asked each time: on a busy machine the lock may change hands meanwhile.
        acting = day.leader
        run = acting.status.get("run") or {}
        flies = bool(run.get("moves")) and 0 < (run["bytesLeft"] or 0) < (run["bytesTotal"] or 0)
        told = flies and acting.metrics["ballast_run_active"] == 1 and "orders" in day.throttles()
        return (acting, run["id"]) if told else None

    first, run = day.until("a batch in flight, throttled", in_mid_batch)
    first.kill()
    day.daemons.remove(first)
    (second,) = day.daemons
    day.until("the take-over", lambda: second.role == "active")
    # What a check came to is logged when it is over.
    day.until("its word of it", lambda: any(f"goes on with run {run}" in m for m in second.messages()))
    second.reconfigure(execution=FAST)
