"""What the journal asks of the controller, while brokers still name the one that has gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from ballast.adapters.journal import log as journal_log
from ballast.adapters.journal.loss import TopicMark, delete_topic
from ballast.adapters.kafka import librdkafka

GIVES_UP_S = 2.0
COMPACTED = {
    "cleanup.policy": SimpleNamespace(value="compact"),
    "min.insync.replicas": SimpleNamespace(value="1"),
}


class Client:
    """Answers what it was asked once it is asked for metadata afterwards, and gives up without that."""

    def __init__(self) -> None:
        self._asked: list[tuple[Future[Any], Any]] = []
        self._timers: list[threading.Timer] = []
        self._deleted = False

    def poll(self, _: float) -> None:
        """No events."""

    def list_topics(self, **_: float) -> Any:
        """Three brokers, one of which is the controller now, and the topic until it is deleted."""
        for future, answer in self._asked:
            if not future.done():
                future.set_result(answer)
        partition = SimpleNamespace(leader=1, replicas=[1], isrs=[1])
        topics = {} if self._deleted else {"t": SimpleNamespace(partitions={0: partition})}
        return SimpleNamespace(brokers={1: None, 2: None, 3: None}, topics=topics)

    def create_topics(self, topics: list[Any], **_: float) -> dict[str, Future[Any]]:
        """To the controller."""
        return {topics[0].topic: self._ask(None)}

    def delete_topics(self, topics: list[str], **_: float) -> dict[str, Future[Any]]:
        """To the controller."""
        self._deleted = True
        return {topics[0]: self._ask(None)}

    def describe_topics(self, topics: Any, **_: float) -> dict[str, Future[Any]]:
        """To the controller as well, though any broker could tell."""
        del topics
        return {"t": self._ask(SimpleNamespace(topic_id="an-id"))}

    def describe_configs(self, resources: list[Any], **_: float) -> dict[Any, Future[Any]]:
        """To the controller as well, though any broker could tell."""
        return {resources[0]: self._ask(COMPACTED)}

    def _ask(self, answer: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def give_up() -> None:
            if not future.done():
                future.set_exception(ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT)))

        self._asked.append((future, answer))
        self._timers.append(threading.Timer(GIVES_UP_S, give_up))
        self._timers[-1].start()
        return future

    def close(self) -> None:
        """End the timers."""
        for timer in self._timers:
            timer.cancel()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[AdminClient]:
    """A client that heard of a controller that has gone."""
    monkeypatch.setattr(librdkafka, "FIRST_METADATA_S", 0.01)
    made = Client()
    yield cast("AdminClient", made)
    made.close()


def ensure(client: AdminClient, monkeypatch: pytest.MonkeyPatch, *, there: bool) -> bool:
    """Make the topic t, or look at it where it is there, with this client."""
    monkeypatch.setattr(journal_log, "AdminClient", lambda _: client)
    log = journal_log.TopicLog({"bootstrap.servers": "127.0.0.1:1"}, "t", timeout_s=GIVES_UP_S)
    monkeypatch.setattr(log, "exists", lambda: there)
    return log.ensure({"cleanup.policy": "compact"})


ASKED: dict[str, Callable[[AdminClient, pytest.MonkeyPatch], object]] = {
    "the topic's id": lambda client, _: TopicMark("t")._find_id(client),
    "its deletion": lambda client, _: delete_topic(client, "t", timeout_s=GIVES_UP_S),
    "its creation": lambda client, monkeypatch: ensure(client, monkeypatch, there=False),
    "its settings": lambda client, monkeypatch: ensure(client, monkeypatch, there=True),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_metadata_is_asked_for_while_a_request_waits(
    ask: Callable[[AdminClient, pytest.MonkeyPatch], object], client: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left alone, the client asks for it once in ten seconds, and the request would end unanswered before."""
    ask(client, monkeypatch)
