"""Ballast's ``reassign`` beside Kafka's own tool on one cluster: same words, same codes, and each finishes the other's work."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.real.execution_scene import LISTS, RATES, Scene, shared_scene
from tests.real.stock_tool import ours, stock
from tests.waiting import becomes, until

from ballast.core.cluster import TopicPartition
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka


@pytest.fixture
def at(kraft: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The shared cluster with an open connection."""
    with shared_scene(kraft, tmp_path) as opened:
        yield opened


def moves_file(at: Scene, topic: str, wanted: Mapping[int, tuple[int, ...]]) -> str:
    """A reassignment file."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(r)} for p, r in wanted.items()]
    path = at.folder / f"{topic}.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def hurried(at: Scene, name: TopicPartition, replicas: tuple[int, ...], rate: str) -> None:
    """Let a move end that is too slow at the rate that all brokers have, and set that rate again."""
    rates = [(ConfigResource("broker", str(b)), key) for b in at.sandbox.broker_ids for key in RATES]
    for broker, key in rates:
        at.change(ConfigChange(broker, key, "set", "50000000"))
    until(lambda: at.replicas(name) == replicas)
    for broker, key in rates:
        at.change(ConfigChange(broker, key, "set", rate))


def test_execute_returns_at_once_and_cleans_up_by_itself(at: Scene) -> None:
    """--execute prints the old assignment and starts; throttles go when the move has ended, also without --verify."""
    topic = "stockexec"
    at.topic(topic, {0: (1, 2)}, mib=6)
    theirs = ConfigChange(ConfigResource("broker", "2"), "leader.replication.throttled.rate", "set", "66666666")
    at.change(theirs)
    before = at.throttles(topic)
    path = moves_file(at, topic, {0: (3, 2)})
    answer = ours(at, "--execute", "--reassignment-json-file", path, "--throttle", "1000000")
    assert answer.code == 0, answer.out
    assert '"replicas":[1,2]' in answer.out
    assert f"Successfully started partition reassignment for {topic}-0" in answer.out
    assert "The inter-broker throttle limit was set to 1000000 B/s" in answer.out
    until(lambda: at.replicas(TopicPartition(topic, 0)) == (3, 2))
    becomes(lambda: at.throttles(topic), before)
    until(at.rests, "the follower to release the lock")
    at.change(ConfigChange(theirs.resource, theirs.key, "delete"))
    done = stock(at, "--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert done == ours(at, "--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert f"Reassignment of partition {topic}-0 is completed." in done.out


def test_execute_throttles_by_itself_unless_told_not_to(at: Scene) -> None:
    """Without a rate one is chosen and told, and it goes with the move; --no-throttle sets none, nor does the stock tool."""
    topic = "stockpace"
    at.topic(topic, {0: (1, 2)}, mib=6)
    there = moves_file(at, topic, {0: (3, 2)})
    chosen = at.ballast("reassign", "--execute", "--reassignment-json-file", there)
    out, said = chosen.communicate(timeout=240)
    assert chosen.returncode == 0, said
    assert "Throttle: 32.0 MiB/s" in said
    assert "throttle" not in out, "the stock tool's words are as without a throttle"
    until(lambda: at.replicas(TopicPartition(topic, 0)) == (3, 2))
    until(at.rests, "the run's process to release the lock")
    becomes(lambda: at.throttles(topic), {})
    (run,) = list(at.runs().values())[-1:]
    assert run.policy.throttle == "auto"
    back = moves_file(at, topic, {0: (1, 2)})
    free = at.ballast("reassign", "--execute", "--reassignment-json-file", back, "--no-throttle")
    _, said = free.communicate(timeout=240)
    assert (free.returncode, "Throttle: " in said) == (0, False), said
    until(lambda: at.replicas(TopicPartition(topic, 0)) == (1, 2))
    until(at.rests, "the run's process to release the lock")
    (run,) = list(at.runs().values())[-1:]
    assert run.policy.throttle == "none"


def test_verify_finishes_what_the_stock_tool_started(at: Scene) -> None:
    """A throttled move of the stock tool is seen, told in its words, and its stale throttle is taken away."""
    topic = "stockleft"
    at.topic(topic, {0: (1, 2)}, mib=20)
    path = moves_file(at, topic, {0: (3, 2)})
    assert stock(at, "--execute", "--reassignment-json-file", path, "--throttle", "50000").code == 0
    its_own = {f"broker {b} {key}" for b in "123" for key in RATES} | {f"topic {topic} {key}" for key in LISTS}
    becomes(lambda: at.throttles(topic).keys(), its_own)
    standing = at.throttles(topic)
    assert "is still in progress" in ours(at, "--verify", "--reassignment-json-file", path).out
    hurried(at, TopicPartition(topic, 0), (3, 2), "50000")
    assert at.throttles(topic) == standing, "the stock tool leaves its throttle behind"
    kept = ours(at, "--verify", "--reassignment-json-file", path)
    assert (kept.code, "Clearing" in kept.out, at.throttles(topic)) == (0, False, standing), (
        "nothing of it is Ballast's"
    )
    answer = ours(at, "--verify", "--reassignment-json-file", path, "--clear-throttles")
    assert answer.code == 0, answer.out
    assert "Clearing broker-level throttles on brokers 1,2,3" in answer.out
    becomes(lambda: at.throttles(topic), {})


def test_cancel_of_a_stock_move_puts_it_back(at: Scene) -> None:
    """--cancel cancels what the stock tool started, with its words; a second one finds nothing active.

    Kafka has forgotten the order before the stock tool's move, and Ballast's journal never knew it.
    """
    topic = "stockcancel"
    at.topic(topic, {0: (1, 2)}, mib=20)
    path = moves_file(at, topic, {0: (3, 2)})
    assert stock(at, "--execute", "--reassignment-json-file", path, "--throttle", "50000").code == 0
    answer = ours(at, "--cancel", "--reassignment-json-file", path, "--clear-throttles")
    assert answer.code == 0, answer.out
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in answer.out
    until(lambda: sorted(at.replicas(TopicPartition(topic, 0))) == [1, 2])
    becomes(lambda: at.throttles(topic), {})
    assert "None of the specified partition reassignments are active." in (
        ours(at, "--cancel", "--reassignment-json-file", path).out
    )


def test_existing_moves_stop_execute_with_the_stock_words(at: Scene) -> None:
    """Without --additional a move in flight stops --execute with code 1, in the stock tool's words."""
    topic = "stockbusy"
    at.topic(topic, {0: (1, 2), 1: (1, 2)}, mib=20)
    first = moves_file(at, topic, {0: (3, 2)})
    assert stock(at, "--execute", "--reassignment-json-file", first, "--throttle", "50000").code == 0
    theirs = stock(at, "--execute", "--reassignment-json-file", first)
    assert theirs.code == 1
    assert ours(at, "--execute", "--reassignment-json-file", first) == theirs
    answer = ours(at, "--cancel", "--reassignment-json-file", first, "--clear-throttles")
    assert answer.code == 0, answer.out
    becomes(lambda: at.throttles(topic), {})


