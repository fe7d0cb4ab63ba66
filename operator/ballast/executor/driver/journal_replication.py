"""The journal's own replicas: a journal that was begun on one broker is kept on three once there are three.

Done before a run begins, under the lock, and like every change of the cluster written down before it is made.  It never
moves a replica, never lowers a count, leaves alone what the run itself is to move (its plan was made for the replicas that
are there), and never stands in the way of the run: what cannot be done now is tried again before the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.plan import Plan
from ballast.errors import BallastError, Fenced
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.term import LeaseTerm
from ballast.ports.cluster import Cluster, ConfigChange, ConfigResource
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC, Journal, Record, read_record
from ballast.ports.time import Clock

REPLICAS: Final = 3
"""As many as there are brokers, up to this."""
TOPICS: Final = (TopicPartition(JOURNAL_TOPIC, 0), TopicPartition(REQUESTS_TOPIC, 0))
KEY: Final = "journal-replication/replicas"
VERSION: Final = 1
MIN_ISR: Final = "min.insync.replicas"
COPIED_WITHIN_S: Final = 30.0
POLL_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Begun:
    topics: dict[str, int]


def keep_replicated(
    cluster: Cluster,
    journal: Journal | LeaseTerm,
    clock: Clock,
    *,
    plan: Plan,
    note: Callable[[RunNote], None],
    leaving: Callable[[], bool],
) -> None:
    """Add the replicas that the journal's topics lack, then raise their min ISR with them.

    Once ``leaving`` says so nothing is waited for any more: what is begun is in the journal, and the next start goes on with it.
    """
    try:
        begun, touched = _read_begun(journal), {m.name for m in plan.moves}
        wanted: dict[TopicPartition, tuple[int, ...]] = {}
        # Nearly always there are enough, and two partitions are sooner asked about than a whole cluster.
        if any(len(p.replicas) < REPLICAS for p in cluster.partitions(TOPICS).values()):
            state = cluster.snapshot(log_dirs=False, configs=False)
            wanted = {n: r for n, r in lacking(state, avoid=emptied_brokers(plan)).items() if n not in touched}
        if wanted:
            begun |= {name.topic: len(replicas) for name, replicas in wanted.items()}
            journal.append([Record(KEY, {"version": VERSION, "topics": begun})])
            journal.check()
            outcomes = cluster.alter_reassignments(wanted, allow_replication_factor_change=True)
            for name, outcome in outcomes.items():
                if outcome.ok:
                    note(RunNote("journal-replicated", {"topic": name.topic, "replicas": wanted[name]}))
                else:
                    note(RunNote("journal-not-replicated", {"topic": name.topic, "outcome": outcome}))
                    begun.pop(name.topic)
        if begun and _wait_until_in_sync(cluster, journal, clock, begun, leaving):
            _raise_min_isr(cluster, journal, begun)
            journal.append([Record(KEY, None)])
    except Fenced:
        raise
    except BallastError as failure:
        note(RunNote("journal-replicas-kept", {"error": failure.id, "message": failure.message}))


def emptied_brokers(plan: Plan) -> frozenset[int]:
    """Brokers that a plan takes replicas from and gives none to: they may be about to leave."""
    gives = {b for m in plan.moves for b in m.removing}
    takes = {b for m in plan.moves for b in m.adding}
    return frozenset(gives - takes)


def lacking(state: ClusterState, *, avoid: Collection[int]) -> dict[TopicPartition, tuple[int, ...]]:
    """The longer replica lists of the journal's topics, where brokers allow for more replicas than they have."""
    p = state.partitions
    load = dict(zip(*(part.tolist() for part in np.unique(p.replica, return_counts=True)), strict=True))
    out: dict[TopicPartition, tuple[int, ...]] = {}
    for name in TOPICS:
        row = state.index.get(name)
        if row is None or bool(state.moving[row]) or state.topics[int(p.topic[row])].deleting:
            continue
        replicas = state.replicas(row)
        while len(replicas) < REPLICAS:
            racks = {b.rack for b in state.brokers if b.id in replicas}
            free = [
                (b.rack is not None and b.rack in racks, load.get(b.id, 0), b.id)
                for b in state.brokers
                if b.alive and not b.cordoned and b.id not in replicas and b.id not in avoid
            ]
            if not free:
                break
            replicas = (*replicas, min(free)[2])
        if len(replicas) > len(state.replicas(row)):
            out[name] = replicas
    return out


def _read_begun(journal: Journal | LeaseTerm) -> dict[str, int]:
    """Topics whose replicas an earlier process began to add, and how many they were to be."""
    for record in journal.read():
        if record.key == KEY and record.value is not None:
            return read_record(record, _Begun, version=VERSION).topics
    return {}


def _wait_until_in_sync(
    cluster: Cluster, journal: Journal | LeaseTerm, clock: Clock, counts: Mapping[str, int], leaving: Callable[[], bool]
) -> bool:
    """Wait a moment until all replicas are in sync, which the journal soon is, being small; False where they are not by then."""
    names = [TopicPartition(topic, 0) for topic in counts]
    deadline = clock.monotonic_s() + COPIED_WITHIN_S
    while True:
        states = cluster.partitions(names)
        if all(n not in states or len(states[n].isr) >= counts[n.topic] for n in names):
            return True
        if leaving() or clock.monotonic_s() > deadline:
            return False
        clock.sleep(POLL_S)
        # The wait is longer than a lease.
        journal.renew()


def _raise_min_isr(cluster: Cluster, journal: Journal | LeaseTerm, counts: Mapping[str, int]) -> None:
    resources = {ConfigResource("topic", topic): str(max(count - 1, 1)) for topic, count in counts.items()}
    changes = []
    for resource, entries in cluster.configs(resources).items():
        entry = entries.get(MIN_ISR)
        present = int(entry.value) if entry is not None and entry.value else UNKNOWN
        if present < int(resources[resource]):
            changes.append(ConfigChange(resource, MIN_ISR, "set", resources[resource]))
    if changes:
        journal.check()
        cluster.alter_configs(changes)
