"""How far repair goes by itself: what lies beyond waits for a person's approval, and says so.

Pure: the reading, the brokers that are gone and the plan go in, objections come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.wording import human_brokers, human_bytes, human_many, human_total
from ballast.daemon.acting.policy import RepairPolicy

NAMED: Final = 3
"""Most topics that an objection names."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One bound that a repair goes beyond."""

    code: str
    """``whole-rack``, ``racks``, ``unknown-rack``, ``brokers``, ``bytes``, ``unknown-bytes`` or ``placement``."""
    sentence: str


def beyond(policy: RepairPolicy, state: ClusterState, gone: Collection[int], plan: Plan) -> tuple[Objection, ...]:
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
        yield Objection("unknown-rack", f"the rack of {human_brokers(unknown)} is not known")
    hit = {name for b in gone if (name := rack.get(b)) is not None}
    # A rack of one broker is no more than that broker.
    several = {name for name, count in Counter(rack.values()).items() if count > 1}
    whole = sorted((hit & several) - {b.rack for b in state.brokers if b.alive})
    if whole and not policy.whole_racks:
        yield Objection(
            "whole-rack", f"no broker of rack {', '.join(whole)} is up (repair.whole_racks is false), and it may return"
        )
    if len(hit) > policy.max_racks:
        names = ", ".join(sorted(hit))
        yield Objection(
            "racks",
            f"brokers are down or have a failed log dir in {len(hit)} racks ({names}; repair.max_racks is {policy.max_racks})",
        )


def _brokers(policy: RepairPolicy, state: ClusterState, gone: Collection[int]) -> Iterator[Objection]:
    known = len({b.id for b in state.brokers} | set(gone))
    most = max(1, int(policy.max_brokers_share * known))
    if len(gone) > most:
        yield Objection(
            "brokers",
            f"{len(gone)} of {known} brokers are down or have a failed log dir (repair.max_brokers_share is {policy.max_brokers_share:g})",
        )


def _bytes(policy: RepairPolicy, plan: Plan) -> Iterator[Objection]:
    if policy.max_bytes is None:
        return
    limit = f"repair.max_bytes is {human_bytes(policy.max_bytes)}"
    if plan.bytes_moved > policy.max_bytes:
        yield Objection("bytes", f"it copies {human_total(plan.bytes_moved, plan.unknown_sizes)} ({limit})")
    elif plan.unknown_sizes:
        unknown = human_many(plan.unknown_sizes, "partition")
        yield Objection("unknown-bytes", f"how much it copies is not known, as the size of {unknown} is not ({limit})")


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
        names = ", ".join(elsewhere[:NAMED]) + (f" and {len(elsewhere) - NAMED} more" if len(elsewhere) > NAMED else "")
        yield Objection("placement", f"it puts {names} on other brokers than before, which changes most replica lists")
