"""What a plan must have done when it says that it is complete: asked of the replica lists alone, whatever made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Intent,
    Racks,
    ReplaceBroker,
)

Lists = Mapping[tuple[str, int], tuple[int, ...]]


def lists_after(state: ClusterState, made: Plan) -> dict[tuple[str, int], tuple[int, ...]]:
    """Every replica list once the plan is done."""
    lists = {tuple(state.name(r)): state.target(r) for r in range(len(state.partitions))}
    return lists | {(m.topic, m.partition): m.new for m in made.moves}  # type: ignore[return-value]


def demand_at_rest(made: Plan, intent: Intent) -> None:
    """What nothing is in the way of; a cluster without a plan may name ranges that nothing brings it nearer to."""
    named = {o.code for o in made.obstacles}
    assert not named or (isinstance(intent, Balance) and made.is_empty and named <= {"band", "uneven-racks"})


def demand_done(state: ClusterState, made: Plan, intent: Intent, closed: frozenset[int] = frozenset()) -> None:
    """Complete, or nothing to do: what was asked for is so afterwards.  Anything less names what prevents it.

    ``closed`` are brokers that take no replica: draining or cordoned.
    """
    status = "meets-all-goals" if made.moves or made.elections else "nothing-to-do"
    if made.status != status:
        assert made.status == ("misses-some-goals" if status == "meets-all-goals" else "no-plan-found")
        assert made.obstacles
        assert all(o.code and o.detail for o in made.obstacles)
        return
    demand_at_rest(made, intent)
    lists = {n: m for n, m in lists_after(state, made).items() if intent.selection.topic(n[0])}
    match intent:
        case Decommission(brokers=gone) | Evacuate(brokers=gone):
            assert not {b for m in lists.values() for b in m} & gone
        case ReplaceBroker(old=old):
            assert not any(old in m for m in lists.values())
        case Demote(brokers=demoted):
            led = {n for n, m in lists.items() if m[0] in demoted}
            assert not any(set(lists[n]) & state.alive - demoted for n in led)
        case ChangeReplicationFactor(to=count):
            assert {len(m) for m in lists.values()} <= {count}
        case Balance() | Racks():
            _demand_racks(state, lists, closed)
            if isinstance(intent, Balance):
                assert not {b for m in lists.values() for b in m} - state.alive
        case _:
            pass


def _demand_racks(state: ClusterState, lists: Lists, closed: frozenset[int]) -> None:
    """No rack with more of a partition than an even share of the racks that take replicas, where every broker has one."""
    rack = {b.id: b.rack for b in state.brokers}
    racks = {rack[b] for b in state.alive - closed}
    if None not in rack.values() and racks:
        for members in lists.values():
            held = Counter(rack[b] for b in members)
            assert max(held.values()) <= -(-len(members) // len(racks)), (members, rack)


def spread(lists: Lists) -> tuple[Counter[int], Counter[int]]:
    """Replicas and preferred leaders by broker."""
    return Counter(b for m in lists.values() for b in m), Counter(m[0] for m in lists.values())
