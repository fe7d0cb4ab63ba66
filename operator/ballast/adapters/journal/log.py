"""Reading a one-partition compacted topic to its end, committed records only, and making sure that it exists.

Nothing here writes records or knows what they mean; ``journal.topic`` does both.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType

from ballast.adapters.journal.client_errors import (
    AUTHENTICATION_FAILED,
    FILE_HINT,
    HANGING_HINT,
    MISSING,
    PASSING,
    READER_GROUP,
    REPLICAS_DOWN_HINT,
    STUCK,
    UNREACHABLE,
    translate,
)
from ballast.adapters.journal.loss import TopicMark, delete_topic
from ballast.adapters.kafka import librdkafka
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.errors import Refused, Unavailable
from ballast.ports.journal import UnusableJournal
from ballast.ports.journal_codec import Entry

log: Final = logging.getLogger(__name__)

T = TypeVar("T")
REPLICAS: Final = 3
CONTROLLER_HEARD_MS: Final = 1_000
"""How often our admin client asks who the controller is, as far as it asks at all: once in ten seconds at most."""
SETTLING_S: Final = 2.0
"""How long a reader who is not the writer waits for a commit to become readable."""
RENEW_S: Final = 3.0
"""A client that gets nowhere for this long is replaced, and again after as long."""
FIRST_TRY_S: Final = 3.0
"""How long the first of several tries at a question may take; each next one may take twice as long."""

_LEAST_TRY_S: Final = 0.1


class TopicLog:
    """One compacted topic with a single partition, read from the beginning and then followed."""

    def __init__(
        self, client: Mapping[str, Any], topic: str, *, timeout_s: float, identity: ClusterIdentity | None = None
    ) -> None:
        self.topic = topic
        self._identity = identity
        self._timeout_s = timeout_s
        self._client = dict(client)
        self._place = ck.TopicPartition(topic, 0)
        self._consumer: ck.Consumer | None = None
        self._admin_client: AdminClient | None = None
        self._turned_away: ck.KafkaError | None = None
        """What brokers said last of our login or certificate, since the question that is being asked."""
        self._mark = TopicMark(topic)
        self._known = False
        """It is certain that the topic exists, whatever a broker that has not heard of it yet may say."""
        self._at = 0
        """Every record below this offset was read; where the next consumer begins."""
        self.newest_ms: int | None = None
        """When the newest record that was read was written, by the clock that stamped it."""
        self._handed_to = 0
        """Every record below this offset was handed over."""
        self._ahead: ck.Message | None = None
        """A record beyond the end that was asked for; the consumer will not give it again."""
        self._open_at: int | None = None
        """Where the transaction began of which it was said last that it had not ended."""
        self._renewed_s = float("-inf")
        """When clients were last replaced, on the monotonic clock."""

    def new_entries(self, *, whole: bool) -> Sequence[Entry]:
        """What was committed since the last call, oldest first; nothing where the topic does not exist.

        Transactions come whole or not at all.  What is handed over ends at a *last stable offset*: every transaction with a
        record below it has ended, and since a topic has one transactional id, whose transactions follow each other, all records
        of each lie on the same side of it.  A record beyond that end, of a transaction committed in the meantime,
        is kept for the next call.  When reading fails on the way, nothing is handed over and the next call reads it again.

        A commit is acknowledged a moment before its records become readable.  ``whole`` waits for that moment and is for
        the writer, behind whose back no transaction can be open; a reader waits a little and takes what is there,
        since the transaction that is in the way may belong to a writer that died.
        """
        if not self._known and not self.exists():
            return ()
        self.check_not_lost()
        with self._translate_errors(f"read {self.topic}"):
            try:
                taken = self._read_up_to(self._readable_end(whole=whole))
            except BaseException:
                self._drop_clients()
                self._at = self._handed_to
                raise
            self._handed_to = self._at
            self._mark.note_read(self._at)
            return taken

    def check_not_lost(self, *, now: bool = False) -> None:
        """Raise ``JournalLost`` where the topic is no longer the one that was read and written; at once, or now and then.

        Where no broker answers nothing is known: what is asked next tells that.
        """
        with contextlib.suppress(ck.KafkaException):
            self._mark.check_not_lost(self._admin(), now=now)

    @property
    def was_cut_off(self) -> bool:
        """When it was lost last, what is left of it was this journal's: its newest records were gone, not the topic."""
        return self._mark.how_lost == "truncated"

    def note_written(self, offset: int) -> None:
        """Take note of where a record of ours stands; raises ``JournalLost`` where another record stood there before."""
        self._mark.note_written(offset)

    def forget(self) -> None:
        """Read what stands there now from its beginning, whatever it is."""
        self.close()
        self._mark.forget()
        self._known = False

    def _read_up_to(self, end: int) -> list[Entry]:
        taken: list[Entry] = []
        moved_s = time.monotonic()
        # The first look does not wait: it lets the client say what it has to say even where there is nothing to read.
        wait_s = 0.0
        while True:
            before = self._at
            self._step(end, wait_s, taken)
            if self._at >= end:
                return taken
            now = time.monotonic()
            if self._at != before:
                moved_s = now
            elif now - moved_s > self._timeout_s:
                raise Unavailable(f"The end of {self.topic} was not reached in time.", hint=FILE_HINT)
            elif now - moved_s > RENEW_S:
                self._begin_again()
            wait_s = 0.2

    def _step(self, end: int, wait_s: float, taken: list[Entry]) -> None:
        """Take the next record if there is one below the end.

        Commit markers take offsets and are never handed out, so the last record may stop short of the end; that there is
        nothing more is known from the end of the partition, or from a record beyond the end.
        """
        message = self._ahead if self._ahead is not None else self._open().poll(wait_s)
        if message is None:
            return
        failure = message.error()
        if failure is not None:
            if failure.code() == ck.KafkaError._PARTITION_EOF:  # noqa: SLF001
                self._at = max(self._at, message.offset())
            elif failure.code() not in PASSING:
                raise ck.KafkaException(failure)
        elif message.offset() >= end:
            self._ahead, self._at = message, max(self._at, end)
        else:
            value: bytes | None = message.value()
            taken.append(((message.key() or b"").decode(), value))
            kind, stamp_ms = message.timestamp()
            self.newest_ms = None if kind == ck.TIMESTAMP_NOT_AVAILABLE else stamp_ms
            self._ahead, self._at = None, message.offset() + 1

    def _readable_end(self, *, whole: bool) -> int:
        """The last stable offset, once it has reached what was written when we were called.

        A leader that was frozen or cut off tells an end from before others led; that is waited for, with new clients, as well.
        """
        high_watermark = self._ask_again(self._high_watermark)
        deadline = time.monotonic() + (self._timeout_s if whole else SETTLING_S)
        while True:
            stable = self._ask_again(self._last_stable)
            if stable >= max(high_watermark, self._mark.end):
                return stable
            is_old = high_watermark < self._mark.end
            if time.monotonic() > deadline:
                if whole and is_old:
                    raise Unavailable(f"The leader of {self.topic} lacks its newest records.", hint=FILE_HINT)
                if whole:
                    raise Unavailable(f"A transaction in {self.topic} does not end.", hint=HANGING_HINT)
                if not is_old:
                    self._tell_open(stable)
                return stable
            if stable < self._mark.end:
                self.check_not_lost()
                self._begin_again()
            if is_old:
                high_watermark = self._ask_again(self._high_watermark)
            time.sleep(0.01)

    def _tell_open(self, stable: int) -> None:
        """Say once of each transaction that stays open that a reader does not know what stands behind it."""
        if self._open_at != stable:
            self._open_at = stable
            log.warning(
                "A transaction in %s has not ended; what was written after it is not known here yet. If it stays so: %s",
                self.topic,
                HANGING_HINT,
            )

    def _high_watermark(self, try_s: float) -> int:
        asked = self._admin().list_offsets(
            {self._place: OffsetSpec.latest()},
            isolation_level=ck.IsolationLevel.READ_UNCOMMITTED,
            request_timeout=try_s,
        )
        return int(librdkafka.answer_of(asked[self._place]).offset)

    def _last_stable(self, try_s: float) -> int:
        _, end = self._open().get_watermark_offsets(self._place, timeout=try_s, cached=False)
        return int(end)

    def _begin_again(self) -> None:
        """Make new clients, the consumer where the old one stood: after elections old ones may stick to what they know.

        Seen with librdkafka 2.16 on 4.3.1: minutes of "leader epoch is older" and "no leaders found" while other clients of
        the same cluster were served; reading metadata again did not help.
        """
        now = time.monotonic()
        if now - self._renewed_s >= RENEW_S:
            self._drop_clients()
            self._renewed_s = now

    def _drop_clients(self) -> None:
        # A record that was kept lies above the place where the next consumer begins, which will give it again.
        consumer, self._consumer, self._admin_client, self._ahead = self._consumer, None, None, None
        if consumer is not None:
            consumer.close()

    def _ask_again(self, ask: Callable[[float], T]) -> T:
        """Ask again while brokers have not yet heard of a topic that we know exists, or are electing its leader.

        ``ask`` is told how long it may take.  A question to a leader that has just left waits for all the time it is given,
        though another has led for long (seen with librdkafka 2.16 on 4.3.1): the first try gets little, the next, from new
        clients, twice as much, so that slow brokers are waited for as well.
        """
        deadline = time.monotonic() + self._timeout_s
        try_s = FIRST_TRY_S
        while True:
            left_s = deadline - time.monotonic()
            try:
                return ask(min(try_s, max(left_s, _LEAST_TRY_S)))
            except ck.KafkaException as failure:
                code = failure.args[0].code()
                late = code == ck.KafkaError._TIMED_OUT and not self._is_turned_away()  # noqa: SLF001
                if not (late or code in PASSING) or time.monotonic() > deadline:
                    # It may have been deleted before anything was read of it.
                    self._known = self._known and (code not in MISSING or self._handed_to > 0)
                    raise
                if late or code in STUCK:
                    self._begin_again()
                if code in MISSING:
                    self.check_not_lost()
                try_s = try_s * 2 if late else try_s
            time.sleep(0.25)

    def _is_turned_away(self) -> bool:
        """Whether brokers have refused our login meanwhile: it comes as an event, and events come with polls."""
        if self._admin_client is not None:
            self._admin_client.poll(0)
        return self._turned_away is not None

    def _describe(self) -> Any:
        """What a broker knows of the cluster; another one is asked where the first is frozen."""
        return self._ask_again(lambda try_s: self._admin().list_topics(timeout=try_s))

    def exists(self) -> bool:
        """Whether the topic is there; refuses one that cannot be what we made."""
        with self._translate_errors("describe its topics"):
            cluster = self._describe()
        if self._identity is not None:
            self._identity.confirm(cluster.cluster_id, "The journal's broker")
        found = cluster.topics.get(self.topic)
        if found is None or found.error is not None:
            return False
        self._require_one(found.partitions)
        self._known = True
        return True

    def is_gone_beside(self, companion: str) -> bool:
        """Whether this topic is missing where the one that is made right after it is there; one broker's answer for both."""
        with self._translate_errors("describe its topics"):
            cluster = self._describe()
        if self._identity is not None:
            self._identity.confirm(cluster.cluster_id, "The journal's broker")
        there = {name for name, topic in cluster.topics.items() if topic.error is None}
        return self.topic not in there and companion in there

    def is_unwritten(self) -> bool:
        """Whether the topic is there and nothing was ever written into it."""
        if not self.exists():
            return False
        with self._translate_errors(f"read {self.topic}"):
            return self._ask_again(self._high_watermark) == 0

    def _require_one(self, partitions: Collection[int]) -> None:
        if len(partitions) != 1:
            raise UnusableJournal(
                f"{self.topic} has {len(partitions)} partitions and must have one.",
                hint="It was not made by Ballast; move it out of the way.",
            )

    def ensure(self, configs: Mapping[str, str]) -> bool:
        """Create the topic where it is missing; refuse one that forgets by age alone.  Whether it was created here and now."""
        made = not self.exists() and self._create(configs)
        resource = ConfigResource(ResourceType.TOPIC, self.topic)

        def describe(try_s: float) -> dict[str, ConfigEntry]:
            nonlocal made
            admin = self._admin()
            asked = admin.describe_configs([resource], request_timeout=try_s)[resource]
            try:
                # Any broker could tell, but the client asks the controller.
                entries: dict[str, ConfigEntry] = librdkafka.answer_of_controller(admin, asked, try_s)
            except ck.KafkaException as failure:
                # A deletion may have been under way: the topic was still in the way of a new one, and then gone.
                if failure.args[0].code() in MISSING and not self.exists():
                    made = self._create(configs) or made
                raise
            return entries

        with self._translate_errors(f"describe {self.topic}"):
            described = self._ask_again(describe)
        policy = described["cleanup.policy"].value
        if "compact" not in policy.split(","):
            raise UnusableJournal(
                f"{self.topic} has cleanup.policy={policy}, so that the journal would be forgotten.",
                hint=f"Set cleanup.policy={configs['cleanup.policy']} on it.",
            )
        minimum = described.get("min.insync.replicas")
        self._await_writable(1 if minimum is None else int(minimum.value))
        return made

    def rebuild(self, configs: Mapping[str, str]) -> None:
        """``ensure`` after a loss: a topic in the way that no journal can be, made by a broker for some client, is deleted.

        Brokers with ``auto.create.topics.enable`` make a topic for any client that asks for it, with as many partitions and with
        the retention that they give to any.  Every journal of Ballast's is compacted, so such a one holds no journal's records.
        """
        self.forget()
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self.ensure(configs)
            except Refused:
                if time.monotonic() > deadline:
                    raise
                # Where it cannot be deleted, ``ensure`` says at the deadline what is wrong with it.
                with contextlib.suppress(ck.KafkaException):
                    admin = self._admin()
                    asked = admin.delete_topics([self.topic], request_timeout=self._timeout_s)[self.topic]
                    librdkafka.answer_of_controller(admin, asked, self._timeout_s)
            except Unavailable:
                # Its deletion may still be on its way.
                if time.monotonic() > deadline:
                    raise
            else:
                return
            self.forget()
            time.sleep(0.5)

    def delete(self) -> None:
        """Delete the topic where it is there, and wait until the cluster no longer shows it."""
        self.forget()
        # It asks which cluster this is. A broker that has not heard of a new topic yet does not keep it from being deleted.
        self.exists()
        with self._translate_errors(f"delete {self.topic}"):
            delete_topic(self._admin(), self.topic, timeout_s=self._timeout_s)

    def _await_writable(self, min_isr: int) -> None:
        """Wait a bounded time for a leader and enough replicas in sync; without them a commit would hang, and not say why."""
        deadline = time.monotonic() + self._timeout_s
        while (lack := self._lack(min_isr)) is not None:
            if time.monotonic() > deadline:
                raise Unavailable(f"{self.topic} cannot be written: {lack}.", hint=REPLICAS_DOWN_HINT)
            time.sleep(0.25)

    def _lack(self, min_isr: int) -> str | None:
        """What the topic lacks to be written to, as the last broker asked sees it."""
        with self._translate_errors(f"describe {self.topic}"):
            cluster = self._describe()
        partitions = cluster.topics[self.topic].partitions if self.topic in cluster.topics else {}
        if 0 not in partitions:
            return "the broker asked does not know it yet"
        # A topic made a moment ago may be known to another broker first: then it was not there when its existence was asked for.
        self._require_one(partitions)
        partition = partitions[0]
        dead = [b for b in partition.replicas if b not in cluster.brokers]
        missing = f"; brokers {dead} are not alive" if dead else ""
        if partition.leader not in cluster.brokers:
            return f"it has no leader among its replicas {partition.replicas}{missing}"
        if len(partition.isrs) < min_isr:
            return f"of its replicas {partition.replicas} only {partition.isrs} are in sync, and {min_isr} must be{missing}"
        return None

    def close(self) -> None:
        """Close the connections."""
        self._drop_clients()
        self._at, self._handed_to = 0, 0

    def _create(self, configs: Mapping[str, str]) -> bool:
        made = True
        with self._translate_errors(f"create {self.topic}"):
            brokers = len(self._describe().brokers)
            admin = self._admin()
            replicas = max(min(REPLICAS, brokers), 1)
            settings = {**configs, "min.insync.replicas": str(max(replicas - 1, 1))}
            topic = NewTopic(self.topic, num_partitions=1, replication_factor=replicas, config=settings)
            asked = admin.create_topics([topic], request_timeout=self._timeout_s)[self.topic]
            try:
                librdkafka.answer_of_controller(admin, asked, self._timeout_s)
            except ck.KafkaException as failure:
                if failure.args[0].code() != ck.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                made = False
        self._known = True
        return made

    @contextlib.contextmanager
    def _translate_errors(self, doing: str) -> Iterator[None]:
        """``translate_errors``, and a silence behind which there is a refused login is told as that."""
        self._turned_away = None
        try:
            yield
        except ck.KafkaException as failure:
            error = failure.args[0]
            if error.code() in UNREACHABLE and self._is_turned_away():
                error = self._turned_away or error
            raise translate(error, doing) from failure

    def _hear(self, error: ck.KafkaError) -> None:
        if error.code() in AUTHENTICATION_FAILED:
            self._turned_away = error

    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            self._admin_client = AdminClient(
                librdkafka.without_logging(self._client)
                | {
                    "error_cb": self._hear,
                    # Its requests go to the controller that it heard of last. While that one is down the client connects to
                    # it over and over, on one core, and answers nothing until it hears of another.
                    "topic.metadata.refresh.interval.ms": CONTROLLER_HEARD_MS,
                }
            )
        self._admin_client.poll(0)  # Error events that are not taken would pile up in it.
        return self._admin_client

    def _open(self) -> ck.Consumer:
        if self._consumer is None:
            self._consumer = ck.Consumer(
                librdkafka.with_logging(self._client)
                | {
                    "group.id": READER_GROUP,
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                    "allow.auto.create.topics": False,
                    "fetch.wait.max.ms": 100,
                }
            )
            self._consumer.assign([ck.TopicPartition(self.topic, 0, self._at or ck.OFFSET_BEGINNING)])
        return self._consumer
