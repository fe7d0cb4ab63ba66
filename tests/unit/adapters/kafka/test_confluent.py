"""Requests while the controller changes."""

from __future__ import annotations

import concurrent.futures
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka import confluent, librdkafka
from ballast.adapters.kafka.confluent import Admin
from ballast.adapters.kafka.retry import RetryObserver, RetryPolicy
from ballast.errors import BallastError, Refused, Unavailable
from ballast.ports.cluster import ConfigResource


class Client:
    """Answers with these errors one after another, then with success."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)
        self.asked = 0

    def create_topics(self, topics: list[Any], **_: float) -> dict[str, concurrent.futures.Future[None]]:
        """One future, done."""
        self.asked += 1
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        if self.errors:
            future.set_exception(KafkaException(KafkaError(self.errors.pop(0))))
        else:
            future.set_result(None)
        return {topics[0].topic: future}


def unheard(operation: str, attempt: int, failure: BallastError, wait_s: float) -> None:
    """Listens to nothing."""


def admin_of(
    client: Client, monkeypatch: pytest.MonkeyPatch, timeout_s: float = 5.0, heard: RetryObserver = unheard
) -> Admin:
    """An admin whose client this is."""
    retry = RetryPolicy(total_s=timeout_s, first_wait_s=0.01, longest_wait_s=0.02, observer=heard)
    admin = Admin("127.0.0.1:1", Security.from_properties({}), timeout_s=timeout_s, retry=retry)
    monkeypatch.setattr(admin.metadata, "addresses", lambda: "127.0.0.1:1")
    monkeypatch.setattr(confluent, "new_client", lambda *_, **__: client)
    return admin


def test_a_broker_that_is_no_longer_the_controller_is_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It did nothing, so the request is sent again; other answers are told as they are."""
    heard: list[tuple[object, ...]] = []
    client = Client(KafkaError.NOT_CONTROLLER, KafkaError.NOT_CONTROLLER)
    admin_of(client, monkeypatch, heard=lambda *told: heard.append(told[:2])).create_topic("t", {0: (1, 2)}, None)
    assert client.asked == 3
    assert heard == [("a new topic", 1), ("a new topic", 2)], "each new try is told, for logs and metrics"
    client = Client(KafkaError.POLICY_VIOLATION)
    with pytest.raises(Refused, match="POLICY_VIOLATION"):
        admin_of(client, monkeypatch).create_topic("t", {0: (1, 2)}, None)
    assert client.asked == 1


def test_what_may_have_been_begun_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence does not tell whether the topic was made: the person is told, and looks."""
    client = Client(KafkaError.REQUEST_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
    with pytest.raises(Unavailable, match="did not answer in time"):
        admin_of(client, monkeypatch).create_topic("t", {0: (1, 2)}, None)
    assert client.asked == 1


def test_a_cluster_without_a_controller_is_waited_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is said that it cannot be reached for this, and that trying later makes sense."""
    client = Client(*[KafkaError.NOT_CONTROLLER] * 1000)
    with pytest.raises(Unavailable, match="electing a controller"):
        admin_of(client, monkeypatch, timeout_s=0.2).create_topic("t", {0: (1, 2)}, None)
    assert client.asked > 2


class Waiting(Client):
    """Tells a topic's configs once it is asked for metadata: before, it waits for a controller that has gone."""

    def poll(self, _: float) -> None:
        """No events."""

    def describe_configs(
        self, resources: list[Any], **_: float
    ) -> dict[Any, concurrent.futures.Future[dict[str, Any]]]:
        """Of each resource one future, not done."""
        self.waiting = {resource: concurrent.futures.Future[dict[str, Any]]() for resource in resources}
        return self.waiting

    def list_topics(self, **_: float) -> None:
        """Names the next controller."""
        for future in self.waiting.values():
            if not future.done():
                future.set_result(
                    {"retention.ms": SimpleNamespace(name="retention.ms", value="5", source=1, is_sensitive=False)}
                )


def test_topic_configs_do_not_wait_for_a_controller_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client asks the controller for them, and by itself hears of the next one only after ten seconds."""
    monkeypatch.setattr(librdkafka, "FIRST_METADATA_S", 0.01)
    entries, failures = admin_of(Waiting(), monkeypatch, timeout_s=0.5).entries([ConfigResource("topic", "t")])
    assert ([list(found) for found in entries.values()], failures) == ([["retention.ms"]], {})
