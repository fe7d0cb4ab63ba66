"""The topic is lost: its holder makes it again, also where the first try ends half-way or the holder stands in line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import confluent_kafka as ck
import pytest

from ballast.adapters.journal import topic as journal_topic
from ballast.adapters.journal.loss import NOTICED_WITHIN_S
from ballast.adapters.journal.topic import POLL_S, TopicJournal
from ballast.errors import BallastError, Fenced, JournalLost, LockHeld, Unavailable
from ballast.ports.journal import Holder, Record, find_restart, restart_record
from ballast.ports.journal_codec import LEASE_KEY, Entry, JournalView, encode_lease, encode_record
from ballast.sim.clock import SimClock

ME, OTHER = (Holder(id_, f"test {id_}", lease_s=6.0) for id_ in ("me", "other"))
RECORDS = [Record("run/1", {"moves": 3}), Record("throttle/broker/1", {"prior": "5"})]


class Requests:
    """The other topic; making it again fails as often as told."""

    failing = 0
    topic = "__ballast_requests"

    def ensure(self) -> None:
        """It is there."""

    def remake(self) -> None:
        """Make it again."""
        if self.failing:
            self.failing -= 1
            raise Unavailable("of its replicas [1, 2] only [1] are in sync, and 2 must be")


class Topic:
    """The journal's topic and this process's place in it."""

    topic = "__ballast_journal"

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.lost = False
        self.how_lost = ""
        """How it was lost."""
        self.gone = 0
        self.unwritten = 0
        self.about_to_be_written: list[Entry] = []
        self.hanging = 0
        """For how many waits the next commit does not end; then it is known that the topic was deleted."""
        self.dying = False
        """Does the next commit end with a fatal error?"""
        self.requests = Requests()
        self.clock = SimClock()
        self._at = 0

    def lose(self, how: str = "recreated", *, keep: int = 0) -> None:
        """Another user deletes it and makes it again, or its newest entries are lost."""
        self.entries, self.lost, self.how_lost = self.entries[:keep], True, how

    @property
    def was_cut_off(self) -> bool:
        """As the topic's log tells it."""
        return self.how_lost == "truncated"

    def ensure(self, _configs: Mapping[str, str]) -> None:
        """It is there."""

    def exists(self) -> bool:
        """Whatever stands there is the topic."""
        return True

    def is_gone_beside(self, _companion: str) -> bool:
        """Whatever stands there is the topic, after so many looks at which it was gone."""
        self.gone -= 1
        return self.gone >= 0

    def is_unwritten(self) -> bool:
        """Whatever stands there is the topic, after so many looks at which no process had written yet."""
        self.unwritten -= 1
        if self.unwritten == 0:
            self.entries += self.about_to_be_written
        return self.unwritten > 0

    def rebuild(self, _configs: Mapping[str, str]) -> None:
        """Whatever stands there is the topic."""
        self.forget()

    def forget(self) -> None:
        """Read from the beginning."""
        self.lost, self._at = False, 0

    def check_not_lost(self, *, now: bool = False) -> None:
        """Tell the loss."""
        del now
        if self.lost:
            raise JournalLost(self.how_lost, "it is another one")

    def note_written(self, _offset: int) -> None:
        """Readings show it: no leader of before answers here."""

    def new_entries(self, *, whole: bool) -> Sequence[Entry]:
        """What was not read yet."""
        del whole
        self.check_not_lost()
        taken, self._at = self.entries[self._at :], len(self.entries)
        return taken


