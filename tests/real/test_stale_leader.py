"""The journal as a broker serves it that was frozen while another one led, and has not heard of that yet."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from functools import partial

import pytest
from tests.real.test_journal_clusters import client, holder
from tests.waiting import until

from ballast.adapters.journal import topic as journal_topic
from ballast.adapters.journal.log import TopicLog
from ballast.adapters.journal.topic import TopicJournal
from ballast.errors import Fenced
from ballast.ports.journal import Record
from ballast.ports.journal_codec import Entry
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka


class LogOfBefore(TopicLog):
    """Shows nothing new from a moment on, until its reader knows of a record that must be there."""

    is_old = False

    def new_entries(self, *, whole: bool) -> Sequence[Entry]:
        """Nothing, where the leader of before is asked."""
        return () if self.is_old else super().new_entries(whole=whole)

    def note_written(self, offset: int) -> None:
        """A record was acknowledged by the leader of now, which the one of before does not have."""
        self.is_old = False
        super().note_written(offset)


@pytest.fixture
def journals(kraft: Sandbox, monkeypatch: pytest.MonkeyPatch) -> tuple[TopicJournal, TopicJournal, list[LogOfBefore]]:
    """Two handles on one journal; the logs that the first one reads."""
    topic = f"__ballast_test_{uuid.uuid4().hex[:8]}"
    handle = partial(TopicJournal, client(kraft), journal_topic=topic, requests_topic=f"{topic}_r")
    second, logs = handle(), []

    def log_of_before(*given: object, **named: object) -> LogOfBefore:
        logs.append(LogOfBefore(*given, **named))  # type: ignore[arg-type]
        return logs[-1]

    monkeypatch.setattr(journal_topic, "TopicLog", log_of_before)
    return handle(), second, logs


def test_a_holder_that_reads_its_own_lease_there_has_lost_the_lock(
    journals: tuple[TopicJournal, TopicJournal, list[LogOfBefore]],
) -> None:
    """Another one has taken it since: the first one writes no more, and the other goes on."""
    first, second, logs = journals
    try:
        first.acquire(holder("first"), wait_s=30)
        first.append([Record("a", {"n": 1})])
        second.acquire(holder("second", lease_s=60), wait_s=60)
        second.append([Record("a", {"n": 2})])
        logs[0].is_old = True
        with pytest.raises(Fenced):
            first.append([Record("a", {"n": 3})])
        second.check()
        second.append([Record("b", {"n": 4})])
        assert {r.key: r.value for r in second.read()} == {"a": {"n": 2}, "b": {"n": 4}}
    finally:
        first.close()
        second.close()


def test_a_candidate_that_reads_a_lapsed_lease_there_does_not_take_the_lock(
    journals: tuple[TopicJournal, TopicJournal, list[LogOfBefore]],
) -> None:
    """The lease that it watches has lapsed; the one that stands in the journal is waited for first."""
    first, second, logs = journals
    try:
        second.acquire(holder("second", lease_s=3.0), wait_s=30)
        until(lambda: first.holder() is not None, "the candidate sees the lease")
        second.release()
        second.acquire(holder("second again", lease_s=10.0), wait_s=60)
        logs[0].is_old, began = True, time.monotonic()
        first.acquire(holder("first"), wait_s=60)
        assert time.monotonic() - began >= 10
        with pytest.raises(Fenced):
            second.check()
    finally:
        first.close()
        second.close()
