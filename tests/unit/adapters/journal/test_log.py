"""Reading the journal topic, against a consumer of our own making: whole transactions, each record once, new clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import confluent_kafka as ck
import pytest

from ballast.adapters.journal import log as journal_log
from ballast.adapters.journal.client_errors import translate
from ballast.adapters.journal.log import TopicLog
from ballast.errors import AuthenticationFailed, AuthorizationFailed, Unavailable

EOF = ck.KafkaError(ck.KafkaError._PARTITION_EOF)


class Message:
    """What a consumer hands out; falsy, as real messages with an empty value are."""

    def __init__(self, offset: int, key: str = "", error: ck.KafkaError | None = None) -> None:
        self._offset, self._key, self._error = offset, key, error

    def __bool__(self) -> bool:
        return False

    def offset(self) -> int:
        """Its place in the log."""
        return self._offset

    def key(self) -> bytes:
        """The record's key."""
        return self._key.encode()

    def value(self) -> None:
        """A tombstone."""

    def timestamp(self) -> tuple[int, int]:
        """None, as in the oldest format of messages."""
        return ck.TIMESTAMP_NOT_AVAILABLE, -1

    def error(self) -> ck.KafkaError | None:
        """An event instead of a record."""
        return self._error


class Topic:
    """A log with commit markers, its last stable offset, what befalls its readers, and which consumers were made for it."""

    def __init__(self) -> None:
        self.log: list[str | None] = []
        """Keys; None is a commit marker."""
        self.stable = 0
        self.told_end: int | None = None
        """What its leader tells as the last stable offset, where that is not what can be read."""
        self.meanwhile: list[tuple[str, ...]] = []
        """Transactions, of which the next one is committed when a reader has been told the end."""
        self.failing: list[int] = []
        """The codes with which the next questions for the end fail."""
        self.seen_by = 0
        """How many consumers must have been made before one finds it."""
        self.lost = ck.KafkaError._UNKNOWN_PARTITION
        """What those before it are told."""
        self.asked: list[float] = []
        """How long each question for the end was given."""
        self.recreated_at: list[int] = []
        self.deaf = 0
        """How many of the next consumers never hand out anything."""
        self.events: deque[Message] = deque()
        self.old_end: int | None = None
        """Where it ends for a leader that was frozen while another one led."""
        self.found_by = 0
        """How many consumers must have been made before one asks the leader of now."""
        self.deleted = False
        self.frozen = 0
        """How many of the next admin clients ask a broker that answers nothing."""
        self.waited: list[float] = []
        """How long each question of theirs was given."""

    @property
    def readable(self) -> int:
        """Where it ends for whom the clients of now ask."""
        return self.stable if self.old_end is None or len(self.recreated_at) >= self.found_by else self.old_end

    def commit(self, *keys: str) -> None:
        """One transaction, readable at once."""
        self.log += [*keys, None]
        self.stable = len(self.log)

    def end(self, given_s: float) -> int:
        """What the leader answers, and what happens right after it."""
        self.asked.append(given_s)
        code = self.failing.pop(0) if self.failing else self.lost if len(self.recreated_at) < self.seen_by else None
        if code is not None:
            raise ck.KafkaException(ck.KafkaError(code))
        end = self.readable if self.told_end is None else self.told_end
        if self.meanwhile:
            self.commit(*self.meanwhile.pop(0))
        return end


class Consumer:
    """Hands out what lies below the last stable offset, then the end, once."""

    def __init__(self, topic: Topic) -> None:
        self._topic, self._at, self._ended = topic, 0, -1
        self._deaf = topic.deaf > 0
        topic.deaf -= self._deaf

    def assign(self, places: Sequence[ck.TopicPartition]) -> None:
        """Begin there."""
        self._at = max(places[0].offset, 0)
        self._topic.recreated_at.append(self._at)

    def get_watermark_offsets(self, _place: ck.TopicPartition, timeout: float, *, cached: bool) -> tuple[int, int]:
        """As its leader says."""
        assert not cached
        return 0, self._topic.end(timeout)

    def poll(self, _wait_s: float) -> Message | None:
        """The next record or event."""
        if self._topic.events:
            return self._topic.events.popleft()
        while not self._deaf and self._at < self._topic.readable:
            key, self._at = self._topic.log[self._at], self._at + 1
            if key is not None:
                return Message(self._at - 1, key)
        if self._ended == self._at or self._deaf:
            return None
        self._ended = self._at
        return Message(self._at, error=EOF)

    def close(self) -> None:
        """Nothing to close."""


