"""The daemon on real brokers that come and go: what it holds of the machine stays the same.

Short by default.  ``BALLAST_SOAK_MINUTES=600`` makes it a night: the same rounds, the same bounds.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.daemon_process import Daemon, start, until

from ballast.sandbox import Sandbox

MINUTES = float(os.environ.get("BALLAST_SOAK_MINUTES", "0"))
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1200 + 120 * MINUTES)]

BROKERS = 3
WARM_UP = BROKERS
"""Rounds after which everything that is compiled, cached or opened once is there: each broker has been away once."""
ROUNDS = 3
MORE_HANDLES, MORE_THREADS, MORE_KIB = 8, 4, 32 * 1024
"""What may come and go; a leak of one in each round of a night is far beyond."""
HANDLES_OF_CONNECTION = 3
"""A socket and the two ends of the pipe that wakes its thread."""
PATIENCE_S = 240
LOOKS = 15
"""At what is held before the rounds that count."""


def test_handles_threads_and_memory_are_flat_while_brokers_come_and_go(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """Each round a broker leaves and returns, its leaders are brought home by a journaled run, and metrics are read."""
    sandbox = own_cluster(
        brokers=BROKERS, racks=1, heap_mib=192, broker_configs={"auto.leader.rebalance.enable": "false"}
    )
    spread = [[1 + (p + k) % 3 for k in range(3)] for p in range(12)]
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    admin.create_topics([NewTopic("orders", 12, replica_assignment=spread)])["orders"].result()
    settings = {"mode": "auto", "guards": {"membership_cool_down_s": 1, "down_broker_grace_s": 3600}}
    daemon = start("soak", tmp_path, sandbox.bootstrap_server, settings)
    daemons.append(daemon)
    until("the lock", lambda: daemon.role == "active", daemons, PATIENCE_S)

    def one_round(broker: int) -> None:
        runs = ended(daemon)
        sandbox.stop_broker(broker)
        gone = f'ballast_broker_alive{{broker="{broker}"}}'
        until("the loss", lambda: daemon.metrics.get(gone) == 0, daemons, PATIENCE_S)
        sandbox.start_broker(broker)
        home = f'ballast_broker_leaders{{broker="{broker}"}}'
        until("leaders at home", lambda: daemon.metrics.get(home, 0) >= 4, daemons, PATIENCE_S)
        # The metrics tell of leaders at home before they tell of the run that brought them there.
        until("the end of its run", lambda: ended(daemon) > runs, daemons, PATIENCE_S)
        until("rest", lambda: rests(daemon), daemons, PATIENCE_S)

    for number in range(WARM_UP):
        one_round(number % 3 + 1)
    before, resident_kib = most_held(daemon), daemon.resident_kib
    end_s, number = time.monotonic() + 60 * MINUTES, 0
    while number < ROUNDS or time.monotonic() < end_s:
        one_round(number % 3 + 1)
        number += 1

    def flat() -> bool:
        now = held(daemon)
        return (
            now.clients <= before.clients
            and now.connections <= now.clients * BROKERS
            and now.handles <= before.handles + MORE_HANDLES
            and now.threads <= before.threads + MORE_THREADS
        )

    # A connection to a broker that has just left takes a moment to go; a leak stays.
    until(f"flat handles and threads: {before} before, {held(daemon)} after", flat, daemons, PATIENCE_S)
    grown_kib = daemon.resident_kib - resident_kib
    assert grown_kib <= MORE_KIB, f"{grown_kib} KiB more after {number} rounds"
    assert daemon.stop() == 0
    assert not [m for m in daemon.messages() if m.startswith("A bug")]


@dataclass(frozen=True)
class LedgerEntry:
    """What a daemon holds of the machine."""

    clients: int
    """Client libraries' clients."""
    connections: int
    """Their connections to brokers known by id: a client makes one when it first has to."""
    handles: int
    """Open files, sockets and pipes besides those connections'."""
    threads: int
    """Threads besides those connections'."""


def held(daemon: Daemon) -> LedgerEntry:
    """As it is at this moment."""
    names = daemon.thread_names
    connections = sum(bool(re.fullmatch(r"rdk:broker\d+", name)) for name in names)
    return LedgerEntry(
        clients=names.count("rdk:main"),
        connections=connections,
        handles=daemon.handles - HANDLES_OF_CONNECTION * connections,
        threads=len(names) - connections,
    )


def most_held(daemon: Daemon) -> LedgerEntry:
    """At most over a few seconds: at any moment a client may just be replaced."""
    seen: list[LedgerEntry] = []

    def looked() -> bool:
        seen.append(held(daemon))
        return len(seen) == LOOKS

    until("a few looks", looked, [daemon])
    return LedgerEntry(*(max(getattr(one, f.name) for one in seen) for f in fields(LedgerEntry)))


def rests(daemon: Daemon) -> bool:
    """Nothing is under way and nothing is out of sync."""
    metrics = daemon.metrics
    return metrics.get("ballast_run_active") == 0 and metrics.get("ballast_under_replicated_partitions") == 0


def ended(daemon: Daemon) -> float:
    """Runs that ended well so far."""
    return daemon.metrics.get('ballast_runs_total{outcome="done"}', 0)
