"""Traffic between racks, which clouds bill: what producers, followers and consumers send from one rack to another.

Metadata does not tell where clients are: ``CrossRackPolicy`` does, and without it they are spread evenly over the racks.  A
producer writes to the leader, a follower fetches from it, a consumer reads from it or, where brokers choose the nearest
replica, from one in sync in its own rack.  The copies of a plan's moves are not counted: they end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import UNKNOWN, ClusterState, Flags, Ints
from ballast.core.plan import Plan
from ballast.core.planner.cross_rack.policy import ClientRacks, CrossRackPolicy
from ballast.core.planner.loads import BYTES_IN, Loads
from ballast.core.wording import human_bytes, human_many

SELECTOR: Final = "replica.selector.class"
NEAREST: Final = "RackAwareReplicaSelector"
FEWEST: Final = 2
"""Racks between which there is traffic."""
DAY_S: Final = 86_400
GIB: Final = 1 << 30

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossRackTraffic:
    """Bytes per second from one rack to another."""

    producers: int
    followers: int
    consumers: int
    """Of the partitions of which it is known."""
    unknown_reads: int
    """Partitions whose consumers may read from other racks, without a figure of how much."""

    @property
    def bytes_per_s(self) -> int:
        """All that is known."""
        return self.producers + self.followers + self.consumers


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Replica lists flattened, one entry for each replica."""

    row: Ints
    """The partition's row, ascending."""
    broker: Ints
    """Index into ``state.brokers``."""
    in_sync: Flags

    @classmethod
    def of(cls, state: ClusterState) -> Slots:
        """As the cluster is, replicas on their way in or out among them."""
        p = state.partitions
        return cls(_rows(state), _index(state, p.replica), p.in_sync)


class Crossing:
    """What would cross racks if each replica led its partition."""

    def __init__(self, state: ClusterState, loads: Loads, policy: CrossRackPolicy) -> None:
        self.alive = np.array([b.alive for b in state.brokers], np.bool_)
        self.names = sorted({b.rack for b in state.brokers if b.alive and b.rack is not None})
        at = {name: i for i, name in enumerate(self.names)}
        # A broker that is down may have taken its rack's name along; it sends and receives nothing.
        self.rack = np.array([at.get(b.rack or "", 0) for b in state.brokers], np.int64)
        # A bill is of the mean, whatever figure the brokers are balanced by.
        written = loads.bytes_written_per_s if len(loads.bytes_written_per_s) else loads.bytes_in_per_s
        self.written = written.astype(np.float64)
        self.nearest = bool(policy.nearest_replica if policy.nearest_replica is not None else is_nearest(state))
        kinds, self.kind = _kinds(state, policy)
        self.writes = self._shares([k.producers if k else {} for k in kinds])
        self.reads = self._shares([k.consumers if k else {} for k in kinds])
        told = loads.bytes_read_per_s if len(loads.bytes_read_per_s) else np.full(len(loads), UNKNOWN, np.int64)
        self.known = told != UNKNOWN
        self.read = self._all_reads(state, np.where(self.known, told, 0).astype(np.float64))

    def _shares(self, kinds: list[Mapping[str, float]]) -> Floats:
        """By kind of topic and rack of brokers; what clients elsewhere send and read is in none of them."""
        even = 1 / max(len(self.names), 1)
        return np.array([[of.get(n, 0.0) if of else even for n in self.names] for of in kinds]).reshape(len(kinds), -1)

    def _all_reads(self, state: ClusterState, read: Floats) -> Floats:
        """By partition what all its consumers read.

        Brokers tell what is read from the leader; where consumers read from the nearest replica, that is what those in its rack
        read, and those in racks without a replica in sync.
        """
        if not self.nearest:
            return read
        part = self._near_leader(state)
        return np.where(part > 0, read / np.where(part > 0, part, 1.0), read)

    def _near_leader(self, state: ClusterState) -> Floats:
        slots, leader = Slots.of(state), leaders_of(state)
        mine = (slots.broker == leader[slots.row]) & slots.in_sync
        own = np.zeros(len(self.kind))
        own[slots.row[mine]] = self.reads[self.kind[slots.row[mine]], self.rack[slots.broker[mine]]]
        return own + self._unserved_shares(slots)

    def _unserved_shares(self, slots: Slots) -> Floats:
        """By partition the share of its consumers' reads from racks without a replica in sync."""
        served = np.zeros((len(self.kind), max(len(self.names), 1)), np.bool_)
        live = slots.in_sync & self.alive[slots.broker]
        served[slots.row[live], self.rack[slots.broker[live]]] = True
        shares = self.reads[self.kind] if len(self.kind) else np.zeros(served.shape)
        return np.asarray(np.maximum(1.0 - np.where(served, shares, 0.0).sum(axis=1), 0.0))

    def by_slot(self, slots: Slots) -> tuple[Floats, Floats, Floats]:
        """Bytes per second of producers, followers and consumers that cross racks, if this replica led."""
        row, rack, kind = slots.row, self.rack[slots.broker], self.kind[slots.row]
        live = self.alive[slots.broker]
        held = np.zeros((len(self.kind), max(len(self.names), 1)), np.int64)
        np.add.at(held, (row[live], rack[live]), 1)
        elsewhere = held.sum(axis=1)[row] - held[row, rack]
        producers = self.written[row] * (1.0 - self.writes[kind, rack])
        followers = self.written[row] * elsewhere
        away = self._unserved_shares(slots)[row] if self.nearest else 1.0 - self.reads[kind, rack]
        return producers, followers, self.read[row] * np.maximum(away, 0.0)

    def total(self, slots: Slots) -> float:
        """Everything that is sent, across racks or not, in bytes per second: no leader changes it."""
        return float((self.written + self.read).sum() + self.written[slots.row].sum())

    def traffic(self, slots: Slots, leader: Ints) -> CrossRackTraffic:
        """What crosses racks with these leaders, by partition as indices into ``state.brokers``."""
        leading = slots.broker == leader[slots.row]
        producers, followers, consumers = (figure[leading] for figure in self.by_slot(slots))
        row = slots.row[leading]
        kind, rack = self.kind[row], self.rack[slots.broker[leading]]
        away = self._unserved_shares(slots)[row] if self.nearest else 1.0 - self.reads[kind, rack]
        return CrossRackTraffic(
            producers=round(float(producers.sum())),
            followers=round(float(followers.sum())),
            consumers=round(float(consumers.sum())),
            unknown_reads=int((~self.known[row] & (away > 0)).sum()),
        )


