"""Reassignments are sent with the safety flag or with the same check made here, in pieces, and nothing is lost in between."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
)

from ballast.adapters.kafka.kafka_python import Wire
from ballast.adapters.kafka.reassignments import ALTER, PARTITIONS_PER_REQUEST, alter_reassignments
from ballast.core.cluster import TopicPartition
from ballast.errors import Refused, Unavailable
from ballast.ports.cluster import OK


class FakeWire:
    """Answers as a controller that accepts everything, and remembers what it was asked."""

    broker_wait_s = 1.0

    def __init__(self, alter_version: int | None = 1, *, fail_from: int = 10**9) -> None:
        self.alter_version = alter_version
        self.fail_from = fail_from
        self.sent: list[Any] = []
        self.moving = {TopicPartition("t", 0): ((3, 1, 2), (3,), (2,))}

    def versions(self) -> dict[int, tuple[int, int]]:
        """Whether reassignments are known, and how."""
        return {} if self.alter_version is None else {ALTER: (0, self.alter_version)}

    def ask_controller(self, what: str, make: Callable[[], Any], **_: object) -> Any:
        """Accept every partition, or go silent from a certain request on."""
        request = make()
        if isinstance(request, ListPartitionReassignmentsRequest):
            return SimpleNamespace(error_code=0, error_message=None, topics=self._listed())
        self.sent.append(request)
        if len(self.sent) > self.fail_from:
            raise Unavailable("gone")
        response = AlterPartitionReassignmentsResponse
        topic_type = response.ReassignableTopicResponse
        topics = [
            topic_type(
                name=t.name,
                partitions=[
                    topic_type.ReassignablePartitionResponse(
                        partition_index=p.partition_index, error_code=0, error_message=None
                    )
                    for p in t.partitions
                ],
            )
            for t in request.topics
        ]
        return response(throttle_time_ms=0, error_code=0, error_message=None, responses=topics)

    def _listed(self) -> list[Any]:
        return [
            SimpleNamespace(
                name=n.topic,
                partitions=[
                    SimpleNamespace(partition_index=n.partition, replicas=u, adding_replicas=a, removing_replicas=r)
                ],
            )
            for n, (u, a, r) in self.moving.items()
        ]

    def ask(self, what: str, make: Callable[[], Any]) -> Any:
        """Metadata: partition 0 shows the union, partition 1 is at rest on two brokers."""
        lists = {0: [3, 1, 2], 1: [1, 2]}
        partitions = [
            SimpleNamespace(error_code=0, partition_index=n, leader_id=1, replica_nodes=r, isr_nodes=r)
            for n, r in lists.items()
        ]
        return SimpleNamespace(topics=[SimpleNamespace(name="t", topic_id=None, error_code=0, partitions=partitions)])


def alter(
    wire: FakeWire, targets: dict[TopicPartition, tuple[int, ...] | None], *, allow: bool = False
) -> dict[Any, Any]:
    """Send through the fake."""
    return alter_reassignments(cast("Wire", wire), targets, allow_replication_factor_change=allow)


@pytest.mark.parametrize("allow", [False, True])
def test_the_flag_is_always_said(*, allow: bool) -> None:
    """The protocol's own default would allow a change of count; version 1 is demanded, so that it cannot be dropped."""
    wire = FakeWire()
    alter(wire, {TopicPartition("t", 1): (2, 1)}, allow=allow)
    (request,) = wire.sent
    assert request.allow_replication_factor_change is allow
    assert request._min_version == 1


def test_an_old_controller_gets_the_check_made_here() -> None:
    """Version 0 has no flag: a target whose length differs from what the partition has at rest is not sent at all."""
    wire = FakeWire(alter_version=0)
    moving, still, cancel = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)
    outcomes = alter(wire, {moving: (3, 1, 2), still: (2, 3), cancel: None})
    assert outcomes[moving].code == "INVALID_REPLICATION_FACTOR"
    assert outcomes[moving].message == "The replication factor is changed from 2 to 3"
    assert outcomes[still] == outcomes[cancel] == OK
    (request,) = wire.sent
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in request.topics] == [("t", [1, 2])]
    assert request._min_version is None


def test_before_kip_455_it_is_refused_with_the_way_out() -> None:
    """Nothing is sent, and ZooKeeper is named."""
    wire = FakeWire(alter_version=None)
    with pytest.raises(Refused, match=r"2\.4") as failure:
        alter(wire, {TopicPartition("t", 1): (2, 1)})
    assert failure.value.hint is not None
    assert "--zookeeper" in failure.value.hint
    assert wire.sent == []


def test_large_requests_go_in_pieces() -> None:
    """Every partition is sent once, in order, in pieces that a controller takes."""
    wire = FakeWire()
    names = [TopicPartition("t", n) for n in range(2 * PARTITIONS_PER_REQUEST + 1)]
    assert alter(wire, dict.fromkeys(names, (1, 2))) == dict.fromkeys(names, OK)
    sent = [[p.partition_index for t in r.topics for p in t.partitions] for r in wire.sent]
    assert [len(s) for s in sent] == [PARTITIONS_PER_REQUEST, PARTITIONS_PER_REQUEST, 1]
    assert [n for piece in sent for n in piece] == list(range(len(names)))


def test_what_went_is_told_when_the_rest_did_not_go() -> None:
    """A controller that goes silent half way: accepted partitions keep their outcome, the rest has no answer."""
    wire = FakeWire(fail_from=1)
    names = [TopicPartition("t", n) for n in range(PARTITIONS_PER_REQUEST + 2)]
    outcomes = alter(wire, dict.fromkeys(names, (1, 2)))
    assert [outcomes[n] for n in names[:PARTITIONS_PER_REQUEST]] == [OK] * PARTITIONS_PER_REQUEST
    assert {outcomes[n].code for n in names[PARTITIONS_PER_REQUEST:]} == {"NO_ANSWER"}


def test_a_silent_controller_is_a_failure_when_nothing_went() -> None:
    """Then there is no partial outcome to keep."""
    with pytest.raises(Unavailable):
        alter(FakeWire(fail_from=0), {TopicPartition("t", 1): (1, 2)})


def test_a_request_survives_its_encoding() -> None:
    """A null target (cancel) and a list both reach the wire in version 1."""
    wire = FakeWire()
    alter(wire, {TopicPartition("t", 0): None, TopicPartition("t", 1): (2, 1)})
    raw = wire.sent[0].encode(version=1)
    back = AlterPartitionReassignmentsRequest.decode(raw, version=1)
    assert back.allow_replication_factor_change is False
    assert [(p.partition_index, p.replicas) for t in back.topics for p in t.partitions] == [(0, None), (1, [2, 1])]
