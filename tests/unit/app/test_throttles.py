"""Throttles that a person sets: rates alone, sides apart, lists; removed exactly, beside other users' changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest
from tests.unit.core.throttles.test_stale import given
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.app.throttles import (
    as_stale,
    clear_stale,
    list_unread,
    names_of,
    read_set_by_hand,
    restore,
    select_settings,
    set_throttles,
)
from ballast.core.cluster import Broker, ConfigValue, Gap, build
from ballast.core.plan import Move
from ballast.core.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    DesiredThrottles,
    LedgerEntry,
    Setting,
)
from ballast.core.throttles.stale import all_settings
from ballast.executor.driver.driver import Driver
from ballast.executor.journal.ledger import dump_held
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sim import SimCluster
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

LIST = Setting("topic", T, LEADER_REPLICAS)
RATE = Setting("broker", "1", LEADER_RATE)
DEFAULT = Setting("broker", "", FOLLOWER_RATE)


def writer(s: Scene) -> Writer:
    """This process as the one writer of the simulated cluster."""
    return Writer(OpenCluster(s.cluster, "sim:1"), s.journal, s.driver, s.world.clock)


AIMS: list[DesiredThrottles] = [
    {RATE: frozenset({"5"})},
    {DEFAULT: frozenset({"5"})},
    {LIST: frozenset({"0:1", "0:2"})},
    {LIST: frozenset({"*"})},
    {LIST: frozenset({"*"}), Setting("topic", T, FOLLOWER_REPLICAS): frozenset({"0:2"}), RATE: frozenset({"5"})},
]


@pytest.mark.parametrize("desired", AIMS)
@pytest.mark.parametrize("prior", [{}, {LIST: "0:2", RATE: "9", DEFAULT: "7"}, {LIST: ""}])
def test_what_is_set_is_restored(desired: DesiredThrottles, prior: dict[Setting, str]) -> None:
    """Rates alone, lists alone, ``*`` and the cluster-wide default: afterwards everything is as it was before."""
    s = scene({0: (1, 2)})
    for (kind, name, key), value in prior.items():
        given(s, kind, name, key, value)
    before = (s.throttles(), dict(s.world.cluster_configs))
    own = writer(s)
    assert set_throttles(own, desired) == []
    for setting, wanted in desired.items():
        assert wanted <= set(standing(s, setting).split(","))
    assert set(read_set_by_hand(own)) <= set(desired)
    assert restore(own, read_set_by_hand(own)) == []
    assert (s.throttles(), dict(s.world.cluster_configs)) == before
    assert read_set_by_hand(own) == {}


def standing(s: Scene, setting: Setting) -> str:
    """The resource's own value."""
    entries = s.cluster.configs([ConfigResource(setting.kind, setting.name)])
    return entries[ConfigResource(setting.kind, setting.name)][setting.key].value or ""


def test_setting_again_replaces_what_was_set_by_hand_and_keeps_the_first_prior() -> None:
    """Another rate, another list, ``*`` instead of a list: what was there before the first one comes back."""
    s = scene({0: (1, 2)})
    given(s, "broker", "1", LEADER_RATE, "9")
    given(s, "topic", T, LEADER_REPLICAS, "3:3")
    before, own = s.throttles(), writer(s)
    for entries, rate in (("0:1", "5"), ("0:2", "6"), ("*", "7"), ("0:1", "8")):
        assert set_throttles(own, {LIST: frozenset({entries}), RATE: frozenset({rate})}) == []
        assert standing(s, RATE) == rate
        assert set(standing(s, LIST).split(",")) == ({"*"} if entries == "*" else {"3:3", entries})
    assert restore(own, read_set_by_hand(own)) == []
    assert s.throttles() == before


def test_a_rate_that_another_user_changed_is_what_comes_back() -> None:
    """Set over by hand once more, theirs is the value before; removed, it returns."""
    s = scene({0: (1, 2)})
    own = writer(s)
    set_throttles(own, {RATE: frozenset({"5"})})
    given(s, "broker", "1", LEADER_RATE, "6")
    set_throttles(own, {RATE: frozenset({"7"})})
    assert standing(s, RATE) == "7"
    restore(own, read_set_by_hand(own))
    assert standing(s, RATE) == "6"


class Meanwhile(SimCluster):
    """Another user acts between each of our readings of configs and what we send next."""

    another_user: Callable[[], None] = staticmethod(lambda: None)

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """Read, and then they act."""
        told = super().configs(resources)
        self.another_user()
        return told


def interleaved(s: Scene) -> tuple[Meanwhile, list[str]]:
    """Each reading of configs is followed by one more entry of another user's in the follower list of the topic."""
    cluster, added = Meanwhile(s.world), list[str]()

    def another_user() -> None:
        added.append(f"{len(added)}:9")
        change = ConfigChange(ConfigResource("topic", T), FOLLOWER_REPLICAS, "append", added[-1])
        SimCluster(s.world).alter_configs([change])

    cluster.another_user = another_user
    s.cluster = cluster
    s.driver = Driver(cluster, s.journal, s.world.clock, s.ears)
    return cluster, added


def test_entries_that_another_user_adds_between_reading_and_writing_survive_a_run() -> None:
    """A run sets its list and restores it; each entry that came in between is there in the end, and none of ours."""
    s = scene({0: (1, 2)}, size_bytes=20 * MB)
    _, added = interleaved(s)
    policy = ExecutionPolicy(throttle=5 * MB, measure_s=0)
    assert s.driver.execute(s.plan(Move(T, 0, (1, 2), (3, 2), 20 * MB)), policy, run_id="r").status == "done"
    assert len(added) > 1
    assert s.throttles() == {f"topic {T} {FOLLOWER_REPLICAS}": ",".join(added)}


