"""Reading the journal topic, against a consumer of our own making: whole transactions, each record once, new clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import confluent_kafka as ck
import pytest

from ballast.adapters.journal import log as journal_log
from ballast.adapters.journal.log import TopicLog, translate
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

    def error(self) -> ck.KafkaError | None:
        """An event instead of a record."""
        return self._error


class Topic:
    """A log with commit markers, its last stable offset, and how many consumers were made for it."""

    def __init__(self) -> None:
        self.log: list[str | None] = []
        """Keys; None is a commit marker."""
        self.stable = 0
        self.begun_at: list[int] = []
        self.deaf = 0
        """How many of the next consumers never hand out anything."""

    def commit(self, *keys: str) -> None:
        """One transaction, readable at once."""
        self.log += [*keys, None]
        self.stable = len(self.log)


class Consumer:
    """Hands out what lies below the last stable offset, then the end, once."""

    def __init__(self, topic: Topic, at: int) -> None:
        self._topic, self._at, self._ended = topic, at, -1
        self._deaf = topic.deaf > 0
        topic.deaf -= self._deaf
        topic.begun_at.append(at)
        self.events: deque[Message] = deque()

    def poll(self, wait_s: float) -> Message | None:
        """The next record or event."""
        if self.events:
            return self.events.popleft()
        while not self._deaf and self._at < self._topic.stable:
            key, self._at = self._topic.log[self._at], self._at + 1
            if key is not None:
                return Message(self._at - 1, key)
        if self._ended == self._at or self._deaf:
            return None
        self._ended = self._at
        return Message(self._at, error=EOF)

    def close(self) -> None:
        """Nothing to let go."""


class Log(TopicLog):
    """The reader with our consumer in it; ``meanwhile`` happens once, after it was told the end."""

    def __init__(self, topic: Topic, *, timeout_s: float = 5.0) -> None:
        super().__init__({}, "t", timeout_s=timeout_s)
        self._known = True
        self._of = topic
        self.meanwhile: list[tuple[str, ...]] = []

    def _readable_end(self, *, whole: bool) -> int:
        end = self._of.stable
        while self.meanwhile:
            self._of.commit(*self.meanwhile.pop(0))
        return end

    def _opened(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(self._of, self._at)
        return self._consumer

    def look(self, *, now: bool = False) -> None:
        """There are no brokers who could say that the topic is another one."""

    def keys(self) -> list[str]:
        """The keys that one call hands over."""
        return [key for key, _ in self.new_entries(whole=False)]


def test_a_transaction_committed_while_we_read_comes_whole_or_not_at_all() -> None:
    """The consumer hands out its first record, since a marker hides that the end is reached; it waits for the others."""
    topic = Topic()
    topic.commit("a1", "a2")
    log = Log(topic)
    log.meanwhile = [("b1", "b2")]
    assert log.keys() == ["a1", "a2"]
    log.meanwhile = [("c1", "c2")]
    assert log.keys() == ["b1", "b2"]
    assert log.keys() == ["c1", "c2"]
    assert log.keys() == []
    assert topic.begun_at == [0]


def test_new_clients_go_on_where_the_old_ones_stood() -> None:
    """Nothing twice and nothing skipped, with a record kept back, with none read yet, and twice in a row."""
    topic = Topic()
    topic.commit("a1", "a2")
    log = Log(topic)
    log._begin_again()
    log.meanwhile = [("b1", "b2")]
    assert log.keys() == ["a1", "a2"]
    for _ in range(2):
        log._renewed_s = float("-inf")
        log._begin_again()
    assert log.keys() == ["b1", "b2"]
    log._renewed_s = float("-inf")
    log._begin_again()
    assert log.keys() == []
    log._renewed_s = float("-inf")
    log._begin_again()
    topic.commit("c1")
    assert log.keys() == ["c1"]
    assert topic.begun_at[0] == 0
    assert all(at >= 3 for at in topic.begun_at[1:])


def test_a_consumer_that_hears_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, by one that begins at the same place."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic = Topic()
    topic.commit("a1", "a2")
    topic.deaf = 2
    assert Log(topic).keys() == ["a1", "a2"]
    assert topic.begun_at == [0, 0, 0]


def test_a_read_that_fails_on_the_way_is_read_again_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the failed call had taken is not lost, and the wait was bounded."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic = Topic()
    topic.commit("a1")
    log = Log(topic, timeout_s=0.3)
    assert log.keys() == ["a1"]
    topic.commit("b1", "b2")
    whole, topic.stable = topic.stable, topic.stable - 2
    monkeypatch.setattr(log, "_readable_end", lambda *, whole: len(topic.log))  # noqa: ARG005
    with pytest.raises(Unavailable, match="not reached in time"):
        log.keys()
    topic.stable = whole
    assert log.keys() == ["b1", "b2"]


def test_a_failure_that_does_not_pass_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of our errors, and not after the whole wait."""
    topic = Topic()
    topic.commit("a1")
    log = Log(topic, timeout_s=60)
    failure = ck.KafkaError(ck.KafkaError._BAD_MSG)
    log._opened().events.append(Message(0, error=failure))
    with pytest.raises(Unavailable, match="could not read t"):
        log.keys()
    assert log.keys() == ["a1"]


