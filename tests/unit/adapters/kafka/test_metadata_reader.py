"""One broker tells the whole picture, and when it is another one, that one has had time to catch up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import BrokerMetadata, ClusterMetadata, PartitionMetadata, TopicMetadata

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka import confluent
from ballast.adapters.kafka.confluent import SAME_BROKER_TRIES, MetadataReader
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.errors import Unavailable, WrongCluster

SILENT = KafkaError._TRANSPORT


class Client:
    """Answers as these brokers, one after another; an error code stands for silence."""

    def __init__(self, answers: list[int], alive: tuple[int, ...] = (1, 2), cluster_id: str = "one") -> None:
        self.answers = answers
        self.alive = alive
        self.cluster_id = cluster_id

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
        told.cluster_id = self.cluster_id
        told.brokers = {b: BrokerMetadata() for b in self.alive}
        for b, broker in told.brokers.items():
            broker.host, broker.port = f"{self.cluster_id}-{b}", 9092
        return told


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The servers that clients were made for, first to last."""
    monkeypatch.setattr(confluent, "CATCH_UP_S", 0.0)
    return []


@pytest.fixture
def reader_of(monkeypatch: pytest.MonkeyPatch, servers: list[str]) -> Callable[..., MetadataReader]:
    """A reader whose clients are these, in turn."""

    def make(*clients: Client, identity: ClusterIdentity | None = None) -> MetadataReader:
        waiting = list(clients)

        def new_client(where: str, _: Security, **__: Any) -> Client:
            servers.append(where)
            return waiting.pop(0)

        monkeypatch.setattr(confluent, "new_client", new_client)
        monkeypatch.setattr(confluent, "first_to_answer", lambda known, *_, **__: known[0])
        retry = RetryPolicy(total_s=5.0, first_wait_s=0.001, longest_wait_s=0.002)
        return MetadataReader([("a", 1), ("b", 2)], Security(), wait_s=1.0, retry=retry, identity=identity)

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


def test_what_changes_a_cluster_reaches_only_brokers_of_the_one_that_was_read(
    reader_of: Callable[..., MetadataReader],
) -> None:
    """The servers of a person's list may belong to two clusters; the brokers of a picture belong to one."""
    reader = reader_of(Client([1], cluster_id="one"))
    assert reader.addresses() == "one-1:9092,one-2:9092"
    assert reader.addresses() == "one-1:9092,one-2:9092", "no further question"


def test_the_picture_of_another_cluster_is_refused(reader_of: Callable[..., MetadataReader]) -> None:
    """Nor does it lend its brokers to a caller that changes something."""
    identity = ClusterIdentity(expected="one")
    reader = reader_of(Client([1, 1], cluster_id="two"), identity=identity)
    with pytest.raises(WrongCluster):
        reader.read()
    with pytest.raises(WrongCluster):
        reader.addresses()


def test_the_client_of_a_large_cluster_is_closed(
    reader_of: Callable[..., MetadataReader], servers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep a second copy of all metadata; the next reading begins at the same server with a new client."""

    class Large(Client):
        def list_topics(self, **arguments: Any) -> ClusterMetadata:
            told = super().list_topics(**arguments)
            topic = TopicMetadata()
            topic.partitions = {n: PartitionMetadata() for n in range(3)}
            told.topics = {"t": topic}
            return told

    reader = reader_of(Large([1, 1]), Large([1]))
    reader.read()
    reader.read()
    assert servers == ["a:1"]
    monkeypatch.setattr(confluent, "KEPT_PARTITIONS", 2)
    reader = reader_of(Large([1]), Large([1]))
    reader.read()
    reader.read()
    assert servers == ["a:1"] * 3
