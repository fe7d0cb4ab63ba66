"""``ballast topics create`` and ``ballast topics add-partitions`` on a real cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.waiting import PATIENCE_S, becomes

from ballast.cli.commands.topics.command import topics as group
from ballast.core.placement import Assignment, BrokerMetadata
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.kraft import place_kraft
from ballast.errors import UsageError
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka


def topics(sandbox: Sandbox, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``ballast topics`` as a script runs it: there is no user to ask."""
    command = [sys.executable, "-m", "ballast", "topics", *arguments, "--bootstrap-server", sandbox.bootstrap_server]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)


def shown(result: subprocess.CompletedProcess[str]) -> Assignment:
    """The placement in a JSON answer."""
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return {p["partition"]: tuple(p["replicas"]) for p in document["partitions"]}


def placed(sandbox: Sandbox, topic: str, count: int) -> Assignment:
    """What the cluster made of it, once it has ``count`` partitions."""
    deadline = time.monotonic() + PATIENCE_S
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        while True:
            state = opened.cluster.snapshot(log_dirs=False, configs=False)
            found = {name.partition: state.target(row) for name, row in state.index.items() if name.topic == topic}
            if len(found) == count or time.monotonic() > deadline:
                return found
            time.sleep(0.1)


def test_create_places_as_shown_and_a_seed_repeats_it(kraft: Sandbox) -> None:
    """The table or document is what the cluster then has, settings included; a dry run changes nothing."""
    asked = ("create", "made", "--partitions", "7", "--replication-factor", "2", "--seed", "11", "--output", "json")
    foretold = shown(topics(kraft, *asked, "--dry-run"))
    brokers = [BrokerMetadata(b, kraft.spec.rack_of(b)) for b in kraft.broker_ids]
    assert foretold == place_kraft(brokers, 7, 2, JavaRandom(11))
    assert shown(topics(kraft, *asked, "--topic-config", "retention.ms=60000")) == foretold
    assert placed(kraft, "made", 7) == foretold
    with open_cluster(bootstrap_server=kraft.bootstrap_server) as opened:

        def retention() -> str | None:
            state = opened.cluster.snapshot(log_dirs=False)
            row = state.topic_index.get("made")
            found = state.topics[row].configs.get("retention.ms") if row is not None else None
            return found.value if found is not None else None

        becomes(retention, "60000")
    again = topics(kraft, *asked)
    assert again.returncode == 2
    assert "Topic made exists." in again.stderr


def test_what_the_controller_draws_is_among_our_samples(kraft: Sandbox) -> None:
    """A live controller's seed is unknown; with three racks of one broker its first round has few outcomes, all known."""
    admin = AdminClient({"bootstrap.servers": kraft.bootstrap_server})
    brokers = [BrokerMetadata(b, kraft.spec.rack_of(b)) for b in kraft.broker_ids]
    rngs = [JavaRandom(seed * 0x9E3779B97F4A) for seed in range(200)]
    samples = {tuple(place_kraft(brokers, 3, 2, rng).values()) for rng in rngs}
    assert len(samples) < 10, "else the test could not fail"
    for future in admin.create_topics([NewTopic("sampled", 3, 2)]).values():
        future.result(timeout=60)
    drawn = placed(kraft, "sampled", 3)
    assert tuple(drawn[i] for i in range(3)) in samples
    for future in admin.create_partitions([NewPartitions("sampled", 6)]).values():
        future.result(timeout=60)
    grown = placed(kraft, "sampled", 6)
    assert {i: grown[i] for i in range(3)} == drawn
    assert tuple(grown[i] for i in range(3, 6)) in samples


def test_expand_adds_as_shown_and_leaves_the_old_alone(kraft: Sandbox) -> None:
    """By algorithm, then by hand with all partitions listed."""
    topics(kraft, "create", "grown", "--replica-assignment", "1:2,2:3")
    assert placed(kraft, "grown", 2) == {0: (1, 2), 1: (2, 3)}
    added = shown(topics(kraft, "add-partitions", "grown", "--partitions", "5", "--output", "json"))
    assert sorted(added) == [2, 3, 4]
    assert placed(kraft, "grown", 5) == {0: (1, 2), 1: (2, 3)} | added
    by_hand = topics(
        kraft, "add-partitions", "grown", "--partitions", "6", "--replica-assignment", "1:2,2:3,1:2,1:2,1:2,3:1"
    )
    assert by_hand.returncode == 0, by_hand.stderr
    assert "PARTITION  REPLICAS" in by_hand.stdout
    assert placed(kraft, "grown", 6)[5] == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("create", "x", "--partitions", "2"), "--partitions and --replication-factor go together."),
        (("create", "x"), "Give either --partitions and --replication-factor, or --replica-assignment."),
        (("create", "x", "--replica-assignment", "1:2", "--partitions", "1"), "Give either"),
        (("create", "x", "--replica-assignment", "1:9"), "broker 9, which is not available"),
        (("create", "x", "--replica-assignment", "1:2,1"), "different replication factor"),
        (("create", "x", "--partitions", "0", "--replication-factor", "1"), "must be larger than 0"),
        (("create", "x", "--partitions", "1", "--replication-factor", "4"), "available brokers, 3"),
        (("create", "x", "--replica-assignment", "1:2", "--topic-config", "oops"), "KEY=VALUE"),
        (("create", "a b", "--partitions", "1", "--replication-factor", "1", "--dry-run"), "cannot be called 'a b'"),
        (("add-partitions", "nowhere", "--partitions", "3"), "Topic nowhere does not exist."),
    ],
)
def test_refusals_name_the_reason_and_change_nothing(kraft: Sandbox, arguments: tuple[str, ...], reason: str) -> None:
    """A usage error with a sentence, and no topic."""
    asked = [*arguments, "--bootstrap-server", kraft.bootstrap_server]
    failure = CliRunner().invoke(group, asked).exception
    assert isinstance(failure, UsageError)
    assert reason in str(failure)
    assert placed(kraft, "x", 0) == {}
