"""Throttles on a cluster outside of a run: find them, judge them, clear what was left, set them and remove them by hand.

What a person sets is kept in a ledger of its own, so that it can be removed exactly: with what was there before, and without
what others have added since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ballast.core.cluster.drain import Drain
from ballast.core.throttles import EVERYTHING, LISTS, DesiredThrottles, LedgerEntry, Setting, is_theirs, parse_list
from ballast.core.throttles.stale import FoundThrottle, all_settings
from ballast.executor.journal.drains import drains_in
from ballast.executor.journal.ledger import (
    BY_HAND,
    Throttler,
    list_unrestored,
    load_ledger,
    load_topic_ids,
    own_value,
    resource_of,
)
from ballast.executor.journal.notes import RunNote
from ballast.ports.cluster import Outcome
from ballast.ports.journal import JournalRestart, Record, find_restart
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import journal_of

if TYPE_CHECKING:
    # It brings the driver, which a reading does without.
    from ballast.wiring.runs import Writer


class HeldSettings(NamedTuple):
    """What the journal answers for."""

    runs: frozenset[Setting]
    """Set by runs, and removed by Ballast."""
    set_by_hand: frozenset[Setting]
    """Set by a person with ``ballast throttles set``."""
    drains: tuple[Drain, ...] | None = ()
    """Brokers that people drained; None where the journal did not tell."""
    restart: JournalRestart | None = None
    """When the journal was begun because an earlier one had been deleted; None where that is not so, or acknowledged."""


def held_settings(opened: OpenCluster, journal: str | None = None, *, timeout_s: float = 30.0) -> HeldSettings:
    """The settings in both of the journal's ledgers, and the brokers that people drained."""
    log = journal_of(opened, journal, timeout_s=timeout_s)
    try:
        records = log.read()
        return HeldSettings(
            frozenset(load_ledger(records)),
            frozenset(load_ledger(records, BY_HAND)),
            drains_in(records),
            find_restart(records),
        )
    finally:
        log.close()


def set_throttles(own: Writer, desired: DesiredThrottles) -> list[str]:
    """Make these settings stand, the ledger first; answers what went wrong, as sentences.

    A rate that another process or person has changed since it was set by hand is what is there before, now.
    """
    ledger = load_ledger(own.journal.read(), BY_HAND)
    entries = own.opened.cluster.configs({resource_of(s) for s in desired})
    taken_over = [
        s
        for s, held in ledger.items()
        if s in desired and s.key not in LISTS and is_theirs(own_value(s, entries.get(resource_of(s), {})), held)
    ]
    for setting in taken_over:
        del ledger[setting]
    other_kind = {
        s: h for s, h in ledger.items() if s in desired and (EVERYTHING in h.ours) != (EVERYTHING in desired[s])
    }
    failures = restore(own, other_kind) if other_kind else []
    mine = {s: h for s, h in ledger.items() if s in desired and s not in other_kind}
    return failures + _settle(own, desired, mine)


def restore(own: Writer, ledger: Mapping[Setting, LedgerEntry]) -> list[str]:
    """Take away what these lines say was put there, and nothing else; answers what went wrong, as sentences."""
    return _settle(own, {}, ledger)


def read_set_by_hand(own: Writer) -> dict[Setting, LedgerEntry]:
    """Everything that ``set_throttles`` has put there and that still has to be removed."""
    return load_ledger(own.journal.read(), BY_HAND)


def _settle(own: Writer, desired: DesiredThrottles, ledger: Mapping[Setting, LedgerEntry]) -> list[str]:
    def write(records: list[Record]) -> None:
        own.journal.append(records)
        own.journal.check()

    records = own.journal.read()
    held_by_runs = load_ledger(records)
    busy = {s: BUSY for s in (*desired, *ledger) if s in held_by_runs}
    cluster = own.opened.cluster
    throttler = Throttler(
        cluster,
        own.clock,
        own.journal.renew,
        {s: h for s, h in ledger.items() if s not in busy},
        kind=BY_HAND,
        topic_ids=load_topic_ids(records, BY_HAND),
    )
    alive = cluster.snapshot(log_dirs=False, configs=False).alive
    notes: list[RunNote] = []
    free = {s: v for s, v in desired.items() if s not in busy}
    failed = throttler.settle(free, alive, write, notes.append)
    return [*list_unrestored({**busy, **failed}), *map(str, notes)]


BUSY = Outcome(ok=False, code="HELD_BY_RUN", message="a run of Ballast holds it; try again when that has ended")


def as_stale(found: Iterable[FoundThrottle]) -> dict[Setting, LedgerEntry]:
    """Settings that nothing needs, as if we had put there what was judged, and nothing been there before."""
    return {
        s.setting: LedgerEntry(None, frozenset(parse_list(s.value)) if s.setting.key in LISTS else frozenset({s.value}))
        for s in found
    }


def removable(
    judged: Iterable[FoundThrottle], *, topics: Collection[str], brokers: Collection[int] = ()
) -> list[FoundThrottle]:
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


def select_settings(settings: Iterable[Setting], topics: Collection[str], brokers: Collection[str]) -> set[Setting]:
    """The settings of these topics and brokers, ``default`` for the cluster-wide one; all where none is named."""
    if not topics and not brokers:
        return set(settings)
    ids = {"" if b == "default" else b for b in brokers}
    return {s for s in settings if s.name in (topics if s.kind == "topic" else ids)}


def stale_on(own: Writer, topics: Collection[str]) -> list[FoundThrottle]:
    """What stands on these topics, and the rates of the brokers that they name, that neither a run nor the ledger needs."""
    return removable(_judged(own), topics=topics)


def _judged(own: Writer) -> tuple[FoundThrottle, ...]:
    records = own.journal.read()
    return all_settings(own.opened.cluster.snapshot(), load_ledger(records), load_ledger(records, BY_HAND))


def clear_stale(own: Writer, topics: Collection[str]) -> list[str]:
    """Remove what a tool left on these topics, as ``removable`` judges it; ``*`` and all that is still needed stays.

    A rate that nothing needs and that no such list names stays as well, and is named: it may be a person's own.
    """
    judged = _judged(own)
    gone = removable(judged, topics=topics)
    failures = restore(own, as_stale(gone)) if gone else []
    return [f"removed {s.setting} = {s.value or '(empty)'}" for s in gone] + failures + _rates_that_stay(judged, gone)


def _rates_that_stay(judged: Iterable[FoundThrottle], gone: Collection[FoundThrottle]) -> list[str]:
    return [
        f"{s.setting} = {s.value} stays: no throttle list of these topics names broker {s.setting.name}. "
        f"If it is not meant to stay: ballast throttles --clean --brokers {s.setting.name}"
        for s in judged
        if s.stale and s.setting.kind == "broker" and s not in gone
    ]