def test_entries_that_another_user_adds_survive_setting_and_removing_by_hand() -> None:
    """The same for ``ballast throttles set`` and ``remove``."""
    s = scene({0: (1, 2)})
    _, added = interleaved(s)
    own = writer(s)
    set_throttles(own, {Setting("topic", T, FOLLOWER_REPLICAS): frozenset({"0:1", "0:2"})})
    restore(own, read_set_by_hand(own))
    assert s.throttles() == {f"topic {T} {FOLLOWER_REPLICAS}": ",".join(added)}


def test_what_a_run_holds_is_left_to_it() -> None:
    """A setting in the ledger of runs is neither set nor removed by hand; it is named."""
    s = scene({0: (1, 2)})
    s.journal.append([dump_held(RATE, LedgerEntry(None, frozenset({"5"})))])
    (sentence,) = set_throttles(writer(s), {RATE: frozenset({"7"})})
    assert "broker 1" in sentence
    assert s.throttles() == {}
    assert len(restore(writer(s), {RATE: LedgerEntry(None, frozenset({"5"}))})) == 1


def test_what_was_set_by_hand_is_not_stale() -> None:
    """It is told as a person's, and goes only when asked for."""
    s = scene({0: (1, 2)})
    own = writer(s)
    set_throttles(own, {RATE: frozenset({"5"}), LIST: frozenset({"0:1"})})
    found = all_settings(s.cluster.snapshot(), (), read_set_by_hand(own))
    assert {(f.setting, f.set_by_hand, f.stale) for f in found} == {(RATE, True, False), (LIST, True, False)}


def test_what_was_set_by_hand_on_a_topic_is_forgotten_with_it() -> None:
    """Another topic of its name is there when it is restored: that one keeps its list, and nothing is owed any more."""
    s = scene({0: (1, 2)})
    own = writer(s)
    set_throttles(own, {RATE: frozenset({"5"}), LIST: frozenset({"0:1"})})
    s.world.delete_topic(T)
    s.world.add_topic(T, {0: (1, 2)}, configs={LEADER_REPLICAS: "0:1"})
    s.world.clock.sleep(20)
    (sentence,) = restore(own, read_set_by_hand(own))
    assert T in sentence
    assert read_set_by_hand(own) == {}
    assert s.throttles() == {f"topic {T} {LEADER_REPLICAS}": "0:1"}


def test_settings_are_chosen_by_topic_and_broker() -> None:
    """All without a name; the cluster-wide default has none."""
    everything = {LIST, RATE, DEFAULT}
    assert select_settings(everything, (), ()) == everything
    assert select_settings(everything, (T,), ()) == {LIST}
    assert select_settings(everything, (), names_of([None], ())) == {DEFAULT}
    assert select_settings(everything, (T,), ("1",)) == {LIST, RATE}


def test_a_stale_list_keeps_what_is_added_while_a_person_decides() -> None:
    """Only what was judged is taken away."""
    s = scene({0: (1, 2)})
    given(s, "topic", T, LEADER_REPLICAS, "0:1")
    judged = all_settings(s.cluster.snapshot())
    given(s, "topic", T, LEADER_REPLICAS, "0:1,0:2")
    assert restore(writer(s), as_stale(judged)) == []
    assert standing(s, LIST) == "0:2"


def test_cleaning_takes_empty_lists_away_and_leaves_what_is_held() -> None:
    """The stock tool's empty values go with the lists it left; a list that a run of ours still owes stays."""
    s = scene({0: (1, 2), 1: (2, 3)})
    s.world.add_topic("owed", {0: (1, 2)}, size_bytes=1)
    s.world.add_topic("other", {0: (1, 2)}, size_bytes=1)
    for name, key, value in (
        (T, LEADER_REPLICAS, ""),
        (T, FOLLOWER_REPLICAS, "0:1"),
        ("owed", LEADER_REPLICAS, ""),
        ("other", LEADER_REPLICAS, ""),
    ):
        given(s, "topic", name, key, value)
    given(s, "broker", "1", FOLLOWER_RATE, "5")
    given(s, "broker", "3", FOLLOWER_RATE, "6")
    s.world.clock.sleep(5)
    owed = Setting("topic", "owed", LEADER_REPLICAS)
    s.journal.append([dump_held(owed, LedgerEntry("", frozenset({"0:1"})))])
    said = clear_stale(writer(s), [T, "owed"])
    assert len(said) == 4, said
    assert f"removed topic {T} {LEADER_REPLICAS} = (empty)" in said
    assert said[-1] == (
        f"broker 3 {FOLLOWER_RATE} = 6 stays: no throttle list of these topics names broker 3. "
        "If it is not meant to stay: ballast throttles --clean --brokers 3"
    )
    assert s.throttles() == {
        f"topic owed {LEADER_REPLICAS}": "",
        f"topic other {LEADER_REPLICAS}": "",
        f"broker 3 {FOLLOWER_RATE}": "6",
    }


def test_where_throttles_may_stand_unseen_is_named() -> None:
    """A broker that is down or did not report its configs, a topic that we may not describe: none of them has no throttle."""
    gaps = (
        Gap.of_broker(2, "configs", "no answer"),
        Gap("topic t", "configs", "denied"),
        Gap.of_broker(2, "log dirs", "x"),
    )
    state = build("c", (Broker(1), Broker(2), Broker(3, alive=False)), (), [], gaps=gaps)
    broker, topic, down = list_unread(state)
    assert ("broker 2" in broker, "topic t" in topic, "broker 3" in down) == (True, True, True)
    assert list_unread(build("c", (Broker(1),), (), [])) == []
