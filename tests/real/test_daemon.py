"""The daemon against real brokers: two replicas, one killed, brokers that die, return and are added."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import Daemon, start, until
from tests.waiting import becomes

from ballast.core.leadership import imbalance
from ballast.sandbox import Sandbox
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import ensure_java
from ballast.wiring.cluster import open_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

LONG_LEASE_S = 600.0
"""No process waits for its end: a lock that changes hands was given up."""


def orders(sandbox: Sandbox, partitions: int = 12, **configs: str) -> None:
    """A topic whose preferred leaders are spread evenly, with a little data."""
    ids = sandbox.broker_ids
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    spread = [[ids[(p + k) % len(ids)] for k in range(3)] for p in range(partitions)]
    topic = NewTopic("orders", partitions, replica_assignment=spread, config={"min.insync.replicas": "2", **configs})
    admin.create_topics([topic])["orders"].result()
    producer = Producer({"bootstrap.servers": sandbox.bootstrap_server, "linger.ms": 50})
    for n in range(partitions * 20):
        producer.produce("orders", b"x" * 10_000, partition=n % partitions)
    assert producer.flush(60) == 0


def describe(sandbox: Sandbox, *arguments: str) -> list[str]:
    """What Kafka's own ``kafka-topics --describe`` says."""
    path = ":".join(map(str, ensure_jars("kafka-tools-4.3.1")))
    done = subprocess.run(
        [ensure_java().executable, "-Xmx128m", "-cp", path, "org.apache.kafka.tools.TopicCommand",
         "--bootstrap-server", sandbox.bootstrap_server, "--describe", *arguments],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "\tPartition: " in line]


def isrs(sandbox: Sandbox, broker: int) -> list[set[int]]:
    """The ISRs of the topic as this broker tells them."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{sandbox.ports.brokers[broker]}"})
    return [set(p.isrs) for p in admin.list_topics("orders", timeout=30).topics["orders"].partitions.values()]


def test_figures_are_those_of_kafkas_own_tools(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """With a broker down, every count in /metrics is what kafka-topics counts, and nothing was written."""
    sandbox = own_cluster()
    orders(sandbox)
    daemon = start("watcher", tmp_path, sandbox.bootstrap_server, {})
    daemons.append(daemon)
    until("a reading", lambda: daemon.get("/healthz")[0] == 200, daemons)
    sandbox.kill_broker(1)
    until("the death", lambda: daemon.metrics.get("ballast_brokers_alive") == 2, daemons)
    until("shrunk ISRs", lambda: daemon.metrics["ballast_under_replicated_partitions"] == 12, daemons)
    # Kafka's tool may ask another broker than the daemon did.
    for broker in (2, 3):
        becomes(partial(isrs, sandbox, broker), [{2, 3}] * 12)
    lines = describe(sandbox)
    counted = {
        metric: len(describe(sandbox, flag))
        for flag, metric in (
            ("--under-replicated-partitions", "ballast_under_replicated_partitions"),
            ("--under-min-isr-partitions", "ballast_under_min_isr_partitions"),
            ("--at-min-isr-partitions", "ballast_at_min_isr_partitions"),
            ("--unavailable-partitions", "ballast_offline_partitions"),
        )
    }
    assert len(lines) == 12
    counted |= {
        "ballast_partitions": 12,
        'ballast_broker_leaders{broker="2"}': sum("\tLeader: 2\t" in line for line in lines),
        'ballast_leader_imbalance_ratio{broker="1"}': 1,
    }
    # The daemon may have read a broker that heard of the death later than the one that the tool asked.
    becomes(lambda: {name: value for name, value in daemon.metrics.items() if name in counted}, counted)
    topics = AdminClient({"bootstrap.servers": sandbox.bootstrap_server}).list_topics(timeout=30).topics
    assert set(topics) == {"orders"}, "observe mode made a topic"
    assert daemon.stop() == 0


def test_two_replicas_survive_a_kill_and_keep_leaders_home(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """One acts, the other takes over within seconds of a kill -9, and brings a returned broker's leaders home."""
    sandbox = own_cluster()
    orders(sandbox)
    settings = {"mode": "auto"}
    first = start("pod-0", tmp_path, sandbox.bootstrap_server, settings)
    daemons.append(first)
    until("a leader", lambda: first.role == "active", daemons)
    second = start("pod-1", tmp_path, sandbox.bootstrap_server, settings | {"journal": {"lease_s": LONG_LEASE_S}})
    daemons.append(second)
    until("a standby", lambda: second.role == "standby", daemons)
    until("both ready", lambda: [d.get("/healthz")[0] for d in daemons] == [200, 200], daemons)
    first.kill()
    killed_s = time.monotonic()
    until("the take-over", lambda: second.role == "active", [second])
    took_s = time.monotonic() - killed_s
    # Seven seconds on a quiet machine; a minute for a process that waits for the brokers to give up a dead writer.
    assert took_s < 45, f"the take-over took {took_s:.0f} s with a lease of 5 s"
    until("the lock", lambda: second.metrics["ballast_active_or_observing"] == 1, [second])
    sandbox.stop_broker(1)
    until("the loss", lambda: second.metrics.get("ballast_brokers_alive") == 2, [second])
    sandbox.start_broker(1)
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:

        def home() -> bool:
            state = opened.cluster.snapshot(log_dirs=False, configs=False)
            return len(state.alive) == 3 and imbalance(state).total_ratio == 0

        until("leaders at home", home, [second])
        until("its end", lambda: second.status.get("run") is None, [second])
        until("its end in the metrics", lambda: second.metrics["ballast_run_active"] == 0, [second])
        # What is left to restore is read from the journal, a moment after the end of a run is shown.
        until("no throttles to restore", lambda: second.status.get("throttlesToRestore") == 0, [second])
        until(
            "the page's figures",
            lambda: {b["imbalanceRatio"] for b in (second.status.get("cluster") or {}).get("brokers", ())} == {0},
            [second],
        )
    third = start("pod-2", tmp_path, sandbox.bootstrap_server, settings)
    daemons.append(third)
    until("a standby", lambda: third.role == "standby", [second, third])
    assert second.stop() == 0
    # A lock that was released is taken at once: its lease is far from over.
    until("the hand-over", lambda: third.role == "active", [third], LONG_LEASE_S / 5)
    assert third.stop() == 0
    assert not [m for m in third.messages() if m.startswith("A bug")]