def test_another_count_is_refused_in_the_stock_words(at: Scene) -> None:
    """With --disallow-replication-factor-change, and nothing is begun; a file that keeps every count is executed."""
    topic = "stockcount"
    at.topic(topic, {0: (1, 2), 1: (1, 2), 2: (1, 2)})
    path = moves_file(at, topic, {0: (1, 2, 3), 1: (2,)})
    asked = ("--execute", "--reassignment-json-file", path, "--disallow-replication-factor-change")
    runs = at.runs().keys()
    answers = (stock(at, *asked), ours(at, *asked))
    assert answers[0].out == answers[1].out
    assert '"log_dirs":["any"' not in answers[1].out
    for answer in answers:
        assert answer.code == 1
        assert answer.out.splitlines()[-3:] == [
            "Error reassigning partition(s):",
            f"{topic}-0: The replication factor is changed from 2 to 3",
            f"{topic}-1: The replication factor is changed from 2 to 1",
        ]
    assert at.runs().keys() == runs
    assert at.throttles(topic) == {}
    path = moves_file(at, topic, {0: (2, 3), 2: (2, 1)})
    answer = ours(at, *asked)
    assert answer.code == 0, answer.out
    until(lambda: at.replicas(TopicPartition(topic, 0)) == (2, 3))
    until(at.rests, "the follower to release the lock")


def test_additional_moves_are_followed_by_one_follower(at: Scene) -> None:
    """The follower of the first moves ends, the next one follows both to their ends, and restores both lists.

    The first rate would never let its move end; a person raises it once the second move has begun, and it is theirs then.
    """
    first, second = "stockfirst", "stockmore"
    at.topic(first, {0: (1, 2)}, mib=6)
    at.topic(second, {0: (1, 2)})
    one, more = moves_file(at, first, {0: (3, 2)}), moves_file(at, second, {0: (2, 3)})
    assert ours(at, "--execute", "--reassignment-json-file", one, "--throttle", "1000").code == 0
    answer = ours(at, "--execute", "--reassignment-json-file", more, "--throttle", "1000", "--additional")
    assert answer.code == 0, answer.out
    assert f"Successfully started partition reassignment for {second}-0" in answer.out
    assert f"{first}-0: replicas: " in stock(at, "--list").out, "the first goes on under its throttle"
    rates = [(ConfigResource("broker", str(b)), key) for b in at.sandbox.broker_ids for key in RATES]

    def arrived_in_a_hurry() -> bool:
        at.cluster.alter_configs([ConfigChange(broker, key, "set", "50000000") for broker, key in rates])
        return at.replicas(TopicPartition(first, 0)) == (3, 2) and at.replicas(TopicPartition(second, 0)) == (2, 3)

    until(arrived_in_a_hurry, every_s=1.0)
    until(at.rests, "the follower to release the lock")
    assert {r.status.value for r in list(at.runs().values())[-2:]} == {"done"}
    at.cluster.alter_configs([ConfigChange(broker, key, "delete") for broker, key in rates])
    until(lambda: at.throttles(first) == at.throttles(second) == {})


