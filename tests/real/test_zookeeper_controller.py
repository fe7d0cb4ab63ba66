"""Ballast's leader imbalance and placement next to a real ZooKeeper-mode controller that rebalances leaders by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.leadership import imbalance
from ballast.core.leadership.elections import elections
from ballast.core.placement import BrokerMetadata, assign_replicas, expand_replicas
from ballast.ports.cluster import Cluster
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import ensure_java
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

STOCK = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
CHECK_INTERVAL_S = 12
"""Far longer than a repair takes to be seen and the next case to be laid out, on a busy machine as well."""
PATIENCE_S = 90
PER_BROKER = 18


@dataclass(frozen=True)
class Rebalancing:
    """A cluster of four brokers in two racks whose controller looks after leaders each few seconds."""

    sandbox: Sandbox
    cluster: Cluster

    def read(self) -> ClusterState:
        """The cluster as it is now."""
        return self.cluster.snapshot(log_dirs=False, configs=False)

    def until(self, what: str, holds: Callable[[ClusterState], bool]) -> ClusterState:
        """Read until it holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds(state := self.read()):
            assert time.monotonic() < deadline, f"{what} did not come to pass in {PATIENCE_S} s"
            time.sleep(0.2)
        return state

    def skew(self, source: int, counts: dict[int, int]) -> dict[TopicPartition, int]:
        """Make each broker the first replica of so many partitions that ``source`` goes on leading."""
        state = self.read()
        new: dict[TopicPartition, tuple[int, ...] | None] = {}
        wanted: dict[TopicPartition, int] = {}
        for row in range(len(state.partitions)):
            name, target = state.name(row), state.target(row)
            second = target[1]
            if (
                name.topic == "skewed"
                and int(state.partitions.leader[row]) == target[0] == source
                and counts.get(second)
            ):
                counts = {**counts, second: counts[second] - 1}
                new[name] = (second, target[0])
                wanted[name] = second
        assert not any(counts.values()), "not enough partitions to skew"
        outcomes = self.cluster.alter_reassignments(new)
        assert all(o.ok for o in outcomes.values()), outcomes
        return wanted


