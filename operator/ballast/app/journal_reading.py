"""What Ballast's own journal tells a command that has read the cluster: throttles it answers for, brokers that people drain.

A journal that does not tell prevents neither a status nor a plan; what is not known for want of it is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Final, NamedTuple

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.cluster.drain import Drain, refuse_drained
from ballast.core.plan import Plan
from ballast.core.status import JournalState
from ballast.core.throttles import Setting
from ballast.core.wording import ShowLine
from ballast.errors import BallastError, Unavailable
from ballast.executor.journal.drains import drains_in
from ballast.executor.journal.ledger import BY_HAND, load_ledger
from ballast.executor.journal.records import run_ids
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, JournalRestart, find_restart
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import journal_of, journal_to_look_at

JOURNAL_WAIT_S: Final = 10.0
"""How long the journal is waited for."""


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
    with closing(journal_of(opened, journal, timeout_s=timeout_s)) as log:
        records = log.read()
        return HeldSettings(
            frozenset(load_ledger(records)),
            frozenset(load_ledger(records, BY_HAND)),
            drains_in(records),
            find_restart(records),
        )


def is_settled(opened: OpenCluster, journal: str | None = None) -> bool:
    """Has every run ended, is no throttle owed, and was nothing lost?  Looking takes no lock and makes no journal where there is none."""
    with closing(journal_to_look_at(opened, journal)) as log:
        records = log.read()
        return not run_ids(records, ended=False) and not load_ledger(records) and find_restart(records) is None


def read_held(opened: OpenCluster, state: ClusterState, on_line: ShowLine) -> HeldSettings:
    """Throttles of runs and of people, and draining brokers; ``drains`` is None where the journal did not tell."""
    row = state.index.get(TopicPartition(JOURNAL_TOPIC, 0))
    if row is None and opened.journal_file is None:
        return HeldSettings(frozenset(), frozenset())
    try:
        if opened.journal_file is not None:
            return held_settings(opened)
        leader = state.broker(int(state.partitions.leader[row]))
        if leader is None or not leader.alive or not leader.reachable:
            raise Unavailable(f"{JOURNAL_TOPIC} has no leader that answers.")
        return held_settings(opened, timeout_s=JOURNAL_WAIT_S)
    except BallastError as failure:
        on_line(f"Throttles of runs and draining brokers are not known: {failure.message}")
        return HeldSettings(frozenset(), frozenset(), None)


def journal_state(opened: OpenCluster, state: ClusterState, held: HeldSettings) -> JournalState:
    """What became of the journal, by its two topics and by what it says itself."""
    if opened.journal_file is None and TopicPartition(JOURNAL_TOPIC, 0) not in state.index:
        asked = TopicPartition(REQUESTS_TOPIC, 0) in state.index
        return JournalState.DELETED if asked else JournalState.NONE
    if held.drains is None:
        return JournalState.UNKNOWN
    return JournalState.PRESENT if held.restart is None else JournalState.RECREATED_EMPTY


def read_drained(opened: OpenCluster, state: ClusterState, on_line: ShowLine) -> frozenset[int]:
    """Brokers that people drain through the daemon, each told: no plan may fill them."""
    drains = read_held(opened, state, on_line).drains or ()
    for drain in drains:
        on_line(
            f"Drain of broker {drain.broker} ({drain.by}): it takes no replica until: ballast drains end {drain.broker}"
        )
    return frozenset(drain.broker for drain in drains)


def refuse_filling(plan: Plan, drained: Iterable[int]) -> None:
    """A plan that was made before a drain began may not undo it."""
    refuse_drained((b for m in plan.moves for b in m.adding), drained, "The plan puts replicas on", "Plan again")
