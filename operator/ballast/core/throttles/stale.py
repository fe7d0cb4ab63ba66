"""Throttles that stand on a cluster now, what needs each, and whether it is stale: the one judgement of them all.

A throttle is needed while a replica that it could slow down is being copied or is out of sync.  One that outlived its move
keeps slowing replicas down whenever they fall behind (KIP-73 applies to every listed replica out of sync), which goes
unnoticed until then.  A list without an entry, which the stock tool leaves on topics, throttles nothing: it is no throttle, and
is told apart so that it can be cleaned up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ballast.core.cluster import ClusterState, ConfigValue, Flags, Ints
from ballast.core.throttles.settings import EVERYTHING, LISTS, LOG_DIR_RATE, RATES, Setting, parse_list

STATIC = "STATIC_BROKER_CONFIG"
INHERITED = "DYNAMIC_DEFAULT_BROKER_CONFIG"


@dataclass(frozen=True, slots=True)
class FoundThrottle:
    """A throttle setting found on the cluster, and whether anything can still need it."""

    setting: Setting
    value: str
    in_ledger: bool = False
    """It stands in the ledger of Ballast's journal."""
    needed_by: str = ""
    """What still needs it, as a sentence; empty when nothing does."""
    intended_by_user: str = ""
    """Why it is a person's, put there to stay; empty where a tool may have left it."""
    set_by_hand: bool = False
    """``ballast throttles set`` has put it there."""
    static: bool = False
    """It stands in the broker's own file, where no request changes it."""

    @property
    def stale(self) -> bool:
        """Nothing needs it and no person meant it to stay."""
        return not (self.in_ledger or self.needed_by or self.intended_by_user or self.set_by_hand)

    @property
    def resource(self) -> str:
        """``topic orders``, ``broker 3`` or ``every broker``."""
        return f"{self.setting.kind} {self.setting.name}" if self.setting.name else "every broker"

    @property
    def why(self) -> str:
        """What needs it, or why nothing does."""
        if self.in_ledger:
            return "set by Ballast, removed automatically"
        if self.set_by_hand:
            return "set with ballast throttles set; ballast throttles remove removes it"
        if self.needed_by or self.intended_by_user:
            return self.needed_by or self.intended_by_user
        if self.setting.kind == "broker":
            return f"stale: no replica on broker {self.setting.name} is moving or out of sync, and no run holds it"
        if not self.value:
            return "empty: it names no replica and throttles nothing"
        named = f"no replica of {self.setting.name} is moving or out of sync in the partitions that it names"
        return f"stale: {named}, and no run holds it"


def find_throttles(state: ClusterState, in_ledger: Collection[Setting] = ()) -> tuple[FoundThrottle, ...]:
    """Topics in their order, then the cluster-wide default, then brokers by id; linear in replicas.

    ``in_ledger`` are the settings of Ballast's own ledger.
    """
    return tuple(s for s in all_settings(state, in_ledger) if s.value)


def all_settings(
    state: ClusterState, in_ledger: Collection[Setting] = (), set_by_hand: Collection[Setting] = ()
) -> tuple[FoundThrottle, ...]:
    """The same, and among them the lists that stand on their topic and name no replica: their value is empty.

    An empty list that was there before a run of ours stays with its ledger.  ``set_by_hand`` are the settings that a person has
    put there with Ballast.
    """
    replicating = _replicating(state)
    found = (*_lists(state, in_ledger, replicating), *_rates(state, in_ledger, replicating))
    return (
        tuple(replace(s, set_by_hand=True) if s.setting in set_by_hand else s for s in found) if set_by_hand else found
    )


def _lists(state: ClusterState, in_ledger: Collection[Setting], replicating: Flags) -> Iterator[FoundThrottle]:
    p = state.partitions
    busy_of: dict[int, set[int]] = {}
    for row in np.flatnonzero(replicating).tolist():
        busy_of.setdefault(int(p.topic[row]), set()).add(int(p.number[row]))
    for at, topic in enumerate(state.topics):
        for key in LISTS:
            entry = topic.configs.get(key)
            if topic.deleting or entry is None or entry.value is None:
                continue
            setting = Setting("topic", topic.name, key)
            entries = parse_list(entry.value)
            if EVERYTHING in entries:
                intended_by_user = "set on purpose: every replica of the topic, which no tool sets"
                yield FoundThrottle(setting, entry.value, setting in in_ledger, intended_by_user=intended_by_user)
                continue
            named = {int(number) for e in entries if (number := e.partition(":")[0]).isdecimal()}
            needed = f"a replica of {topic.name} is moving or out of sync" if named & busy_of.get(at, set()) else ""
            yield FoundThrottle(setting, entry.value if entries else "", setting in in_ledger, needed)


def _replicating(state: ClusterState) -> Flags:
    """Per partition: is it moving, or is a replica of it out of sync?"""
    p = state.partitions
    lacking = np.zeros(len(p), np.bool_)
    lacking[_row_of_each_replica(state)[~p.in_sync]] = True
    return np.asarray(state.moving | lacking)


def _row_of_each_replica(state: ClusterState) -> Ints:
    p = state.partitions
    return np.repeat(np.arange(len(p), dtype=np.int64), np.diff(p.start))


def _rates(state: ClusterState, in_ledger: Collection[Setting], replicating: Flags) -> Iterator[FoundThrottle]:
    p = state.partitions
    row = _row_of_each_replica(state)
    fetching = set(np.unique(p.replica[replicating[row]]).tolist())
    copying = set(np.unique(p.replica[state.moving[row] | (p.future_size_bytes >= 0)]).tolist())
    for key, entry, value in _set_rates(state.cluster_configs):
        if entry.source != STATIC:
            setting = Setting("broker", "", key)
            intended_by_user = "set on purpose: a rate for every broker, which no tool sets"
            yield FoundThrottle(setting, value, setting in in_ledger, intended_by_user=intended_by_user)
    for broker in sorted(state.broker_configs):
        for key, entry, value in _set_rates(state.broker_configs[broker]):
            if entry.source == INHERITED:
                continue  # It was told above.
            setting = Setting("broker", str(broker), key)
            if entry.source == STATIC:
                yield FoundThrottle(setting, value, intended_by_user="in the broker's own file", static=True)
            elif key == LOG_DIR_RATE:
                needed = f"a replica on broker {broker} is moving or changes its log dir" if broker in copying else ""
                yield FoundThrottle(setting, value, setting in in_ledger, needed)
            else:
                needed = f"a replica on broker {broker} is moving or out of sync" if broker in fetching else ""
                yield FoundThrottle(setting, value, setting in in_ledger, needed)


def _set_rates(entries: Mapping[str, ConfigValue]) -> Iterator[tuple[str, ConfigValue, str]]:
    for key in RATES:
        entry = entries.get(key)
        if entry is not None and entry.value:
            yield key, entry, entry.value
