"""Incremental config changes, as throttles need them (KIP-339)."""

from __future__ import annotations

from tests.contract.cluster_forms import ClusterForm

from ballast.core.cluster import ConfigValue
from ballast.core.throttles import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from ballast.ports.cluster import OK, ConfigChange, ConfigResource


def value(form: ClusterForm, resource: ConfigResource, key: str) -> str | None:
    """What stands on the resource itself, as the next broker tells it that knows the resource."""
    told: list[ConfigValue | None] = []

    def answered() -> bool:
        told.append(form.cluster.configs([resource])[resource].get(key))
        return True

    form.until(answered, f"the configs of {resource} are told")
    return None if told[0] is None else told[0].value


def test_a_list_is_set_added_to_taken_from_and_deleted(form: ClusterForm) -> None:
    """Append and subtract touch only the entries named; delete leaves nothing of the topic's own."""
    resource = ConfigResource("topic", form.topic({0: (1, 2)}))

    def change(operation: str, entries: str | None, *, leaves: set[str]) -> None:
        assert form.cluster.alter_configs([ConfigChange(resource, LEADER_REPLICAS, operation, entries)]) == {
            resource: OK
        }

        def stands() -> bool:
            return {e for e in (value(form, resource, LEADER_REPLICAS) or "").split(",") if e} == leaves

        # A broker may answer before the controller's change has reached it.
        form.until(stands, f"{leaves} are left")

    change("set", "0:1", leaves={"0:1"})
    change("append", "0:2", leaves={"0:1", "0:2"})
    change("subtract", "0:1", leaves={"0:2"})
    change("delete", None, leaves=set())


def test_a_list_begins_with_an_append_and_is_there_when_it_is_empty(form: ClusterForm) -> None:
    """Nothing has to be read before entries are added; without entries the topic still has a list of its own."""
    resource = ConfigResource("topic", form.topic({0: (1, 2)}))

    def change(operation: str, entries: str) -> None:
        asked = [ConfigChange(resource, key, operation, entries) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
        assert form.cluster.alter_configs(asked) == {resource: OK}

    def own() -> tuple[str | None, str]:
        entry = form.cluster.configs([resource])[resource].get(FOLLOWER_REPLICAS)
        return (None, "") if entry is None else (entry.value, entry.source)

    change("append", "0:1")
    form.until(lambda: own() == ("0:1", "DYNAMIC_TOPIC_CONFIG"), "the entry stands")
    change("append", "0:1,0:2")
    form.until(lambda: own()[0] == "0:1,0:2", "no entry stands twice")
    change("subtract", "0:1,0:2,0:7")
    form.until(lambda: own() == ("", "DYNAMIC_TOPIC_CONFIG"), "an empty list is left")
    change("append", "*")
    form.until(lambda: own()[0] == "*", "every replica is listed")


def test_all_changes_of_a_resource_come_together(form: ClusterForm) -> None:
    """Several keys of several topics in one call, and a topic that does not exist refuses only its own."""
    first, second = (ConfigResource("topic", form.topic({0: (1, 2)}, name=n)) for n in ("a", "b"))
    missing = ConfigResource("topic", f"{form.prefix}-no")
    keys = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    outcomes = form.cluster.alter_configs(
        [ConfigChange(r, k, "set", "0:1") for r in (first, second, missing) for k in keys]
    )
    assert outcomes[first] == outcomes[second] == OK
    assert outcomes[missing].code == ("UNKNOWN_SERVER_ERROR" if form.old else "UNKNOWN_TOPIC_OR_PARTITION")
    form.until(lambda: all(value(form, r, k) == "0:1" for r in (first, second) for k in keys), "all four stand")


def test_a_value_that_means_nothing_is_refused(form: ClusterForm) -> None:
    """A throttle list that is no list of ``partition:broker`` is the resource's refusal, not a crash."""
    resource = ConfigResource("topic", form.topic({0: (1, 2)}))
    (outcome,) = form.cluster.alter_configs([ConfigChange(resource, LEADER_REPLICAS, "set", "nonsense")]).values()
    assert outcome.code == ("INVALID_REQUEST" if form.old else "INVALID_CONFIG")
    assert value(form, resource, LEADER_REPLICAS) is None


def test_a_brokers_rate_and_the_default_for_all_are_told_apart(form: ClusterForm) -> None:
    """A broker without a value of its own shows the cluster-wide default and says so; its own value wins."""
    everyone, one, two = (ConfigResource("broker", n) for n in ("", "1", "2"))
    set_both = [ConfigChange(everyone, LEADER_RATE, "set", "5000000"), ConfigChange(one, LEADER_RATE, "set", "7000000")]
    assert set(form.cluster.alter_configs(set_both).values()) == {OK}
    # Three brokers may answer: of the default any of them, of its own configs each itself.
    form.until(lambda: value(form, everyone, LEADER_RATE) == "5000000", "the default stands")
    form.until(lambda: value(form, two, LEADER_RATE) == "5000000", "broker 2 shows the default")
    form.until(lambda: value(form, one, LEADER_RATE) == "7000000", "broker 1 shows its own")
    configs = form.cluster.configs([everyone, one, two])
    assert configs[everyone][LEADER_RATE].source == configs[two][LEADER_RATE].source == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert configs[one][LEADER_RATE].source == "DYNAMIC_BROKER_CONFIG"
    state = form.cluster.snapshot(log_dirs=False)
    assert state.cluster_configs[LEADER_RATE].value == "5000000"
    assert state.broker_configs[1][LEADER_RATE].value == "7000000"
    gone = [ConfigChange(r, LEADER_RATE, "delete") for r in (everyone, one)]
    assert set(form.cluster.alter_configs(gone).values()) == {OK}
    form.until(lambda: value(form, one, LEADER_RATE) is None, "nothing is left")


def test_a_down_brokers_config_cannot_be_changed_now(broken: ClusterForm) -> None:
    """The change is reported as not done, so that it can be tried again; the others are done."""
    broken.hands.kill(3)
    broken.until(lambda: 3 not in broken.cluster.snapshot(log_dirs=False).alive, "broker 3 counts as down")
    one, three = (ConfigResource("broker", n) for n in ("1", "3"))
    outcomes = broken.cluster.alter_configs([ConfigChange(r, LEADER_RATE, "set", "9000000") for r in (one, three)])
    assert outcomes[one] == OK
    assert not outcomes[three].ok
    assert broken.cluster.alter_configs([ConfigChange(one, LEADER_RATE, "delete")]) == {one: OK}