@pytest.fixture(scope="module")
def rebalancing() -> Iterator[Rebalancing]:
    """A topic whose every broker leads the same number of partitions and is second for as many."""
    spec = SandboxSpec(
        brokers=4,
        racks=2,
        mode="zookeeper",
        kafka_version="3.9.2",
        broker_configs={
            "auto.leader.rebalance.enable": "true",
            "leader.imbalance.check.interval.seconds": str(CHECK_INTERVAL_S),
            "leader.imbalance.per.broker.percentage": "10",
        },
    )
    with Sandbox.up(spec) as sandbox:
        opened = open_cluster(bootstrap_server=sandbox.bootstrap_server, zookeeper=sandbox.zookeeper)
        with opened:
            found = Rebalancing(sandbox, opened.cluster)
            pairs = [(1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (4, 1), (2, 3), (3, 2), (2, 4), (4, 2), (3, 4), (4, 3)]
            opened.cluster.create_topic("skewed", {i: pairs[i % 12] for i in range(PER_BROKER * 4)})
            found.until("leaders at home", lambda s: "skewed" in s.topic_index and imbalance(s, 0).over_ids == ())
            yield found


def leaders(state: ClusterState) -> dict[TopicPartition, int]:
    """Who leads what."""
    return {state.name(row): int(leader) for row, leader in enumerate(state.partitions.leader.tolist())}


def test_the_controller_acts_on_the_brokers_that_ballast_names(rebalancing: Rebalancing) -> None:
    """Over the threshold is repaired; exactly on it and below it is left alone, check after check."""
    assert [b.preferred for b in imbalance(rebalancing.read())] == [PER_BROKER] * 4
    # Right after one repair the next check is far enough away to look at what it will find.
    first = rebalancing.skew(2, {4: 6})
    rebalancing.until("the first election", lambda s: all(leaders(s)[n] == b for n, b in first.items()))
    # Broker 1 comes to 6 of 24, broker 3 to 2 of 20, which are exactly ten percent, broker 2 to 1 of 13.
    wanted = rebalancing.skew(4, {1: 6, 3: 2, 2: 1})
    state = rebalancing.until(
        "replica_list_changes", lambda s: all(s.target(s.index[n])[0] == b for n, b in wanted.items())
    )
    named = imbalance(state)
    assert named.over_ids == (1,), [(b.broker, b.preferred, b.not_led) for b in named]
    assert named[3].preferred == 10 * named[3].not_led, "the case is meant to be exactly on the threshold"
    chosen = set(elections(state, named.over_ids))
    assert chosen == {name for name, broker in wanted.items() if broker == 1}
    at_the_limit = {name: leader for name, leader in leaders(state).items() if name in wanted and name not in chosen}

    rebalancing.until("the controller's election", lambda s: all(leaders(s)[n] == wanted[n] for n in chosen))
    # One skew more, on another broker: its repair shows that the controller has looked at all of them again.
    again = rebalancing.skew(1, {4: 6})
    after = rebalancing.until("the last election", lambda s: all(leaders(s)[n] == b for n, b in again.items()))
    assert {name: leaders(after)[name] for name in at_the_limit} == at_the_limit
    assert imbalance(after).over_ids == ()


def test_generate_is_the_stock_tools_of_that_version(rebalancing: Rebalancing, tmp_path: Path) -> None:
    """The 3.9 tool places by the classic algorithm: same text, and each of its draws is some start and shift of ours."""
    sandbox = rebalancing.sandbox
    rebalancing.cluster.create_topic("generated", dict.fromkeys(range(9), (1, 2, 3)))
    rebalancing.until("the topic", lambda s: sum(n.topic == "generated" for n in s.index) == 9)
    file = tmp_path / "topics.json"
    file.write_text('{"topics": [{"topic": "generated"}], "version": 1}')
    asked = ["--generate", "--topics-to-move-json-file", str(file), "--broker-list", "1,2,3,4"]
    asked += ["--bootstrap-server", sandbox.bootstrap_server]
    path = ":".join(map(str, ensure_jars("kafka-tools-3.9.2")))
    stock_tool = [ensure_java().executable, "-Xmx128m", "-cp", path, STOCK]
    brokers = [BrokerMetadata(b, sandbox.spec.rack_of(b)) for b in sandbox.broker_ids]
    known = [
        list(assign_replicas(brokers, 9, 3, start_index=start, replica_shift=shift).values())
        for start in range(4)
        for shift in range(4)
    ]
    answers = []
    for tool in ([sys.executable, "-m", "ballast", "reassign"], stock_tool):
        result = subprocess.run([*tool, *asked], capture_output=True, text=True, timeout=120, check=True)
        *rest, proposal = result.stdout.splitlines()
        answers.append(rest)
        assert [tuple(p["replicas"]) for p in json.loads(proposal)["partitions"]] in known
    assert answers[0] == answers[1]


def test_an_expansion_is_foretold(rebalancing: Rebalancing) -> None:
    """Where the controller puts new partitions is known beforehand, racks and start index included; so says the command."""
    sandbox, cluster = rebalancing.sandbox, rebalancing.cluster
    cluster.create_topic("growing", {0: (3, 2), 1: (2, 1), 2: (1, 4)})
    rebalancing.until("the topic", lambda s: "growing" in s.topic_index and len(_lists(s)) == 3)
    brokers = [BrokerMetadata(b, sandbox.spec.rack_of(b)) for b in sandbox.broker_ids]
    foretold = expand_replicas(brokers, {0: (3, 2), 1: (2, 1), 2: (1, 4)}, 14)
    command = [
        sys.executable,
        "-m",
        "ballast",
        "topics",
        "add-partitions",
        "growing",
        "--partitions",
        "14",
        "--dry-run",
    ]
    command += ["--output", "json", "--bootstrap-server", sandbox.bootstrap_server]
    shown = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    assert {p["partition"]: tuple(p["replicas"]) for p in shown["partitions"]} == foretold

    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    for future in admin.create_partitions([NewPartitions("growing", 14)]).values():
        future.result(timeout=60)
    state = rebalancing.until("the partitions", lambda s: len(_lists(s)) == 14)
    assert {number: lists for number, lists in _lists(state).items() if number >= 3} == foretold


def _lists(state: ClusterState) -> dict[int, tuple[int, ...]]:
    return {name.partition: state.target(row) for name, row in state.index.items() if name.topic == "growing"}
