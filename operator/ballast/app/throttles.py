"""Throttles on a cluster outside of a run: find them, judge them, clear what was left, set them and remove them by hand.

What a person sets is kept in a ledger of its own, so that it can be removed exactly: with what was there before, and without
what others have added since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ballast.app.journal_reading import HeldSettings, held_settings, is_settled
from ballast.app.user_interface import UserInterface
from ballast.core.cluster import CONFIGS, ClusterState
from ballast.core.named_brokers import NamedBrokers
from ballast.core.stock.files import ReassignmentEntry
from ballast.core.stock.plan import plan_of_entries
from ballast.core.throttles import (
    EVERYTHING,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LISTS,
    DesiredThrottles,
    LedgerEntry,
    Setting,
    brokers_involved,
    is_theirs,
    parse_list,
)
from ballast.core.throttles import entries as listed_replicas
from ballast.core.throttles.stale import FoundThrottle, all_settings
from ballast.core.wording import ShowLine, human_brokers, human_many
from ballast.errors import Incomplete, Unavailable
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
from ballast.ports.journal import Record, find_restart, restart_record
from ballast.wiring.cluster import OpenCluster

if TYPE_CHECKING:
    # It brings the driver, which a reading does without.
    from ballast.wiring.runs import Writer

BUSY: Final = Outcome(ok=False, code="HELD_BY_RUN", message="a run of Ballast holds it; try again when that has ended")


def judge(opened: OpenCluster, journal: str | None, on_line: ShowLine) -> tuple[FoundThrottle, ...]:
    """Every throttle setting with who needs it, empty lists too; an unreadable journal counts as empty and is said.

    Brokers and topics that did not tell their configs are named: what stands there is not among the settings.
    """
    try:
        held = held_settings(opened, journal)
    except Unavailable as silence:
        on_line(f"The journal does not answer ({silence.message}); what Ballast itself has set cannot be told apart.")
        held = HeldSettings(frozenset(), frozenset())
    state = opened.cluster.snapshot()
    for sentence in list_unread(state):
        on_line(sentence)
    return all_settings(state, held.runs, held.set_by_hand)


def list_unread(state: ClusterState) -> list[str]:
    """Where throttle settings may stand that could not be read."""
    told = [
        f"{g.subject} did not report its configs: throttles there are not known ({g.detail})."
        for g in state.gaps
        if g.missing == CONFIGS
    ]
    down = [b.id for b in state.brokers if not b.alive]
    return [*told, f"Down: {human_brokers(down)}; rates set there are not known."] if down else told


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedThrottles:
    """What a person wants to be set."""

    rates: Mapping[str, int]
    """Bytes per second by the name of the setting."""
    brokers: Collection[NamedBrokers | None] = ()
    """Where the rates hold, None for the cluster-wide default; without any on the brokers of the moves, else on all that are alive."""
    topics: Collection[str] = ()
    lists: Mapping[str, frozenset[str]]
    """The entries of the topics' lists, by the name of the setting."""
    moves: tuple[ReassignmentEntry, ...] | None = None
    """These moves are to be throttled."""


def set_by_hand(own: Writer, wanted: WantedThrottles) -> int:
    """Set them; how many settings that are.  Raises ``Incomplete`` where one could not be set."""
    state = own.opened.cluster.snapshot()
    state.require_topics(wanted.topics)
    lists = wanted.lists or _sides(wanted.rates)
    aim = {Setting("topic", topic, key): entries for topic in wanted.topics for key, entries in lists.items()}
    brokers = names_of(wanted.brokers, state.broker_index)
    on = brokers or {str(b) for b in state.alive}
    if wanted.moves is not None:
        moves = plan_of_entries(wanted.moves, state).moves
        aim |= listed_replicas(moves)
        on = brokers or {str(b) for b in brokers_involved(moves)}
    if wanted.rates:
        state.require_brokers(int(b) for b in on if b)
    aim |= {Setting("broker", b, key): frozenset({str(rate)}) for b in sorted(on) for key, rate in wanted.rates.items()}
    if failures := set_throttles(own, aim):
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be set: {failures[0]}")
    return len(aim)


def _sides(rates: Collection[str]) -> dict[str, frozenset[str]]:
    """All replicas on the sides that get a rate, on both where none does."""
    sided = {LEADER_REPLICAS: LEADER_RATE in rates, FOLLOWER_REPLICAS: FOLLOWER_RATE in rates}
    return {key: frozenset({EVERYTHING}) for key, named in sided.items() if named or not any(sided.values())}


def names_of(named: Collection[NamedBrokers | None], known: Collection[int]) -> set[str]:
    """The brokers' names in Kafka's settings; that of the cluster-wide default, which is None, is empty."""
    return {str(b) for n in named if n is not None for b in n.among(known)} | ({""} if None in named else set())


def remove_by_hand(
    own: Writer, user_interface: UserInterface, topics: Collection[str], named: Collection[NamedBrokers | None]
) -> int:
    """Take away what ``set_by_hand`` has set, once a person agrees; how many settings that are.

    A topic or broker that is named loses what others have set as well.  Raises ``Incomplete`` where a setting stays.
    """
    brokers = names_of(named, own.opened.cluster.snapshot(log_dirs=False, configs=False).broker_index)
    held = read_set_by_hand(own)
    lines = {s: held[s] for s in select_settings(held, topics, brokers)}
    if topics or brokers:
        standing = {s.setting: s for s in _judged(own, user_interface.show_line) if not s.in_ledger and not s.static}
        lines |= as_stale(standing[s] for s in select_settings(standing, topics, brokers) if s not in lines)
    if not lines:
        user_interface.show_line(
            "Nothing is set there." if topics or brokers else "Nothing was set with ballast throttles set."
        )
        return 0
    for setting, entry in sorted(lines.items()):
        back = f" → {entry.prior}" if entry.prior else ""
        user_interface.show_line(f"{setting} = {','.join(sorted(entry.ours))}{back}")
    user_interface.confirm(f"Remove {human_many(len(lines), 'setting')}?")
    if failures := restore(own, lines):
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be removed: {failures[0]}")
    return len(lines)


