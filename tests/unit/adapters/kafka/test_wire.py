"""The thread whose connections failed gives them up, once, and never closes the newer ones of another thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka import kafka_python
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.adapters.kafka.kafka_python import Wire, code_name, raise_for
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.errors import AuthorizationFailed, BallastError, Refused, Unavailable, WrongCluster


class FakeLink:
    """Connections that do as they are told."""

    def __init__(self, run: Callable[[], Any], *, cluster_id: str | None = None) -> None:
        self._run = run
        self.cluster_id = cluster_id
        self.closed = False

    def run(self, _: object) -> Any:
        """Whatever was asked for."""
        return self._run()

    def close(self) -> None:
        """Remember it."""
        self.closed = True


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> list[FakeLink]:
    """The links that a wire will be given, first to last."""
    waiting: list[FakeLink] = []
    monkeypatch.setattr(kafka_python, "first_to_answer", lambda servers, *_, **__: servers[0])
    monkeypatch.setattr(kafka_python, "Link", lambda *_: waiting.pop(0))
    return waiting


def wire(total_s: float = 5.0, identity: ClusterIdentity | None = None) -> Wire:
    """A wire to nowhere."""
    retry = RetryPolicy(total_s=total_s, first_wait_s=0.001, longest_wait_s=0.002)
    return Wire("a:1,b:2", Security(), retry=retry, identity=identity)


def failing(failure: Exception) -> Callable[[], Any]:
    """A request that fails like this."""

    def run() -> Any:
        raise failure

    return run


def test_failed_connections_are_replaced_and_the_other_server_is_tried(links: list[FakeLink]) -> None:
    """The answer comes over new connections, begun at the next server; the failed ones are closed."""
    bad, good = FakeLink(failing(Unavailable("away"))), FakeLink(lambda: "answer")
    links += [bad, good]
    subject = wire()
    assert subject.ask("metadata", object) == "answer"
    assert bad.closed
    assert not good.closed
    assert subject._servers == [("b", 2), ("a", 1)]


def test_newer_connections_are_not_closed_by_a_late_failure(links: list[FakeLink]) -> None:
    """A thread that failed on old connections leaves the new ones of another thread alone."""
    old, new = FakeLink(lambda: "old"), FakeLink(lambda: "new")
    links += [old, new]
    subject = wire()
    assert subject.ask("metadata", object) == "old"
    subject.reconnect()
    assert subject.ask("metadata", object) == "new"
    subject.reconnect(old)  # type: ignore[arg-type]
    assert not new.closed
    assert subject.ask("metadata", object) == "new"


def test_connections_closed_under_us_are_a_passing_failure(links: list[FakeLink]) -> None:
    """What the client library says about closed connections is no bug when another thread gave them up."""
    subject = wire()

    def closed_meanwhile() -> Any:
        subject.reconnect()
        raise RuntimeError("NetworkSelector closed!")

    links += [FakeLink(closed_meanwhile), FakeLink(lambda: "answer")]
    assert subject.ask("metadata", object) == "answer"


def test_any_other_runtime_error_is_a_bug(links: list[FakeLink]) -> None:
    """It comes out as it is."""
    links += [FakeLink(failing(RuntimeError("what?")))]
    with pytest.raises(RuntimeError, match="what"):
        wire().ask("metadata", object)


def test_connections_to_another_cluster_are_closed_before_they_are_used(links: list[FakeLink]) -> None:
    """Also when the address led to the right one before."""
    sent: list[str] = []
    right = FakeLink(lambda: "answer", cluster_id="ours")
    wrong = FakeLink(lambda: sent.append("asked"), cluster_id="theirs")
    links += [right, wrong]
    subject = wire(identity=ClusterIdentity())
    assert subject.ask("metadata", object) == "answer"
    subject.reconnect()
    with pytest.raises(WrongCluster):
        subject.ask("metadata", object)
    assert wrong.closed
    assert not sent


def test_a_closed_wire_says_so(links: list[FakeLink]) -> None:
    """It does not open connections again."""
    subject = wire(total_s=0)
    subject.close()
    with pytest.raises(Unavailable, match="was closed"):
        subject.ask("metadata", object)
    assert links == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [(31, AuthorizationFailed), (29, AuthorizationFailed), (7, Unavailable), (42, Refused)],
)
def test_a_responses_own_error_has_its_kind(code: int, kind: type[BallastError]) -> None:
    """Forbidden, passing and final errors are told apart."""
    with pytest.raises(kind):
        raise_for(code, "metadata")


def test_errors_have_kafkas_own_names() -> None:
    """Also where the client library calls them otherwise."""
    assert [code_name(c) for c in (3, 6, 17, 39, 85)] == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_LEADER_OR_FOLLOWER",
        "INVALID_TOPIC_EXCEPTION",
        "INVALID_REPLICA_ASSIGNMENT",
        "NO_REASSIGNMENT_IN_PROGRESS",
    ]
