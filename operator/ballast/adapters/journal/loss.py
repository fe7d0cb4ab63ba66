"""Is the journal's topic still the one that this process has read and written?  And its deletion, when a person asks for it.

A topic that is deleted and recreated has another id (from Kafka 2.8 on).  One that lost its newest records, by the unclean
election of a replica without them, ends before what was seen of it.  Nothing here repairs anything.
"""

from __future__ import annotations

import time
from typing import Final

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, OffsetSpec

from ballast.adapters.kafka import librdkafka
from ballast.errors import AuthorizationFailed, Incomplete, JournalLost, Refused

LOOK_EVERY_S: Final = 2.0
"""How old the last look at the topic may be."""
BELIEVED_S: Final = 4.0
"""A loss is believed when it shows for this long: a broker that has just started may not have heard of the topic yet."""
ASK_S: Final = 3.0
"""Longest wait for one answer."""
LATE_S: Final = 1.0
"""How much later a busy process may look."""
NOTICED_WITHIN_S: Final = LOOK_EVERY_S + BELIEVED_S + ASK_S + LATE_S
"""How long a process that holds the lock may not have noticed a loss."""
NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of topics on brokers that have none."""
_ABSENT: Final = (ck.KafkaError.UNKNOWN_TOPIC_OR_PART, ck.KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001


class TopicMark:
    """What is remembered of a topic between two looks at it."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._seen = False
        """It was there at one look: only a topic that was seen can be lost."""
        self._id: str | None = None
        self.end = 0
        """The topic has held a record right before this offset."""
        self._looked_s = float("-inf")
        self._lost_since_s: float | None = None
        self._suspected = ""
        """How it was lost by the newest look that showed a loss."""
        self.how_lost = ""
        """How it was lost last; outlives ``forget``."""

    def forget(self) -> None:
        """Forget the topic that was known: the one found at the next look is taken for it."""
        self._seen, self._id, self.end, self._lost_since_s, self._looked_s = False, None, 0, None, float("-inf")

    def note_read(self, end: int) -> None:
        """Take note that every offset below this one has been read."""
        self._seen, self.end = True, max(self.end, end)

    def note_written(self, offset: int) -> None:
        """Take note that a record of ours was given this offset; raises ``JournalLost`` where another record had it before."""
        if offset < self.end:
            self.how_lost = "truncated"
            raise self._truncation(offset)
        self._seen, self.end = True, offset + 1

    def check_not_lost(self, admin: AdminClient, *, now: bool = False) -> None:
        """Compare, if the last look is old enough (or ``now``); raises ``JournalLost`` once it is certain.

        ``KafkaException`` when no broker answers: nothing is known then.
        """
        while now or time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            loss, end_known = self._compare(admin)
            self._looked_s = time.monotonic()
            if loss is None:
                # The topic stands, and its leader does not say where it ends: an end that was too low before is still suspected.
                if end_known or self._suspected != "truncated":
                    self._lost_since_s = None
                return
            self._suspected = loss.how
            if self._lost_since_s is None:
                self._lost_since_s = self._looked_s
            if self._looked_s - self._lost_since_s >= BELIEVED_S:
                self.how_lost = loss.how
                raise loss
            now = True
            time.sleep(0.5)

    def _compare(self, admin: AdminClient) -> tuple[JournalLost | None, bool]:
        """How the topic is lost, if it is, and whether its leader told where it ends."""
        if (loss := self._compare_id(admin)) is not None:
            return loss, False
        end = self._high_watermark(admin)
        return (self._truncation(end) if end is not None and end < self.end else None), end is not None

    def _compare_id(self, admin: AdminClient) -> JournalLost | None:
        found = self._find_id(admin)
        if found is None:
            lost = JournalLost(
                "deleted", f"{self._topic} was deleted.", hint="It held runs, pauses and throttle values."
            )
            return lost if self._seen else None
        self._seen = True
        if found != NO_ID:
            before, self._id = self._id, self._id or found
            if before is not None and found != before:
                return JournalLost(
                    "recreated",
                    f"{self._topic} was deleted and recreated: its topic id was {before} and is {found}.",
                    hint="What it holds now was not written by this process.",
                )
        return None

    def _truncation(self, end: int) -> JournalLost:
        return JournalLost(
            "truncated",
            f"{self._topic} lost its newest records: it ended at offset {self.end} and then at {end}.",
            hint="See whether there was an unclean leader election of it, or whether it was recreated.",
        )

    def _find_id(self, admin: AdminClient) -> str | None:
        """The topic's id as the controller's cluster knows it; None where there is no such topic."""
        asked = admin.describe_topics(ck.TopicCollection([self._topic]), request_timeout=ASK_S)[self._topic]
        try:
            # Any broker could tell, but the client asks the controller.
            return str(librdkafka.answer_of_controller(admin, asked, ASK_S).topic_id)
        except ck.KafkaException as failure:
            error = failure.args[0]
        if error.code() in _ABSENT:
            return None
        raise ck.KafkaException(error)

    def _high_watermark(self, admin: AdminClient) -> int | None:
        """Where the topic ends; None while its leader does not say."""
        place = ck.TopicPartition(self._topic, 0)
        asked = admin.list_offsets({place: OffsetSpec.latest()}, request_timeout=ASK_S)[place]
        try:
            return int(librdkafka.answer_of(asked).offset)
        except ck.KafkaException:
            return None


def delete_topic(admin: AdminClient, topic: str, *, timeout_s: float) -> None:
    """Delete a topic where there is one, and wait until it is gone; the client's errors are the caller's to translate."""
    try:
        asked = admin.delete_topics([topic], request_timeout=timeout_s)[topic]
        librdkafka.answer_of_controller(admin, asked, timeout_s)
    except ck.KafkaException as failure:
        code = failure.args[0].code()
        if code == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise AuthorizationFailed(
                f"Not authorized to delete {topic}.",
                hint="Grant Ballast's user Delete on the topics with the prefix __ballast_, or run this as another user.",
            ) from failure
        if code == ck.KafkaError.TOPIC_DELETION_DISABLED:
            raise Refused(
                f"{topic} cannot be deleted: the brokers have delete.topic.enable=false.",
                hint="Set it to true on the brokers, then try again.",
            ) from failure
        if code not in _ABSENT:
            raise
    deadline = time.monotonic() + timeout_s
    while topic in admin.list_topics(timeout=timeout_s).topics:
        if time.monotonic() > deadline:
            raise Incomplete(
                f"{topic} is still in the cluster after its deletion.",
                hint="Another process makes it again, or a broker that holds it is down; try again after that.",
            )
        time.sleep(0.25)
