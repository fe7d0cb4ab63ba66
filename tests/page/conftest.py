"""The page in a real Chromium, in front of views made for the test or of a whole daemon."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from bootstrap.programs import path_of
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from tests.daemon.conftest import WallClock, serve
from tests.waiting import PATIENCE_S

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import Purpose
from ballast.core.planner import Balance, Intent, plan
from ballast.core.samples import Point
from ballast.daemon.acting.plan_views import plan_view
from ballast.daemon.acting.proposal import Proposal, name_of
from ballast.daemon.context.figures import Figures, measure
from ballast.daemon.context.health import Health
from ballast.daemon.context.view import (
    BalanceView,
    Board,
    CheckReport,
    MoveView,
    Outage,
    Permission,
    PlanReason,
    PlanView,
    Role,
    RunView,
    View,
)
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.policy import ActionKind, WebPolicy
from ballast.daemon.web.actions import ActionRequests
from ballast.daemon.web.app import WebParts, build_probes
from ballast.daemon.web.app import build as build_app
from ballast.daemon.web.server import WebServer
from ballast.executor.driver.pace import pace_of
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.ports.journal import Request
from ballast.ports.time import Clock

__all__ = ["serve"]

PATIENCE_MS = PATIENCE_S * 1000
expect.set_options(timeout=PATIENCE_MS)

TOKEN = "a-token-no-one-guesses"  # noqa: S105 — of this test


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    with sync_playwright() as tools:
        chromium = tools.chromium.launch(
            executable_path=path_of("chromium"), args=["--no-sandbox"], timeout=PATIENCE_MS
        )
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

        def start(
            url: str, *, width: int = 1280, height: int = 900, scheme: str = "light", at_ms: int | None = None
        ) -> Page:
            """With ``at_ms`` it is always that moment, in UTC."""
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,  # type: ignore[arg-type]
                timezone_id=None if at_ms is None else "UTC",
            )
            stack.callback(context.close)
            page = context.new_page()
            if at_ms is not None:
                page.clock.set_fixed_time(at_ms)
            page.on("console", listen)
            page.on("pageerror", lambda error: problems.append(str(error)))
            # Whatever is not this daemon is the network, and the page must not need it.
            page.route("**/*", lambda r: r.continue_() if r.request.url.startswith(url) else r.abort())
            page.set_default_timeout(PATIENCE_MS)
            page.goto(url)
            return page

        yield start
    assert problems == []


@pytest.fixture
def show(tmp_path: Path) -> Iterator[Callable[..., tuple[str, Board, list[Request]]]]:
    """Serve a view that the test made: the address, the board to change it, and what people asked for."""
    servers: list[WebServer] = []
    closing = threading.Event()

    def start(
        view: View, state: Callable[[], ClusterState | None] = a_state, clock: Clock | None = None
    ) -> tuple[str, Board, list[Request]]:
        board, asked = Board(view), list[Request]()
        secret = tmp_path / "token"
        secret.write_text(TOKEN)
        clock = clock or WallClock()
        parts = WebParts(
            board=board,
            state=state,
            metrics=Metrics(board),
            clock=clock,
            action_requests=ActionRequests(secret, asked.append, clock),
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


def a_state(*, brokers: int = 6, displaced: bool = False, down: int | None = None, age_s: float = 3) -> ClusterState:
    """A cluster with some history: brokers in three racks; where leaders are displaced, its disks are uneven, too."""
    ids = list(range(1, brokers + 1))
    rows = []
    for p in range(brokers * 10):
        replicas = tuple(ids[(p + k) % brokers] for k in range(3))
        isr = tuple(b for b in replicas if b != down)
        leader = isr[1] if displaced and replicas[0] == 2 and p % 5 else isr[0]
        size = 4_000_000_000 + (p % 7) * 900_000_000
        rows.append(PartitionRow("orders", p, leader, replicas, isr, sizes=(size,) * 3))
    members = tuple(
        Broker(b, rack=f"zone-{'abc'[(b - 1) % 3]}", host="" if b == down else f"kafka-{b}", alive=b != down, port=9092,
               controller=b == 1, log_dirs_known=b != down,
               log_dirs=() if b == down else (LogDir("/var/lib/kafka", 900_000_000_000, 700_000_000_000),))
        for b in ids
    )  # fmt: skip
    return build(
        "Tq8mZ0xkRY2s", members, (Topic("orders", min_isr=2),), rows,
        taken_at_ms=now_ms() - int(age_s * 1000), kafka_version="4.3",
    )  # fmt: skip


def figures(*, brokers: int = 6, displaced: bool = False, down: int | None = None, age_s: float = 3) -> Figures:
    """That cluster in figures."""
    return measure(a_state(brokers=brokers, displaced=displaced, down=down, age_s=age_s), threshold_percent=10)


def uneven() -> ClusterState:
    """Six brokers, of which the sixth is new and holds little."""
    rows = []
    for p in range(60):
        first = p % 5 + 1
        replicas = (first, first % 5 + 1, (first + 1) % 5 + 1) if p % 12 else (6, first, first % 5 + 1)
        rows.append(
            PartitionRow(
                "orders" if p < 36 else "payments",
                p,
                replicas[0],
                replicas,
                replicas,
                sizes=(4_000_000_000 + (p % 7) * 900_000_000,) * 3,
                lags=(0, 0, 0),
            )
        )
    members = tuple(
        Broker(b, rack=f"zone-{'abc'[(b - 1) % 3]}", host=f"kafka-{b}", port=9092, controller=b == 1, log_dirs_known=True,
               log_dirs=(LogDir("/var/lib/kafka", 900_000_000_000, 640_000_000_000),))
        for b in range(1, 7)
    )  # fmt: skip
    topics = (Topic("orders", min_isr=2), Topic("payments", min_isr=2))
    return build("Tq8mZ0xkRY2s", members, topics, rows, taken_at_ms=now_ms() - 3000, kafka_version="4.3")


def a_real_plan(intent: Intent | None = None) -> PlanView:
    """What the planner makes of the uneven cluster, as a daemon in approval mode shows it."""
    made = plan(uneven(), intent or Balance())
    made = replace(made, created_at_ms=now_ms() - 240_000)
    request = Request(id="r", kind="plan", by="Ada", at_ms=0, body={"intent": "balance"})
    proposal = Proposal(id=name_of(ActionKind.MOVES, made), kind=ActionKind.MOVES, plan=made, request=request)
    policy = ExecutionPolicy()
    pace = pace_of(new_run("r", made, policy, Now(0, 0.0)), uneven())
    return plan_view(proposal, pending_approval=True, policy=policy, pace=pace)


def a_day() -> tuple[Point, ...]:
    """Twenty-four hours in which a broker came back without its leaders, and a run evened the disks out."""
    start = now_ms() - 86_400_000
    return tuple(
        Point(
            at_ms=start + n * 600_000,
            imbalance=0.34 if 40 <= n < 58 else 0.02,
            disk_skew=0.31 - 0.26 * min(1.0, max(0.0, (n - 70) / 25)),
            bytes_in_per_s=None if n == 0 else 42e6 + 18e6 * math.sin(n / 23),
            moving=6 if 70 <= n < 95 else 0,
            under_replicated=12 if 38 <= n < 42 else 0,
        )
        for n in range(144)
    )


def an_outage() -> Outage:
    """No broker answers since noon."""
    noon = datetime(2026, 11, 21, 12, 0).astimezone()
    return Outage(code="unreachable", detail="No broker answers.", since_ms=int(noon.timestamp() * 1000))


def permission(
    kind: str, mode: str = "auto", code: str = "allowed", detail: str = "No guard refuses it."
) -> Permission:
    """A verdict."""
    return Permission(action=kind, mode=mode, allowed=code == "allowed", code=code, detail=detail)


def move(number: int, stage: str = "moving", share: float = 0.4) -> MoveView:
    """A partition on its way."""
    size = 4_000_000_000
    return MoveView(
        topic="orders", partition=number, old=(1, 2, 3), new=(4, 2, 3), size_bytes=size, copied_bytes=int(size * share),
        stage=stage, detail="disk 14 % above the fair share of broker 1",
    )  # fmt: skip


def a_run() -> RunView:
    """A run in the middle."""
    return RunView(
        id="1121-0102-ab", intent="balance", purpose=Purpose("balance"), phase="running", started_at_ms=now_ms() - 600_000, changes=("9 moves", "3 replica list changes"), moves_total=12, moves_verified=5, moves_in_flight=3,
        bytes_total=48_000_000_000, bytes_left=20_000_000_000, bytes_per_s=52_000_000, seconds_left=385,
        throttle_bytes_per_s=60_000_000, detail="Moving 3 partitions", moves=tuple(move(n) for n in (7, 19, 31)),
    )  # fmt: skip


def a_plan(*, pending_approval: bool = True) -> PlanView:
    """A plan with all its figures."""
    return PlanView(
        id="moves-1", action="moves", intent="balance", purpose=Purpose("balance"), created_at_ms=now_ms() - 5_400_000, moves=12, elections=4,
        copies=12, changes=("12 moves (44.7 GiB)", "4 preferred leader elections (no data copied)"), bytes_moved=48_000_000_000, bound_bytes=46_500_000_000, status="meets-all-goals", pending_approval=pending_approval,
        reasons=(PlanReason("disk", 9), PlanReason("replicas", 3)),
        resources=(
            {"name": "disk", "label": "disk", "unit": "bytes", "band": 0.1, "range": 0.1, "idle": 0.0, "shares_change": False,
             "before": {"minimum": 0.81, "maximum": 1.24, "out_of_range": 3}, "after": {"minimum": 0.95, "maximum": 1.06, "out_of_range": 0}},
            {"name": "preferred-leaders", "label": "preferred leaders", "unit": "", "band": 0.1, "range": 0.1, "idle": 0.0,
             "shares_change": False, "before": {"minimum": 0.7, "maximum": 1.3, "out_of_range": 2}, "after": {"minimum": 0.98, "maximum": 1.02, "out_of_range": 0}},
        ),
        examples=tuple(move(n, "planned", 0) for n in range(12)),
    )  # fmt: skip


def a_view(**changes: object) -> View:
    """A daemon at work on a healthy cluster."""
    base = {
        "version": 1, "name": "shop", "instance": "ballast-7d9f-x2", "started_at_ms": now_ms() - 86_400_000,
        "role": Role.ACTIVE, "mode": "auto", "figures": figures(),
        "balance": BalanceView(verdict="balanced", detail="Every resource is within its range."),
        "permissions": tuple(permission(k) for k in ("elections", "replica_list_changes", "moves", "repair")),
        "checks": {
            "observe": CheckReport(detail="6 brokers up, 60 partitions; preferred leaders OK.", at_ms=now_ms(), duration_s=0.1),
            "leaders": CheckReport(detail="Preferred leaders OK.", at_ms=now_ms(), duration_s=0.1),
        },
        "history_problem": "",
        "history": (
            RunView(id="1120-2300-aa", intent="balance", purpose=Purpose("balance"), phase="ended", started_at_ms=now_ms() - 90_000_000,
                    ended_at_ms=now_ms() - 89_000_000, status="done", moves_total=31, moves_verified=31, bytes_total=90_000_000_000),
            RunView(id="1119-0400-bc", intent="evacuate 3", purpose=Purpose("evacuate", (3,)), phase="ended", started_at_ms=now_ms() - 190_000_000,
                    ended_at_ms=now_ms() - 189_000_000, status="incomplete", moves_total=12, moves_verified=11, bytes_total=30_000_000_000),
        ),
        "settings": (("mode", "auto"), ("leaders.imbalance_percentage", "10"), ("web.port", "8080")),
        "settings_changed": frozenset({"mode"}),
    }  # fmt: skip
    return View(**{**base, **changes})  # type: ignore[arg-type]