def test_our_own_move_is_cancelled_while_its_follower_follows_it(at: Scene) -> None:
    """The follower ends and the order before comes back: this time the journal knows it."""
    topic = "stockkept"
    at.topic(topic, {0: (1, 2)}, mib=16)
    path = moves_file(at, topic, {0: (2, 3)})
    assert ours(at, "--execute", "--reassignment-json-file", path, "--throttle", "1000").code == 0
    answer = ours(at, "--cancel", "--reassignment-json-file", path)
    assert answer.code == 0, answer.out
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in answer.out
    until(lambda: at.replicas(TopicPartition(topic, 0)) == (1, 2))
    becomes(lambda: at.throttles(topic), {})


@pytest.mark.parametrize("action", ["--verify", "--cancel"])
def test_what_a_person_had_set_outlives_our_own_execute(at: Scene, action: str) -> None:
    """Their rates, and their list on the topic: restored when the move ends, and left by --verify or --cancel."""
    topic = f"stocktheirs{action.strip('-')}"
    at.topic(topic, {0: (1, 2), 1: (1, 2)}, mib=2)
    theirs = [ConfigChange(ConfigResource("broker", b), key, "set", "77000000") for b in "12" for key in RATES]
    theirs += [ConfigChange(ConfigResource("topic", topic), key, "set", "1:1,1:2") for key in LISTS]
    for change in theirs:
        at.change(change)
    before = at.throttles(topic)
    path = moves_file(at, topic, {0: (3, 2)})
    assert ours(at, "--execute", "--reassignment-json-file", path, "--throttle", "2000000").code == 0
    if action == "--verify":
        until(lambda: at.replicas(TopicPartition(topic, 0)) == (3, 2))
    for _ in range(2):
        answer = ours(at, action, "--reassignment-json-file", path)
        assert answer.code == 0, answer.out
    until(at.rests, "the follower to release the lock")
    becomes(lambda: at.throttles(topic), before)
    for change in theirs:
        at.change(ConfigChange(change.resource, change.key, "delete"))


def cancel_at(at: Scene, path: str, wait_s: float | None) -> tuple[subprocess.Popen[str], Callable[[], bool]]:
    """A cancel that has begun, and whether that long has passed; None: whether it has taken the lock, right before it sends."""
    begun_s = time.monotonic()
    process = at.ballast("reassign", "--cancel", "--reassignment-json-file", path, "--clear-throttles")
    if wait_s is None:
        return process, lambda: process.poll() is not None or "--cancel" in getattr(at.holder(), "description", "")
    return process, lambda: time.monotonic() - begun_s >= wait_s


