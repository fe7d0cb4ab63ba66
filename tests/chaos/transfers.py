"""Transactions over several partitions while their cluster is hurt, and the judgement on what a ``read_committed`` reader finds.

Each transaction writes its number under one key of every partition.  Whatever happens: a committed one is in every partition,
once, in order; an aborted one in none; of one whose end the producer was not told, all or nothing.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

import confluent_kafka as ck

PAUSE_S: Final = 0.25
"""Between two transactions."""
CALL_S: Final = 15.0
STUCK_S: Final = 60.0
"""A transaction that does not end within this is left, and a new producer fences the old one."""
ABORTED_ON_PURPOSE: Final = 0.1
READ_WITHIN_S: Final = 180.0
SHOWN: Final = 5


@dataclass(slots=True)
class Outcomes:
    """What the writer was told of each transaction."""

    committed: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)

    def faults(self, read: Mapping[int, Sequence[int]]) -> list[str]:
        """What contradicts that in the numbers read of each partition, in the order in which they stand there."""
        out = []
        for partition, numbers in read.items():
            found = set(numbers)
            out += [f"partition {partition}: {b} stands after {a}" for a, b in itertools.pairwise(numbers) if b <= a]
            out += [f"partition {partition}: committed {n} is missing" for n in sorted(self.committed - found)]
            out += [f"partition {partition}: aborted {n} can be read" for n in sorted(self.aborted & found)]
            strange = found - self.committed - self.aborted - self.unknown
            out += [f"partition {partition}: {n} was never written" for n in sorted(strange)]
        for number in sorted(self.unknown):
            places = [p for p, numbers in read.items() if number in numbers]
            if places and len(places) < len(read):
                out.append(f"{number} is in partitions {places} alone")
        return out


@dataclass(slots=True)
class Transfers:
    """The writer, on a thread of its own."""

    bootstrap_server: str
    topic: str
    partitions: int
    seed: int = 0
    outcomes: Outcomes = field(default_factory=Outcomes)
    replaced: int = 0
    """Producers that failed for good or hung."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _failures: list[BaseException] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write while the block lasts; then read and judge."""
        writer = threading.Thread(target=self._guarded, name="transfers", daemon=True)
        writer.start()
        try:
            yield
        finally:
            self._stop.set()
            writer.join(READ_WITHIN_S)
        assert not writer.is_alive(), "the transactional producer did not come to an end"
        if self._failures:
            raise self._failures[0]
        assert self.outcomes.committed, "nothing was ever committed"
        faults = self.outcomes.faults(self.read())
        assert not faults, f"{len(faults)} faults of transactions: " + "; ".join(faults[:SHOWN])

    def _guarded(self) -> None:
        try:
            self._write()
        except BaseException as failure:  # noqa: BLE001 — handed over to the thread that waits for the end
            self._failures.append(failure)

    def _write(self) -> None:
        rng = Random(self.seed)
        producer: ck.Producer | None = None
        number = 0
        while not self._stop.wait(PAUSE_S):
            if producer is None:
                producer = self._producer()
                continue
            if not self._transact(producer, number, on_purpose=rng.random() < ABORTED_ON_PURPOSE):
                producer = None
            number += 1
        # The next producer ends what is open: no consumer has to wait for the transaction's time-out.
        deadline = time.monotonic() + READ_WITHIN_S / 2
        while producer is None and time.monotonic() < deadline:
            producer = self._producer()

    def _producer(self) -> ck.Producer | None:
        """A new producer of the same transactional id; None while the cluster has none for us."""
        producer = ck.Producer(
            {"bootstrap.servers": self.bootstrap_server, "transactional.id": self.topic, "transaction.timeout.ms": 20_000,
             "request.timeout.ms": 10_000, "message.timeout.ms": 20_000, "linger.ms": 5, "log_level": 0}
        )  # fmt: skip
        self.replaced += 1
        try:
            producer.init_transactions(CALL_S)
        except ck.KafkaException:
            return None
        return producer

    def _transact(self, producer: ck.Producer, number: int, *, on_purpose: bool) -> bool:
        """Execute one; whether the producer can go on."""
        failed: list[ck.KafkaError] = []
        try:
            producer.begin_transaction()
        except ck.KafkaException:
            return False
        self.outcomes.unknown.add(number)
        try:
            for partition in range(self.partitions):
                producer.produce(
                    self.topic, b"%d" % number, key=b"%d" % partition, partition=partition,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )  # fmt: skip
        except (BufferError, ck.KafkaException):
            on_purpose = True
        if on_purpose:
            return self._abort(producer, number)
        return self._commit(producer, number)

    def _commit(self, producer: ck.Producer, number: int) -> bool:
        deadline = time.monotonic() + STUCK_S
        while time.monotonic() < deadline:
            try:
                producer.commit_transaction(CALL_S)
            except ck.KafkaException as failure:
                error = failure.args[0]
                if error.txn_requires_abort():
                    return self._abort(producer, number)
                if error.fatal() or not error.retriable():
                    return False
            else:
                self._settle(number, self.outcomes.committed)
                return True
        return False

    def _abort(self, producer: ck.Producer, number: int) -> bool:
        deadline = time.monotonic() + STUCK_S
        while time.monotonic() < deadline:
            try:
                producer.abort_transaction(CALL_S)
            except ck.KafkaException as failure:
                error = failure.args[0]
                if error.fatal() or not error.retriable():
                    return False
            else:
                self._settle(number, self.outcomes.aborted)
                return True
        return False

    def _settle(self, number: int, known: set[int]) -> None:
        self.outcomes.unknown.discard(number)
        known.add(number)

    def read(self) -> dict[int, list[int]]:
        """The numbers of each partition as a ``read_committed`` reader gets them, from the first record to the last."""
        consumer = ck.Consumer(
            {"bootstrap.servers": self.bootstrap_server, "group.id": f"{self.topic}-reader", "isolation.level": "read_committed",
             "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error", "log_level": 0}
        )  # fmt: skip
        found: dict[int, list[int]] = {p: [] for p in range(self.partitions)}
        ends: dict[int, int] = {}
        deadline = time.monotonic() + READ_WITHIN_S
        try:
            consumer.assign([ck.TopicPartition(self.topic, p, 0) for p in found])
            while len(ends) < self.partitions:
                assert time.monotonic() < deadline, f"{self.topic} can be read to its end in {sorted(ends)} alone"
                message = consumer.poll(0.5)
                if message is None:
                    continue
                partition, error = message.partition() or 0, message.error()
                if error is None:
                    found[partition].append(int(message.value() or b"-1"))
                elif error.code() == ck.KafkaError._PARTITION_EOF and self._is_end(consumer, message):
                    ends[partition] = message.offset() or 0
                elif error.code() == ck.KafkaError._AUTO_OFFSET_RESET:
                    raise AssertionError(
                        f"partition {partition}: the log no longer holds its first records: {error.str()}"
                    )
        finally:
            consumer.close()
        return found

    def _is_end(self, consumer: ck.Consumer, message: ck.Message) -> bool:
        """Whether this is the end of the log, and not of what is committed while a transaction is open."""
        with suppress(ck.KafkaException):
            place = ck.TopicPartition(self.topic, message.partition() or 0)
            _, high = consumer.get_watermark_offsets(place, timeout=CALL_S)
            return bool((message.offset() or 0) >= high)
        return False
