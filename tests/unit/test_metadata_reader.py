"""One broker tells the whole picture, and when it is another one, that one has had time to catch up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import BrokerMetadata, ClusterMetadata

from ballast.adapters import confluent
from ballast.adapters.confluent import SAME_BROKER_TRIES, MetadataReader
from ballast.adapters.retry import RetryPolicy
from ballast.adapters.security import Security
from ballast.errors import Unavailable

SILENT = KafkaError._TRANSPORT


class Client:
    """Answers as these brokers, one after another; an error code stands for silence."""

    def __init__(self, answers: list[int], alive: tuple[int, ...] = (1, 2)) -> None:
        self.answers = answers
        self.alive = alive

    def poll(self, _: float) -> None:
        """Nothing waits."""

    def list_topics(self, **arguments: Any) -> ClusterMetadata:
        """All topics: one by name might be created by asking."""
        assert set(arguments) == {"timeout"}
        source = self.answers.pop(0)
        if source < 0:
            raise KafkaException(KafkaError(source))
        told = ClusterMetadata()
        told.orig_broker_id = source
        told.brokers = {b: BrokerMetadata() for b in self.alive}
        return told


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The servers that clients were made for, first to last."""
    monkeypatch.setattr(confluent, "CATCH_UP_S", 0.0)
    return []


@pytest.fixture
def reader_of(monkeypatch: pytest.MonkeyPatch, servers: list[str]) -> Callable[..., MetadataReader]:
    """A reader whose clients are these, in turn."""

    def make(*clients: Client) -> MetadataReader:
        waiting = list(clients)

        def new_client(where: str, _: Security, **__: Any) -> Client:
            servers.append(where)
            return waiting.pop(0)

        monkeypatch.setattr(confluent, "new_client", new_client)
        monkeypatch.setattr(confluent, "knock", lambda known, *_, **__: known[0])
        retry = RetryPolicy(total_s=5.0, first_wait_s=0.001, longest_wait_s=0.002)
        return MetadataReader([("a", 1), ("b", 2)], Security(), wait_s=1.0, retry=retry)

    return make


def test_another_brokers_answer_is_not_taken_while_the_first_one_is_there(
    reader_of: Callable[..., MetadataReader],
) -> None:
    """It may be older: the client is asked again, and the broker of before answers."""
    client = Client([1, 2, 1])
    reader = reader_of(client)
    assert [reader.read().orig_broker_id for _ in range(2)] == [1, 1]
    assert client.answers == []


def test_a_broker_that_has_left_is_followed_by_another_that_is_asked_once_more(
    reader_of: Callable[..., MetadataReader],
) -> None:
    """Its first answer may be from before what the other one told; the one after the pause is not."""
    client = Client([1, 2, 2, 2])
    reader = reader_of(client)
    reader.read()
    client.alive = (2,)
    assert reader.read().orig_broker_id == 2
    assert client.answers == [2], "asked once more after the change"
    assert reader.read().orig_broker_id == 2


def test_a_broker_that_never_answers_again_is_given_up(reader_of: Callable[..., MetadataReader]) -> None:
    """Alive and never the one that answers: after a few tries the other one is taken, caught up."""
    client = Client([1] + [2] * SAME_BROKER_TRIES)
    reader = reader_of(client)
    reader.read()
    assert reader.read().orig_broker_id == 2
    assert client.answers == []


def test_a_server_that_fails_is_asked_last(reader_of: Callable[..., MetadataReader], servers: list[str]) -> None:
    """A new client begins at the next one; where none answers the failure says so."""
    reader = reader_of(Client([SILENT]), Client([2]))
    assert reader.read().orig_broker_id == 2
    assert servers == ["a:1", "b:2"]
    lonely = MetadataReader([("a", 1)], Security(), wait_s=1.0, retry=RetryPolicy(total_s=0))
    reader_of(Client([SILENT]))
    with pytest.raises(Unavailable):
        lonely.read()
