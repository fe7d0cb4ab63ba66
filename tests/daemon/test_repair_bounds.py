"""Automatic repair is bounded: it waits for a person beyond, and never gives up a rack that a replica had for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.daemon.rig import (
    Rig,
    a_rig,
    answer_requests,
    check_repair,
    give_run_controller,
    holder,
    keep_lock,
    observe,
    submit,
)

from ballast.daemon.acting.policy import ActionKind, DaemonPolicy, Mode, RepairPolicy
from ballast.daemon.context.view import Board, Role
from ballast.daemon.observing.observe import with_racks
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

AUTO = DaemonPolicy(mode=Mode.AUTO)
RACKS = ("a", "b", "c")
FREE = RepairPolicy(whole_racks=True, max_racks=9, max_brokers_share=1, max_bytes=None)


def cluster(clock: SimClock, brokers: int, width: int, policy: DaemonPolicy = AUTO) -> tuple[SimWorld, Rig]:
    """Brokers dealt over three racks, a topic over all of them, and a leader in auto mode that has read it."""
    ids = list(range(1, brokers + 1))
    world = SimWorld(clock, [SimBroker(id=b, rack=RACKS[(b - 1) % 3]) for b in ids])
    world.add_topic(
        "orders", {p: tuple(ids[(p + k) % brokers] for k in range(width)) for p in range(12)}, size_bytes=100e6
    )
    context = a_rig(SimCluster(world), clock, Board(), policy)
    give_run_controller(context, JournalStore())
    context.board.set_role(Role.STARTING)
    keep_lock(context, holder())
    observe(context)
    return world, context


def lose(world: SimWorld, context: Rig, *brokers: int) -> None:
    """They go, and stay away for longer than the grace."""
    for broker in brokers:
        world.kill(broker)
    for _ in range(2):
        world.clock.sleep(context.policy.caution.dead_broker_grace_s + 1)
        world.clock.sleep(1)
        observe(context)


def shared_racks(world: SimWorld) -> int:
    """Partitions that have two replicas in one rack."""
    rack = {b.id: b.rack for b in world.brokers.values()}
    return sum(len({rack[b] for b in p.replicas}) < len(p.replicas) for p in world.partitions())


def left_on(world: SimWorld, *brokers: int) -> int:
    """Partitions with a replica on one of these."""
    return sum(bool(set(p.replicas) & set(brokers)) for p in world.partitions())


def test_a_whole_rack_that_is_down_evacuates_nobody(clock: SimClock) -> None:
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
    assert (plan.kind, plan.waiting) == ("repair", True)
    assert any("rack c" in o for o in plan.obstacles)
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
        ((1, 5), RepairPolicy(max_brokers_share=0.5), "racks"),
        ((1, 4), RepairPolicy(max_racks=2), "brokers"),
        ((1,), RepairPolicy(max_bytes=1), "bytes"),
        # Of some partitions every replica is on these: nobody tells their size.
        ((1, 2), RepairPolicy(max_brokers_share=0.5, max_racks=2), "bytes"),
    ],
)
def test_each_bound_makes_it_wait(clock: SimClock, gone: tuple[int, ...], repair: RepairPolicy, code: str) -> None:
    """And names the setting."""
    world, context = cluster(clock, 9, 2, replace(AUTO, repair=repair))
    lose(world, context, *gone)
    check_repair(context)
    proposal = context.parts.proposals.by_kind[ActionKind.REPAIR]
    (why,) = proposal.beyond
    assert f"repair.max_{'brokers_share' if code == 'brokers' else code}" in why
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
