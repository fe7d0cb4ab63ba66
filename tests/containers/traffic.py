"""A producer with acks=all and a consumer that check a topic while its cluster is hurt; each on a thread of its own.

A client that makes no headway is replaced.  librdkafka can stay on a leader's old epoch for minutes after its restart: a new
consumer goes on at the same offset, a new producer with the next number, and the records that the old one still had are
counted as open, since it is not known what became of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import confluent_kafka as ck
from tests.containers.ledger import Ledger, judge
from tests.waiting import until

PAYLOAD: Final = b"." * 200
STUCK_S: Final = 12.0
"""A client that makes no headway for this long is replaced."""
SETTLED_WITHIN_S: Final = 120.0
NOT_KNOWN_YET: Final = frozenset(
    {
        ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
        ck.KafkaError.LEADER_NOT_AVAILABLE,
        ck.KafkaError.NOT_LEADER_FOR_PARTITION,
        ck.KafkaError._UNKNOWN_PARTITION,
        ck.KafkaError._UNKNOWN_TOPIC,
    }
)


@dataclass(slots=True)
class Traffic:
    """Numbered records into every partition of a topic, and their way back."""

    bootstrap_server: str
    topic: str
    partitions: int
    records_per_s: float = 60.0
    """Over all partitions together."""
    most_s: float = 900.0
    """Writing ends by itself after this long."""
    ledgers: dict[int, Ledger] = field(default_factory=dict)
    replaced: int = 0
    """Clients that hung and were replaced."""
    longest_silence_s: float = 0.0
    """The longest time in which nothing was acknowledged."""
    _failures: list[BaseException] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _acked_at_s: float = 0.0

    def __post_init__(self) -> None:
        """Begin after what is in the topic already."""
        consumer = ck.Consumer({"bootstrap.servers": self.bootstrap_server, "group.id": "unused", "log_level": 0})
        for p in range(self.partitions):
            _, end = until(partial(self._ends, consumer, p), f"{self.topic}-{p} is known")
            self.ledgers[p] = Ledger(first=end)
        consumer.close()

    def _ends(self, consumer: ck.Consumer, partition: int) -> tuple[int, int] | None:
        """Where the partition begins and ends; None while a broker has not heard of a topic that was just made."""
        try:
            low, high = consumer.get_watermark_offsets(ck.TopicPartition(self.topic, partition), timeout=60)
        except ck.KafkaException as failure:
            if failure.args[0].code() not in NOT_KNOWN_YET:
                raise
            return None
        return low, high

    @property
    def acked(self) -> int:
        """Records acknowledged so far."""
        return sum(len(ledger.acked) for ledger in self.ledgers.values())

    # Writing

    def _write(self) -> None:
        numbers = dict.fromkeys(self.ledgers, 0)
        ends_s = time.monotonic() + self.most_s
        self._acked_at_s = time.monotonic()
        producer = self._producer()
        while not self._stop.is_set() and time.monotonic() < ends_s:
            for partition in numbers:
                numbers[partition] = self._send(producer, partition, numbers[partition])
            producer.poll(0)
            self._stop.wait(self.partitions / self.records_per_s)
            silence_s = time.monotonic() - self._acked_at_s
            self.longest_silence_s = max(self.longest_silence_s, silence_s)
            if silence_s > STUCK_S:
                producer = self._successor(producer)
        if producer.flush(SETTLED_WITHIN_S / 2):
            producer.purge()
            producer.flush(5)

    def _send(self, producer: ck.Producer, partition: int, number: int) -> int:
        """Send the next record; the number after it, or the same one where the client takes nothing now."""
        ledger = self.ledgers[partition]

        def answered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is None:
                ledger.acknowledge(number, message.offset())
                self._acked_at_s = time.monotonic()

        try:
            producer.produce(self.topic, b"%d" % number + PAYLOAD, partition=partition, on_delivery=answered)
        except (BufferError, ck.KafkaException):
            return number
        ledger.open.add(number)
        return number + 1

    def _producer(self) -> ck.Producer:
        return ck.Producer(
            {
                "bootstrap.servers": self.bootstrap_server,
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": 120_000,
                "request.timeout.ms": 10_000,
                "queue.buffering.max.messages": 10_000,
                "log_level": 0,
            }
        )

    def _successor(self, producer: ck.Producer) -> ck.Producer:
        """A new producer.  The old one's records in flight may still arrive, so its open ones stay open."""
        producer.purge()
        producer.flush(5)
        self.replaced += 1
        self._acked_at_s = time.monotonic()
        return self._producer()

    # Reading

    def _read(self) -> None:
        consumer = self._consumer()
        moved_s = time.monotonic()
        while not self._done.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                self._see(message)
                moved_s = time.monotonic()
            elif message is not None and message.error().code() == ck.KafkaError._AUTO_OFFSET_RESET:
                raise AssertionError(f"the log ends before what was read of it: {message.error().str()}")
            elif all(ledger.is_read for ledger in self.ledgers.values()):
                moved_s = time.monotonic()
            elif time.monotonic() - moved_s > STUCK_S:
                consumer.close()
                consumer, moved_s = self._consumer(), time.monotonic()
                self.replaced += 1
        consumer.close()

    def _consumer(self) -> ck.Consumer:
        consumer = ck.Consumer(
            {
                "bootstrap.servers": self.bootstrap_server,
                "group.id": f"{self.topic}-reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )
        consumer.assign([ck.TopicPartition(self.topic, p, ledger.next_offset) for p, ledger in self.ledgers.items()])
        return consumer

    def _see(self, message: ck.Message) -> None:
        number = int((message.value() or b"").removesuffix(PAYLOAD))
        self.ledgers[message.partition() or 0].see(message.offset() or 0, number)

    # The life of both

    def _guarded(self, work: str) -> None:
        try:
            {"write": self._write, "read": self._read}[work]()
        except BaseException as failure:  # noqa: BLE001 — handed over to the test, which raises it
            self._failures.append(failure)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write and read while the block lasts; then judge what was read, and read it all once more from the beginning."""
        writer = threading.Thread(target=self._guarded, args=("write",), daemon=True)
        reader = threading.Thread(target=self._guarded, args=("read",), daemon=True)
        writer.start()
        reader.start()
        try:
            yield
            self._settle(writer)
        finally:
            self._stop.set()
            self._done.set()
            writer.join(SETTLED_WITHIN_S)
            reader.join(SETTLED_WITHIN_S)
        self._judge()
        self._read_again()
        self._judge()

    def _settle(self, writer: threading.Thread) -> None:
        self._stop.set()
        writer.join(SETTLED_WITHIN_S)
        deadline = time.monotonic() + SETTLED_WITHIN_S
        while not (self._failures or all(ledger.is_read for ledger in self.ledgers.values())):
            assert time.monotonic() < deadline, f"acknowledged records of {self.topic} cannot be read"
            time.sleep(0.1)

    def _judge(self) -> None:
        if self._failures:
            raise self._failures[0]
        assert self.acked, "nothing was ever acknowledged"
        judge(self.ledgers)

    def _read_again(self) -> None:
        """The leaders are others by now: what they hold must be what was read before."""
        ends = {p: ledger.next_offset for p, ledger in self.ledgers.items() if ledger.read}
        deadline = time.monotonic() + SETTLED_WITHIN_S
        consumer = self._consumer()
        consumer.assign([ck.TopicPartition(self.topic, p, self.ledgers[p].first) for p in ends])
        while ends:
            assert time.monotonic() < deadline, f"{self.topic} cannot be read from its beginning: {ends}"
            message = consumer.poll(0.5)
            if message is not None and message.error() and message.error().code() == ck.KafkaError._AUTO_OFFSET_RESET:
                raise AssertionError(f"the log no longer holds what was read of it: {message.error().str()}")
            if message is not None and not message.error():
                self._see(message)
                partition = message.partition()
                if partition is not None and (message.offset() or 0) + 1 >= ends.get(partition, 0):
                    ends.pop(partition, None)
        consumer.close()
