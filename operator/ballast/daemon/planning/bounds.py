"""How far repair goes by itself: what lies beyond waits for a person's approval, and says so.

Pure: the reading, the brokers that are gone and the plan go in, objections come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import ClassVar, Final

from ballast.core.catalogue import Catalogue, Message, Table
from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.wording import human_names
from ballast.daemon.policy import RepairPolicy

NAMED: Final = 3
"""Most topics that an objection names."""


class Objection(Message):
    """One bound that a repair goes beyond."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        "unknown-rack": "the rack of {brokers:brokers} is not known",
        "whole-rack": "no broker of rack {racks:names} is up (repair.whole_racks is false), and it may return",
        "racks": "brokers are down or have a failed log dir in {count} racks ({racks:names}; repair.max_racks is {limit})",
        "brokers": "{count} of {known} brokers are down or have a failed log dir (repair.max_brokers_fraction is {share:g})",
        "bytes": "it copies {bytes:bytes} (repair.max_bytes is {limit:bytes})",
        ("bytes", "at-least"): "it copies at least {bytes:bytes} (repair.max_bytes is {limit:bytes})",
        "unknown-bytes": (
            "how much it copies is not known, as the size of {unknown:partitions} is not (repair.max_bytes is {limit:bytes})"
        ),
        "placement": "it puts {topics:topics} on other brokers than before, which changes most replica lists",
    }
    catalogue = Catalogue(
        {
            "topics": lambda names: human_names(names, NAMED),
        }
    )


def list_objections(
    policy: RepairPolicy, state: ClusterState, gone: Collection[int], plan: Plan
) -> tuple[Objection, ...]:
    """Every bound that this repair goes beyond; ``gone`` are all brokers that are missed, or whose log dirs failed, within their grace or not.

    What copies nothing (leadership that goes elsewhere) is bounded by nothing.
    """
    if not any(m.adding for m in plan.moves):
        return ()
    return (
        *_racks(policy, state, gone),
        *_brokers(policy, state, gone),
        *_bytes(policy, plan),
        *_placements(state, plan),
    )


def _racks(policy: RepairPolicy, state: ClusterState, gone: Collection[int]) -> Iterator[Objection]:
    if not any(b.alive and b.rack is not None for b in state.brokers):
        return
    rack = {b.id: b.rack for b in state.brokers}
    unknown = sorted(b for b in gone if rack.get(b) is None)
    if unknown:
        yield Objection("unknown-rack", {"brokers": tuple(unknown)})
    hit = {name for b in gone if (name := rack.get(b)) is not None}
    # A rack of one broker is no more than that broker.
    several = {name for name, count in Counter(rack.values()).items() if count > 1}
    whole = sorted((hit & several) - {b.rack for b in state.brokers if b.alive})
    if whole and not policy.whole_racks:
        yield Objection("whole-rack", {"racks": tuple(whole)})
    if len(hit) > policy.max_racks:
        yield Objection("racks", {"count": len(hit), "racks": tuple(sorted(hit)), "limit": policy.max_racks})


def _brokers(policy: RepairPolicy, state: ClusterState, gone: Collection[int]) -> Iterator[Objection]:
    known = len({b.id for b in state.brokers} | set(gone))
    most = max(1, int(policy.max_brokers_fraction * known))
    if len(gone) > most:
        share = policy.max_brokers_fraction
        yield Objection("brokers", {"count": len(gone), "known": known, "share": share})


def _bytes(policy: RepairPolicy, plan: Plan) -> Iterator[Objection]:
    if policy.max_bytes is None:
        return
    if plan.bytes_moved > policy.max_bytes:
        cause = "at-least" if plan.unknown_sizes else ""
        yield Objection("bytes", {"bytes": plan.bytes_moved, "limit": policy.max_bytes}, cause)
    elif plan.unknown_sizes:
        yield Objection("unknown-bytes", {"unknown": plan.unknown_sizes, "limit": policy.max_bytes})


def _placements(state: ClusterState, plan: Plan) -> Iterator[Objection]:
    """Kafka's lists over other brokers than a topic is on: its lists came from other brokers, and most of them change."""
    new = {m.name: m.new for m in plan.moves if m.reason.code == "placement"}
    topics = {name.topic for name in new}
    before: dict[str, set[int]] = {topic: set() for topic in topics}
    after: dict[str, set[int]] = {topic: set() for topic in topics}
    for row in range(len(state.partitions)) if topics else ():
        if (name := state.name(row)).topic in topics:
            before[name.topic].update(state.target(row))
            after[name.topic].update(new.get(name, state.target(row)))
    elsewhere = sorted(topic for topic in topics if before[topic] != after[topic])
    if elsewhere:
        yield Objection("placement", {"topics": tuple(elsewhere)})
