"""Probes as a kubelet asks them, while others open connections and say nothing."""

from __future__ import annotations

import itertools
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.daemon.conftest import LiveCluster, Running, bounce
from tests.daemon.rig import Rig, a_service, check_leaders, give_run_controller, holder, keep_lock, observe
from tests.waiting import until

from ballast.daemon.context import health
from ballast.daemon.context.view import Role, View
from ballast.daemon.policy import DaemonPolicy, Mode, WebPolicy
from ballast.daemon.web import connections
from ballast.daemon.web.connections import MOST, MOST_OF_ONE_ADDRESS
from ballast.errors import Unavailable
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.world import SimWorld

Serve = Callable[..., Running]
PROBES = 30
KUBELET, OTHERS = "127.0.0.1", [f"127.0.1.{n}" for n in range(1, 5)]


@pytest.fixture
def connect() -> Iterator[Callable[[int, str], socket.socket]]:
    """Connections that say nothing, from an address of the loopback."""
    with ExitStack() as stack:

        def open_one(port: int, address: str) -> socket.socket:
            return stack.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(address, 0))
            )

        yield open_one


def ask(port: int, path: str) -> int:
    """As a kubelet: a connection for each question, five seconds for the answer; 0 where there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return 0


def is_closed(connection: socket.socket) -> bool:
    """Has the server hung up?"""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("own_port", [True, False])
def test_silent_connections_fail_no_probe(
    serve: Serve, connect: Callable[[int, str], socket.socket], *, own_port: bool
) -> None:
    """More than the port holds, from one address and from several, on the page's port and on the probes' own."""
    daemon = serve(web=WebPolicy(port=0, probes_port=0 if own_port else None))
    web = daemon.service.web
    port = web.probes_port or web.port
    daemon.until(lambda v: v.figures is not None)
    for target in {web.port, port}:
        for n in range(2 * MOST):
            connect(target, OTHERS[n % len(OTHERS)])
        for _ in range(MOST):
            connect(target, KUBELET)
    answers = [ask(port, path) for _ in range(PROBES) for path in ("/livez", "/readyz", "/metrics")]
    assert set(answers) == {200}
    assert ask(web.port, "/api/v1/status") == 200


@pytest.mark.parametrize("own_port", [True, False])
def test_connections_of_one_address_take_no_place_of_another(
    serve: Serve,
    connect: Callable[[int, str], socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    *,
    own_port: bool,
) -> None:
    """As many as the port holds, from one address: its own oldest make room, and who was there before them stays."""
    monkeypatch.setattr(connections, "WAIT_S", 600.0)
    web = serve(web=WebPolicy(port=0, probes_port=0 if own_port else None)).service.web
    port = web.probes_port or web.port
    first = connect(port, OTHERS[0])
    many = [connect(port, OTHERS[1]) for _ in range(MOST)]
    until(lambda: is_closed(many[MOST - MOST_OF_ONE_ADDRESS - 1]) or None, "room for the newest")
    assert not is_closed(first)
    assert not any(map(is_closed, many[-MOST_OF_ONE_ADDRESS:]))


@pytest.mark.parametrize(
    "words", [b"", b"GET /livez HT", b"POST /api/v1/actions/pause HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]
)
def test_who_says_nothing_more_is_hung_up_on(
    serve: Serve, connect: Callable[[int, str], socket.socket], words: bytes
) -> None:
    """Before a request, in the midst of its head, in the midst of its body."""
    daemon = serve()
    silent = connect(daemon.service.web.port, KUBELET)
    silent.sendall(words)
    until(lambda: is_closed(silent) or None, "the end of a silent connection")


def test_the_probes_port_serves_nothing_else(serve: Serve) -> None:
    """The page and its API have their own."""
    port = serve(web=WebPolicy(port=0, probes_port=0)).service.web.probes_port
    assert port is not None
    assert [ask(port, path) for path in ("/livez", "/readyz", "/metrics")] == [200] * 3
    assert [ask(port, path) for path in ("/", "/api/v1/status", "/page.js")] == [404] * 3


def test_an_outage_of_the_cluster_leaves_the_process_alive_and_its_page_served(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first moment: no pod is killed or hidden since Kafka is down, and the page says what is wrong."""

    def down(*_: object, **__: object) -> None:
        raise Unavailable("Connection refused.")

    monkeypatch.setattr(LiveCluster, "snapshot", down)
    daemon = serve()
    daemon.until(lambda v: v.outage is not None)
    assert [daemon.get(path)[0] for path in ("/livez", "/readyz", "/healthz")] == [200, 200, 503]
    assert "Connection refused." in daemon.get("/healthz")[1]


def test_a_stopping_process_is_alive_and_not_ready() -> None:
    """Nothing new is led to it."""
    assert not health.ready(View(role=Role.STOPPING)).ok


def test_a_run_that_does_not_move_is_dead_and_the_process_starts_anew(
    context: Rig, clock: SimClock, world: SimWorld
) -> None:
    """Its thread hangs in a call that never returns: liveness fails, and the process takes the run up from the journal."""
    began: list[str] = []
    service = a_service(
        context.cluster, clock, context.board, DaemonPolicy(mode=Mode.AUTO), start_anew=lambda: began.append("anew")
    )
    context.parts, context.live = service.parts, service.policy
    give_run_controller(context, JournalStore(), spawn=lambda _body: None)
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    assert "run" not in service.heartbeats
    check_leaders(context)
    assert "run" in service.heartbeats
    for waited_s, alive in ((1, True), (health.STUCK_IN_RUN_AFTER_S + 1, False)):
        clock.sleep(waited_s)
        for loop in (service.work, service.lock, service.journal_loop, service.pulse):
            loop.heartbeat.at_s = clock.monotonic_s()
        assert health.alive(service.heartbeats, clock.monotonic_s()).ok is alive
        service.pulse.pass_once()
        assert began == ([] if alive else ["anew"])
    service.web.close()


def test_a_standby_that_waits_long_for_the_lock_is_alive(context: Rig, clock: SimClock) -> None:
    """A lease may be longer than a loop may be silent: each look at the lock is a sign of life."""
    store, lease_s = JournalStore(), 2 * health.STUCK_AFTER_S
    MemoryJournal(store, clock).acquire(holder("other", lease_s))
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    give_run_controller(context, store)
    looks: list[float] = []
    for _ in range(2):
        keep_lock(context, holder("me", lease_s), lambda: looks.append(clock.monotonic_s()))
    assert context.board.view.role is Role.ACTIVE
    assert max(b - a for a, b in itertools.pairwise(looks)) < health.STUCK_AFTER_S
