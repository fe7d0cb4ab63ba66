"""Throttles by hand on real brokers, and entries that a person adds between Ballast's reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pytest
from tests.real.execution_scene import LISTS, RATES, Scene, shared_scene
from tests.waiting import becomes

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import ConfigValue
from ballast.core.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS, Setting
from ballast.executor.journal.ledger import Throttler
from ballast.ports.cluster import ClusterReader, ConfigChange, ConfigResource
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka
LEADERS, FOLLOWERS = LISTS
SENDS, FETCHES = RATES


@pytest.fixture
def at(kraft: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The newest Kafka with an open connection."""
    with shared_scene(kraft, tmp_path) as opened:
        yield opened


@pytest.fixture(params=["kraft", "zk39", "zk23"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """New brokers, and old ones that change configs in other code."""
    with shared_scene(request.getfixturevalue(request.param), tmp_path) as opened:
        yield opened


def by_hand(at: Scene, *arguments: str, code: int = 0) -> str:
    """``ballast throttles`` with these."""
    return at.finish("throttles", *arguments, code=code)


def test_sides_apart_rates_alone_and_explicit_lists_come_and_go(at: Scene) -> None:
    """What kafka-configs can set, ``set`` can; ``remove`` brings back what was there, and keeps what others added."""
    topic = "by-hand"
    at.topic(topic, {0: (1, 2), 1: (2, 3)})
    at.change(ConfigChange(ConfigResource("broker", "1"), SENDS, "set", "77777777"))
    at.change(ConfigChange(ConfigResource("topic", topic), LEADERS, "set", "1:2"))
    before = at.throttles(topic)
    try:
        by_hand(at, "set", "--leader-rate", "5MB", "--brokers", "1")
        becomes(lambda: at.throttles(topic), before | {f"broker 1 {SENDS}": "5000000"})
        by_hand(at, "set", "--topic", topic, "--leader-replicas", "0:1,1:2", "--follower-replicas", "0:2")
        lists = {f"topic {topic} {LEADERS}": "1:2,0:1", f"topic {topic} {FOLLOWERS}": "0:2"}
        becomes(lambda: at.throttles(topic), before | {f"broker 1 {SENDS}": "5000000"} | lists)
        at.change_list(topic, LEADERS, "append", "1:3")
        by_hand(at, "remove", "--yes")
        becomes(lambda: at.throttles(topic), before | {f"topic {topic} {LEADERS}": "1:2,1:3"})
        assert "Nothing was set with ballast throttles set" in at.told("throttles", "remove", "--yes")
        by_hand(at, "remove", "--topic", topic, "--brokers", "1", "--yes")
        becomes(lambda: at.throttles(topic), {})
    finally:
        at.change(ConfigChange(ConfigResource("broker", "1"), SENDS, "delete"))


@pytest.mark.parametrize("removed", [("remove", "--yes"), ("--clean", "--yes")])
def test_whole_topics_and_the_cluster_wide_default_are_removed_as_promised(at: Scene, removed: tuple[str, ...]) -> None:
    """``*`` lists and rates go with ``remove``, and with ``--clean`` as ``set`` promises."""
    topic = f"whole-{removed[0].strip('-')}"
    at.topic(topic, {0: (1, 2)})
    before = at.throttles(topic)
    by_hand(at, "set", "--topic", topic, "--rate", "50MB", "--brokers", "2", "--brokers", "default")
    wanted = {f"topic {topic} {k}": "*" for k in LISTS} | {f"broker 2 {k}": "50000000" for k in RATES}
    becomes(lambda: at.throttles(topic), before | wanted)
    everyone = ConfigResource("broker", "")
    becomes(
        lambda: {k: v.value for k, v in at.cluster.configs([everyone])[everyone].items() if k in RATES},
        dict.fromkeys(RATES, "50000000"),
    )
    assert "set with ballast throttles set" in by_hand(at, "list")
    by_hand(at, *removed)
    becomes(lambda: at.throttles(topic), before)
    becomes(lambda: at.cluster.configs([everyone])[everyone].keys() & set(RATES), set())


class Meanwhile:
    """A cluster on which another user adds an entry after each of our readings of configs, before what we send next."""

    def __init__(self, cluster: ClusterReader, another_user: Callable[[], None]) -> None:
        self._cluster, self._another_user = cluster, another_user

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """Read, and then they act."""
        told = self._cluster.configs(resources)
        self._another_user()
        return told


@pytest.mark.parametrize("first", [None, "1:1"])
def test_an_entry_added_between_reading_and_writing_survives(anywhere: Scene, first: str | None) -> None:
    """Set, changed and restored by the ledger of runs: each entry of theirs is there in the end, and none of ours."""
    topic = f"interleaved-{'on-theirs' if first else 'on-nothing'}"
    anywhere.topic(topic, {0: (1, 2), 1: (2, 3)})
    theirs = [first] if first else []
    if first:
        anywhere.change_list(topic, FOLLOWER_REPLICAS, "set", first)

    def another_user() -> None:
        theirs.append(f"1:{len(theirs) + 4}")
        anywhere.change_list(topic, FOLLOWER_REPLICAS, "append" if len(theirs) > 1 else "set", theirs[-1])

    setting = Setting("topic", topic, FOLLOWER_REPLICAS)
    throttler = Throttler(Meanwhile(anywhere.cluster, another_user), SystemClock(), lambda: None)  # type: ignore[arg-type]
    for entries in ({"0:1", "0:2"}, {"0:2", "0:3"}, set()):
        aim = {setting: frozenset(entries)} if entries else {}
        assert throttler.settle(aim, {1, 2, 3}, lambda _: None, lambda _: None) == {}
        becomes(lambda: set(anywhere.own_list(topic, FOLLOWER_REPLICAS)), {*theirs, *entries})
    assert throttler.ledger == {}
    assert LEADER_REPLICAS not in str(anywhere.throttles(topic))


def test_a_list_of_ours_alone_leaves_no_empty_list(anywhere: Scene) -> None:
    """Where the topic had no list of its own it has none afterwards, on old brokers and new ones."""
    topic = "ours-alone"
    anywhere.topic(topic, {0: (1, 2)})
    setting = Setting("topic", topic, FOLLOWER_REPLICAS)
    throttler = Throttler(anywhere.cluster, SystemClock(), lambda: None)
    for aim in ({setting: frozenset({"0:1", "0:2"})}, {setting: frozenset({"0:2"})}, {setting: frozenset({"0:1"})}, {}):
        assert throttler.settle(aim, {1, 2, 3}, lambda _: None, lambda _: None) == {}
        wanted = ",".join(sorted(aim.get(setting, ())))
        becomes(lambda: anywhere.throttles(topic).get(f"topic {topic} {FOLLOWER_REPLICAS}"), wanted or None)
    assert throttler.ledger == {}
