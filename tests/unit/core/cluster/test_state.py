"""A state is its rows in order, with every column as wide as it says; no caller can change it."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from ballast.core.cluster import (
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Gap,
    PartitionRow,
    Partitions,
    Topic,
    TopicPartition,
    build,
)

ENTRY = {"a": ConfigValue("1", "DYNAMIC_BROKER_CONFIG")}
FACTS = {
    "taken_at_ms": 7,
    "broker_configs": {1: ENTRY},
    "cluster_configs": ENTRY,
    "gaps": (Gap.of_broker(3, "log dirs", "no answer"),),
    "api": frozenset({"kraft"}),
    "kafka_version": "4.3",
}


def picture() -> ClusterState:
    """Three partitions, given backwards; the middle one moves from broker 2 to 3 and is copied to another log dir on 1."""
    rows = [
        PartitionRow("u", 0, 4, (4,), (4,), offline=(4,)),
        PartitionRow(
            "t",
            1,
            1,
            (3, 1, 2),
            (1, 2),
            adding=(3,),
            removing=(2,),
            sizes=(5, 8, 9),
            lags=(3, 0, 1),
            log_dirs=(0, 1, 2),
            future_sizes=(UNKNOWN, 6, UNKNOWN),
            future_dirs=(UNKNOWN, 0, UNKNOWN),
        ),
        PartitionRow("t", 0, 2, (2, 1), (2,)),
    ]
    brokers = (Broker(3, "r"), Broker(2), Broker(1))
    return build("c", brokers, (Topic("u"), Topic("t")), rows, **FACTS)  # type: ignore[arg-type]


def test_rows_become_columns_in_the_order_of_topics_and_numbers() -> None:
    """Whatever order they came in; what a row does not tell is unknown."""
    p = picture().partitions
    assert {column.name: getattr(p, column.name).tolist() for column in fields(Partitions)} == {
        "topic": [0, 0, 1],
        "number": [0, 1, 0],
        "leader": [2, 1, 4],
        "start": [0, 2, 5, 6],
        "replica": [2, 1, 3, 1, 2, 4],
        "in_sync": [True, False, False, True, True, True],
        "adding": [False, False, True, False, False, False],
        "removing": [False, False, False, False, True, False],
        "size_bytes": [-1, -1, 5, 8, 9, -1],
        "lag": [-1, -1, 3, 0, 1, -1],
        "log_dir": [-1, -1, 0, 1, 2, -1],
        "future_size_bytes": [-1, -1, -1, 6, -1, -1],
        "offline": [False] * 5 + [True],
        "future_log_dir": [-1, -1, -1, 0, -1, -1],
    }


def test_a_state_has_what_is_not_per_partition_by_id_and_name() -> None:
    """As it was read; a broker that only a replica list names is added as down, and another is not there."""
    state = picture()
    assert {name: getattr(state, name) for name in FACTS} == FACTS
    assert state.cluster_id == "c"
    assert state.brokers == (Broker(1), Broker(2), Broker(3, "r"), Broker(4, alive=False))
    assert [t.name for t in state.topics] == ["t", "u"]
    assert state.broker(3) == Broker(3, "r")
    assert state.broker(9) is None


def test_a_partition_in_a_move_has_three_replica_lists() -> None:
    """Every replica that the metadata lists, those that it is to have and those that it had; its neighbours have one."""
    state = picture()
    lists = [[of(row) for of in (state.replicas, state.target, state.settled_replicas, state.isr)] for row in range(3)]
    assert lists == [
        [(2, 1), (2, 1), (2, 1), (2,)],
        [(3, 1, 2), (3, 1), (1, 2), (1, 2)],
        [(4,), (4,), (4,), (4,)],
    ]
    names = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
    assert [state.name(row) for row in range(3)] == list(state.index) == names


def test_nothing_but_names_is_known_of_a_state_without_partitions() -> None:
    """Its columns are empty and as wide as those of any other."""
    empty, full = build("c", (), (), []), picture()
    assert (empty.taken_at_ms, empty.broker_configs, empty.cluster_configs, empty.gaps) == (0, {}, {}, ())
    assert (empty.api, empty.kafka_version, empty.partitions.start.tolist()) == (frozenset(), None, [0])
    flags, large = {"in_sync", "adding", "removing", "offline"}, {"start", "size_bytes", "lag", "future_size_bytes"}
    for column in fields(Partitions):
        wide = np.bool_ if column.name in flags else np.int64 if column.name in large else np.int32
        for state in (empty, full):
            assert getattr(state.partitions, column.name).dtype == wide, column.name


def test_columns_that_a_reader_does_not_have_are_unknown_and_none_can_be_written() -> None:
    """No replica is offline and none is copied to another log dir then; a state stays as it was read."""
    p = picture().partitions
    given = {
        c.name: getattr(p, c.name).copy() for c in fields(Partitions) if c.name not in {"offline", "future_log_dir"}
    }
    short = Partitions(**given)
    assert short.offline.tolist() == [False] * 6
    assert short.future_log_dir.tolist() == [UNKNOWN] * 6
    assert short.offline.dtype == np.bool_
    assert short.future_log_dir.dtype == np.int32
    for column in fields(Partitions):
        with pytest.raises(ValueError, match="read-only"):
            getattr(short, column.name)[0] = 1
