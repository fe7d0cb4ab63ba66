"""Runs on real brokers: throttled, killed, taken up by another process, and no stale throttle."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.execution_scene import LISTS, Scene, events, shared_scene
from tests.waiting import becomes, until

from ballast.core.cluster import TopicPartition
from ballast.core.placement import BrokerMetadata, assign_replicas
from ballast.executor.machine.stages import Moving, Verified
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka
ENDS_WITHIN_S = 240.0
"""For everything a process has to do, on a machine that does much else."""


@pytest.fixture
def at(kraft: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The shared cluster with an open connection."""
    with shared_scene(kraft, tmp_path) as opened:
        yield opened


def sides(at: Scene, topic: str) -> tuple[set[str], set[str]]:
    """The topic's throttle lists, the leaders' and the followers'."""
    standing = at.throttles(topic)
    leaders, followers = ({*standing.get(f"topic {topic} {key}", "").split(",")} for key in LISTS)
    return leaders, followers


def test_killed_in_mid_move_and_finished_by_another(at: Scene) -> None:
    """A throttled move and an election survive ``kill -9``; the next process finishes them and no throttle is left.

    A rate that a person had set on broker 1 before comes back exactly.
    """
    topic = "killed"
    at.topic(topic, {0: (1, 2), 1: (2, 1)}, mib=12)
    theirs = ConfigChange(ConfigResource("broker", "1"), "follower.replication.throttled.rate", "set", "77777777")
    at.change(theirs)
    before = at.throttles(topic)
    plan = at.plan(topic, {0: (3, 2), 1: (1, 2)}, elections=(0, 1))
    first = at.ballast("apply", str(plan), "--yes", "--throttle", "500KB")
    try:
        until(lambda: (run := at.run_of(topic)) and isinstance(run.moves[TopicPartition(topic, 0)].stage, Moving))
        becomes(lambda: sides(at, topic), ({"0:1", "0:2"}, {"0:3"}))
        becomes(
            lambda: {at.throttles(topic).get(f"broker {b} follower.replication.throttled.rate") for b in (1, 3)},
            {"500000"},
        )
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=ENDS_WITHIN_S)
    assert TopicPartition(topic, 0) in at.cluster.reassignments(), "the move goes on without its process"
    out = at.finish("runs", "resume", "--lock-wait", "60", "--output", "json")
    ended = [e for e in events(out) if e["kind"] == "RunEnded"][-1]
    assert ended["status"] == "done"
    assert ended["electionsCompleted"] == 2
    becomes(lambda: [at.replicas(TopicPartition(topic, p)) for p in (0, 1)], [(3, 2), (1, 2)])
    until(lambda: at.cluster.partitions([TopicPartition(topic, 1)])[TopicPartition(topic, 1)].leader == 1)
    becomes(lambda: at.throttles(topic), before)
    at.change(ConfigChange(theirs.resource, theirs.key, "delete"))


def test_interrupted_left_asked_to_cancel_and_rolled_back(at: Scene) -> None:
    """SIGINT without a terminal leaves (130); a second operator is told who acts (5) and asks it to cancel (8 there).

    What had arrived before the cancel goes back with rollback, and no throttle is left at any end.
    """
    topic = "asked"
    at.topic(topic, {0: (1, 2), 1: (1, 2)}, mib=1)
    at.fill(topic, range(1, 2), mib=70)
    small, large = TopicPartition(topic, 0), TopicPartition(topic, 1)
    plan = at.plan(topic, {0: (2, 3), 1: (3, 2)})
    # Minutes for the large one: it has to be on its way still when the fourth command from here asks to cancel it.
    first = at.ballast("apply", str(plan), "--yes", "--throttle", "250KB")
    until(lambda: (run := at.run_of(topic)) and isinstance(run.moves[large].stage, Moving))
    until(lambda: (run := at.run_of(topic)) and isinstance(run.moves[small].stage, Verified))
    first.send_signal(signal.SIGINT)
    _, story = first.communicate(timeout=ENDS_WITHIN_S)
    assert first.returncode == 130, story
    assert large in at.cluster.reassignments()
    second = at.ballast("runs", "resume", "--lock-wait", "60")
    # Not the first one, which may be giving it up still.
    until(lambda: (holder := at.holder()) and "runs resume" in holder.description, "the second has the lock")
    refused = at.ballast("throttles", "--clean", "--yes", "--lock-wait", "1")
    _, story = refused.communicate(timeout=ENDS_WITHIN_S)
    assert refused.returncode == 5, story
    assert "runs resume" in story
    run = at.run_of(topic)
    assert run is not None
    at.finish("cancel", run.id, "--yes")
    _, story = second.communicate(timeout=ENDS_WITHIN_S)
    assert second.returncode == 8, story
    # The small one has arrived, and stays.
    becomes(lambda: (at.replicas(large), at.replicas(small)), ((1, 2), (2, 3)))
    becomes(lambda: at.throttles(topic), {})
    at.finish("cancel", run.id)  # a run that has ended is not asked about
    at.finish("rollback", run.id, "--yes")
    becomes(lambda: at.replicas(small), (1, 2))
    becomes(lambda: at.throttles(topic), {})
    verified = json.loads(at.finish("verify", str(plan), "--output", "json", code=7))
    assert {(m["code"], tuple(m["parameters"]["replicas"])) for m in verified["mismatches"]} == {("replicas", (1, 2))}