@pytest.mark.parametrize("code", [ck.KafkaError._UNKNOWN_PARTITION, ck.KafkaError._DESTROY_BROKER])
def test_a_client_that_lost_sight_of_the_topic_is_replaced(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Within the call where there is time, and in any case before the next: one that stays may never find it again."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.05)
    topic = Topic()
    topic.commit("a1")
    log = Log(topic, timeout_s=0.5)
    lost = ck.KafkaException(ck.KafkaError(code))

    def end_seen_by(sees: int) -> int:
        log._opened()
        if len(topic.begun_at) < sees:
            raise lost
        return topic.stable

    monkeypatch.setattr(log, "_readable_end", lambda *, whole: log._patiently(lambda _: end_seen_by(3)))  # noqa: ARG005
    assert log.keys() == ["a1"]
    topic.commit("b1")
    never = 10_000
    monkeypatch.setattr(log, "_readable_end", lambda *, whole: log._patiently(lambda _: end_seen_by(never)))  # noqa: ARG005
    with pytest.raises(Unavailable, match="could not read t"):
        log.keys()
    made = len(topic.begun_at)
    monkeypatch.setattr(log, "_readable_end", lambda *, whole: end_seen_by(made + 1))  # noqa: ARG005
    assert log.keys() == ["b1"]


def test_a_question_to_a_leader_that_has_left_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for all the time there is: the first try has little, each next one more, and new clients."""
    monkeypatch.setattr(journal_log, "RENEW_S", 0.0)
    topic, given = Topic(), list[float]()
    log = Log(topic, timeout_s=30)

    def ask(try_s: float) -> str:
        log._opened()
        given.append(try_s)
        if len(given) < 3:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))
        return "answer"

    assert log._patiently(ask) == "answer"
    assert given == [3.0, 6.0, 12.0]
    assert len(topic.begun_at) == 3


def test_no_try_is_given_more_than_what_is_left() -> None:
    """The whole wait is the one that the caller gave, and it ends with what the client said last."""
    log, given = Log(Topic(), timeout_s=0.5), list[float]()

    def ask(try_s: float) -> str:
        given.append(try_s)
        raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))

    with pytest.raises(ck.KafkaException):
        log._patiently(ask)
    assert 0 < max(given) <= 0.5


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
        """Nobody answers."""
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
    """To the call both look alike: nobody answers. What brokers said of the login came as an event."""
    monkeypatch.setattr(journal_log, "AdminClient", lambda settings: Admin(settings, event))
    with pytest.raises(Unavailable) as failure:
        TopicLog({}, "t", timeout_s=1.0).new_entries(whole=False)
    assert type(failure.value) is kind
