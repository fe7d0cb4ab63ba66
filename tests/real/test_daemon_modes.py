"""A change of mode holds within seconds, both ways, without a restart: two replicas on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import Daemon, start, until
from tests.waiting import becomes

from ballast.ports.journal import JOURNAL_TOPIC
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

PARTITIONS = 16
BEATS = 15
"""Lock checks in observe mode, a second each: three of the leases that a leader would have renewed meanwhile."""


def crowd(sandbox: Sandbox) -> None:
    """A topic whose replicas are all on three of four brokers, with data that takes a throttled run a while."""
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    crowded = [[1 + (p + k) % 3 for k in range(2)] for p in range(PARTITIONS)]
    admin.create_topics([NewTopic("orders", PARTITIONS, replica_assignment=crowded)])["orders"].result()
    producer = Producer({"bootstrap.servers": sandbox.bootstrap_server, "linger.ms": 50})
    for n in range(PARTITIONS * 60):
        producer.produce("orders", b"x" * 50_000, partition=n % PARTITIONS)
        producer.poll(0)
    assert producer.flush(120) == 0


def journal_end(sandbox: Sandbox) -> int:
    """The end offset of the journal's one partition: it grows with everything that is written, markers included."""
    consumer = Consumer({"bootstrap.servers": sandbox.bootstrap_server, "group.id": "looking"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(JOURNAL_TOPIC, 0), timeout=30)[1])
    finally:
        consumer.close()


def set_mode(daemons: list[Daemon], mode: str) -> None:
    """As a ConfigMap does: in the file of every replica."""
    for daemon in daemons:
        daemon.reconfigure(mode=mode)


def roles(daemons: list[Daemon]) -> list[str]:
    """What each is to the cluster, sorted: either may become the leader."""
    return sorted(d.role for d in daemons)


def beat(daemons: list[Daemon], beats: int) -> None:
    """Wait until the lock loop of each has run so often."""

    def ran(daemon: Daemon) -> float:
        return daemon.metrics['ballast_checks_total{check="lock",result="ok"}']

    before = [ran(d) for d in daemons]
    until("beats", lambda: all(ran(d) >= was + beats for d, was in zip(daemons, before, strict=True)), daemons)


def test_a_mode_changed_in_the_file_holds_within_seconds_both_ways(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """Observers get the lock and act; back in observe mode the run in flight is left, and not one record is written."""
    sandbox = own_cluster(brokers=4, racks=1)
    crowd(sandbox)
    settings = {"mode": "observe", "execution": {"throttle": 500_000}}
    daemons += [start(name, tmp_path, sandbox.bootstrap_server, settings) for name in ("pod-0", "pod-1")]
    until("observers", lambda: roles(daemons) == ["observing", "observing"], daemons)
    until("a plan", lambda: all(d.status.get("plans") for d in daemons), daemons)
    topics = AdminClient({"bootstrap.servers": sandbox.bootstrap_server}).list_topics(timeout=30).topics
    assert set(topics) == {"orders"}

    set_mode(daemons, "approve")
    becomes(lambda: roles(daemons), ["active", "standby"])
    becomes(lambda: sorted(d.metrics["ballast_active_or_observing"] for d in daemons), [0, 1])
    until(
        "a plan that waits",
        lambda: [p for d in daemons for p in d.status.get("plans", ()) if p["pendingApproval"]],
        daemons,
    )
    assert {d.metrics["ballast_run_active"] for d in daemons} == {0}

    set_mode(daemons, "auto")
    until("a run", lambda: any(d.metrics["ballast_run_active"] == 1 for d in daemons), daemons)
    until("moves in flight", lambda: max(d.metrics["ballast_reassigning_partitions"] for d in daemons) > 0, daemons)

    set_mode(daemons, "observe")
    becomes(lambda: roles(daemons), ["observing", "observing"])
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        journal = journal_of(opened)
        becomes(journal.holder, None)
        journal.close()
    end = journal_end(sandbox)
    beat(daemons, BEATS)
    assert journal_end(sandbox) == end
    until("the run that was left", lambda: all(d.status.get("runElsewhere") for d in daemons), daemons)
    assert all(d.get("/healthz")[0] == 200 for d in daemons)

    # Without a throttle it ends soon: the run was left with its own, which is removed with it.
    set_mode(daemons, "auto")
    becomes(lambda: roles(daemons), ["active", "standby"])
    until("the run goes on", lambda: any("goes on" in m for d in daemons for m in d.messages()), daemons)
    until(
        "an even spread",
        lambda: any(d.metrics['ballast_broker_replicas{broker="4"}'] >= PARTITIONS / 2 for d in daemons),
        daemons,
        300,
    )
    until(
        "no throttle",
        lambda: all(
            d.metrics[f"ballast_{name}"] == 0
            for d in daemons
            for name in ("throttled_topics", "throttled_brokers", "throttles_to_restore", "run_active")
        ),
        daemons,
        300,
    )
    assert [d.stop() for d in daemons] == [0, 0]
    assert not [m for d in daemons for m in d.messages() if m.startswith("A bug")]
