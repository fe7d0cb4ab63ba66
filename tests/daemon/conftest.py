"""A daemon on a simulated cluster: single checks on simulated time, or the whole service on real time."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from tests.daemon.rig import Rig, a_rig, a_service
from tests.waiting import PATIENCE_S

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.log_ends import LogEnds
from ballast.daemon.context.view import Board, Role, View
from ballast.daemon.policy import DaemonPolicy, WebPolicy
from ballast.daemon.process.service import Service
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

RACKS = ("a", "b", "c")


def make_world(clock: SimClock, brokers: int = 3, partitions: int = 12, **world: Any) -> SimWorld:
    """``orders`` with three replicas each, preferred leaders in turn, everything balanced."""
    ids = list(range(1, brokers + 1))
    sim = SimWorld(clock, [SimBroker(id=b, rack=RACKS[(b - 1) % 3]) for b in ids], **world)
    width = min(3, brokers)
    sim.add_topic(
        "orders",
        {p: tuple(ids[(p + k) % brokers] for k in range(width)) for p in range(partitions)},
        size_bytes=100e6,
        configs={"min.insync.replicas": "2"},
    )
    # The controller's own rebalance is off unless a test is about it.
    sim.cluster_configs["auto.leader.rebalance.enable"] = "false"
    return sim


def bounce(world: SimWorld, broker: int, down_s: float = 20) -> None:
    """Stop a broker and start it again: it catches up, and its leaderships stay with the others."""
    world.kill(broker)
    world.clock.sleep(down_s)
    world.start(broker)
    pass_time(world, 60)


def pass_time(world: SimWorld, seconds: int) -> None:
    """Second by second, so that metadata is as old as it would be and not as old as one long step."""
    for _ in range(seconds):
        world.clock.sleep(1)


def not_led(world: SimWorld, broker: int) -> int:
    """Partitions that prefer this broker and are led by another, as the simulated truth has it."""
    return sum(p.replicas[0] == broker and p.leader != broker for p in world.partitions())


class LiveCluster(SimCluster):
    """A simulated cluster whose time follows the real one, for services that run in threads."""

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self._started = time.monotonic()
        self._turn = threading.Lock()

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        """Catch up with real time, then answer."""
        with self._turn:
            behind = time.monotonic() - self._started - self.world.clock.monotonic_s()
            self.world.clock.sleep(max(0.0, behind))
            return super().snapshot(log_dirs=log_dirs, configs=configs, patient=patient)

    def log_ends(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """Answer in turn: the page asks beside the loops."""
        with self._turn:
            return super().log_ends(replicas)


class WallClock:
    """Real time, here so that these tests need no adapter."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass
class Running:
    """A service in a thread."""

    service: Service
    world: SimWorld
    board: Board
    thread: threading.Thread

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.service.web.port}"

    def get(self, path: str) -> tuple[int, str]:
        """Status and body, also of refusals."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:  # noqa: S310 — our own server
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def until(self, condition: Callable[[View], bool], timeout_s: float = 120) -> View:
        """Wait until the view is as wanted."""
        return wait_for(self.board, condition, timeout_s)

    def stop(self) -> None:
        """End it and wait."""
        self.service.stop()
        self.thread.join(60)
        assert not self.thread.is_alive()


def wait_for(board: Board, condition: Callable[[View], bool], timeout_s: float = 120) -> View:
    """Wait for a view; fail with the last one."""
    deadline = time.monotonic() + timeout_s
    view = board.view
    while not condition(view):
        left = deadline - time.monotonic()
        assert left > 0, f"never came about; last: {view}"
        view = board.wait(view.version, left)
    return view


@pytest.fixture
def store() -> JournalStore:
    """What outlives every process."""
    return JournalStore()


@pytest.fixture
def clock() -> SimClock:
    """Simulated time."""
    return SimClock()


@pytest.fixture
def world(clock: SimClock) -> SimWorld:
    """Three brokers, twelve partitions, balanced."""
    return make_world(clock)


@pytest.fixture
def context(world: SimWorld, clock: SimClock) -> Rig:
    """A context on simulated time in which nothing has happened yet."""
    board = Board(View(name="shop", instance="pod-0", started_at_ms=clock.now_ms(), role=Role.OBSERVING))
    return a_rig(SimCluster(world), clock, board, DaemonPolicy())


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Whole services on a simulated cluster; ended when the test ends."""
    with ExitStack() as stack:

        def start(
            policy: DaemonPolicy | None = None,
            *,
            world: SimWorld | None = None,
            web: WebPolicy | None = None,
            **parts: Any,
        ) -> Running:
            world = world or make_world(SimClock(start_ms=time.time_ns() // 1_000_000))
            clock = WallClock()
            board = Board(View(name="shop", instance="pod-0", started_at_ms=clock.now_ms()))
            service = a_service(LiveCluster(world), clock, board, policy or DaemonPolicy(), web, **parts)
            thread = threading.Thread(target=service.run, name="service", daemon=True)
            running = Running(service, world, board, thread)
            thread.start()
            stack.callback(running.stop)
            return running

        yield start
