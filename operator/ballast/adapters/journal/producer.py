"""One transactional producer of the journal: what it writes, commits, aborts, and what it does not know the end of.

Who may write at all, and what the records mean, is ``journal_topic``'s affair.  A producer that was fenced, or that ended with
a fatal error, is ``dead``: it never writes again, and another one has to be made.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import confluent_kafka as ck

from ballast.adapters.journal.client_errors import FILE_HINT, translate, translate_errors
from ballast.adapters.kafka import librdkafka
from ballast.errors import BallastError, Unavailable
from ballast.ports.journal_codec import Entry

LOOK_AFTER_S: Final = 1.0
"""How long a commit is waited for before it is asked whether the topic is still there, again and again."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What one commit writes to the journal, and when it began."""

    began_s: float
    entries: tuple[Entry, ...]


Committed = Callable[[Transaction, Sequence[int]], None]
"""Told of a transaction that is in the journal, and of the offsets of its records."""


def transaction_timeout_ms(timeout_s: float) -> int:
    """``transaction.timeout.ms``; brokers refuse a producer that asks for more than 15 minutes (``transaction.max.timeout.ms``)."""
    return min(max(int(timeout_s * 1000), 10_000), 900_000)


def start_transactions(client: Mapping[str, Any], transactional_id: str, *, timeout_s: float) -> ck.Producer:
    """A new producer with this id; from here on the brokers refuse every commit of the one before it."""
    settings = librdkafka.with_logging(client) | {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": transaction_timeout_ms(timeout_s),
        "linger.ms": 0,
        "compression.type": "gzip",
        # A leader that freezes says nothing of its successor; the others do, when they are asked.
        "topic.metadata.refresh.interval.ms": 10_000,
    }
    with translate_errors("start transactions"):
        producer = ck.Producer(settings)
    try:
        producer.init_transactions(timeout_s)
    except ck.KafkaException as failure:
        error = failure.args[0]
        if error.retriable() or error.code() == ck.KafkaError._TIMED_OUT:  # noqa: SLF001
            raise Unavailable(
                f"The cluster cannot start transactions: {error.str()}.",
                hint="Its __transaction_state topic needs transaction.state.log.replication.factor brokers (3 by "
                f"default) and transaction.state.log.min.isr of them in sync. {FILE_HINT}",
            ) from failure
        raise translate(error, "start transactions") from failure
    return producer


class JournalProducer:
    """Writes transactions to the journal's topic, one after another."""

    def __init__(
        self,
        client: ck.Producer,
        topic: str,
        *,
        timeout_s: float,
        committed: Committed,
        check_not_lost: Callable[[], None],
    ) -> None:
        self.client = client
        self.dead = False
        """It ended with a fatal error."""
        self._topic = topic
        self._timeout_s = timeout_s
        self._committed = committed
        self._check_not_lost = check_not_lost
        """Asked while a commit does not end: to a topic that is gone none does, until all of its time is over."""
        self._unsettled: Transaction | None = None
        """The transaction whose commit timed out: whether it is in the journal is not known yet."""
        self._placed: list[int] = []
        """Offsets of what the open transaction has written to the journal."""
        self._abort_due = False
        """A transaction was begun and could not be aborted yet."""

    @property
    def has_open(self) -> bool:
        """Whether a transaction of its own has not ended: a reader would wait for it in vain."""
        return self._unsettled is not None or self._abort_due

    def settle(self) -> None:
        """Find out what became of a commit that timed out; librdkafka wants the same call again."""
        if self._abort_due:
            self._abort()
        if self._unsettled is not None:
            self._commit(self._unsettled)

    def write(self, transaction: Transaction, *also: tuple[str, str, bytes]) -> None:
        """Send and commit; ``also`` are records of other topics (topic, key, value) in the same transaction."""
        self._send(transaction, also)
        self._commit(transaction)

    def _send(self, transaction: Transaction, also: Sequence[tuple[str, str, bytes]]) -> None:
        doing = f"write to {self._topic}"
        self.client.poll(0)  # Its lines wait for this.
        try:
            self.client.begin_transaction()
        except ck.KafkaException as failure:
            raise self._translate(failure.args[0], doing) from failure
        try:
            for key, data in transaction.entries:
                librdkafka.produce(self.client, self._topic, key, data, placed=self._placed)
            for topic, key, value in also:
                librdkafka.produce(self.client, topic, key, value)
        except ck.KafkaException as failure:
            raise self._abort_and_explain(failure.args[0], doing) from failure

    def _commit(self, transaction: Transaction) -> None:
        """Commit; a commit whose outcome is unknown is remembered and settled before anything else is written."""
        self._unsettled = transaction
        try:
            self._wait_for_commit()
        except ck.KafkaException as failure:
            error, doing = failure.args[0], f"commit to {self._topic}"
            if error.retriable() and not error.fatal():
                raise translate(error, doing) from failure
            self._unsettled = None
            if error.txn_requires_abort():
                raise self._abort_and_explain(error, doing) from failure
            raise self._translate(error, doing) from failure
        self._unsettled = None
        placed, self._placed = self._placed, []
        self._committed(transaction, placed)

    def _wait_for_commit(self) -> None:
        """Commit within the time that there is; raises ``JournalLost`` as soon as it is certain that the topic is not there."""
        ends_s = time.monotonic() + self._timeout_s
        while True:
            left_s = max(ends_s - time.monotonic(), 0.0)
            try:
                self.client.commit_transaction(min(left_s, LOOK_AFTER_S))
            except ck.KafkaException as failure:
                error = failure.args[0]
                has_time = left_s > LOOK_AFTER_S and error.code() == ck.KafkaError._TIMED_OUT  # noqa: SLF001
                if not has_time or not error.retriable() or error.fatal():
                    raise
            else:
                return
            self._check_not_lost()

    def _abort_and_explain(self, error: ck.KafkaError, doing: str) -> BallastError:
        """Abort the transaction that failed like this; the error that says why.

        An abort may fail as well, and does where the broker refused the first record (it knows of no transaction then).
        That must not hide the reason; an abort that may still succeed is due before the next transaction.
        """
        reason = self._translate(error, doing)
        if not self.dead:
            with contextlib.suppress(BallastError):
                self._abort()
        return reason

    def _abort(self) -> None:
        self._abort_due = True
        try:
            self.client.abort_transaction(self._timeout_s)
        except ck.KafkaException as failure:
            raise self._translate(failure.args[0], "abort a journal transaction") from failure
        self._abort_due = False

    def _translate(self, error: ck.KafkaError, doing: str) -> BallastError:
        """The error as one of ours; after a fatal one this producer never writes again."""
        if error.fatal():
            self.dead = True
        return translate(error, doing)