def is_nearest(state: ClusterState) -> bool | None:
    """Do brokers send consumers to the nearest replica?  None where no broker told its configuration."""
    told = [configs.get(SELECTOR) for configs in state.broker_configs.values()]
    chosen = [entry is not None and (entry.value or "").endswith(NEAREST) for entry in told]
    return all(chosen) if chosen else None


def why_unknown(state: ClusterState, loads: Loads) -> str | None:
    """Why nothing can be said of traffic between racks; None where something can."""
    nameless = [b.id for b in state.brokers if b.alive and b.rack is None]
    if nameless:
        return f"broker {nameless[0]} names no rack"
    if len({b.rack for b in state.brokers if b.alive}) < FEWEST:
        return "all brokers are in one rack"
    return None if BYTES_IN in loads.known else "what producers write is not known"


def traffic_now(state: ClusterState, loads: Loads, policy: CrossRackPolicy) -> CrossRackTraffic | None:
    """What crosses racks now; None where ``why_unknown`` has a reason."""
    if why_unknown(state, loads) is not None:
        return None
    return Crossing(state, loads, policy).traffic(Slots.of(state), leaders_of(state))


def summary_of_plan(state: ClusterState, plan: Plan, loads: Loads, policy: CrossRackPolicy) -> dict[str, Any] | None:
    """Before and after a plan, as plain JSON values."""
    if why_unknown(state, loads) is not None:
        return None
    crossing = Crossing(state, loads, policy)
    slots, leader = Slots.of(state), leaders_of(state)
    before = crossing.traffic(slots, leader)
    after = crossing.traffic(*_after(state, plan, slots, leader))
    return {
        "before": figures(before, policy),
        "after": figures(after, policy),
        "nearest_replica": crossing.nearest,
        "currency": policy.currency,
    }


def figures_now(state: ClusterState, loads: Loads, policy: CrossRackPolicy) -> dict[str, Any] | None:
    """What crosses racks now, as plain JSON values; None where ``why_unknown`` has a reason."""
    found = traffic_now(state, loads, policy)
    return None if found is None else figures(found, policy) | {"currency": policy.currency}


def figures(found: CrossRackTraffic, policy: CrossRackPolicy) -> dict[str, Any]:
    """Plain JSON values; consumers' reads are null where none is known."""
    unknown = bool(found.unknown_reads) and not found.consumers
    return {
        "bytes_per_s": found.bytes_per_s,
        "producers": found.producers,
        "followers": found.followers,
        "consumers": None if unknown else found.consumers,
        "unknown_reads": found.unknown_reads,
        "cost_per_day": cost_per_day(found.bytes_per_s, policy.price_per_gib),
    }


def cost_per_day(bytes_per_s: float, price_per_gib: float | None) -> float | None:
    """In the currency of the price."""
    return None if price_per_gib is None else round(bytes_per_s * DAY_S / GIB * price_per_gib, 4)


