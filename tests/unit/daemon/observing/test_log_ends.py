"""Log ends that a page asks for: read when they are shown, bounded, and never waited for long."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from tests.waiting import until

from ballast.core.cluster import Broker, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.log_ends import LogEnds
from ballast.daemon.observing.log_ends import AT_ONCE, KEPT, READ_AGAIN_S, SHOWN_S, LogEndReader
from ballast.daemon.web import details
from ballast.errors import Unavailable
from ballast.sim.clock import SimClock

NAME = TopicPartition("orders", 0)
REPLICAS = {1: [NAME], 2: [NAME]}


class Brokers:
    """Answers as the test says, when it says so."""

    def __init__(self, end: int = 7, failure: Exception | None = None) -> None:
        self.end, self.failure = end, failure
        self.asked: list[Mapping[int, Collection[TopicPartition]]] = []
        self.answer = threading.Event()
        self.answer.set()

    def log_ends(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """Every broker that is asked has the same end."""
        self.asked.append(replicas)
        assert self.answer.wait(30)
        if self.failure is not None:
            raise self.failure
        return {b: dict.fromkeys(names, self.end) for b, names in replicas.items()}


def reader(brokers: Brokers, clock: SimClock, wait_s: float = 30) -> LogEndReader:
    """On simulated time; only a wait is real."""
    cluster: Any = brokers
    return LogEndReader(cluster, clock, wait_s=wait_s)


def ends(offset: int) -> LogEnds:
    """What both brokers told."""
    return {1: {NAME: offset}, 2: {NAME: offset}}


def test_they_are_read_once_for_every_page_of_fifteen_seconds() -> None:
    """Then what is known is shown while they are read again, and after a minute it is shown no more."""
    brokers, clock = Brokers(), SimClock()
    read = reader(brokers, clock)
    assert read.of("orders", REPLICAS) == ends(7)
    clock.sleep(READ_AGAIN_S - 1)
    assert read.of("orders", REPLICAS) == ends(7)
    assert len(brokers.asked) == 1
    brokers.answer.clear()
    brokers.end = 9
    clock.sleep(2)
    assert read.of("orders", REPLICAS) == ends(7)
    brokers.answer.set()
    until(lambda: read.of("orders", REPLICAS) == ends(9), within_s=30)
    assert len(brokers.asked) == 2
    brokers.end = 11
    clock.sleep(SHOWN_S)
    assert read.of("orders", REPLICAS) == ends(11)


def test_a_broker_that_does_not_answer_holds_no_page() -> None:
    """Nothing is known then, no second reading of the same topic begins, and what comes late is shown."""
    brokers = Brokers()
    brokers.answer.clear()
    read = reader(brokers, SimClock(), wait_s=0.01)
    assert read.of("orders", REPLICAS) == {}
    assert read.of("orders", REPLICAS) == {}
    assert len(brokers.asked) == 1
    brokers.answer.set()
    until(lambda: read.of("orders", REPLICAS) == ends(7), within_s=30)


def test_however_many_topics_are_looked_at_readings_and_memory_are_bounded() -> None:
    """A few readings at once; of those that were made, the newest are kept."""
    brokers, clock = Brokers(), SimClock()
    brokers.answer.clear()
    slow = reader(brokers, clock, wait_s=0.01)
    for n in range(AT_ONCE + 3):
        assert slow.of(f"t{n}", REPLICAS) == {}
    until(lambda: len(brokers.asked) == AT_ONCE, within_s=30)
    brokers.answer.set()
    quick, brokers.asked = reader(brokers, clock), []
    for n in [*range(KEPT + 1), KEPT]:
        assert quick.of(f"t{n}", REPLICAS) == ends(7)
    assert len(brokers.asked) == KEPT + 1
    assert quick.of("t0", REPLICAS) == ends(7)
    assert len(brokers.asked) == KEPT + 2


def test_a_cluster_that_cannot_be_asked_tells_nothing_and_a_bug_is_told() -> None:
    """The page has its own sentence for an outage; a bug is not taken for one."""
    clock = SimClock()
    away = Brokers(failure=Unavailable("No broker answers."))
    assert reader(away, clock).of("orders", REPLICAS) == {}
    with pytest.raises(ZeroDivisionError):
        reader(Brokers(failure=ZeroDivisionError()), clock).of("orders", REPLICAS)


def test_a_topic_asks_the_brokers_that_answer_for_at_most_its_listed_partitions() -> None:
    """Lag is that of the slowest replica, and unknown where a broker of one has not told; no other broker is asked."""
    count = details.ROWS + 5
    brokers = (Broker(1), Broker(2), Broker(3, reachable=False), Broker(4, alive=False))
    rows = [
        PartitionRow("orders", p, 1, (1, 2, 3) if p == 1 else (1, 4) if p == 2 else (1, 2), (1, 2))
        for p in range(count)
    ]
    state = build("c", brokers, (Topic("orders"),), rows)
    asked: dict[int, Collection[TopicPartition]] = {}

    def told(topic: str, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        assert topic == "orders"
        asked.update(replicas)
        return {b: {n: 10 - (b == 2) * n.partition for n in names if n.partition != 3} for b, names in replicas.items()}

    found = details.topic(state, "orders", told)
    assert found is not None
    assert {b: len(names) for b, names in asked.items()} == {1: details.ROWS, 2: details.ROWS - 1}
    assert [p.lag for p in found.partitions[:6]] == [0, None, None, None, 4, 5]