class Producer:
    """Commits to the topic."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._open: list[Entry] = []

    def poll(self, _timeout_s: float) -> int:
        """Nothing to say."""
        return 0

    def begin_transaction(self) -> None:
        """Begin."""
        self._open = []

    def produce(self, _topic: str, *, key: bytes, value: bytes | None, **_: Any) -> None:
        """Add to the transaction."""
        self._open.append((key.decode(), value))

    def commit_transaction(self, _timeout_s: float) -> None:
        """All of it at once."""
        if self._topic.dying:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._FATAL, "out of order", True))
        if self._topic.hanging:
            self._topic.hanging -= 1
            if not self._topic.hanging:
                self._topic.lose("deleted")
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT, "the topic is gone", False, True))
        self._topic.entries += self._open


@pytest.fixture
def topic() -> Topic:
    """Empty."""
    return Topic()


def handle(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> TopicJournal:
    """A handle on it."""
    monkeypatch.setattr(journal_topic, "TopicLog", lambda *_, **__: topic)
    monkeypatch.setattr(journal_topic, "RequestsTopic", lambda *_, **__: topic.requests)
    monkeypatch.setattr(journal_topic, "start_transactions", lambda *_, **__: Producer(topic))
    return TopicJournal({"bootstrap.servers": "127.0.0.1:1"}, clock=topic.clock)


@pytest.fixture
def journal(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> TopicJournal:
    """A handle on it that holds the lock and has written."""
    own = handle(topic, monkeypatch)
    own.acquire(ME)
    own.append(RECORDS)
    return own


@pytest.fixture
def standby(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> TopicJournal:
    """A handle on it that stood in line behind another holder when it was lost, and was told."""
    own = handle(topic, monkeypatch)
    topic.entries = others(1)
    with pytest.raises(LockHeld):
        own.acquire(ME)
    topic.lose()
    with pytest.raises(JournalLost):
        own.acquire(ME)
    return own


def others(beat: int) -> list[Entry]:
    """What another holder has written."""
    return [*(entry for r in RECORDS for entry in encode_record(r)), (LEASE_KEY, encode_lease(OTHER, beat))]


def stands(topic: Topic) -> list[Record]:
    """The records in the topic."""
    return list(JournalView(topic.entries).records())


def fail_half_way(journal: TopicJournal, topic: Topic) -> None:
    """The topic is there again, and the one of the requests is not."""
    topic.requests.failing = 1
    with pytest.raises(Unavailable):
        journal.remake()


def test_a_remake_that_ends_half_way_is_due(journal: TopicJournal, topic: Topic) -> None:
    """Nothing else is written until all that its holder knows is in it."""
    topic.lose()
    fail_half_way(journal, topic)
    for act in (lambda: journal.append([Record("b", {})]), lambda: journal.renew("go on"), journal.check, journal.read):
        with pytest.raises(JournalLost):
            act()
    assert topic.entries == []
    journal.remake()
    journal.append([Record("b", {})])
    assert stands(topic) == [*RECORDS, Record("b", {})]


def test_a_holder_that_writes_while_it_is_deleted_notices_before_its_time_is_over(
    journal: TopicJournal, topic: Topic
) -> None:
    """No commit to a topic that is gone ends, and a process that starts does not wait as long as one may take."""
    topic.hanging = 3
    with pytest.raises(JournalLost):
        journal.append([Record("b", {})])
    journal.remake()
    assert stands(topic) == RECORDS


@pytest.mark.parametrize("half_way", [False, True])
def test_a_holder_in_line_makes_it_again(journal: TopicJournal, topic: Topic, *, half_way: bool) -> None:
    """A renewal that failed sent them there; the acquisition counts as another one."""
    topic.lose()
    if half_way:
        fail_half_way(journal, topic)
    before = journal.term
    journal.acquire(ME)
    assert journal.term == before + 1
    journal.append([])
    assert stands(topic) == RECORDS


def test_another_ones_lock_in_the_new_topic_is_left_to_them(journal: TopicJournal, topic: Topic) -> None:
    """What the process remembered of the old one is forgotten with it."""
    topic.lose()
    topic.entries = [(LEASE_KEY, encode_lease(OTHER, 1))]
    with pytest.raises(Fenced):
        journal.acquire(ME)
    assert journal.read() == ()
    with pytest.raises(BallastError, match="test other"):
        journal.acquire(ME)


def test_what_another_wrote_and_left_in_the_new_topic_is_not_overwritten(journal: TopicJournal, topic: Topic) -> None:
    """Its holder has come, ended the run and given the lock up while this process stood still: what it wrote is newer."""
    theirs = Record("run/1", {"moves": 3, "phase": "ended"})
    topic.lose()
    topic.entries = [*encode_record(theirs), (LEASE_KEY, encode_lease(OTHER, 1)), (LEASE_KEY, None)]
    with pytest.raises(Fenced):
        journal.remake()
    assert stands(topic) == [theirs]


def test_a_topic_that_was_cut_off_is_written_whole_again(journal: TopicJournal, topic: Topic) -> None:
    """What is left of it are this journal's own older records, from before the present holder's first lease."""
    topic.entries = [*encode_record(Record("run/0", {})), (LEASE_KEY, None), *topic.entries]
    topic.lose("truncated", keep=2)
    journal.remake()
    assert stands(topic) == RECORDS


def test_a_producer_that_died_is_not_replaced_over_a_new_topic(
    journal: TopicJournal, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from where the old one ended it shows nothing, and the lease of before would seem to stand: another one has it."""
    topic.dying = True
    with pytest.raises(Unavailable):
        journal.append([Record("a", {})])
    topic.entries = [(LEASE_KEY, encode_lease(OTHER, 1))]
    checks = topic.check_not_lost

    def check_not_lost(*, now: bool = False) -> None:
        """The last look is not old enough for another one, unless one is wanted now."""
        topic.lost = now
        checks(now=now)

    monkeypatch.setattr(topic, "check_not_lost", check_not_lost)
    with pytest.raises(JournalLost):
        journal.append([Record("b", {})])
    assert topic.entries == [(LEASE_KEY, encode_lease(OTHER, 1))]
    journal.release()
    assert topic.entries == [(LEASE_KEY, encode_lease(OTHER, 1))]


