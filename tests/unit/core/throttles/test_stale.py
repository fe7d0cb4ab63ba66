"""Which throttles are needed, meant or stale: one judgement for every caller."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.executor.scenes import Scene

from ballast.core.cluster import Broker, ClusterState, ConfigValue, PartitionRow, Topic, build
from ballast.core.status import cluster_status
from ballast.core.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    Setting,
)
from ballast.core.throttles.stale import FoundThrottle, all_settings, find_throttles
from ballast.ports.cluster import ConfigChange, ConfigResource

ROWS = [
    PartitionRow("t", 0, 1, (1, 2, 3), (1, 2), adding=(3,), removing=(2,)),
    PartitionRow("t", 1, 4, (4, 5), (4, 5)),
    PartitionRow("t", 2, 4, (4, 6), (4,)),
    PartitionRow("t", 3, 7, (7,), (7,), future_sizes=(0,)),
    PartitionRow("t", 4, 8, (8,), (8,)),
]
"""Partition 0 moves, 1 and 4 stand still, 2 has a replica out of sync on broker 6, 3 begins to change its log dir on broker 7."""


def picture(
    lists: dict[str, str | None] | None = None,
    rates: dict[int, dict[str, str]] | None = None,
    *,
    source: str = "DYNAMIC_BROKER_CONFIG",
    everywhere: dict[str, str] | None = None,
    deleting: bool = False,
) -> ClusterState:
    """The partitions above under these settings."""
    configs = {k: ConfigValue(v, "DYNAMIC_TOPIC_CONFIG") for k, v in (lists or {}).items()}
    return build(
        "c",
        tuple(Broker(i, host=f"b{i}") for i in range(1, 9)),
        (Topic("t", configs=configs, deleting=deleting),),
        ROWS,
        broker_configs={b: {k: ConfigValue(v, source) for k, v in r.items()} for b, r in (rates or {}).items()},
        cluster_configs={k: ConfigValue(v, "DYNAMIC_DEFAULT_BROKER_CONFIG") for k, v in (everywhere or {}).items()},
    )


@pytest.mark.parametrize(
    ("value", "stale"),
    [
        ("0:1", False),
        ("1:4,1:5", True),
        ("2:6", False),
        ("3:7", True),
        ("1:4,0:3", False),
        ("*", False),
        (" * ", False),
        ("9:1", True),
    ],
)
def test_a_list_is_needed_by_the_partitions_that_it_names(value: str, *, stale: bool) -> None:
    """Not by its topic: a list whose own partitions stand still and are in sync serves no move, whatever else moves."""
    (found,) = find_throttles(picture({LEADER_REPLICAS: value}))
    assert (found.setting, found.stale) == (Setting("topic", "t", LEADER_REPLICAS), stale)
    assert found.why.startswith("stale: no replica of t is moving") is stale


@pytest.mark.parametrize(
    ("broker", "key", "stale"),
    [
        (1, LEADER_RATE, False),
        (3, FOLLOWER_RATE, False),
        (4, LEADER_RATE, False),
        (5, LEADER_RATE, True),
        (6, FOLLOWER_RATE, False),
        (7, LEADER_RATE, True),
        (7, LOG_DIR_RATE, False),
        (3, LOG_DIR_RATE, False),
        (6, LOG_DIR_RATE, True),
        (8, FOLLOWER_RATE, True),
    ],
)
def test_a_rate_is_needed_where_something_is_copied_that_it_bounds(broker: int, key: str, *, stale: bool) -> None:
    """Between brokers: where a replica moves or is out of sync. Between log dirs: where one moves or changes its dir."""
    (found,) = find_throttles(picture(rates={broker: {key: "1000"}}))
    assert (found.resource, found.stale) == (f"broker {broker}", stale)


def test_what_a_person_meant_is_told_once_and_never_stale() -> None:
    """A rate for every broker, which brokers inherit, and one in a broker's own file."""
    inherited = picture(
        rates={8: {LEADER_RATE: "5"}}, source="DYNAMIC_DEFAULT_BROKER_CONFIG", everywhere={LEADER_RATE: "5"}
    )
    static = picture(rates={8: {LEADER_RATE: "5"}}, source="STATIC_BROKER_CONFIG")
    assert [(t.resource, t.stale) for t in find_throttles(inherited)] == [("every broker", False)]
    assert [(t.resource, t.stale, t.static) for t in find_throttles(static)] == [("broker 8", False, True)]