def notes(state: ClusterState, loads: Loads, policy: CrossRackPolicy) -> tuple[str, ...]:
    """What a plan that places leaders by racks goes by, and what it does not know."""
    why = why_unknown(state, loads)
    if why is not None:
        return (f"Leaders are not placed for less traffic between racks: {why}.",)
    racks = {b.rack for b in state.brokers}
    named = {rack for c in policy.clients for rack in (*c.producers, *c.consumers)}
    told = [f"Clients are in rack {rack}, where no broker is." for rack in sorted(named - racks)]
    if policy.nearest_replica is None and is_nearest(state) is None:
        told.append(f"No broker reported its {SELECTOR}: consumers were taken to read from the leader.")
    return tuple(told)


def human_traffic(found: Mapping[str, Any], currency: str) -> str:
    """One side of the figures in words."""
    least = "at least " if found["unknown_reads"] else ""
    cost = found["cost_per_day"]
    money = "" if cost is None else f", {human_money(cost, currency)} a day"
    return f"{least}{human_bytes(found['bytes_per_s'])}/s{money}"


def human_money(amount: float, currency: str) -> str:
    """With two decimals."""
    return f"{amount:,.2f} {currency}".strip()


def human_change(told: Mapping[str, Any] | None) -> list[str]:
    """A plan's traffic between racks, before and after, in sentences; none where it is not known."""
    if told is None:
        return []
    before, after, currency = told["before"], told["after"], told["currency"]
    less = before["bytes_per_s"] - after["bytes_per_s"]
    line = f"Traffic between racks: {human_traffic(before, currency)}"
    if less:
        line += f"; after the plan {human_traffic(after, currency)}"
        priced = before["cost_per_day"] is not None
        saved = f" ({human_money(abs(before['cost_per_day'] - after['cost_per_day']), currency)})" if priced else ""
        line += f": {human_bytes(abs(less) * DAY_S)}{saved} a day {'less' if less > 0 else 'more'}"
    return [f"{line}.", *unknown_reads(after)]


def unknown_reads(found: Mapping[str, Any]) -> list[str]:
    """What the figure lacks, in a sentence."""
    count = found["unknown_reads"]
    return [f"What consumers read of {human_many(count, 'partition')} is not known, and not in it."] if count else []


def leaders_of(state: ClusterState) -> Ints:
    """By partition who leads it, as an index into ``state.brokers``; where none leads, who is preferred."""
    leader = state.partitions.leader.astype(np.int64)
    ids = np.array([b.id for b in state.brokers], np.int64)
    return _index(state, np.where(np.isin(leader, ids), leader, state.preferred))


def _after(state: ClusterState, plan: Plan, slots: Slots, leader: Ints) -> tuple[Slots, Ints]:
    """Replicas and leaders once every move is made and every election completed."""
    moved = {state.index[m.name]: m.new for m in plan.moves}
    stays = ~np.isin(slots.row, np.array(list(moved), np.int64))
    index = state.broker_index
    row = np.array([r for r, new in moved.items() for _ in new], np.int64)
    broker = np.array([index[b] for new in moved.values() for b in new], np.int64)
    order = np.argsort(np.concatenate((slots.row[stays], row)), kind="stable")
    rows = np.concatenate((slots.row[stays], row))[order]
    brokers = np.concatenate((slots.broker[stays], broker))[order]
    in_sync = np.concatenate((slots.in_sync[stays], np.ones(len(row), np.bool_)))[order]
    after = leader.copy()
    elected = {state.index[name] for name in plan.elections}
    ids = np.array([b.id for b in state.brokers], np.int64)
    for r in elected:
        after[r] = index[moved[r][0] if r in moved else int(state.preferred[r])]
    for r, new in moved.items():
        if r not in elected and int(ids[leader[r]]) not in new:
            after[r] = index[new[0]]
    return Slots(rows, brokers, in_sync), after


def _kinds(state: ClusterState, policy: CrossRackPolicy) -> tuple[list[ClientRacks | None], Ints]:
    """The kinds of topics by where their clients are, and by partition its kind."""
    kinds: list[ClientRacks | None] = [None, *policy.clients]
    of = [next((i for i, c in enumerate(policy.clients, 1) if c.matches(t.name)), 0) for t in state.topics]
    return kinds, np.array(of, np.int64)[state.partitions.topic] if of else np.zeros(0, np.int64)


def _rows(state: ClusterState) -> Ints:
    return np.repeat(np.arange(len(state.partitions)), np.diff(state.partitions.start))


def _index(state: ClusterState, brokers: npt.NDArray[Any]) -> Ints:
    return np.searchsorted(np.array([b.id for b in state.brokers], np.int64), brokers).astype(np.int64)