def test_another_users_throttled_move_keeps_its_rate(at: Scene) -> None:
    """A person moves a partition under their throttle: ours waits on that broker, changes no rate of theirs, then goes on.

    It ends with what each broker had and has.
    """
    theirs, ours = "personal", "patient"
    moved = TopicPartition(theirs, 0)
    at.topic(theirs, {0: (1, 2)}, mib=10)
    at.topic(ours, {0: (1, 2)}, mib=1)
    lists = {"leader.replication.throttled.replicas": "0:1,0:2", "follower.replication.throttled.replicas": "0:3"}
    crawl, fast = (
        [
            ConfigChange(ConfigResource("broker", str(b)), f"{side}.replication.throttled.rate", "set", rate)
            for b in (1, 2, 3)
            for side in ("leader", "follower")
        ]
        for rate in ("20000", "90000000")
    )
    for change in [*(ConfigChange(ConfigResource("topic", theirs), k, "set", v) for k, v in lists.items()), *crawl]:
        at.change(change)
    before = at.throttles(ours)
    at.cluster.alter_reassignments({moved: (3, 2)})
    try:
        plan = at.plan(ours, {0: (3, 2)})
        arguments = ("--yes", "--throttle", "1=20MB,default=30MB", "--output", "json", "--guard-timeout", "240")
        first = at.ballast("apply", str(plan), *arguments)
        assert first.stdout is not None
        while (line := first.stdout.readline()) and "foreign-throttle" not in line:
            pass
        assert "throttle of 19.5 KiB/s" in line, "it waits, and says under which throttle theirs run"
        assert moved in at.cluster.reassignments()
        assert at.throttles(ours) == before, "not one rate of theirs has changed"
        for change in fast:
            at.change(change)
        out, story = first.communicate(timeout=ENDS_WITHIN_S)
        assert first.returncode == 0, story
        becomes(lambda: at.throttles(ours), {f"broker {c.resource.name} {c.key}": str(c.value) for c in fast})
    finally:
        for change in crawl:
            at.change(ConfigChange(change.resource, change.key, "delete"))
        for key in lists:
            at.change(ConfigChange(ConfigResource("topic", theirs), key, "delete"))
    figures = next(e for e in events(out) if e["kind"] == "BrokerChanges")["brokers"]
    (third,) = [b for b in figures if b["broker"] == 3]  # type: ignore[attr-defined]
    assert third["after"]["replicas"] >= third["before"]["replicas"] + 1
    becomes(lambda: at.replicas(TopicPartition(ours, 0)), (3, 2))


def test_a_run_without_a_word_about_throttles_is_throttled(at: Scene) -> None:
    """The rate is told before anybody is asked, stands while data is copied, and is gone afterwards; ``--no-throttle`` sets none."""
    topic = "by-default"
    at.topic(topic, {0: (1, 2), 1: (2, 1)}, mib=12)
    before = at.throttles(topic)
    plan = str(at.plan(topic, {0: (3, 2), 1: (3, 1)}))
    unasked = at.ballast("apply", plan)
    _, story = unasked.communicate(timeout=ENDS_WITHIN_S)
    assert unasked.returncode == 2, "there is no terminal to ask on"
    told = story.index("Throttle: 32.0 MiB/s on brokers 1, 2, 3")
    assert told < story.index("Copying takes about") < story.index("--no-throttle") < story.index("--yes")
    assert at.throttles(topic) == before

    heard = events(at.finish("apply", plan, "--yes", "--output", "json"))
    (pace,) = [e for e in heard if e["kind"] == "RunThrottle"]
    rates = {b["broker"]: (b["bytesPerS"], b["basis"]) for b in pace["brokers"]}  # type: ignore[attr-defined]
    assert rates == dict.fromkeys((1, 2, 3), (32 << 20, "small"))
    assert {(e["partition"], e["after"]) for e in heard if e["kind"] == "MoveChanged"} >= {
        (0, "throttled"),
        (1, "throttled"),
    }
    becomes(lambda: at.throttles(topic), before)

    back = str(at.plan(topic, {0: (1, 2), 1: (2, 1)}))
    heard = events(at.finish("apply", back, "--yes", "--no-throttle", "--output", "json"))
    assert not [e for e in heard if e["kind"] == "RunThrottle" or e.get("after") == "throttled"]
    becomes(lambda: at.replicas(TopicPartition(topic, 0)), (1, 2))


def test_kafkas_own_placement_is_planned_and_executed(at: Scene, tmp_path: Path) -> None:
    """``plan place`` gives the lists of the classic algorithm, ``apply`` makes them so, and asked again nothing is left to do."""
    topic = "placed"
    at.topic(topic, dict.fromkeys(range(4), (1, 2)), mib=1)
    file = tmp_path / "place.json"
    asked = ("plan", "place", topic, "--start", "1", "--shift", "0")
    at.finish(*asked, "--save", str(file))
    at.finish("apply", str(file), "--yes")
    racks = {b.id: b.rack for b in at.cluster.snapshot().brokers}
    members = [BrokerMetadata(b, racks[b]) for b in sorted(racks)]
    wanted = assign_replicas(members, 4, 2, start_index=1, replica_shift=0)
    becomes(lambda: {p: at.replicas(TopicPartition(topic, p)) for p in wanted}, wanted)
    assert at.finish(*asked, "--check", "--output", "json")
