"""Runs that move the journal itself, and a journal whose brokers are gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.execution_scene import Scene, events, scene
from tests.waiting import becomes, until

from ballast.adapters.journal.requests import CONFIGS as REQUESTS_CONFIGS
from ballast.adapters.journal.topic import JOURNAL_CONFIGS, TopicJournal
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Plan
from ballast.core.plan.file import dumps
from ballast.core.plan.fingerprint import fingerprint
from ballast.errors import Unavailable
from ballast.ports.cluster import ConfigResource
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import this_process

pytestmark = pytest.mark.kafka
JOURNAL, REQUESTS = TopicPartition(JOURNAL_TOPIC, 0), TopicPartition(REQUESTS_TOPIC, 0)


@pytest.fixture(scope="module")
def five() -> Iterator[Sandbox]:
    """Five brokers and a journal that was begun when there was one; the transactions' own topic lies anywhere."""
    with Sandbox.up(SandboxSpec(brokers=5, racks=0)) as sandbox:
        with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
            for name, configs in ((JOURNAL_TOPIC, JOURNAL_CONFIGS), (REQUESTS_TOPIC, REQUESTS_CONFIGS)):
                opened.cluster.create_topic(name, {0: (5,)}, {**configs, "min.insync.replicas": "1"})
        yield sandbox


@pytest.fixture
def at(five: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The cluster with an open connection."""
    with scene(five, tmp_path) as opened:
        until(lambda: opened.in_sync(JOURNAL))
        yield opened


def min_isr(at: Scene, name: TopicPartition) -> str | None:
    """The topic's own setting."""
    resource = ConfigResource("topic", name.topic)
    return at.cluster.configs([resource])[resource]["min.insync.replicas"].value


def three_replicas(at: Scene, name: TopicPartition) -> tuple[int, ...]:
    """The topic's list, once the broker that is asked has heard of three."""
    return until(lambda: r if len(set(r := at.replicas(name))) == 3 else None, "three replicas")


def test_a_run_strengthens_the_journal_first_and_moves_it_last(at: Scene) -> None:
    """From one replica to three, then away from the broker it began on, after everything else of the same plan."""
    topic = "beside"
    at.topic(topic, {0: (1, 2), 1: (2, 1)}, mib=4)
    at.finish("apply", str(at.plan(topic, {0: (3, 2), 1: (3, 2)})), "--yes", "--throttle", "2MB")
    for name in (JOURNAL, REQUESTS):
        replicas = three_replicas(at, name)
        assert replicas[0] == 5
        becomes(lambda name=name: at.in_sync(name), set(replicas))  # type: ignore[misc]
        becomes(lambda name=name: min_isr(at, name), "2")  # type: ignore[misc]

    wanted = {name: three_replicas(at, name) for name in (JOURNAL, REQUESTS)}
    wanted |= {TopicPartition(topic, p): (3, 2) for p in (0, 1)}

    def arrived_in() -> ClusterState | None:
        state = at.cluster.snapshot()
        return state if all(state.target(state.index[n]) == r for n, r in wanted.items()) else None

    # A plan made of what a broker tells that has not heard of the last run's end would be outdated.
    state = until(arrived_in, "a broker that has heard of all of it")
    before = wanted[JOURNAL]
    away = tuple(b for b in (1, 2, 3, 4) if b not in before)[:1] + before[1:]
    moves = [at.move(state, JOURNAL_TOPIC, 0, away)]
    moves += [at.move(state, topic, p, (1, 2)) for p in (0, 1)]
    path = at.folder / "last.json"
    path.write_text(dumps(Plan("test last", state.cluster_id, fingerprint(state), moves=tuple(moves))))
    out = at.finish("apply", str(path), "--yes", "--throttle", "2MB", "--output", "json")
    steps = [(e["topic"], e["before"]) for e in events(out) if e["kind"] == "MoveChanged"]
    arrived = [i for i, (name, before) in enumerate(steps) if name == topic and before == "moving"]
    assert steps.index((JOURNAL_TOPIC, "throttled")) > max(arrived), "it is submitted when the others are there"
    becomes(lambda: at.replicas(JOURNAL), away)
    becomes(lambda: (at.throttles(JOURNAL_TOPIC), at.throttles(topic)), ({}, {}))
    assert any(r.intent == "test last" and r.status.value == "done" for r in at.runs().values())


def test_brokers_that_held_the_journal_are_evacuated_with_a_file(at: Scene, five: Sandbox) -> None:
    """Two of its three brokers die: the cluster's journal cannot be written and says why; with a file the way out is open.

    Afterwards the journal is whole on live brokers, and the cluster's own lock works as before.
    """
    topic = "needed"
    at.topic(topic, {0: (1, 5), 1: (2, 3)}, mib=1)
    at.finish("apply", str(at.plan(topic, {1: (3, 2)})), "--yes")
    gone = three_replicas(at, JOURNAL)[1:]
    try:
        for broker in gone:
            five.kill_broker(broker)
        until(lambda: at.in_sync(JOURNAL).isdisjoint(gone) or len(at.in_sync(JOURNAL)) == 1)
        path = at.folder / "evacuate.json"
        at.finish("plan", "evacuate", *map(str, gone), "--no-prove", "--save", str(path))
        assert JOURNAL_TOPIC in {m["topic"] for m in json.loads(path.read_text())["moves"]}
        unhealthy = TopicJournal({"bootstrap.servers": five.bootstrap_server}, timeout_s=10)
        with pytest.raises(Unavailable, match=r"cannot be written: of its replicas .* only .* are in sync") as told:
            unhealthy.acquire(this_process("a test"), wait_s=60)
        assert told.value.hint is not None
        assert "--journal file:PATH" in told.value.hint
        unhealthy.close()
        own = f"file:{at.folder / 'journal'}"
        at.finish("apply", str(path), "--yes", "--journal", own)
        for name in (JOURNAL, REQUESTS):
            becomes(lambda name=name: (len(at.in_sync(name)), at.in_sync(name) & set(gone)), (3, set()))  # type: ignore[misc]
        whole = TopicJournal({"bootstrap.servers": five.bootstrap_server})
        whole.acquire(this_process("a test"), wait_s=60)
        assert any(r.key.startswith("run/") for r in whole.read()), "what the journal said before is still there"
        whole.release()
        whole.close()
    finally:
        for broker in gone:
            five.start_broker(broker)