def clean(
    opened: OpenCluster,
    begin: Callable[[], AbstractContextManager[Writer]],
    user_interface: UserInterface,
    *,
    journal: str | None,
    topics: Collection[str],
    brokers: NamedBrokers | None,
) -> list[FoundThrottle]:
    """Remove what is stale, what runs have left and what was set by hand, once a person agrees; what went.

    ``brokers`` are those whose rates go as well, though they may be a person's own.  Raises ``Incomplete`` where a setting stays.
    """
    known = opened.cluster.snapshot(log_dirs=False, configs=False).broker_index if brokers and brokers.patterns else ()
    ids = brokers.among(known) if brokers else ()

    def going(found: Collection[FoundThrottle]) -> list[FoundThrottle]:
        by_hand = select_settings([s.setting for s in found if s.set_by_hand], topics, [str(b) for b in ids])
        return [*removable(found, topics=topics, brokers=ids), *(s for s in found if s.setting in by_hand)]

    if is_settled(opened, journal):
        found = judge(opened, journal, user_interface.show_line)
        if not going(found):
            # Nothing is written, so no lock is wanted: it would make a journal on a cluster that has none.
            _tell_what_stays(found, (), user_interface.show_line)
            return []
    with begin() as own:
        if own.driver.open_runs():
            user_interface.show_line(
                "A run is still open; its throttles are removed when it ends (ballast runs resume)."
            )
        else:
            for setting in list_unrestored(own.driver.restore_throttles()):
                user_interface.show_line(f"Throttle not yet removed: {setting}")
        return _clean(own, user_interface, going)


def _clean(
    own: Writer, user_interface: UserInterface, going: Callable[[Collection[FoundThrottle]], list[FoundThrottle]]
) -> list[FoundThrottle]:
    found = _judged(own, user_interface.show_line)
    gone = going(found)
    _tell_what_stays(found, gone, user_interface.show_line)
    for s in gone:
        user_interface.show_line(f"{s.setting} = {shortened(s.value)}: {s.why}.")
    if gone:
        user_interface.confirm(f"Remove {human_many(len(gone), 'setting')}?")
        # A person may have thought about it for minutes, and another process may have begun a move.
        again = going(_judged(own, user_interface.show_line))
        for s in gone:
            if s not in again:
                user_interface.show_line(f"{s.setting} stays: its value has changed.")
        gone = [s for s in gone if s in again]
    held = read_set_by_hand(own)
    lines = as_stale(gone) | {s.setting: held[s.setting] for s in gone if s.setting in held}
    if failures := restore(own, lines) if lines else []:
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be removed: {failures[0]}.")
    if find_restart(own.journal.read()) is not None:
        own.journal.append([restart_record(None)])
        user_interface.show_line("The recreated journal counts as complete from now on.")
    return gone


def _tell_what_stays(found: Iterable[FoundThrottle], gone: Collection[FoundThrottle], on_line: ShowLine) -> None:
    for s in found:
        if s.stale and s not in gone and s.setting.kind == "broker":
            on_line(
                f"{s.setting} = {s.value} stays: it may be a person's own. Say --brokers {s.setting.name} to remove it."
            )


def shortened(value: str) -> str:
    """A throttle list as it fits into a line."""
    if not value:
        return "(empty)"
    return value if len(value) <= 40 else f"{value[:37]}…"


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
    """The settings of these topics and brokers, by their names in Kafka; all where none is named."""
    if not topics and not brokers:
        return set(settings)
    return {s for s in settings if s.name in (topics if s.kind == "topic" else brokers)}


def stale_on(own: Writer, topics: Collection[str]) -> list[FoundThrottle]:
    """What stands on these topics, and the rates of the brokers that they name, that neither a run nor the ledger needs."""
    return removable(_judged(own), topics=topics)


def _judged(own: Writer, on_line: ShowLine = lambda _: None) -> tuple[FoundThrottle, ...]:
    """Every throttle setting under the lock; ``on_line`` hears where some may stand that could not be read."""
    records, state = own.journal.read(), own.opened.cluster.snapshot()
    for sentence in list_unread(state):
        on_line(sentence)
    return all_settings(state, load_ledger(records), load_ledger(records, BY_HAND))


def clear_stale(own: Writer, topics: Collection[str]) -> list[str]:
    """Remove what a tool left on these topics, as ``removable`` judges it; ``*`` and all that is still needed stays.

    A rate that nothing needs and that no such list names stays as well, and is named: it may be a person's own.
    """
    judged = _judged(own)
    gone = removable(judged, topics=topics)
    failures = restore(own, as_stale(gone)) if gone else []
    stay = [
        f"{s.setting} = {s.value} stays: no throttle list of these topics names broker {s.setting.name}. "
        f"If it is not meant to stay: ballast throttles --clean --brokers {s.setting.name}"
        for s in judged
        if s.stale and s.setting.kind == "broker" and s not in gone
    ]
    return [*(f"removed {s.setting} = {s.value or '(empty)'}" for s in gone), *failures, *stay]
