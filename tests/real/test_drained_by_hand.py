"""A broker that a person drains takes nothing from commands either, on real brokers: each refuses or leaves it out, until the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.execution_scene import Scene, shared_scene
from tests.waiting import becomes

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.drain import Drain
from ballast.errors import Refused
from ballast.executor.journal.drains import drain_record
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster
from ballast.wiring.runs import open_writer

pytestmark = pytest.mark.kafka
DRAINED = 3
MOVED, HOME = "drained-moved", "drained-home"


@pytest.fixture
def at(kraft: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The shared cluster with a run whose undoing, and an election, that broker 3 would profit from; then it is drained."""
    with shared_scene(kraft, tmp_path) as opened:
        opened.topic(MOVED, {0: (DRAINED, 2)}, mib=1)
        opened.topic(HOME, {0: (1, DRAINED)})
        opened.finish("apply", str(opened.plan(MOVED, {0: (1, 2)})), "--yes")
        opened.finish("apply", str(opened.plan(HOME, {0: (DRAINED, 1)})), "--yes")
        becomes(lambda: opened.cluster.partitions([TopicPartition(HOME, 0)])[TopicPartition(HOME, 0)].leader, 1)
        drain(opened, began=True)
        try:
            yield opened
        finally:
            drain(opened, began=False)


def drain(at: Scene, *, began: bool) -> None:
    """What the daemon writes when a plan that drains a broker is approved, or its drain ended."""
    what = Drain(broker=DRAINED, by="Ada", since_ms=time.time_ns() // 1_000_000) if began else None
    with (
        open_cluster(bootstrap_server=at.sandbox.bootstrap_server) as opened,
        open_writer(opened, command="test", lock_wait_s=60) as own,
    ):
        own.journal.append([drain_record(DRAINED, what)])


def file_of(at: Scene, name: str, document: object) -> str:
    """A file as Kafka's tool takes it."""
    path = at.folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_no_command_fills_a_drained_broker_until_its_drain_is_ended(at: Scene) -> None:
    """Rollback, the stock tool's execute, elections by name and placements by hand are refused; the others leave it out."""
    run = at.run_of(MOVED)
    assert run is not None
    refused = Refused.exit_code
    at.finish("rollback", run.id, "--yes", code=refused)
    wanted = {"version": 1, "partitions": [{"topic": MOVED, "partition": 0, "replicas": [DRAINED, 2]}]}
    at.finish("reassign", "--execute", "--reassignment-json-file", file_of(at, "wanted", wanted), code=1)
    at.finish("elect", "--brokers", str(DRAINED), "--yes", code=refused)
    at.finish("topics", "create", "drained-none", "--replica-assignment", f"{DRAINED}:1", "--yes", code=refused)
    at.finish("elect", "--topic", HOME, "--yes")
    assert at.cluster.partitions([TopicPartition(HOME, 0)])[TopicPartition(HOME, 0)].leader == 1
    assert at.replicas(TopicPartition(MOVED, 0)) == (1, 2)

    topics = file_of(at, "topics", {"version": 1, "topics": [{"topic": MOVED}]})
    proposal = at.finish("reassign", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
    (proposed,) = json.loads(proposal.splitlines()[-1])["partitions"]
    assert DRAINED not in proposed["replicas"]
    balance = json.loads(at.finish("plan", "leaders", "--minimize", "counts", "--topics", HOME, "--output", "json"))
    assert [m["new"] for m in balance["moves"]] == [[1, DRAINED]]
    made = at.finish(
        "topics", "create", "drained-new", "--partitions", "6", "--replication-factor", "2", "--yes", "--output", "json"
    )
    assert {b for p in json.loads(made)["partitions"] for b in p["replicas"]} == {1, 2}

    at.finish("drains", "end", str(DRAINED))
    at.finish("elect", "--topic", HOME, "--yes")
    becomes(lambda: at.cluster.partitions([TopicPartition(HOME, 0)])[TopicPartition(HOME, 0)].leader, DRAINED)
    at.finish("rollback", run.id, "--yes")
    becomes(lambda: at.replicas(TopicPartition(MOVED, 0)), (DRAINED, 2))