class Asked:
    """An admin client; its brokers know the topic, and that it is the one that it was."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._frozen = topic.frozen > 0
        topic.frozen -= self._frozen

    def poll(self, _timeout_s: float) -> None:
        """No events."""

    def list_topics(self, timeout: float) -> SimpleNamespace:
        """One topic with one partition, until it is deleted."""
        assert timeout > 0
        if self._frozen:
            self._topic.waited.append(timeout)
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))
        there = {} if self._topic.deleted else {"t": SimpleNamespace(error=None, partitions={0: None})}
        return SimpleNamespace(topics=there)

    def describe_topics(self, _topics: object, *, request_timeout: float) -> dict[str, Future[SimpleNamespace]]:
        """Always of one id; the broker that is asked hears last that the topic was deleted."""
        assert request_timeout > 0
        return {"t": answered(SimpleNamespace(topic_id="one"))}

    def list_offsets(self, asked: Collection[ck.TopicPartition], **_: object) -> Mapping[Any, Future[SimpleNamespace]]:
        """The high watermark: what is not stable is not there."""
        return dict.fromkeys(asked, answered(SimpleNamespace(offset=self._topic.readable)))


def answered(value: SimpleNamespace) -> Future[SimpleNamespace]:
    """At once."""
    future: Future[SimpleNamespace] = Future()
    future.set_result(value)
    return future


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    """The one that every client finds."""
    topic = Topic()
    monkeypatch.setattr(ck, "Consumer", lambda _settings: Consumer(topic))
    monkeypatch.setattr(journal_log, "AdminClient", lambda _settings: Asked(topic))
    return topic


def log_of(timeout_s: float = 5.0) -> TopicLog:
    """The reader."""
    return TopicLog({}, "t", timeout_s=timeout_s)


def keys(log: TopicLog) -> list[str]:
    """The keys that one call hands over."""
    return [key for key, _ in log.new_entries(whole=False)]


def test_a_transaction_committed_while_we_read_comes_whole_or_not_at_all(topic: Topic) -> None:
    """The consumer hands out its first record, since a marker hides that the end is reached; it waits for the others."""
    topic.commit("a1", "a2")
    log = log_of()
    topic.meanwhile = [("b1", "b2")]
    assert keys(log) == ["a1", "a2"]
    topic.meanwhile = [("c1", "c2")]
    assert keys(log) == ["b1", "b2"]
    assert keys(log) == ["c1", "c2"]
    assert keys(log) == []
    assert topic.recreated_at == [0]


def test_new_clients_go_on_where_the_old_ones_stood(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing twice and nothing skipped, with a record kept back, with none read yet, and twice in a row."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.0)
    topic.commit("a1", "a2")
    log = log_of()
    topic.failing, topic.meanwhile = [topic.lost], [("b1", "b2")]
    assert keys(log) == ["a1", "a2"]
    topic.failing = [topic.lost] * 2
    assert keys(log) == ["b1", "b2"]
    topic.failing = [topic.lost]
    assert keys(log) == []
    topic.failing = [topic.lost]
    topic.commit("c1")
    assert keys(log) == ["c1"]
    assert topic.recreated_at[:2] == [0, 0]
    assert len(topic.recreated_at) == 6
    assert all(at >= 3 for at in topic.recreated_at[2:])


def test_a_consumer_that_hears_nothing_is_replaced(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, by one that begins at the same place."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic.commit("a1", "a2")
    topic.deaf = 2
    assert keys(log_of()) == ["a1", "a2"]
    assert topic.recreated_at == [0, 0, 0]


def test_a_read_that_fails_on_the_way_is_read_again_from_its_beginning(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the failed call had taken is not lost, and the wait was bounded."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic.commit("a1")
    log = log_of(timeout_s=0.3)
    assert keys(log) == ["a1"]
    topic.commit("b1", "b2")
    topic.told_end, topic.stable = topic.stable, topic.stable - 2
    with pytest.raises(Unavailable, match="not reached in time"):
        keys(log)
    topic.stable = topic.told_end
    assert keys(log) == ["b1", "b2"]


def test_a_leader_of_before_does_not_hide_what_was_written(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was frozen, and does not know yet that others lead: new clients find one of those."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic.commit("a1")
    log = log_of()
    assert keys(log) == ["a1"]
    topic.old_end, topic.found_by = topic.stable, 3
    topic.commit("b1")
    assert keys(log) == [], "a reader cannot know"
    topic.commit("c1")
    log.note_written(4)
    assert [key for key, _ in log.new_entries(whole=True)] == ["b1", "c1"]
    assert topic.recreated_at == [0, 2, 2]


def test_what_only_a_leader_of_before_serves_is_not_the_whole(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has to know what was written says so; who only reads takes what there is, and calls no transaction open."""
    monkeypatch.setattr(journal_log, "SETTLING_S", 0.05)
    topic.commit("a1")
    log = log_of(timeout_s=0.3)
    assert keys(log) == ["a1"]
    topic.old_end, topic.found_by = topic.stable, 10_000
    topic.commit("b1")
    log.note_written(2)
    with pytest.raises(Unavailable, match="lacks its newest records"):
        log.new_entries(whole=True)
    assert keys(log) == []


