"""Thousands of checks while brokers come and go: what the daemon holds stays the same."""

from __future__ import annotations

import gc
import logging
import threading
import tracemalloc

import pytest
from prometheus_client import generate_latest
from tests.daemon.conftest import make_world
from tests.daemon.rig import a_service
from tests.waiting import PATIENCE_S, eventually

from ballast.daemon.context.view import Board
from ballast.daemon.policy import DaemonPolicy, Intervals
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster

ROUNDS = 18
ROUND_S = 240


def test_memory_and_threads_are_flat_over_thousands_of_checks(caplog: pytest.LogCaptureFixture) -> None:
    """More than an hour of simulated time: each round a broker dies and returns, plans change, metrics are read."""
    caplog.set_level(
        logging.WARNING, "ballast"
    )  # The runner keeps what is logged: that growth would not be the daemon's.
    clock = SimClock()
    world = make_world(clock)
    policy = DaemonPolicy(intervals=Intervals(observe_s=5, log_dirs_s=15, balance_s=120, repair_s=30, act_s=10))
    board = Board()
    service = a_service(SimCluster(world), clock, board, policy)
    checks = 0
    series: set[int] = set()

    def live(seconds: float) -> None:
        nonlocal checks
        end = clock.monotonic_s() + seconds
        while clock.monotonic_s() < end:
            for loop in (service.lock, service.pulse, service.journal_loop, service.work):
                loop.pass_once()
                checks += 1
            clock.sleep(1)

    def one_round(number: int) -> None:
        broker = number % 3 + 1
        world.kill(broker)
        live(ROUND_S / 4)
        world.start(broker)
        live(ROUND_S * 3 / 4)
        series.add(generate_latest(service.metrics.registry).count(b"\nballast_broker_replicas{"))

    for number in range(6):
        one_round(number)
    gc.collect()
    tracemalloc.start()
    threads = threading.active_count()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(6, ROUNDS):
        one_round(number)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    service.web.close()
    assert checks > 5_000
    assert after - before < 600_000, f"{after - before} bytes more after {checks} passes"
    # The thread of the last plan may still be on its way out.
    assert eventually(lambda: threading.active_count() <= threads, within_s=PATIENCE_S)
    assert series == {3}
    assert set(board.view.checks) >= {
        "observe",
        "leaders",
        "repair",
        "balance",
        "act",
        "lock",
        "requests",
    }
    assert all(report.ok for report in board.view.checks.values())
