"""Kubernetes Events: what is sent, how much at most, and what a refusal does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.daemon.conftest import bounce
from tests.daemon.events_api import NAMESPACE, TOKEN, EventsApi, objections
from tests.daemon.rig import Rig, check_leaders, give_run_controller, holder, keep_lock, observe

from ballast.adapters.kubernetes_events import BURST, REFUSED_PAUSE_S, KubernetesEvents, Pod
from ballast.daemon.policy import DaemonPolicy, Mode
from ballast.errors import UsageError
from ballast.ports.event_sink import ClusterEvent
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.world import SimWorld

pytestmark = pytest.mark.openssl
patient = partial(KubernetesEvents, timeout_s=60)
"""A server of a busy machine answers late, and is none that has failed."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[EventsApi]:
    """An API that lets this pod write events."""
    double = EventsApi(tmp_path / "account")
    double.start()
    yield double
    double.stop()


def pod(api: EventsApi, **more: str) -> Pod:
    """What the chart gives a pod."""
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
    environment |= {"BALLAST_INSTANCE": "shop-ballast-0", "BALLAST_POD_UID": "0c5e-11"} | more
    return Pod.of(environment, api.account)


def wait(condition: Callable[[], bool]) -> None:
    """Poll."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_event_is_about_the_pod_and_says_what_happened(api: EventsApi) -> None:
    """The body passes the published schema, strictly, of the oldest and the newest version; long notes are cut."""
    events = patient(pod(api))
    events(ClusterEvent(reason="RunStarted", sentence="Run 1 started: move 3 partitions."))
    events(ClusterEvent(reason="LockLost", sentence="ä" * 2000, warning=True))
    events.close(60)
    first, second = api.events
    assert first["regarding"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "shop-ballast-0", "namespace": NAMESPACE, "uid": "0c5e-11",
    }  # fmt: skip
    assert (first["type"], first["reason"], first["note"]) == (
        "Normal", "RunStarted", "Run 1 started: move 3 partitions.",
    )  # fmt: skip
    assert second["type"] == "Warning"
    assert len(second["note"].encode()) <= 1024
    assert second["note"].endswith("ä…")
    assert events.lost == 0


@pytest.mark.parametrize("name", ["shop-ballast-7d9f-x2x4q", "a" * 253, f"{'a' * 199}-b", f"{'a' * 199}.b"])
def test_the_name_of_an_event_is_a_name_whatever_the_pod_is_called(api: EventsApi, name: str) -> None:
    """It begins with the pod's, is never too long, and no two of one moment are the same."""
    events = patient(pod(api, BALLAST_INSTANCE=name), clock=SimClock())
    for _ in range(3):
        events(ClusterEvent(reason="RunStarted", sentence="x"))
    events.close(60)
    names = [e["metadata"]["name"] for e in api.events]
    assert len(set(names)) == 3
    assert all(n.startswith(name[:199]) for n in names)
    assert all(e["regarding"]["name"] == name for e in api.events)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metadata": {"generateName": "shop-ballast-0.", "name": "shop-ballast-0.x", "namespace": NAMESPACE}}, "metadata.generateName"),
        ({"metadata": {"name": "Shop", "namespace": NAMESPACE}}, "metadata.name"),
        ({"metadata": {"name": "shop", "namespace": "other"}}, "metadata.namespace"),
        ({"regarding": {"kind": "Pod", "name": "shop"}}, "regarding.namespace"),
        ({"eventTime": "2026-11-22T00:00:00Z"}, "eventTime"),
        ({"type": "Error"}, "type"),
        ({"reportingController": "Kafka_Ballast/ballast"}, "reportingController"),
        ({"reportingController": ""}, "reportingController"),
        ({"reportingInstance": "x" * 129}, "reportingInstance"),
        ({"reason": ""}, "reason"),
        ({"action": "x" * 129}, "action"),
        ({"note": "ä" * 513}, "note"),
        ({"deprecatedCount": 1}, "deprecatedCount"),
        ({"series": {"count": 1, "lastObservedTime": "2026-11-22T00:00:00.000000Z"}}, "series"),
    ],
)  # fmt: skip
def test_the_double_refuses_what_a_server_refuses(api: EventsApi, changes: dict[str, object], field: str) -> None:
    """What passes here is worth something only if each of these rules bites."""
    events = patient(pod(api))
    events(ClusterEvent(reason="RunStarted", sentence="x"))
    events.close(60)
    assert objections(api.events[0], NAMESPACE) == []
    assert objections({**api.events[0], **changes}, NAMESPACE) == [field]


def test_the_rate_is_bounded_and_what_is_too_much_is_counted(api: EventsApi) -> None:
    """A burst, then one in half a minute, whatever happens."""
    clock = SimClock()
    events = patient(pod(api), clock=clock)
    for n in range(BURST + 7):
        events(ClusterEvent(reason="RunStarted", sentence=f"{n}"))
    wait(lambda: len(api.events) + events.lost == BURST + 7)
    assert (len(api.events), events.lost) == (BURST, 7)
    clock.sleep(61)
    for n in range(3):
        events(ClusterEvent(reason="RunEnded", sentence=f"{n}"))
    events.close(60)
    assert (len(api.events), events.lost) == (BURST + 2, 8)