def test_a_rate_beside_one_that_is_inherited_is_told() -> None:
    """And a list on the follower side alone."""
    own, inherited = ConfigValue("6", "DYNAMIC_BROKER_CONFIG"), ConfigValue("5", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    state = picture({FOLLOWER_REPLICAS: "1:4"})
    state = replace(state, broker_configs={8: {LEADER_RATE: inherited, FOLLOWER_RATE: own}})
    assert [(t.setting, t.value) for t in find_throttles(state)] == [
        (Setting("topic", "t", FOLLOWER_REPLICAS), "1:4"),
        (Setting("broker", "8", FOLLOWER_RATE), "6"),
    ]


def test_what_the_ledger_holds_is_ballasts_own() -> None:
    """Of a run between two moves, or still to be restored: it is not stale, and ``status`` does not warn of it."""
    state = picture({LEADER_REPLICAS: "1:4"}, {8: {LEADER_RATE: "5"}})
    held = {Setting("topic", "t", LEADER_REPLICAS), Setting("broker", "8", LEADER_RATE)}
    assert [t.stale for t in find_throttles(state)] == [True, True]
    assert [t.stale for t in find_throttles(state, held)] == [False, False]
    assert cluster_status(state).stale_throttles
    assert not cluster_status(state).with_ledgers(held).stale_throttles
    assert cluster_status(state).with_ledgers(held).throttles == find_throttles(state, held)


def test_status_and_throttles_give_one_answer() -> None:
    """Every setting of this cluster, needed or not, with the same word and the same sentence."""
    state = picture({LEADER_REPLICAS: "1:4", FOLLOWER_REPLICAS: "2:6"}, {b: {LEADER_RATE: "5"} for b in range(1, 9)})
    assert cluster_status(state).throttles == all_settings(state)
    assert {t.stale for t in cluster_status(state).throttles} == {True, False}


@pytest.mark.parametrize("value", ["", " ", ","])
def test_an_empty_list_is_no_throttle(value: str) -> None:
    """It throttles nothing and is not shown; it is there to be cleaned, unless it was there before a run of ours."""
    state = picture({LEADER_REPLICAS: value})
    assert find_throttles(state) == ()
    assert not cluster_status(state).throttles
    (empty,) = all_settings(state)
    assert empty.stale
    assert empty.why == "empty: it names no replica and throttles nothing"
    (held,) = all_settings(state, {empty.setting})
    assert not held.stale


def test_a_topic_that_is_being_deleted_takes_its_settings_with_it() -> None:
    """Nothing to show, nothing to clean."""
    state = picture({LEADER_REPLICAS: "1:4", FOLLOWER_REPLICAS: ""}, deleting=True)
    assert all_settings(state) == ()


def given(s: Scene, kind: str, name: str, key: str, value: str) -> None:
    """Set this as a user would."""
    outcome = s.cluster.alter_configs([ConfigChange(ConfigResource(kind, name), key, "set", value)])
    assert all(o.ok for o in outcome.values())


def test_a_rate_of_a_file_is_not_taken_for_one_of_every_broker() -> None:
    """The broker that answers for the cluster-wide default may add what stands in its own file."""
    state = picture(everywhere={LEADER_RATE: "5", FOLLOWER_RATE: "6"})
    own = {**state.cluster_configs, LEADER_RATE: ConfigValue("5", "STATIC_BROKER_CONFIG")}
    found = find_throttles(replace(state, cluster_configs=own))
    assert [(t.setting, t.value) for t in found] == [(Setting("broker", "", FOLLOWER_RATE), "6")]


def test_each_reason_to_keep_a_throttle_is_told_by_itself() -> None:
    """What Ballast holds before what a person set with it, that before what still needs it; what is stale names its broker or topic."""
    rate, listed = Setting("broker", "8", LEADER_RATE), Setting("topic", "t", LEADER_REPLICAS)
    plain = FoundThrottle(rate, "5")
    kept = [
        replace(plain, needed_by="needed"),
        replace(plain, needed_by="needed", set_by_hand=True),
        replace(plain, needed_by="needed", set_by_hand=True, in_ledger=True),
        replace(plain, intended_by_user="meant"),
    ]
    assert [kept[0].why, kept[3].why] == ["needed", "meant"]
    told = {t.why for t in kept} | {plain.why, FoundThrottle(listed, "").why, FoundThrottle(listed, "0:1").why}
    assert len(told) == 7
    assert all(told)
    assert "broker 8" in plain.why
    assert "of t is" in FoundThrottle(listed, "0:1").why
    assert [t.stale for t in (plain, *kept)] == [True, False, False, False, False]


def test_held_and_by_hand_are_the_settings_named_and_no_others() -> None:
    """Of two rates on brokers one by hand; of two between log dirs, two of every broker and two lists of every replica one held."""
    state = picture(
        {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"},
        {7: {LEADER_RATE: "5", LOG_DIR_RATE: "5"}, 8: {LEADER_RATE: "5", LOG_DIR_RATE: "5"}},
        everywhere={LEADER_RATE: "5", FOLLOWER_RATE: "6"},
    )
    set_by_hand = Setting("broker", "8", LEADER_RATE)
    held = {
        Setting("broker", "", FOLLOWER_RATE),
        Setting("topic", "t", LEADER_REPLICAS),
        Setting("broker", "8", LOG_DIR_RATE),
    }
    found = all_settings(state, held, {set_by_hand})
    assert len(found) == 8
    assert [t.setting for t in found if t.set_by_hand] == [set_by_hand]
    assert {t.setting for t in found if t.in_ledger} == held