def test_a_failure_that_does_not_pass_is_told(topic: Topic) -> None:
    """As one of our errors, and not after the whole wait."""
    topic.commit("a1")
    log = log_of(timeout_s=60)
    topic.events.append(Message(0, error=ck.KafkaError(ck.KafkaError._BAD_MSG)))
    with pytest.raises(Unavailable, match="could not read t"):
        keys(log)
    assert keys(log) == ["a1"]


@pytest.mark.parametrize("code", [ck.KafkaError._UNKNOWN_PARTITION, ck.KafkaError._DESTROY_BROKER])
def test_a_client_that_lost_sight_of_the_topic_is_replaced(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Within the call where there is time, and in any case before the next: one that stays may never find it again."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic.commit("a1")
    topic.lost, topic.seen_by = code, 3
    log = log_of(timeout_s=0.5)
    assert keys(log) == ["a1"]
    topic.commit("b1")
    topic.seen_by = 10_000
    with pytest.raises(Unavailable, match="could not read t"):
        keys(log)
    topic.seen_by, questions = len(topic.recreated_at) + 1, len(topic.asked)
    assert keys(log) == ["b1"]
    assert len(topic.asked) == questions + 1


def test_a_topic_that_was_deleted_before_anything_was_read_is_not_there(topic: Topic) -> None:
    """It was found, and then no leader knew it: the next call asks again whether it exists."""
    topic.seen_by, topic.lost = 10_000, ck.KafkaError.UNKNOWN_TOPIC_OR_PART
    log = log_of(timeout_s=0.1)
    with pytest.raises(Unavailable, match="could not read t"):
        keys(log)
    topic.deleted = True
    assert keys(log) == []


def test_a_question_to_a_leader_that_has_left_is_asked_anew(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for all the time there is: the first try has little, each next one more, and new clients."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.0)
    topic.commit("a1")
    topic.failing = [ck.KafkaError._TIMED_OUT] * 2
    assert keys(log_of(timeout_s=30)) == ["a1"]
    assert topic.asked == [3.0, 6.0, 12.0]
    assert topic.recreated_at == [0, 0, 0]


def test_another_broker_is_asked_what_there_is_where_the_first_is_frozen(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client stays with the broker that it began with: all the time there is would be waited for it."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.0)
    topic.frozen = 2
    assert log_of(timeout_s=30).exists()
    assert topic.waited == [3.0, 6.0]


def test_no_try_is_given_more_than_what_is_left(topic: Topic) -> None:
    """The whole wait is the one that the caller gave, and it ends with what the client said last."""
    topic.failing = [ck.KafkaError._TIMED_OUT] * 1000
    with pytest.raises(Unavailable, match="could not read t"):
        keys(log_of(timeout_s=0.5))
    assert 0 < max(topic.asked) <= 0.5


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (ck.KafkaError.GROUP_AUTHORIZATION_FAILED, AuthorizationFailed, "Describe on the group ballast-journal-reader"),
        (
            ck.KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            AuthorizationFailed,
            "Describe and Write on the transactional id ballast-journal",
        ),
        (ck.KafkaError.TOPIC_AUTHORIZATION_FAILED, AuthorizationFailed, "Create, Read and Write on the topics"),
        (ck.KafkaError._AUTHENTICATION, AuthenticationFailed, "password"),
        (ck.KafkaError.SASL_AUTHENTICATION_FAILED, AuthenticationFailed, "password"),
        (ck.KafkaError._TRANSPORT, Unavailable, "brokers are down"),
    ],
)
def test_a_refusal_names_what_is_missing(code: int, kind: type[Unavailable], words: str) -> None:
    """The right that this very refusal takes, the client properties for a login; a file is proposed for neither."""
    failure = translate(ck.KafkaError(code), "read t")
    assert type(failure) is kind
    assert failure.hint is not None
    assert words in failure.hint
    assert ("--journal" in failure.hint) is (kind is Unavailable)


class Admin:
    """A client that brokers turn away: its calls run out of time, and why is told when it is polled."""

    def __init__(self, settings: Mapping[str, Any], event: int | None) -> None:
        self._hear, self._event = settings["error_cb"], event
        self._asked = False

    def poll(self, _timeout_s: float) -> None:
        """Events come with polls, and not before a question made it connect."""
        if self._asked and self._event is not None:
            self._hear(ck.KafkaError(ck.KafkaError._ALL_BROKERS_DOWN))
            self._hear(ck.KafkaError(self._event))

    def list_topics(self, timeout: float) -> None:
        """No broker answers."""
        assert timeout > 0
        self._asked = True
        raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TRANSPORT))


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (ck.KafkaError._AUTHENTICATION, AuthenticationFailed),
        (ck.KafkaError._SSL, AuthenticationFailed),
        (None, Unavailable),
    ],
)
def test_a_login_that_is_refused_is_told_from_brokers_that_are_away(
    monkeypatch: pytest.MonkeyPatch, event: int | None, kind: type[Unavailable]
) -> None:
    """To the call both look alike: no broker answers. What brokers said of the login came as an event."""
    monkeypatch.setattr(journal_log, "AdminClient", lambda settings: Admin(settings, event))
    with pytest.raises(Unavailable) as failure:
        TopicLog({}, "t", timeout_s=1.0).new_entries(whole=False)
    assert type(failure.value) is kind


