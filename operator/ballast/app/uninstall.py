"""Removes what Ballast keeps in a cluster: its journal and its requests, once nothing needs them any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from ballast.app.user_interface import UserInterface
from ballast.core.cluster import TopicPartition
from ballast.core.throttles import Setting
from ballast.core.wording import human_many
from ballast.errors import LockHeld, Refused, UsageError
from ballast.executor.journal.history import load_summaries
from ballast.executor.journal.ledger import BY_HAND, load_ledger
from ballast.executor.machine.run import Now
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Record
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import journal_of, journal_to_look_at, this_process

TOPICS: Final = (JOURNAL_TOPIC, REQUESTS_TOPIC)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What Ballast keeps in the cluster."""

    topics: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Its topics that exist, each with the brokers that hold it."""
    open_runs: tuple[str, ...] = ()
    ended_runs: tuple[str, ...] = ()
    owed: tuple[Setting, ...] = ()
    """Throttles that runs have set and that are not yet removed."""
    set_by_hand: tuple[Setting, ...] = ()
    """Throttles set with ``ballast throttles set``: what stood before them is known to the journal alone."""


def contents_of(records: Sequence[Record]) -> Footprint:
    """What these records of a journal say."""
    found = load_summaries(records, Now(0, 0.0))
    return Footprint(
        open_runs=tuple(r.id for r in found.runs if not r.ended),
        ended_runs=(*(r.id for r in found.runs if r.ended), *found.skipped),
        owed=tuple(load_ledger(records)),
        set_by_hand=tuple(load_ledger(records, BY_HAND)),
    )


def refuse_needed(found: Footprint) -> None:
    """Raise ``Refused`` where the journal is still needed: for an open run, or to restore throttles."""
    if found.open_runs:
        raise Refused(
            f"{human_many(len(found.open_runs), 'run')} still open: {', '.join(found.open_runs)}.",
            hint="Finish with `ballast runs resume`, or stop with `ballast cancel RUN`; then uninstall.",
        )
    if found.owed:
        raise Refused(
            f"{human_many(len(found.owed), 'throttle setting')} of Ballast's not removed yet: {', '.join(map(str, found.owed))}.",
            hint="Remove with `ballast throttles --clean`; then uninstall.",
        )
    if found.set_by_hand:
        raise Refused(
            f"{human_many(len(found.set_by_hand), 'throttle setting')} set with `ballast throttles set`: "
            f"{', '.join(map(str, found.set_by_hand))}.",
            hint="Remove with `ballast throttles remove`, which restores the values before; then uninstall.",
        )


def uninstall(opened: OpenCluster, user_interface: UserInterface, *, lock_wait_s: float) -> tuple[str, ...]:
    """Delete Ballast's topics once a person agrees; their names, none where none is there.

    Raises ``Refused`` where they are still needed, and ``LockHeld`` where another process holds the lock.
    """
    found = footprint(opened)
    if not found.topics:
        return ()
    refuse_needed(found)
    for name, brokers in found.topics.items():
        user_interface.show_line(f"{name}: on brokers {', '.join(map(str, brokers))}")
    if runs := len(found.ended_runs):
        user_interface.show_line(f"The history of {human_many(runs, 'run')} goes with it: no rollback after that.")
    user_interface.confirm(f"Delete {human_many(len(found.topics), 'topic')}?")
    delete_topics(opened, lock_wait_s=lock_wait_s)
    return tuple(found.topics)


def footprint(opened: OpenCluster) -> Footprint:
    """Look at what is there; takes no lock and makes nothing.  A journal that the settings keep in a file is the person's to delete."""
    if opened.journal_file is not None:
        raise UsageError(
            f"The settings keep the journal in {opened.journal_file}, and uninstall deletes topics alone.",
            hint="End its runs and delete the file; leave out --config (BALLAST_CONFIG) for topics of before.",
        )
    with closing(journal_to_look_at(opened)) as log:
        known = opened.cluster.partitions([TopicPartition(name, 0) for name in TOPICS])
        return replace(contents_of(log.read()), topics={n.topic: p.replicas for n, p in sorted(known.items())})


def delete_topics(opened: OpenCluster, *, lock_wait_s: float) -> None:
    """Delete them under the lock, unless they are needed by then.

    The lease of a process that is gone is waited for.  The lock is never given back: it goes with the journal.
    """
    with closing(journal_of(opened)) as log:
        try:
            log.acquire(this_process("ballast uninstall"), wait_s=lock_wait_s)
        except LockHeld as held:
            held.hint = "Stop that process first (a daemon makes the topics again), then uninstall."
            raise
        try:
            # Another process may have begun a run since it was looked at.
            refuse_needed(contents_of(log.read()))
        except BaseException:
            log.release()
            raise
        log.remove()
