"""Automatic repair is bounded: it waits for a person beyond, and never gives up a rack that a replica had for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.daemon.rig import (
    Rig,
    a_rig,
    act,
    answer_requests,
    check_repair,
    codes,
    lead,
    observe,
    submit,
)

from ballast.daemon.context.view import Board
from ballast.daemon.policy import ActionKind, ActionPolicy, Actions, DaemonPolicy, Mode, RepairPolicy
from ballast.daemon.process.observe import with_racks
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

AUTO = DaemonPolicy(mode=Mode.AUTO)
RACKS = ("a", "b", "c")
FREE = RepairPolicy(whole_racks=True, max_racks=9, max_brokers_fraction=1, max_bytes=None)


def cluster(clock: SimClock, brokers: int, width: int, policy: DaemonPolicy = AUTO) -> tuple[SimWorld, Rig]:
    """Brokers dealt over three racks, a topic over all of them, and a leader in auto mode that has read it."""
    ids = list(range(1, brokers + 1))
    world = SimWorld(clock, [SimBroker(id=b, rack=RACKS[(b - 1) % 3]) for b in ids])
    world.add_topic(
        "orders", {p: tuple(ids[(p + k) % brokers] for k in range(width)) for p in range(12)}, size_bytes=100e6
    )
    context = a_rig(SimCluster(world), clock, Board(), policy)
    lead(context, JournalStore())
    observe(context)
    return world, context


def lose(world: SimWorld, context: Rig, *brokers: int) -> None:
    """They go, and stay away for longer than the grace."""
    for broker in brokers:
        world.kill(broker)
    for _ in range(2):
        world.clock.sleep(context.policy.guards.down_broker_grace_s + 1)
        world.clock.sleep(1)
        observe(context)


def shared_racks(world: SimWorld) -> int:
    """Partitions that have two replicas in one rack."""
    rack = {b.id: b.rack for b in world.brokers.values()}
    return sum(len({rack[b] for b in p.replicas}) < len(p.replicas) for p in world.partitions())


def left_on(world: SimWorld, *brokers: int) -> int:
    """Partitions with a replica on one of these."""
    return sum(bool(set(p.replicas) & set(brokers)) for p in world.partitions())


def test_a_whole_rack_that_is_down_evacuates_no_broker(clock: SimClock) -> None:
    """Six brokers, three racks, both brokers of one down for the grace: every replica stays where it is."""
    world, context = cluster(clock, 6, 3)
    before = [set(p.replicas) for p in world.partitions()]
    lose(world, context, 3, 6)
    check_repair(context)
    assert [set(p.replicas) for p in world.partitions()] == before


@pytest.mark.parametrize("policy", [AUTO, replace(AUTO, repair=FREE)], ids=["cautious", "free"])
def test_no_bound_lets_replicas_share_a_rack_that_had_their_own(clock: SimClock, policy: DaemonPolicy) -> None:
    """Whatever the settings allow: what has no rack left to go to waits for its rack."""
    world, context = cluster(clock, 6, 3, policy)
    lose(world, context, 3, 6)
    check_repair(context)
    assert shared_racks(world) == 0


def test_with_a_rack_to_spare_it_waits_for_approval_and_then_rebuilds(clock: SimClock) -> None:
    """Two replicas over three racks have somewhere to go; a person says whether."""
    world, context = cluster(clock, 6, 2)
    lose(world, context, 3, 6)
    check_repair(context)
    (plan,) = context.board.view.plans
    assert (plan.action, plan.pending_approval) == ("repair", True)
    assert [(o.code, o.parameters) for o in plan.objections] == [
        ("whole-rack", {"racks": ["c"]}),
        ("brokers", {"count": 2, "known": 6, "share": 0.1}),
    ]
    assert context.run_controller is not None
    assert left_on(world, 3, 6) > 0
    submit(context, Request("r", "approve", "Ada", clock.now_ms(), {"plan": plan.id}))
    answer_requests(context)
    assert (left_on(world, 3, 6), shared_racks(world)) == (0, 0)


def test_one_broker_is_rebuilt_by_itself_within_its_rack(clock: SimClock) -> None:
    """That is what the grace is for."""
    world, context = cluster(clock, 6, 3)
    lose(world, context, 3)
    check_repair(context)
    assert (left_on(world, 3), shared_racks(world)) == (0, 0)


@pytest.mark.parametrize(
    ("gone", "repair", "code"),
    [
        ((1, 5), RepairPolicy(max_brokers_fraction=0.5), "racks"),
        ((1, 4), RepairPolicy(max_racks=2), "brokers"),
        ((1,), RepairPolicy(max_bytes=1), "bytes"),
        # Of some partitions every replica is on these: no broker tells their size.
        ((1, 2), RepairPolicy(max_brokers_fraction=0.5, max_racks=2), "unknown-bytes"),
    ],
)
def test_each_bound_makes_it_wait(clock: SimClock, gone: tuple[int, ...], repair: RepairPolicy, code: str) -> None:
    """And names the setting."""
    world, context = cluster(clock, 9, 2, replace(AUTO, repair=repair))
    lose(world, context, *gone)
    check_repair(context)
    proposal = context.parts.proposals.by_kind[ActionKind.REPAIR]
    (why,) = proposal.objections
    assert why.code == code
    assert f"repair.max_{code.removeprefix('unknown-')}" in str(why)
    assert left_on(world, *gone) > 0


def test_an_older_cluster_that_forgets_a_rack_with_its_broker_is_remembered_for(clock: SimClock) -> None:
    """Brokers before Kafka 4.0 tell nothing of one that is down but its id."""
    world, context = cluster(clock, 6, 3)
    lose(world, context, 3)
    assert context.parts.reading.state is not None
    forgotten = replace(
        context.parts.reading.state,
        brokers=tuple(b if b.alive else replace(b, rack=None) for b in context.parts.reading.state.brokers),
    )
    state, _ = with_racks(forgotten, context.parts.observer.racks)
    assert {b.id: b.rack for b in state.brokers}[3] == "c"


NINE = replace(AUTO, repair=FREE)
"""Rack c has brokers 3, 6 and 9; whatever is gone may be rebuilt."""


def come_back(world: SimWorld, context: Rig, broker: int) -> None:
    """It starts, and the next reading sees it."""
    world.start(broker)
    world.clock.sleep(1)
    world.clock.sleep(1)
    observe(context)


def pass_quiet_time(world: SimWorld, context: Rig) -> None:
    """Nothing comes or goes for the quiet time."""
    world.clock.sleep(context.policy.guards.membership_cool_down_s)
    world.clock.sleep(1)
    observe(context)


def test_a_broker_waits_for_the_rest_of_its_rack_and_is_then_rebuilt(clock: SimClock) -> None:
    """Gone for longer than the grace, while its rack comes back broker by broker; the page counts to the moment that the log names."""
    world, context = cluster(clock, 9, 3, NINE)
    lose(world, context, 3, 6)
    come_back(world, context, 3)
    said = str(check_repair(context))
    assert "Broker 6 has been down for longer than 30 min. Broker 6 waits until 20" in said
    assert "UTC: broker 3 of its rack came up, and the rest usually follows." in said
    (absence,) = context.board.view.absences
    left_ms = absence.repair_at_ms - clock.now_ms()
    assert abs(left_ms - context.policy.guards.membership_cool_down_s * 1000) < 5000
    assert codes(act(context)) == ["nothing-pending"]
    assert left_on(world, 6) > 0
    pass_quiet_time(world, context)
    assert "run-started" in codes(check_repair(context))
    assert left_on(world, 6) == 0


def test_a_broker_that_follows_its_rack_is_not_rebuilt(clock: SimClock) -> None:
    """That is what the wait is for."""
    world, context = cluster(clock, 9, 3, NINE)
    before = [set(p.replicas) for p in world.partitions()]
    lose(world, context, 3, 6)
    for broker in (3, 6):
        come_back(world, context, broker)
        check_repair(context)
        act(context)
    pass_quiet_time(world, context)
    assert "nothing-to-repair" in codes(check_repair(context))
    assert [set(p.replicas) for p in world.partitions()] == before


def test_a_repair_that_was_planned_before_the_return_waits_as_well(clock: SimClock) -> None:
    """Though no check has looked again since."""
    world, context = cluster(clock, 9, 3, replace(NINE, actions=Actions(repair=ActionPolicy(mode=Mode.OBSERVE))))
    lose(world, context, 6)
    world.kill(3)
    world.clock.sleep(20)
    observe(context)
    assert "proposed" in codes(check_repair(context))
    context.policy = replace(context.policy, actions=Actions())
    come_back(world, context, 3)
    assert codes(act(context)) == ["nothing-pending"]
    assert left_on(world, 6) > 0
    pass_quiet_time(world, context)
    assert "run-started" in codes(act(context))
    assert left_on(world, 6) == 0


def test_a_broker_of_another_rack_does_not_wait(clock: SimClock) -> None:
    """Only the rack that comes back is waited for."""
    world, context = cluster(clock, 9, 3, NINE)
    lose(world, context, 1, 3, 6)
    come_back(world, context, 3)
    said = str(check_repair(context))
    assert "Brokers 1, 6 have been down for longer than 30 min. Broker 6 waits until" in said
    assert "Run run-1 started" in said
    assert (left_on(world, 1), left_on(world, 6) > 0) == (0, True)


def test_a_broker_that_flaps_does_not_hold_repair_back_for_ever(clock: SimClock) -> None:
    """Its first return counts."""
    world, context = cluster(clock, 9, 3, NINE)
    lose(world, context, 3, 6)
    come_back(world, context, 3)
    for _ in range(int(context.policy.guards.membership_cool_down_s / 60)):
        assert left_on(world, 6) > 0
        world.kill(3)
        world.clock.sleep(30)
        observe(context)
        world.clock.sleep(30)
        come_back(world, context, 3)
        check_repair(context)
    assert left_on(world, 6) == 0


def test_a_person_may_approve_what_would_wait(clock: SimClock) -> None:
    """A person who approves a repair has seen the rack."""
    world, context = cluster(clock, 9, 3, replace(NINE, mode=Mode.APPROVE))
    lose(world, context, 6)
    world.kill(3)
    world.clock.sleep(20)
    observe(context)
    check_repair(context)
    come_back(world, context, 3)
    (plan,) = context.board.view.plans
    submit(context, Request("r", "approve", "Ada", clock.now_ms(), {"plan": plan.id}))
    answer_requests(context)
    assert left_on(world, 6) == 0