class Deleting:
    """An admin client of a cluster that is still deleting the topic: a new one is refused once, and then there is none."""

    def __init__(self) -> None:
        self.there, self.refused = False, False

    def list_topics(self, timeout: float) -> SimpleNamespace:
        """The topic with its partition in sync, once it was made."""
        assert timeout > 0
        partition = SimpleNamespace(replicas=[1], isrs=[1], leader=1)
        there = {"t": SimpleNamespace(error=None, partitions={0: partition})} if self.there else {}
        return SimpleNamespace(topics=there, brokers={1: None})

    def create_topics(self, topics: Sequence[Any], **_: object) -> dict[str, Future[Any]]:
        """In the way at first."""
        self.there = self.refused
        if self.refused:
            return {topics[0].topic: answered(SimpleNamespace())}
        self.refused = True
        return {topics[0].topic: failed(ck.KafkaError.TOPIC_ALREADY_EXISTS)}

    def describe_configs(self, resources: Sequence[Any], **_: object) -> dict[Any, Future[Any]]:
        """Of a topic that is there."""
        compact = {"cleanup.policy": SimpleNamespace(value="compact")}
        answer: Any = answered(compact) if self.there else failed(ck.KafkaError.UNKNOWN_TOPIC_OR_PART)  # type: ignore[arg-type]
        return dict.fromkeys(resources, answer)

    def describe_topics(self, *_: object, **__: object) -> dict[str, Future[Any]]:
        """None was ever seen."""
        return {"t": failed(ck.KafkaError.UNKNOWN_TOPIC_OR_PART)}

    def list_offsets(self, places: Collection[ck.TopicPartition], **_: object) -> dict[Any, Future[Any]]:
        """No leader."""
        return dict.fromkeys(places, failed(ck.KafkaError.UNKNOWN_TOPIC_OR_PART))

    def poll(self, _timeout_s: float) -> None:
        """No events."""


def failed(code: int) -> Future[Any]:
    """At once."""
    future: Future[Any] = Future()
    future.set_exception(ck.KafkaException(ck.KafkaError(code)))
    return future


def test_a_topic_whose_deletion_was_under_way_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was in the way of the new one and then gone: without another try no process would make it (seen with 2.3.1)."""
    admin = Deleting()
    monkeypatch.setattr(journal_log, "AdminClient", lambda _settings: admin)
    assert log_of().ensure({"cleanup.policy": "compact"}) is True
    assert admin.there