def test_a_new_broker_is_filled_under_load_and_no_throttle_is_left(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """The daemon alone moves replicas to an empty broker, throttled, while producers write."""
    sandbox = own_cluster(brokers=4, racks=1)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    crowded = [[1 + (p + k) % 3 for k in range(2)] for p in range(16)]
    admin.create_topics([NewTopic("orders", 16, replica_assignment=crowded)])["orders"].result()
    producer = Producer({"bootstrap.servers": sandbox.bootstrap_server, "linger.ms": 50})
    for n in range(16 * 40):
        producer.produce("orders", b"x" * 50_000, partition=n % 16)
        producer.poll(0)
    assert producer.flush(120) == 0
    settings = {"mode": "auto", "execution": {"throttle": 20_000_000}}
    daemon = start("pod-0", tmp_path, sandbox.bootstrap_server, settings)
    daemons.append(daemon)

    def filled() -> bool:
        producer.produce("orders", b"y" * 1_000)
        producer.poll(0)
        metrics = daemon.metrics
        held = metrics['ballast_broker_replicas{broker="4"}']
        return held >= 8 and metrics["ballast_run_active"] == metrics["ballast_reassigning_partitions"] == 0

    until("a filled broker", filled, daemons, 240)
    assert producer.flush(60) == 0
    left = [f"ballast_{name}" for name in ("throttled_topics", "throttled_brokers", "throttles_to_restore")]
    until("no throttle", lambda: {daemon.metrics[name] for name in left} == {0}, daemons)
    until("no throttles to restore on the page", lambda: daemon.status.get("throttlesToRestore") == 0, daemons)
    assert daemon.stop() == 0