def test_offsets_of_the_old_topic_do_not_count_in_the_new_one(
    journal: TopicJournal, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that was aborted had been given some."""
    assert journal._producer is not None
    journal._producer._placed.append(500)
    topic.lose()
    told: list[int] = []
    monkeypatch.setattr(topic, "note_written", told.append)
    journal.remake()
    assert 500 not in told


def test_a_topic_that_another_process_made_is_not_removed(journal: TopicJournal, topic: Topic) -> None:
    """The lease is fresh and no broker was asked for a while: the loss is looked for before anything is deleted."""
    topic.lose()
    topic.entries = [(LEASE_KEY, encode_lease(OTHER, 1))]
    with pytest.raises(JournalLost):
        journal.remove()
    assert topic.entries


def test_a_process_that_starts_where_it_is_gone_says_so_in_the_empty_one(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one lease and the time in which a holder notices, when no process has made it again; it says so once."""
    own = handle(topic, monkeypatch)
    topic.gone, began_ms = 1000, topic.clock.now_ms()
    own.acquire(ME)
    restart = find_restart(own.read())
    assert restart is not None
    assert restart.by == ME.description
    assert restart.at_ms - began_ms >= 1000 * (ME.lease_s + NOTICED_WITHIN_S)
    own.append([restart_record(None)])
    own.release()
    topic.gone = 0
    own.acquire(ME)
    assert own.read() == ()


@pytest.mark.parametrize("after_s", [1.0, ME.lease_s + NOTICED_WITHIN_S - 1.0])
def test_a_process_that_starts_where_it_is_gone_leaves_it_to_one_that_remembers(
    after_s: float, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there again, with its holder's lock and all that they knew: late where the lease is short and brokers are slow."""
    own = handle(topic, monkeypatch)
    topic.gone, topic.unwritten, topic.about_to_be_written = int(after_s / POLL_S), 1, others(1)
    with pytest.raises(LockHeld):
        own.acquire(ME)
    assert own.read() == tuple(RECORDS)


@pytest.mark.parametrize("gone", [0, 2], ids=["made already", "seen gone"])
def test_a_process_that_starts_waits_for_the_first_record_of_one_that_remembers(
    gone: int, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder has made the topic again, and is about to write: the lock is not free."""
    own = handle(topic, monkeypatch)
    topic.gone, topic.unwritten, topic.about_to_be_written = gone, 3, others(1)
    with pytest.raises(LockHeld):
        own.acquire(ME)
    assert own.read() == tuple(RECORDS)


@pytest.mark.parametrize("gone", [0, 2], ids=["made beforehand", "seen gone"])
def test_a_topic_that_stays_empty_is_taken_after_a_lease(
    gone: int, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it is not the first only where one was seen to be gone."""
    own = handle(topic, monkeypatch)
    topic.gone, topic.unwritten = gone, 1000
    began = topic.clock.monotonic_s()
    own.acquire(ME)
    assert topic.clock.monotonic_s() - began >= ME.lease_s
    assert (find_restart(own.read()) is not None) == bool(gone)


def test_a_standby_leaves_it_to_the_holder_for_a_lease(standby: TopicJournal, topic: Topic) -> None:
    """Then it makes it again from what it had read, and has the lock."""
    with pytest.raises(LockHeld):
        standby.acquire(ME, wait_s=OTHER.lease_s - 1)
    assert topic.entries == []
    taken = standby.acquire(ME, wait_s=2)
    assert stands(topic) == RECORDS
    assert standby.holder() == taken == replace(ME, since_ms=taken.since_ms)


def test_a_standby_stands_in_line_again_when_the_holder_has_made_it_again(standby: TopicJournal, topic: Topic) -> None:
    """What it remembers itself is older, and is not written."""
    topic.entries = others(2)
    for _ in range(2):
        with pytest.raises(LockHeld):
            standby.acquire(ME)
    assert topic.entries == others(2)


def test_a_standby_that_cannot_make_it_again_tries_once_more(standby: TopicJournal, topic: Topic) -> None:
    """It holds no lock meanwhile, and forgets nothing."""
    topic.requests.failing = 1
    with pytest.raises(Unavailable):
        standby.acquire(ME, wait_s=60)
    with pytest.raises(Fenced):
        standby.check()
    standby.acquire(ME, wait_s=60)
    assert stands(topic) == RECORDS
