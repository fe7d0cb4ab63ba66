"""``topics list`` tells each topic's figures, and unknown figures stay unknown."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ballast.cli.cluster_options import ClusterOptions
from ballast.cli.commands.topics.command import topics
from ballast.core.cluster import NO_LEADER, UNKNOWN, Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.cluster.topic_list import list_topics


def picture() -> ClusterState:
    """Topic orders has everything; of topic payments nothing is known but what the metadata says; empty has no partition."""
    brokers = tuple(Broker(b, log_dirs_known=b != 3, alive=b != 3) for b in (1, 2, 3))
    rows = [
        PartitionRow("orders", 0, 1, (1, 2), (1, 2), sizes=(100, 90)),
        PartitionRow("orders", 1, 2, (2, 1, 3), (2,), sizes=(50, 40, UNKNOWN)),
        PartitionRow("orders", 2, 2, (2, 1, 3), (2, 1), adding=(3,), sizes=(50, 50, UNKNOWN)),
        PartitionRow("payments", 0, NO_LEADER, (3,), (), sizes=(UNKNOWN,)),
    ]
    names = (Topic("empty"), Topic("orders", topic_id="id", min_isr=2), Topic("payments"))
    return build("c", brokers, names, rows)


def test_figures_of_a_topic() -> None:
    """A replica being added counts neither as a replica nor as one that lags."""
    _, orders, _ = list_topics(picture())
    assert (orders.partitions, orders.min_replicas, orders.max_replicas) == (3, 2, 3)
    assert (orders.replica_bytes, orders.unknown_sizes) == (380, 2)
    assert (orders.under_replicated, orders.offline, orders.moving) == (1, 0, 1)


def test_what_is_not_known_is_unknown() -> None:
    """No size, no replication factor without a partition; an offline partition is counted as such."""
    empty, _, payments = list_topics(picture())
    assert (empty.partitions, empty.min_replicas, empty.max_replicas, empty.replica_bytes) == (0, *[UNKNOWN] * 3)
    assert (payments.replica_bytes, payments.unknown_sizes) == (UNKNOWN, 1)
    assert (payments.under_replicated, payments.offline) == (1, 1)


def test_an_empty_replica_has_a_size() -> None:
    """No bytes are known bytes."""
    rows = [PartitionRow("t", 0, 1, (1, 2), (1, 2), sizes=(0, 0))]
    (t,) = list_topics(build("c", (Broker(1), Broker(2)), (Topic("t"),), rows))
    assert (t.replica_bytes, t.unknown_sizes) == (0, 0)


def printed(monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What ``topics list`` prints of the picture."""
    opened = SimpleNamespace(cluster=SimpleNamespace(snapshot=picture))
    monkeypatch.setattr(ClusterOptions, "open", lambda _: nullcontext(opened))
    result = CliRunner().invoke(topics, ["list", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_a_table_marks_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``status`` does: ``+?`` where some sizes are missing, ``?`` where all are."""
    lines = [line.split() for line in printed(monkeypatch).splitlines()]
    assert lines[0] == ["NAME", "PARTITIONS", "RF", "MIN", "ISR", "SIZE", "UNDER-REPLICATED", "OFFLINE", "REASSIGNING"]
    assert lines[2] == ["orders", "3", "2", "…", "3", "2", "380", "B+?", "1", "0", "1"]
    assert lines[3] == ["payments", "1", "1", "?", "?", "1", "1", "0"]


def test_the_document_has_null_for_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only the topics that were asked for."""
    (found,) = json.loads(printed(monkeypatch, "--topics", "pay.*", "--output", "json"))["topics"]
    assert (found["topic"], found["replicaBytes"], found["minIsr"], found["topicId"]) == ("payments", None, None, None)
