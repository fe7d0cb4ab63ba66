"""The page in a real Chromium, in front of views made for the test or of a whole daemon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from bootstrap.programs import path_of
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from tests.daemon.conftest import WallClock, serve

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.daemon.figures import Figures, measure
from ballast.daemon.health import Health
from ballast.daemon.metrics import Metrics
from ballast.daemon.policy import WebPolicy
from ballast.daemon.view import Board, LevelView, MoveView, Outage, PlanView, Role, RunView, Standing, TickReport, View
from ballast.daemon.web.actions import Desk
from ballast.daemon.web.app import WebParts, build_probes
from ballast.daemon.web.app import build as build_app
from ballast.daemon.web.server import WebServer
from ballast.ports.journal import Request

__all__ = ["serve"]

TOKEN = "a token nobody guesses"  # noqa: S105 — of this test


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    with sync_playwright() as tools:
        chromium = tools.chromium.launch(executable_path=path_of("chromium"), args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address in a fresh context; any script error or refused resource fails the test."""
    problems: list[str] = []
    with ExitStack() as stack:

        def listen(message: ConsoleMessage) -> None:
            if message.type == "error" and "status of 4" not in message.text:
                problems.append(message.text)

        def start(url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            stack.callback(context.close)
            page = context.new_page()
            page.on("console", listen)
            page.on("pageerror", lambda error: problems.append(str(error)))
            # Whatever is not this daemon is the network, and the page must not need it.
            page.route("**/*", lambda r: r.continue_() if r.request.url.startswith(url) else r.abort())
            page.goto(url)
            page.set_default_timeout(10_000)
            return page

        yield start
    assert problems == []


@pytest.fixture
def show(tmp_path: Path) -> Iterator[Callable[[View], tuple[str, Board, list[Request]]]]:
    """Serve a view that the test made: the address, the board to change it, and what people asked for."""
    servers: list[WebServer] = []
    closing = threading.Event()

    def start(view: View) -> tuple[str, Board, list[Request]]:
        board, asked = Board(view), list[Request]()
        secret = tmp_path / "token"
        secret.write_text(TOKEN)
        clock = WallClock()
        parts = WebParts(
            board=board,
            metrics=Metrics(board),
            clock=clock,
            desk=Desk(secret, asked.append, clock),
            alive=lambda: Health(ok=True, sentence="It moves."),
            ready=lambda: Health(ok=True, sentence="It is ready."),
            healthy=lambda: Health(ok=True, sentence="It is well."),
            closing=closing.is_set,
        )
        server = WebServer(build_app(parts), build_probes(parts), WebPolicy(port=0))
        server.start()
        servers.append(server)
        return f"http://127.0.0.1:{server.port}/", board, asked

    yield start
    closing.set()
    for server in servers:
        server.stop()


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


def figures(*, brokers: int = 6, displaced: bool = False, down: int | None = None, age_s: float = 3) -> Figures:
    """A cluster with some history: brokers in three racks, not quite level."""
    ids = list(range(1, brokers + 1))
    rows = []
    for p in range(brokers * 10):
        replicas = tuple(ids[(p + k) % brokers] for k in range(3))
        isr = tuple(b for b in replicas if b != down)
        leader = isr[1] if displaced and replicas[0] == 2 and p % 5 else isr[0]
        size = 4_000_000_000 + (p % 7) * 900_000_000
        rows.append(PartitionRow("orders", p, leader, replicas, isr, sizes=(size,) * 3))
    members = tuple(
        Broker(b, rack=f"zone-{'abc'[(b - 1) % 3]}", host="" if b == down else f"kafka-{b}", alive=b != down,
               controller=b == 1, log_dirs_known=b != down)
        for b in ids
    )  # fmt: skip
    state = build(
        "Tq8mZ0xkRY2s", members, (Topic("orders", min_isr=2),), rows,
        taken_at_ms=now_ms() - int(age_s * 1000), kafka_version="4.3",
    )  # fmt: skip
    return measure(state, threshold_percent=10)


def an_outage() -> Outage:
    """No broker answers since noon."""
    noon = datetime(2026, 11, 21, 12, 0).astimezone()
    return Outage(code="unreachable", sentence="No broker answers.", since_ms=int(noon.timestamp() * 1000))


def standing(
    kind: str, mode: str = "auto", code: str = "allowed", sentence: str = "Nothing stands in its way."
) -> Standing:
    """A verdict."""
    return Standing(kind=kind, mode=mode, allowed=code == "allowed", code=code, sentence=sentence)


def move(number: int, phase: str = "moving", share: float = 0.4) -> MoveView:
    """A partition on its way."""
    size = 4_000_000_000
    return MoveView(
        topic="orders", partition=number, old=(1, 2, 3), new=(4, 2, 3), size_bytes=size, copied_bytes=int(size * share),
        phase=phase, reason="disk: broker 1 is 14 % over its share",
    )  # fmt: skip


def a_run() -> RunView:
    """A run in the middle."""
    return RunView(
        id="1121-0102-ab", intent="level", phase="running", started_at_ms=now_ms() - 600_000, moves_total=12, moves_done=5,
        bytes_total=48_000_000_000, bytes_left=20_000_000_000, rate_bytes_per_s=52_000_000, seconds_left=385,
        throttle_bytes_per_s=60_000_000, sentence="Moving 3 partitions", moves=tuple(move(n) for n in (7, 19, 31)),
    )  # fmt: skip


def a_plan(*, waiting: bool = True) -> PlanView:
    """A plan with all its figures."""
    return PlanView(
        id="moves-1", kind="moves", intent="level", created_at_ms=now_ms() - 5_400_000, moves=12, elections=4,
        copies=12, bytes_moved=48_000_000_000, bound_bytes=46_500_000_000, status="complete", waiting=waiting,
        reasons=(("disk", 9), ("replicas", 3)),
        resources=(
            {"name": "disk", "label": "disk", "before": {"least": 0.81, "most": 1.24, "outside": 3},
             "after": {"least": 0.95, "most": 1.06, "outside": 0}},
            {"name": "leaders", "label": "leaders", "before": {"least": 0.7, "most": 1.3, "outside": 2},
             "after": {"least": 0.98, "most": 1.02, "outside": 0}},
        ),
        examples=tuple(move(n, "planned", 0) for n in range(12)),
    )  # fmt: skip


def a_view(**changes: object) -> View:
    """A daemon at work on a healthy cluster."""
    base = {
        "version": 1, "name": "shop", "instance": "ballast-7d9f-x2", "started_at_ms": now_ms() - 86_400_000,
        "role": Role.LEADER, "mode": "auto", "figures": figures(),
        "level": LevelView(verdict="level", sentence="Every resource is within its band."),
        "standings": tuple(standing(k) for k in ("elections", "reorders", "moves", "repair")),
        "ticks": {
            "observe": TickReport(sentence="6 brokers up, 60 partitions; leaders level.", at_ms=now_ms(), duration_s=0.1),
            "leaders": TickReport(sentence="Leaders are level.", at_ms=now_ms(), duration_s=0.1),
        },
        "history": (
            RunView(id="1120-2300-aa", intent="level", phase="ended", started_at_ms=now_ms() - 90_000_000,
                    ended_at_ms=now_ms() - 89_000_000, outcome="done", moves_total=31, moves_done=31, bytes_total=90_000_000_000),
            RunView(id="1119-0400-bc", intent="evacuate 3", phase="ended", started_at_ms=now_ms() - 190_000_000,
                    ended_at_ms=now_ms() - 189_000_000, outcome="incomplete", moves_total=12, moves_done=11, bytes_total=30_000_000_000),
        ),
        "settings": (("mode", "auto"), ("leaders.imbalance_percentage", "10"), ("web.port", "8080")),
    }  # fmt: skip
    return View(**{**base, **changes})  # type: ignore[arg-type]
