"""A light stream of numbered records, acknowledged by every replica in sync, and the proof that none of them was lost."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

PAUSE_S = 0.02
"""Between two records: about fifty a second."""
POLL_S = 0.5


@dataclass
class AckedLoad:
    """Writes while the block lasts; afterwards ``missing`` reads everything back."""

    bootstrap_server: str
    topic: str
    acknowledged: set[int] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._write, name="load", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Write no more, and wait until everything written was acknowledged or given up."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(150)
            assert not self._thread.is_alive(), "the producer did not come to an end"

    def missing(self) -> set[int]:
        """Acknowledged records that are nowhere in the topic now, read from its first record to its last."""
        assert self._stop.is_set(), "read after the end"
        found: set[int] = set()
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_server, "group.id": "acked-load", "enable.auto.commit": False,
             "enable.partition.eof": True, "auto.offset.reset": "error"}
        )  # fmt: skip
        try:
            partitions = list(consumer.list_topics(self.topic, timeout=30).topics[self.topic].partitions)
            consumer.assign([TopicPartition(self.topic, p, 0) for p in partitions])
            open_ends, deadline = set(partitions), time.monotonic() + 120
            while open_ends:
                assert time.monotonic() < deadline, f"partitions {sorted(open_ends)} could not be read to their ends"
                message = consumer.poll(POLL_S)
                if message is not None:
                    self._take(message, found, open_ends)
        finally:
            consumer.close()
        return self.acknowledged - found

    @staticmethod
    def _take(message: Message, found: set[int], open_ends: set[int]) -> None:
        error = message.error()
        if error is None:
            key = message.key()
            if key is not None:
                found.add(int(key))
        elif error.code() == KafkaError._PARTITION_EOF:
            open_ends.discard(message.partition() or 0)

    def _write(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap_server, "acks": "all", "enable.idempotence": True, "linger.ms": 20,
             "delivery.timeout.ms": 120_000, "topic.metadata.refresh.interval.ms": 2_000}
        )  # fmt: skip
        number = 0
        while not self._stop.wait(PAUSE_S):
            producer.produce(self.topic, b"n" * 500, key=str(number), on_delivery=self._delivered)
            producer.poll(0)
            number += 1
        producer.flush(130)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self.acknowledged.add(int(message.key() or -1))
