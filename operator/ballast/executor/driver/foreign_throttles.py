"""Whose rates are in force: throttled foreign reassignments in progress, and the rates that they run under.

A broker has one replication rate for each side.  Setting ours where a person's moves run under theirs would slow those moves
or let them loose; copying beside them under their rate would take part of it.  So the brokers concerned are found here, moves
of ours that need them wait (``start``), repairs excepted, and no rate is changed there (``decide``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ballast.core.cluster import ConfigValue, TopicPartition
from ballast.core.throttles import (
    EVERYTHING,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Ledger,
    Setting,
    parse_list,
)
from ballast.ports.cluster import ClusterReader, ConfigResource, Reassignment

Configs = Mapping[ConfigResource, Mapping[str, ConfigValue]]


def rates_of_others(
    cluster: ClusterReader, foreign: Mapping[TopicPartition, Reassignment], ledger: Ledger
) -> dict[int, int]:
    """Brokers on which these moves run under a rate that is not ours, with the tighter of its two sides in bytes/s."""
    topics = cluster.configs({ConfigResource("topic", n.topic) for n in foreign})
    sides = [side for n, r in foreign.items() for side in _throttled_sides(n, r, topics, ledger)]
    if not sides:
        return {}
    brokers = cluster.configs({ConfigResource("broker", str(b)) for b, _ in sides})
    out: dict[int, int] = {}
    for broker, key in sides:
        rate = _theirs(Setting("broker", str(broker), key), brokers, ledger)
        if rate is not None:
            out[broker] = min(rate, out.get(broker, rate))
    return out


def _throttled_sides(
    name: TopicPartition, move: Reassignment, topics: Configs, ledger: Ledger
) -> Collection[tuple[int, str]]:
    """The brokers of this move whose side of it stands in a throttle list, with the key of the rate that binds them."""
    values = topics.get(ConfigResource("topic", name.topic), {})
    out = []
    for key, rate_key in ((LEADER_REPLICAS, LEADER_RATE), (FOLLOWER_REPLICAS, FOLLOWER_RATE)):
        entry = values.get(key)
        held = ledger.get(Setting("topic", name.topic, key))
        listed = set(parse_list(entry.value if entry is not None else None)) - (held.ours if held else frozenset())
        sending = rate_key == LEADER_RATE
        for broker in move.replicas:
            if (broker in move.adding) is sending:
                continue
            if EVERYTHING in listed or f"{name.partition}:{broker}" in listed:
                out.append((broker, rate_key))
    return out


def _theirs(setting: Setting, brokers: Configs, ledger: Ledger) -> int | None:
    """The rate in force, whether the broker's own or inherited; None where there is none, or where it is ours."""
    entry = brokers.get(ConfigResource("broker", setting.name), {}).get(setting.key)
    held = ledger.get(setting)
    ours = held is not None and entry is not None and entry.value in held.ours
    value = None if entry is None or ours else entry.value
    return int(value) if value is not None and value.isdigit() else None
