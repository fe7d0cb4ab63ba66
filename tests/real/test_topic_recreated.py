"""A topic is deleted and recreated under a run, on real brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.real.execution_scene import LISTS, Scene, events, shared_scene
from tests.waiting import until

from ballast.core.cluster import TopicPartition
from ballast.errors import Refused
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka


@pytest.fixture
def s(kraft: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The shared cluster."""
    with shared_scene(kraft, tmp_path) as found:
        yield found


def test_a_plan_made_before_is_refused(s: Scene, tmp_path: Path) -> None:
    """Same name, same replicas, another topic: refused by name before anything is asked, and a new plan is for the new one."""
    topic = "planned-before"
    s.topic(topic, {0: (1, 2)}, mib=1)
    admin = AdminClient({"bootstrap.servers": s.sandbox.bootstrap_server})
    saved = tmp_path / "saved.json"
    made = s.ballast("plan", "decommission", "1", "--topics", topic, "--save", str(saved))
    assert made.wait(120) == 0, made.communicate()
    assert topic in json.loads(saved.read_text())["topicIds"]
    admin.delete_topics([topic])[topic].result(30)
    new = NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]])
    until(lambda: created(admin, new), "another topic of its name is made")
    until(lambda: s.replicas(TopicPartition(topic, 0)) == (1, 2), "it is there")
    process = s.ballast("apply", "--yes", "--no-throttle", str(saved))
    out, story = process.communicate(timeout=120)
    assert process.returncode == Refused.exit_code, (out, story)
    assert topic in story
    assert s.replicas(TopicPartition(topic, 0)) == (1, 2)
    process = s.ballast("apply", "--yes", "--no-throttle", "--on-drift", "replan", str(saved))
    out, story = process.communicate(timeout=240)
    assert process.returncode == 0, (out, story)
    # The run asked another connection, perhaps another broker: this one may show the union of the move still.
    until(lambda: (now := s.replicas(TopicPartition(topic, 0))) and 1 not in now, "it has left broker 1")
    admin.delete_topics([topic])[topic].result(30)


def created(admin: AdminClient, new: NewTopic) -> bool:
    """Whether it could be made: the deletion of the one before may still be on its way."""
    try:
        admin.create_topics([new])[new.topic].result(30)
    except KafkaException:
        return False
    return True


def test_a_run_leaves_the_new_topic_alone(s: Scene) -> None:
    """The move ends by name; replicas and throttle lists of the new topic are as they were made."""
    topic, theirs = "made-again", "0:1,0:3"
    s.topic(topic, {0: (1, 2)}, mib=8)
    admin = AdminClient({"bootstrap.servers": s.sandbox.bootstrap_server})
    process = s.ballast("apply", "--yes", "--throttle", "200KB", "--output", "json", str(s.plan(topic, {0: (3, 2)})))
    until(lambda: bool(s.cluster.reassignments()), "the move is in flight")
    until(lambda: bool([k for k in s.throttles(topic) if k.startswith("topic")]), "its throttle stands")
    admin.delete_topics([topic])[topic].result(30)
    new = NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]], config=dict.fromkeys(LISTS, theirs))
    until(lambda: created(admin, new), "another topic of its name is made")
    out, story = process.communicate(timeout=120)
    assert process.returncode == 7, (out, story)
    result: dict[str, Any] = [e for e in events(out) if e["kind"] == "RunEnded"][-1]
    assert [e["outcome"] for e in result["endings"]] in (["topic-recreated"], ["deleted"]), out
    assert result["throttlesToRestore"] == []
    assert s.replicas(TopicPartition(topic, 0)) == (1, 2)
    assert {k: v for k, v in s.throttles(topic).items() if k.startswith("topic")} == {
        f"topic {topic} {key}": theirs for key in LISTS
    }
    admin.delete_topics([topic])[topic].result(30)