def test_a_refusal_is_told_once_and_asked_again_much_later(api: EventsApi) -> None:
    """Without the right there is one line that names it and no token; ten minutes later it is tried again."""
    clock, told = SimClock(), list[str]()
    api.allowed = False
    events = patient(pod(api), clock=clock, tell=told.append)
    for _ in range(4):
        events(ClusterEvent(reason="RunStarted", sentence="x"))
    wait(lambda: events.lost == 4)
    assert api.requests == 1
    assert len(told) == 1
    assert "403" in told[0]
    assert "the right to create events in events.k8s.io" in told[0]
    clock.sleep(REFUSED_PAUSE_S + 1)
    events(ClusterEvent(reason="RunStarted", sentence="x"))
    wait(lambda: events.lost == 5)
    assert len(told) == 1
    clock.sleep(REFUSED_PAUSE_S + 1)
    api.allowed = True
    events(ClusterEvent(reason="RunStarted", sentence="x"))
    events.close(60)
    assert told[1:] == ["Kubernetes Events are written again."]
    assert TOKEN not in "".join(told)


def test_a_rotated_token_is_used_at_once(api: EventsApi) -> None:
    """The kubelet renews the file; nothing is restarted."""
    events = patient(pod(api))
    events(ClusterEvent(reason="RunStarted", sentence="x"))
    wait(lambda: len(api.events) == 1)
    (api.account / "token").write_text("token-of-the-pod-2")
    events(ClusterEvent(reason="RunEnded", sentence="x"))
    events.close(60)
    assert len(api.events) == 2


def test_a_server_of_another_authority_gets_no_token(api: EventsApi, tmp_path: Path) -> None:
    """TLS is checked against the cluster's own CA: what does not match is not spoken to."""
    other = EventsApi(tmp_path / "other")
    other.start()
    told = list[str]()
    (api.account / "ca.crt").write_bytes((other.account / "ca.crt").read_bytes())
    events = patient(pod(api), tell=told.append)
    events(ClusterEvent(reason="RunStarted", sentence="x"))
    events.close(60)
    other.stop()
    assert api.requests == 0
    assert len(told) == 1
    assert "cannot be asked" in told[0]


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_HOST"),
        ("BALLAST_POD_UID", "BALLAST_POD_UID"),
        ("token", "has no token"),
    ],
)
def test_outside_of_a_pod_it_says_what_is_missing(api: EventsApi, missing: str, words: str) -> None:
    """One sentence instead of events that never arrive."""
    (api.account / missing).unlink(missing_ok=True)
    with pytest.raises(UsageError, match=words):
        pod(api, **({} if missing == "token" else {missing: ""}))


def test_what_the_daemon_does_becomes_news(context: Rig, world: SimWorld) -> None:
    """Taking the lock, a run's start and its end: in this order, each once."""
    heard: list[ClusterEvent] = []
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    context.event_sink = heard.append
    give_run_controller(context, JournalStore())
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    assert [n.reason for n in heard] == ["LockAcquired", "RunStarted"]
    assert heard[1].sentence == "Run run-1 started: 4 preferred leader elections (no data copied)."


def test_a_plan_that_waits_is_news_once(context: Rig, world: SimWorld) -> None:
    """A person is asked once for each plan, not at each check."""
    heard: list[ClusterEvent] = []
    context.policy = DaemonPolicy(mode=Mode.APPROVE)
    context.event_sink = heard.append
    give_run_controller(context, JournalStore())
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    check_leaders(context)
    assert [n.reason for n in heard] == ["LockAcquired", "ApprovalPending"]
    assert "4 preferred leader elections (no data copied)" in heard[1].sentence


def test_a_hand_over_that_was_asked_for_is_no_warning(context: Rig) -> None:
    """A person who takes over, a mode that is observe again; a lock that was lost unasked is one."""
    heard: list[ClusterEvent] = []
    store = JournalStore()
    context.event_sink = heard.append
    give_run_controller(context, store)

    def lead() -> None:
        context.policy = DaemonPolicy(mode=Mode.AUTO)
        context.clock.sleep(60)
        keep_lock(context, holder())
        heard.clear()

    lead()
    context.access.release_for = "Ada"
    keep_lock(context, holder())
    assert [(n.reason, n.warning) for n in heard] == [("LockReleased", False)]
    lead()
    context.policy = DaemonPolicy(mode=Mode.OBSERVE)
    keep_lock(context, holder())
    assert [(n.reason, n.warning) for n in heard] == [("LockReleased", False)]
    lead()
    MemoryJournal(store, context.clock).acquire(holder("another"), wait_s=60)
    keep_lock(context, holder())
    assert [(n.reason, n.warning) for n in heard] == [("LockLost", True)]
