"""A real cluster under known producer rates: the sampler's rates are within a few percent of the truth."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.spark.series import sample_rows

from ballast.adapters.clock import SystemClock
from ballast.adapters.samples.sampler import take
from ballast.core.samples import MinuteSample
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

PERIOD_S = 4.0
"""A sample every four seconds: the same arithmetic as each minute, and a test that ends."""
SAMPLES = 8
RATES = {"busy": 400_000, "calm": 100_000}
"""Bytes of record values per second; batches of many records keep the log's own overhead near one percent."""
VALUE_BYTES = 1000
NEAR = 0.08
"""How near the truth is: a few percent."""


class Kept:
    """Keeps samples."""

    def __init__(self) -> None:
        self.samples: list[MinuteSample] = []

    def write(self, sample: MinuteSample) -> bool:
        """Keep it."""
        self.samples.append(sample)
        return True


@contextmanager
def producing(properties: dict[str, str], sent: dict[str, list[tuple[float, int]]]) -> Iterator[None]:
    """Write to each topic at its rate, and note when how much was acknowledged."""
    stop = threading.Event()
    producer = Producer({**properties, "linger.ms": 200, "acks": "all"})
    total = dict.fromkeys(RATES, 0)

    def note(topic: str, size: int) -> Any:
        def delivered(error: object, _: object) -> None:
            assert error is None, error
            total[topic] += size
            sent[topic].append((time.monotonic(), total[topic]))

        return delivered

    def work() -> None:
        begun, count = time.monotonic(), dict.fromkeys(RATES, 0)
        while not stop.is_set():
            for topic, rate in RATES.items():
                due = int((time.monotonic() - begun) * rate / VALUE_BYTES)
                while count[topic] < due:
                    producer.produce(topic, bytes(VALUE_BYTES), partition=0, on_delivery=note(topic, VALUE_BYTES))
                    count[topic] += 1
            producer.poll(0.01)
        producer.flush(10)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def test_rates_are_within_a_few_percent_of_what_producers_sent(own_cluster: Any) -> None:
    """Bytes and records per second of two topics, over half a minute of real load."""
    sandbox = own_cluster(brokers=2, racks=2)
    properties = {"bootstrap.servers": sandbox.bootstrap_server}
    kept, sent = Kept(), {topic: [(time.monotonic(), 0)] for topic in RATES}
    clock = SystemClock()
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        for topic, leader in zip(RATES, sandbox.broker_ids, strict=False):
            follower = next(b for b in sandbox.broker_ids if b != leader)
            opened.cluster.create_topic(topic, {0: (leader, follower)})
        spans: list[tuple[float, float]] = []
        with producing(properties, sent):
            deadline = time.monotonic() + 60
            while any(noted[-1][1] == 0 for noted in sent.values()):
                assert time.monotonic() < deadline, "the producers never got an answer"
                clock.sleep(0.1)
            for _ in range(SAMPLES):
                begun = time.monotonic()
                take(opened.cluster, opened.cluster.snapshot(), kept, clock, writer="test")
                spans.append((begun, time.monotonic()))
                clock.sleep(max(begun + PERIOD_S - time.monotonic(), 0))
    rows = sample_rows(kept.samples).to_pylist()
    (first_begun, first_taken), (last_begun, last_taken) = spans[0], spans[-1]
    for topic in RATES:
        rated = [r for r in rows if r["topic"] == topic and r["seconds"] is not None]
        assert len(rated) == SAMPLES - 1
        # Somewhere within its span each sample read the log: so many bytes came between the first and the last at least, and at most.
        least = at(sent[topic], last_begun) - at(sent[topic], first_taken)
        most = at(sent[topic], last_taken) - at(sent[topic], first_begun)
        measured = sum(r["bytes_in"] * r["seconds"] for r in rated)
        assert (1 - NEAR) * least <= measured <= (1 + NEAR) * most, topic
        records = sum(r["records_in"] * r["seconds"] for r in rated) * VALUE_BYTES
        assert (1 - NEAR) * least <= records <= (1 + NEAR) * most, topic
        seconds = sum(r["seconds"] for r in rated)
        assert last_begun - first_taken <= seconds <= last_taken - first_begun


def at(noted: list[tuple[float, int]], instant: float) -> int:
    """Bytes acknowledged up to an instant."""
    return max((total for when, total in noted if when <= instant), default=0)
