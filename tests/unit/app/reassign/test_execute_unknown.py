"""``ballast reassign --execute`` where no broker tells how large a partition is."""

from __future__ import annotations

from typing import Literal

import pytest

from ballast.app.reassign.execute import policy_of, refusals
from ballast.app.reassign.session import ReassignOptions
from ballast.core.cluster import UNKNOWN, Broker, PartitionRow, Topic, TopicPartition, build
from ballast.core.stock.files import parse_reassignment
from ballast.core.stock.plan import plan_of_entries

FILE = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}'


@pytest.mark.parametrize(
    ("size", "unknown_disk_space", "refused"),
    [(UNKNOWN, "refuse", True), (UNKNOWN, "allow", False), (0, "refuse", False), (70, "refuse", False)],
)
def test_a_partition_of_unknown_size_is_refused_unless_told_otherwise(
    size: int, unknown_disk_space: Literal["refuse", "allow"], *, refused: bool
) -> None:
    """All or nothing, before anything has begun; ``--unknown-disk-space allow`` starts it."""
    brokers = tuple(Broker(b, host="h") for b in (1, 2))
    state = build("c", brokers, (Topic("t"),), [PartitionRow("t", 0, 1, (1,), (1,), sizes=(size,))])
    plan = plan_of_entries(parse_reassignment(FILE, source="f"), state, intent="test", source="f")
    options = ReassignOptions(source="f", unknown_disk_space=unknown_disk_space)
    found = refusals(plan, state, {}, policy_of(options))
    assert set(found) == ({TopicPartition("t", 0)} if refused else set())
