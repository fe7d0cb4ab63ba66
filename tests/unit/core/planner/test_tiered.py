"""Plans for tiered topics: what a new replica copies is said, and where it may be less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ballast.cli.commands.plan.view import cost_lines
from ballast.core.cluster import UNKNOWN, Broker, ClusterState, ConfigValue, LogDir, PartitionRow, Topic, build
from ballast.core.cluster.tiered import LAST_TIERED_OFFSET
from ballast.core.plan import Plan
from ballast.core.plan.file import dumps, loads
from ballast.core.planner import Decommission, PlannerPolicy, plan

MB = 1_000_000
SIZES = (30 * MB, 10 * MB)
TIERED = {"remote.storage.enable": ConfigValue("true", "DYNAMIC_TOPIC_CONFIG")}


def scene(*sizes: int, configs: Any = TIERED) -> ClusterState:
    """Partitions of these sizes on brokers 1 and 2; brokers 3 and 4 are empty."""
    rows = [PartitionRow("t", n, 1, (1, 2), (1, 2), sizes=(s, s), log_dirs=(0, 0)) for n, s in enumerate(sizes)]
    dirs = (LogDir("/a", 1000 * MB, 900 * MB),)
    brokers = tuple(Broker(b, log_dirs=dirs, log_dirs_known=True) for b in (1, 2, 3, 4))
    return build("c", brokers, (Topic("t", configs=configs),), rows, api=frozenset({"reassign", "reassign-v1"}))


def with_last_tiered(state: ClusterState, *brokers: int, everywhere: str | None = None) -> ClusterState:
    """Brokers that begin at the last tiered offset: these by their own config, all by the cluster-wide default."""
    own = {b: {LAST_TIERED_OFFSET: ConfigValue("true", "DYNAMIC_BROKER_CONFIG")} for b in brokers}
    default = (
        {} if everywhere is None else {LAST_TIERED_OFFSET: ConfigValue(everywhere, "DYNAMIC_DEFAULT_BROKER_CONFIG")}
    )
    return replace(state, broker_configs=own, cluster_configs=default)


def drained(state: ClusterState) -> Plan:
    """Broker 2's replicas go elsewhere."""
    return plan(state, Decommission(frozenset({2})), policy=PlannerPolicy(prove=False))


def test_a_plan_says_what_it_copies_of_tiered_topics() -> None:
    """The sizes are those of the disks, which is what a new replica copies."""
    made = drained(scene(*SIZES))
    assert made.summary["tiered"] == {"partitions": 2, "bytes_moved": sum(SIZES), "at_most_on": []}
    assert made.bytes_moved == sum(SIZES)
    assert loads(dumps(made)).summary["tiered"] == made.summary["tiered"]
    assert cost_lines(made, MB)[0].startswith("Moves 38.1")


def test_brokers_that_begin_at_the_last_tiered_offset_copy_at_most_that() -> None:
    """By a config of their own or the cluster-wide default; those that receive nothing are not named."""
    two = with_last_tiered(scene(*SIZES), 1, 3)
    receiving = {b for m in drained(two).moves for b in m.adding}
    assert drained(two).summary["tiered"]["at_most_on"] == sorted(receiving & {3})
    all_of_them = drained(with_last_tiered(scene(*SIZES), everywhere="true"))
    assert all_of_them.summary["tiered"]["at_most_on"] == sorted(receiving)
    assert cost_lines(all_of_them, MB)[0].startswith("Moves at most ")
    assert drained(with_last_tiered(scene(*SIZES), everywhere="false")).summary["tiered"]["at_most_on"] == []


def test_a_plan_without_tiered_topics_says_nothing_of_them() -> None:
    """Nor one whose tiered topics copy nothing."""
    assert "tiered" not in drained(scene(*SIZES, configs={})).summary
    off = {"remote.storage.enable": ConfigValue("false", "DYNAMIC_TOPIC_CONFIG")}
    assert "tiered" not in drained(scene(*SIZES, configs=off)).summary


def test_an_unknown_size_is_no_figure() -> None:
    """Null, in the plan file as well."""
    made = drained(scene(10 * MB, UNKNOWN))
    assert made.summary["tiered"]["bytes_moved"] is None
    assert loads(dumps(made)).summary["tiered"] == made.summary["tiered"]
