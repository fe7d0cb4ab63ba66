"""Throttles on a cluster outside of a run: find them, judge them, clear what was left, set them by hand."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping

from ballast.core.leftovers import Standing, all_settings
from ballast.core.throttles import Setting, parse_list
from ballast.executor.ledger import load_ledger, resource_of
from ballast.ports.cluster import ConfigChange
from ballast.ports.journal import Record
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Hand, journal_of


def held_settings(opened: OpenCluster, journal: str | None = None, *, timeout_s: float = 30.0) -> frozenset[Setting]:
    """What stands in the journal's ledger: set by Ballast, and taken back by it."""
    log = journal_of(opened, journal, timeout_s=timeout_s)
    try:
        return frozenset(load_ledger(log.read()))
    finally:
        log.close()


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
    gone = removable(all_settings(state, held), topics=topics)
    if not gone:
        return []
    failures = change(own, dict.fromkeys((s.setting for s in gone), None))
    return [f"removed {s.setting} = {s.value or '(empty)'}" for s in gone] + failures