@pytest.mark.parametrize("mover", ["another-user", "ballast"])
def test_a_cancel_that_races_the_end_of_its_move_says_what_came_of_it(at: Scene, mover: str) -> None:
    """The move goes on at another moment of the cancel in each round: it is cancelled, had ended, or there is a reason.

    What is said is where the partition is then.  The order before another user's move comes back by chance alone: Kafka forgot it.
    """
    topic = f"stockrace-{mover}"

    def order(replicas: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(replicas)) if mover == "another-user" else replicas

    name = TopicPartition(topic, 0)
    at.topic(topic, {0: (1, 2)}, mib=16)
    rates = [(ConfigResource("broker", str(b)), key) for b in at.sandbox.broker_ids for key in RATES]
    found = set()
    for wait_s in (None, 1.0, 2.0):
        old = at.replicas(name)
        new = (3, 2) if sorted(old) == [1, 2] else (1, 2)
        path = moves_file(at, topic, {0: new})
        if mover == "ballast":
            assert ours(at, "--execute", "--reassignment-json-file", path, "--throttle", "1000").code == 0
        else:
            assert stock(at, "--execute", "--reassignment-json-file", path, "--throttle", "1000").code == 0
        process, moment = cancel_at(at, path, wait_s)
        until(moment, "the moment at which the move goes on", every_s=0.02)
        at.cluster.alter_configs([ConfigChange(broker, key, "set", "50000000") for broker, key in rates])
        out, story = process.communicate(timeout=240)
        becomes(lambda: at.cluster.reassignments().get(name), None)
        until(at.rests, "the follower to release the lock")
        # The controller lists the move no more; the broker that is asked for the replicas may not have heard of it.
        becomes(lambda: len(at.replicas(name)), 2)
        now = at.replicas(name)
        if process.returncode == 1:
            found.add("refused")
            assert re.search(
                rf"^Error cancelling partition reassignment for:\n{topic}-0: .{{10,}}$", out, re.MULTILINE
            ), out
        else:
            assert process.returncode == 0, f"{out}\n{story}"
            was_cancelled = f"Successfully cancelled partition reassignment for: {topic}-0" in out
            found.add("cancelled" if was_cancelled else "ended")
            assert was_cancelled != ("None of the specified partition reassignments are active." in out), out
            assert order(now) == order(old if was_cancelled else new), f"{out}\n{story}"
            if wait_s is None and not was_cancelled:
                assert f"{name} was moved already when the cancel came" in story, f"{out}\n{story}"
        assert order(now) in {order(old), order(new)}
        at.cluster.alter_configs([ConfigChange(broker, key, "delete") for broker, key in rates])
        if process.returncode == 1:
            # A cancel that did not come about leaves the lists of other users where they are.
            lists = [ConfigChange(ConfigResource("topic", topic), key, "delete") for key in LISTS]
            at.cluster.alter_configs(lists)
        becomes(lambda: at.throttles(topic), {})
    assert found & {"cancelled", "ended"}


def test_clean_takes_what_the_stock_tool_left_and_nothing_else(at: Scene) -> None:
    """Nothing while its move needs it; afterwards lists and rates with the proof, empty lists, and not a person's rate."""
    topic = "stockstale"
    at.topic(topic, {0: (1, 2)})
    theirs = ConfigChange(ConfigResource("broker", "3"), "leader.replication.throttled.rate", "set", "66666666")
    at.change(theirs)
    path = moves_file(at, topic, {0: (2, 1)})
    grown = moves_file(at, "stockstale2", {0: (1, 2)})
    at.topic("stockstale2", {0: (1,)}, mib=6)
    assert stock(at, "--execute", "--reassignment-json-file", grown, "--throttle", "20000").code == 0
    rates = {f"broker {b} {key}" for b in "12" for key in RATES}
    lists = {f"topic stockstale2 {key}" for key in LISTS}
    until(lambda: at.throttles("stockstale2").keys() >= rates | lists, "the stock tool's throttle")
    standing = at.throttles("stockstale2")
    assert json.loads(at.finish("throttles", "--clean", "--yes", "--output", "json"))["removed"] == []
    assert at.throttles("stockstale2") == standing
    # The test does not wait for the rest of the five minutes that this rate would take.
    hurry = [(b, f"{side}.replication.throttled.rate") for b in "12" for side in ("leader", "follower")]
    for broker, key in hurry:
        at.change(ConfigChange(ConfigResource("broker", broker), key, "set", "50000000"))
    until(lambda: at.in_sync(TopicPartition("stockstale2", 0)) == {1, 2})
    assert stock(at, "--execute", "--reassignment-json-file", path, "--throttle", "500000").code == 0
    at.topic("stockempty", {0: (1, 2)})
    at.change(ConfigChange(ConfigResource("topic", "stockempty"), "leader.replication.throttled.replicas", "set", ""))
    told = json.loads(at.finish("throttles", "--output", "json"))["throttles"]
    shown = json.loads(at.finish("status", "--output", "json"))["throttles"]
    assert {(t["resourceType"], t["resourceName"], t["key"], t["stale"], t["detail"]) for t in shown} == {
        (t["resourceType"], t["resourceName"], t["key"], t["stale"], t["detail"]) for t in told
    }
    assert "stockempty" not in {t["resourceName"] for t in told}
    why = {(t["resourceName"], t["key"]): t["detail"] for t in told if t["stale"]}
    assert "no replica of stockstale2 is moving" in why["stockstale2", "leader.replication.throttled.replicas"]
    out = json.loads(at.finish("throttles", "--clean", "--yes", "--output", "json"))
    assert {"stockstale2", "stockempty", "1", "2"} <= {r["resourceName"] for r in out["removed"]}
    becomes(lambda: [k for k in at.throttles("stockempty") if k.startswith("topic")], [])
    becomes(lambda: at.throttles("stockstale2"), {"broker 3 leader.replication.throttled.rate": "66666666"})
    at.change(ConfigChange(theirs.resource, theirs.key, "delete"))
