"""Throttles on a cluster outside of a run: find them, judge them, clear what was left, set them by hand."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping

from ballast.core.cluster import ClusterState
from ballast.core.throttles import LISTS, RATES, Setting, Standing, parse_list, standing
from ballast.executor.ledger import load_ledger, own_value, resource_of
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource
from ballast.ports.journal import Record
from ballast.wiring.runs import Hand


def found_throttles(cluster: Cluster, state: ClusterState) -> dict[Setting, str]:
    """Every throttle setting that a topic, a broker or the cluster-wide default has of its own."""
    resources = [ConfigResource("topic", t.name) for t in state.topics if not t.deleting]
    resources += [ConfigResource("broker", str(b)) for b in sorted(state.alive)]
    resources.append(ConfigResource("broker", ""))
    out = {}
    for resource, entries in cluster.configs(resources).items():
        for key in LISTS if resource.kind == "topic" else RATES:
            setting = Setting(resource.kind, resource.name, key)
            value = own_value(setting, entries)
            if value:
                out[setting] = value
    return out


def judged_throttles(cluster: Cluster, state: ClusterState, held: Collection[Setting]) -> list[Standing]:
    """Each throttle setting with who needs it; a setting that nobody needs is stale."""
    p = state.partitions
    busy_topics: set[str] = set()
    busy_brokers: set[int] = set()
    for row, name in enumerate(state.index):
        lacking = len(state.isr(row)) < len(state.replicas(row))
        copying = bool((p.future_size_bytes[p.start[row] : p.start[row + 1]] >= 0).any())
        if state.moving[row] or lacking or copying:
            busy_topics.add(name.topic)
            busy_brokers.update(state.replicas(row))
    return standing(
        found_throttles(cluster, state),
        held=held,
        busy_topics=busy_topics,
        busy_brokers=busy_brokers,
        anything_moving=bool(state.moving.any()),
    )


def change(own: Hand, values: Mapping[Setting, str | None]) -> list[str]:
    """Set or delete settings, the intent journaled first; answers what went wrong, as sentences."""
    key = f"hand/{secrets.token_hex(4)}"
    intent = {"version": 1, "settings": [[*s, v] for s, v in values.items()]}
    own.journal.append([Record(key, intent)])
    own.journal.check()
    outcomes = own.opened.cluster.alter_configs(
        [ConfigChange(resource_of(s), s.key, "delete" if v is None else "set", v) for s, v in values.items()]
    )
    own.journal.append([Record(key, None)])
    return [f"{r.kind} {r.name}: {o.code} {o.message}".rstrip() for r, o in outcomes.items() if not o.ok]


def removable(
    judged: Iterable[Standing], *, topics: Collection[str] = (), brokers: Collection[int] = ()
) -> list[Standing]:
    """Of the stale settings those that may go: lists (of these topics, or all), and rates of the brokers that they name.

    A rate on a broker that no such list names may be a person's own: it goes only where ``brokers`` names it.
    With ``brokers`` alone the lists stay.
    """
    stale = [s for s in judged if s.stale]
    lists = [s for s in stale if s.setting.kind == "topic" and (not topics or s.setting.name in topics)]
    if brokers and not topics:
        lists = []
    named = {e.partition(":")[2] for s in lists for e in parse_list(s.value)} | {str(b) for b in brokers}
    return [*lists, *(s for s in stale if s.setting.kind == "broker" and s.setting.name in named)]


def clear_left_behind(own: Hand, topics: Collection[str]) -> list[str]:
    """Remove what a tool left on these topics, as ``removable`` judges it; ``*`` and all that is still needed stays."""
    state = own.opened.cluster.snapshot()
    held = set(load_ledger(own.journal.read()))
    gone = removable(judged_throttles(own.opened.cluster, state, held), topics=topics)
    if not gone:
        return []
    failures = change(own, dict.fromkeys((s.setting for s in gone), None))
    return [f"removed {s.setting} = {s.value}" for s in gone] + failures
