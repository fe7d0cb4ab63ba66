"""The journal topic on brokers that know only ZooKeeper."""

from __future__ import annotations

import uuid

import pytest
from tests.real.test_journal_clusters import client, holder

from ballast.adapters.journal.topic import TopicJournal
from ballast.errors import Fenced, LockHeld
from ballast.ports.journal import Record, Request
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka


def test_brokers_of_2019_hold_the_journal_too(zk23: Sandbox) -> None:
    """Kafka 2.3 has transactions: the same topic, the same fence, the same requests."""
    topic = f"journal-{uuid.uuid4().hex[:8]}"
    old, new = (
        TopicJournal(client(zk23), journal_topic=topic, requests_topic=f"{topic}_r"),
        TopicJournal(client(zk23), journal_topic=topic, requests_topic=f"{topic}_r"),
    )
    try:
        old.acquire(holder("old"), wait_s=60)
        old.append([Record("run/1", {"stage": "planned"})])
        with pytest.raises(LockHeld) as held:
            new.acquire(holder("new"))
        assert held.value.holder == "old"
        new.request(Request("q", "pause", "ana", 1, {}))
        old.answer("q", "paused")
        new.acquire(holder("new"), wait_s=60)
        with pytest.raises(Fenced):
            old.append([Record("run/1", {"stage": "moving"})])
        assert [(r.key, r.value) for r in new.read()] == [("run/1", {"stage": "planned"})]
        assert [r.answer for r in new.requests()] == ["paused"]
        new.release()
    finally:
        old.close()
        new.close()
