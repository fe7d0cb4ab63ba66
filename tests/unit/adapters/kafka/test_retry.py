"""One retry policy: what is worth another try gets it, within a bound, and the observer hears of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka.admin import ClusterMetadata

from ballast.adapters.kafka.cluster import KafkaCluster
from ballast.adapters.kafka.diagnosis import NotServed
from ballast.adapters.kafka.retry import RetryPolicy, one_deadline
from ballast.errors import AuthenticationFailed, BallastError, Unavailable


class Script:
    """A function that fails as scripted, then succeeds."""

    def __init__(self, *failures: BallastError) -> None:
        self.failures = list(failures)
        self.calls = 0

    def __call__(self) -> str:
        """Fail or succeed, as scripted."""
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


def quick(total_s: float = 5.0, **options: object) -> RetryPolicy:
    """A policy whose pauses are too short to notice."""
    return RetryPolicy(total_s=total_s, first_wait_s=0.001, longest_wait_s=0.002, **options)  # type: ignore[arg-type]


def test_a_passing_failure_is_tried_again_and_told() -> None:
    """Each repeated failure reaches the observer, and the connection is recovered before each new try."""
    heard: list[tuple[str, int, str]] = []
    recovered: list[int] = []
    script = Script(Unavailable("away"), Unavailable("still away"))
    policy = quick(observer=lambda operation, attempt, failure, _: heard.append((operation, attempt, failure.message)))
    assert policy.call("metadata", script, recover=lambda: recovered.append(1)) == "done"
    assert heard == [("metadata", 1, "away"), ("metadata", 2, "still away")]
    assert len(recovered) == 2


@pytest.mark.parametrize("failure", [AuthenticationFailed("wrong password"), ValueError("a bug")])
def test_what_will_not_pass_is_not_tried_again(failure: BallastError) -> None:
    """A wrong password and a bug come out at once."""
    script = Script(failure)
    with pytest.raises(type(failure)):
        quick().call("metadata", script)
    assert script.calls == 1


def test_the_whole_is_bounded() -> None:
    """When time is up the last failure comes out; with no time at all there is one try."""
    script = Script(*[Unavailable(str(i)) for i in range(10_000)])
    with pytest.raises(Unavailable):
        quick(total_s=0.05).call("metadata", script)
    assert 1 < script.calls < 10_000
    once = Script(Unavailable("away"))
    with pytest.raises(Unavailable):
        quick(total_s=0).call("metadata", once)
    assert once.calls == 1


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only answers move on."""
    at = [1000.0]
    monkeypatch.setattr("ballast.adapters.kafka.retry.time.monotonic", lambda: at[0])
    return at


def test_questions_that_share_a_deadline_end_with_it(now_s: list[float]) -> None:
    """What earlier answers took is missing to later ones; a deadline within another is never the later one."""

    def slow() -> str:
        now_s[0] += 20
        raise Unavailable("away")

    late = Script()
    with one_deadline(30.0), one_deadline(60.0):
        for _ in range(2):
            with pytest.raises(Unavailable, match="away"):
                RetryPolicy(total_s=0).call("metadata", slow)
        with pytest.raises(Unavailable):
            quick().call("configs", late)
    assert late.calls == 0
    assert quick().call("configs", late) == "done"


def _around(script: Script, now_s: list[float]) -> str:
    """Each try takes a second."""
    now_s[0] += 1
    return script()


def test_where_no_server_lets_us_in_the_impatient_give_up_soon(now_s: list[float]) -> None:
    """From the first try in a row that found none: one that was let in begins it anew."""
    script = Script(NotServed("none"), NotServed("none"), Unavailable("slow"), *[NotServed("none")] * 10)
    with one_deadline(100.0, not_served_s=3.0), pytest.raises(NotServed):
        quick(total_s=100.0).call("metadata", lambda: _around(script, now_s))
    assert script.calls == 6


def test_everybody_else_waits_for_the_servers_to_come_back(now_s: list[float]) -> None:
    """For as long as the policy says."""
    script = Script(*[NotServed("none")] * 10)
    with one_deadline(100.0):
        assert quick(total_s=100.0).call("metadata", lambda: _around(script, now_s)) == "done"


def test_an_impatient_snapshot_ends_when_no_server_lets_us_in(now_s: list[float]) -> None:
    """So that a daemon, which reads again by itself, shows an outage within seconds."""
    gone = Script(*[NotServed("none")] * 100)

    def versions() -> dict[int, tuple[int, int]]:
        quick(total_s=30.0).call("api versions", lambda: _around(gone, now_s))
        return {}

    wire = SimpleNamespace(timeout_s=30.0, versions=versions)
    cluster = KafkaCluster(cast("Any", wire), cast("Any", SimpleNamespace()))
    with pytest.raises(NotServed):
        cluster.snapshot(patient=False)
    assert gone.calls == 3


def test_the_questions_of_a_snapshot_share_one_deadline(now_s: list[float]) -> None:
    """Those that other threads ask as well: the first that comes too late ends it, not each after a time-out of its own."""
    asked: list[str] = []
    policy = quick(total_s=30.0)

    def ask(what: str, *_: Any) -> Any:
        return policy.call(what, lambda: asked.append(what))

    def versions() -> dict[int, tuple[int, int]]:
        now_s[0] += 31.0
        return {}

    wire = SimpleNamespace(timeout_s=30.0, versions=versions, ask=ask)
    admin = SimpleNamespace(metadata=SimpleNamespace(read=ClusterMetadata))
    cluster = KafkaCluster(cast("Any", wire), cast("Any", admin))
    with pytest.raises(Unavailable):
        cluster.snapshot()
    with one_deadline(30.0):
        versions()
        beside = cluster._ask_in_thread(ask, "in another thread")
        with pytest.raises(Unavailable):
            beside.result(timeout=60)
    assert asked == []


def test_a_broker_that_has_just_started_is_not_believed() -> None:
    """It names no broker, and so no rack: the reading is made again, and is no reading of a cluster without brokers or racks."""
    reconnected: list[bool] = []
    empty = SimpleNamespace(brokers=[], topics=[])
    wire = SimpleNamespace(
        timeout_s=30.0, versions=dict, ask=lambda *_, **__: empty, reconnect=lambda: reconnected.append(True)
    )
    known = SimpleNamespace(
        cluster_id="c", controller_id=1, brokers={1: SimpleNamespace(id=1, host="h", port=9)}, topics={}
    )
    metadata = SimpleNamespace(read=lambda: known, forget=lambda: None)
    with pytest.raises(Unavailable, match="does not know its cluster"):
        KafkaCluster(cast("Any", wire), cast("Any", SimpleNamespace(metadata=metadata))).snapshot()
    assert reconnected
