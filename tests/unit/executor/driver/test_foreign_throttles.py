"""Another user's throttled moves keep the rate that they run under, whatever ours would like."""

from __future__ import annotations

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LedgerEntry, Setting
from ballast.executor.driver.events import Performing, Refusing
from ballast.executor.driver.foreign_throttles import rates_of_others
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import ConfigChange, ConfigResource

THEIRS = TopicPartition("theirs", 0)
OURS = Move(T, 0, (1, 2), (3, 2), 50 * MB)
ELSEWHERE = Move(T, 1, (4, 5), (4, 6), 50 * MB)
POLICY = ExecutionPolicy(throttle=2 * MB, measure_s=0, guard_timeout_s=2000)


def world() -> Scene:
    """Our topic, and one of a person's on brokers 1 and 2."""
    s = scene({0: (1, 2), 1: (4, 5)}, brokers=6, size_bytes=50 * MB)
    s.world.add_topic("theirs", {0: (2, 1)}, size_bytes=200 * MB)
    return s


def another_user_moves(s: Scene, rate: int = 4 * MB) -> None:
    """As the stock tool does: lists on the topic, both rates on brokers 1, 2 and 3, then the move to 3."""
    lists = ((LEADER_REPLICAS, "0:1,0:2"), (FOLLOWER_REPLICAS, "0:3"))
    changes = [ConfigChange(ConfigResource("topic", "theirs"), key, "set", value) for key, value in lists]
    for b in ("1", "2", "3"):
        changes += [
            ConfigChange(ConfigResource("broker", b), k, "set", str(rate)) for k in (LEADER_RATE, FOLLOWER_RATE)
        ]
    s.cluster.alter_configs(changes)
    s.cluster.alter_reassignments({THEIRS: (2, 3)})


def rates_in_force(s: Scene) -> dict[str, str]:
    """The rates that stand on the person's brokers."""
    return {k: v for k, v in s.throttles().items() if k.startswith(("broker 1 ", "broker 2 ", "broker 3 "))}


def test_only_the_sides_that_their_lists_name_count() -> None:
    """Rates of brokers with nothing throttled on them, and of ours, do not count."""
    s = world()
    another_user_moves(s)
    foreign = s.cluster.reassignments()
    assert rates_of_others(s.cluster, foreign, {}) == {1: 4 * MB, 2: 4 * MB, 3: 4 * MB}
    ours = {Setting("broker", "3", FOLLOWER_RATE): LedgerEntry(None, frozenset({str(4 * MB)}))}
    assert rates_of_others(s.cluster, foreign, ours) == {1: 4 * MB, 2: 4 * MB}
    s.cluster.alter_configs([ConfigChange(ConfigResource("topic", "theirs"), LEADER_REPLICAS, "delete")])
    assert rates_of_others(s.cluster, foreign, {}) == {3: 4 * MB}


def test_moves_wait_for_them_with_the_reason_and_the_rest_goes_on() -> None:
    """Not one rate of theirs changes while they copy; ours follow when they have ended, and theirs come back after it."""
    s = world()
    another_user_moves(s)
    before = rates_in_force(s)
    seen: list[tuple[bool, dict[str, str]]] = []
    for moment in range(5, 45, 5):
        s.world.clock.at(
            s.world.clock.monotonic_s() + moment,
            lambda: seen.append((bool(s.world.partition("theirs", 0).adding), rates_in_force(s))),
        )
    result = s.driver.execute(s.plan(OURS, ELSEWHERE), POLICY, run_id="r")
    assert (result.status, result.verified) == ("done", 2)
    held = {v.code: v.values for h in s.ears.heard if isinstance(h, Refusing) for v in h.verdicts}
    assert held["foreign-throttle"] == {"broker": 1, "rate_bytes_per_s": 4 * MB, "partition": TopicPartition("t", 0)}
    assert [rates for moving, rates in seen if moving] == [before] * sum(moving for moving, _ in seen)
    assert sum(moving for moving, _ in seen) > 4
    assert rates_in_force(s) == before, "their own clean-up is theirs"


def test_a_repair_goes_on_under_their_rate() -> None:
    """A partition that lacks a replica does not wait: it shares what they have set, and changes nothing of it."""
    s = world()
    s.world.add_topic("unhealthy", {0: (6, 5)}, size_bytes=20 * MB)
    s.world.kill(6)
    s.world.clock.sleep(30)
    another_user_moves(s)
    before = rates_in_force(s)
    result = s.driver.execute(s.plan(Move("unhealthy", 0, (6, 5), (3, 5), 20 * MB)), POLICY, run_id="r")
    assert result.status == "done"
    assert bool(s.world.partition("theirs", 0).adding), "theirs is still in flight"
    assert rates_in_force(s) == before
    set_on = {x.name for h in s.ears.heard if isinstance(h, Performing) for x in h.effect.desired if x.kind == "broker"}
    assert "3" not in set_on


@pytest.mark.parametrize("knob", ["keep_existing_rates", "override_rates_of_others"])
def test_a_person_may_choose_to_share_or_to_override(knob: str) -> None:
    """Told to, ours starts beside theirs: under their rate, or with our own over it."""
    s = world()
    another_user_moves(s)
    policy = ExecutionPolicy(throttle=2 * MB, measure_s=0, **{knob: True})  # type: ignore[arg-type]
    seen: list[str | None] = []
    key = f"broker 3 {FOLLOWER_RATE}"
    s.world.clock.at(s.world.clock.monotonic_s() + 10, lambda: seen.append(s.throttles().get(key)))
    result = s.driver.execute(s.plan(OURS), policy, run_id="r")
    assert result.status == "done"
    assert seen == [str(4 * MB if knob == "keep_existing_rates" else 2 * MB)]
    assert s.throttles()[key] == str(4 * MB)


def test_one_who_begins_in_mid_run_has_their_rate_from_then_on() -> None:
    """They set their rates over ours: ours that run go on under theirs, the next wait, and none is set back over them."""
    s = scene({0: (1, 2), 1: (1, 2)}, brokers=4, size_bytes=60 * MB)
    s.world.add_topic("theirs", {0: (2, 1)}, size_bytes=300 * MB)
    s.world.clock.at(s.world.clock.monotonic_s() + 10, lambda: another_user_moves(s))
    seen: list[set[str]] = []
    for moment in range(20, 60, 5):
        s.world.clock.at(s.world.clock.monotonic_s() + moment, lambda: seen.append(set(rates_in_force(s).values())))
    moves = (Move(T, 0, (1, 2), (3, 2), 60 * MB), Move(T, 1, (1, 2), (3, 2), 60 * MB))
    policy = ExecutionPolicy(throttle=2 * MB, measure_s=0, moves_in_per_broker=1, guard_timeout_s=2000)
    assert s.driver.execute(s.plan(*moves), policy, run_id="r").status == "done"
    assert seen == [{str(4 * MB)}] * len(seen)
    assert set(rates_in_force(s).values()) == {str(4 * MB)}
