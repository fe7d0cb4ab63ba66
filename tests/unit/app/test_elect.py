"""What ``ballast elect`` is asked for: what is wrong is named with its place, before anything is asked of the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ballast.app.elect import Election, choose
from ballast.cli.commands.reassign import read_text
from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.named_brokers import NamedBrokers
from ballast.core.stock.files import StockFormatError, parse_election
from ballast.errors import UsageError

STATE = build(
    "c",
    (Broker(1, rack=None, host="b1", port=9092),),
    (Topic("a"), Topic("gone", deleting=True)),
    [PartitionRow("a", 0, 1, (1,), (1,)), PartitionRow("gone", 0, 1, (1,), (1,))],
)


def file_of(folder: Path, *names: tuple[str, int]) -> Path:
    """An election file as Kafka's tool takes it."""
    path = folder / "election.json"
    path.write_text(json.dumps({"partitions": [{"topic": t, "partition": p} for t, p in names]}))
    return path


def named_in(path: Path, state: ClusterState) -> list[TopicPartition]:
    """The partitions of the file, as ``ballast elect`` reads and checks it."""
    return choose(state, Election(names=parse_election(read_text(path), source=path.name), source=path.name))


def test_what_is_there_is_taken(tmp_path: Path) -> None:
    """In the file's order."""
    assert named_in(file_of(tmp_path, ("a", 0)), STATE) == [TopicPartition("a", 0)]


def test_every_problem_is_named_with_its_place(tmp_path: Path) -> None:
    """Unknown topics and partitions, and topics that are being deleted; all of them at once."""
    path = file_of(tmp_path, ("a", 0), ("b", 0), ("a", 7), ("gone", 0))
    with pytest.raises(StockFormatError) as refused:
        named_in(path, STATE)
    said = str(refused.value)
    assert "election.json" in said
    assert "partitions[1]: topic b does not exist" in said
    assert "partitions[2]: topic a has no partition 7" in said
    assert "partitions[3]: topic gone is being deleted" in said


def test_a_file_that_is_not_text_is_one_sentence(tmp_path: Path) -> None:
    """Not a traceback."""
    path = tmp_path / "election.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        named_in(path, STATE)


def test_an_unknown_broker_or_topic_is_refused() -> None:
    """It would otherwise count as nothing to do."""
    with pytest.raises(UsageError, match="no broker 99") as refused:
        choose(STATE, Election(brokers=NamedBrokers(frozenset({1, 99}))))
    assert refused.value.hint == "The cluster has brokers 1."
    with pytest.raises(UsageError, match="Topic b"):
        choose(STATE, Election(topics=("a", "b")))
    assert choose(STATE, Election(topics=("a",), brokers=NamedBrokers(frozenset({1})))) == [TopicPartition("a", 0)]
