"""``ballast uninstall`` on real brokers: both topics go, unless something still needs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real.execution_scene import Scene, scene
from tests.unit.app.test_settled import OPEN, RUN
from tests.waiting import becomes

from ballast.core.cluster import TopicPartition
from ballast.executor.journal.records import dump_run
from ballast.executor.machine.run import Phase
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Journal
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of, this_process

pytestmark = pytest.mark.kafka
BOTH = [JOURNAL_TOPIC, REQUESTS_TOPIC]
REFUSED = 5


def own_topics(at: Scene) -> list[str]:
    """Which of Ballast's topics the cluster has."""
    return sorted(n.topic for n in at.cluster.partitions([TopicPartition(name, 0) for name in BOTH]))


@contextmanager
def lock(at: Scene, *, lease_s: float) -> Iterator[Journal]:
    """The lock held by this process, and left without a word."""
    with open_cluster(bootstrap_server=at.sandbox.bootstrap_server) as opened:
        journal = journal_of(opened)
        journal.acquire(this_process("a test", lease_s=lease_s), wait_s=30)
        yield journal
        journal.close()


def test_both_topics_go_once_nothing_needs_them(own_cluster: Callable[..., Sandbox], tmp_path: Path) -> None:
    """Refused for throttles set by hand, for an open run and for another holder; a lapsed lease is waited for."""
    with scene(own_cluster(brokers=2, racks=0), tmp_path) as at:
        assert json.loads(at.finish("uninstall", "--yes", "--output", "json"))["topics"] == []
        assert own_topics(at) == [], "asking makes nothing"

        at.finish("throttles", "set", "--leader-rate", "5MB", "--brokers", "1")
        becomes(lambda: own_topics(at), BOTH)
        at.finish("uninstall", "--yes", code=REFUSED)
        at.finish("throttles", "remove", "--yes")

        with lock(at, lease_s=60) as journal:
            at.finish("uninstall", "--yes", "--lock-wait", "1", code=REFUSED)
            journal.append(OPEN)
            journal.release()
        at.finish("uninstall", "--yes", code=REFUSED)
        with lock(at, lease_s=3) as journal:
            journal.append(dump_run(replace(RUN, phase=Phase.ENDED, ended_ms=5)))
        assert at.holder() is not None, "a stale lease stands"
        at.finish("uninstall", code=2)
        becomes(lambda: own_topics(at), BOTH)

        assert json.loads(at.finish("uninstall", "--yes", "--output", "json"))["topics"] == BOTH
        becomes(lambda: own_topics(at), [])
        becomes(at.runs, {})
        with lock(at, lease_s=15) as journal:
            becomes(lambda: own_topics(at), BOTH)
            journal.release()
        assert json.loads(at.finish("uninstall", "--yes", "--output", "json"))["topics"] == BOTH
        becomes(lambda: own_topics(at), [])
