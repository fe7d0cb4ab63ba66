"""The observe check: read the cluster, measure it, notice which brokers came and left and what else moves things."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState
from ballast.core.cluster.slow_facts import with_slow_facts
from ballast.core.leadership.limits import imbalance_percentage
from ballast.core.planner import Loads
from ballast.core.planner.loads import DISK
from ballast.daemon.acting.journal_view import JournalReader
from ballast.daemon.acting.permission import Permissions
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.context.access import Access
from ballast.daemon.context.figures import measure, sentence
from ballast.daemon.context.view import Absence, Board, Outage, Role
from ballast.daemon.observing import others
from ballast.daemon.observing.reading import Reading
from ballast.daemon.observing.series import Series
from ballast.daemon.policy import LivePolicy
from ballast.errors import AuthenticationFailed, AuthorizationFailed, BallastError, Unavailable
from ballast.ports.cluster import ClusterReader
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC
from ballast.ports.time import Clock

OWN_TOPICS: Final = frozenset({JOURNAL_TOPIC, REQUESTS_TOPIC})
"""What the daemon itself keeps in the cluster."""
_PICTURE: Final = ("topic", "number", "leader", "start", "replica", "in_sync", "adding", "removing", "offline")
"""What readings of partitions are compared by."""


@dataclass(slots=True)
class Observer:
    """Reads the cluster, and remembers what one reading alone does not tell."""

    cluster: ClusterReader
    clock: Clock
    board: Board
    policy: LivePolicy
    reading: Reading
    series: Series
    access: Access
    journal: JournalReader
    permissions: Permissions
    proposals: Proposals
    look_again: Callable[[], None]
    on_state: Callable[[ClusterState], None]
    """Told about every full reading: the sampler."""
    per_topic: bool = False
    """Are figures kept for each topic, too?"""
    racks: Mapping[int, str] = field(default_factory=dict)
    """The rack that each broker last named: older clusters forget it with the broker."""

    def observe(self) -> str:
        """Take one reading and publish its figures."""
        now_s = self.clock.monotonic_s()
        full = self._wants_full(now_s)
        try:
            state = self.cluster.snapshot(log_dirs=full, configs=full, patient=False)
            if not full and self._shows_new_own_topic(state):
                full, state = True, self.cluster.snapshot(log_dirs=True, configs=True, patient=False)
            if not state.alive:
                raise Unavailable("The cluster answered and named no live broker.")
        except BallastError as failure:
            self._lose(failure)
            raise
        reading = self.reading
        if full:
            reading.keep_full(state, now_s)
        elif reading.state is not None:
            state = with_slow_facts(state, reading.state)
        state, self.racks = with_racks(state, self.racks)
        before = reading.state
        learned = full and reading.state is not None and count_unknown_sizes(reading.state) > count_unknown_sizes(state)
        reading.take(state, now_s, self.racks)
        figures = measure(
            state,
            threshold_percent=imbalance_percentage(state, self.policy.now.leaders.imbalance_percentage).value,
            policy=reading.balance,
            loads=current_loads(reading.loads, state),
            per_topic=self.per_topic,
        )
        ours = frozenset(self.access.run_controller.ours() if self.access.run_controller else ())
        found = others.find(state, ours | self.journal.view.moving, ignore=self.policy.now.guards.ignore_balancers)
        if self.series.add(state, figures):
            self.board.publish(series=tuple(self.series.points))
        returned = self.board.view.outage is not None
        changed_at_ms = self.board.view.changed_at_ms
        if before is None or not alike(before, state):
            changed_at_ms = state.taken_at_ms
        self.board.publish(
            figures=figures, outage=None, others=found, absences=self._absences(), changed_at_ms=changed_at_ms
        )
        self.permissions.publish()
        if returned or learned or (before is not None and before.alive - state.alive):
            # What was planned before says nothing about the cluster that came back, nor about one that lost a broker, nor what took
            # new topics for as large as others.  A return hurries nothing: the rest of its rack may be about to return as well.
            self.look_again()
        if full and self.board.view.role is not Role.STANDBY:
            self.on_state(state)
        return sentence(figures)

    def _lose(self, failure: BallastError) -> None:
        """The cluster cannot be read: say since when, and offer nothing that was planned from what it was."""
        denied = isinstance(failure, AuthenticationFailed | AuthorizationFailed)
        code = "access-denied" if denied else "unreachable" if isinstance(failure, Unavailable) else "refused"
        before = self.board.view.outage
        since_ms = before.since_ms if before else self.clock.now_ms()
        # Plans first: the page of an outage offers none.
        self.proposals.drop_all("outage")
        self.board.publish(outage=Outage(code=code, detail=failure.message, since_ms=since_ms))
        self.permissions.publish()

    def _absences(self) -> tuple[Absence, ...]:
        """Brokers that are missed, with the moment of their repair; monotonic times told by the wall clock of now."""
        now_s, now_ms = self.clock.monotonic_s(), self.clock.now_ms()
        grace_s = self.policy.now.guards.down_broker_grace_s
        held, found = self.reading.held_brokers(), []
        for broker, gone_s in sorted(self.reading.presence.down.since_s.items()):
            since_ms = now_ms - round((now_s - gone_s) * 1000)
            _, held_until_s = held.get(broker, (broker, 0.0))
            repair_at_ms = since_ms + round((max(gone_s + grace_s, held_until_s) - gone_s) * 1000)
            found.append(Absence(broker=broker, since_ms=since_ms, repair_at_ms=repair_at_ms))
        return tuple(found)

    def _shows_new_own_topic(self, state: ClusterState) -> bool:
        """Is a topic of the journal there that the reading before did not show?  Without its size no plan would know how much it copies.

        The first start makes them right after its first reading; once or twice in a cluster's life, so that it costs nothing.
        """
        known = self.reading.state
        own = {(t.name, t.topic_id) for t in state.topics if t.name in OWN_TOPICS}
        return known is not None and bool(own - {(t.name, t.topic_id) for t in known.topics if t.name in OWN_TOPICS})

    def _wants_full(self, now_s: float) -> bool:
        """Sizes and configs cost the brokers more: they are read less often; in between ``with_slow_facts`` keeps them."""
        last = self.reading.full
        intervals = self.policy.now.intervals
        # Half an observe interval early rather than half of one late: a reading for each minute makes gapless samples.
        return (
            last is None
            or now_s - last.began_s >= intervals.log_dirs_s - min(intervals.observe_s, intervals.log_dirs_s) / 2
        )


def alike(old: ClusterState, new: ClusterState) -> bool:
    """Do both readings show the same brokers, replicas, leaders and ISRs?  Sizes, which always grow, do not count."""
    p, q = old.partitions, new.partitions
    return (
        old.alive == new.alive
        and [(t.name, t.topic_id) for t in old.topics] == [(t.name, t.topic_id) for t in new.topics]
        and all(np.array_equal(getattr(p, column), getattr(q, column)) for column in _PICTURE)
    )


def count_unknown_sizes(state: ClusterState) -> int:
    """Replicas whose size no broker has told."""
    return int((state.partitions.size_bytes == UNKNOWN).sum())


def current_loads(known: tuple[ClusterState, Loads] | None, state: ClusterState) -> Loads | None:
    """The traffic that the newest plan was made with, and the sizes of now; None where the partitions are others by now."""
    if known is None:
        return None
    before, loads = known[0].partitions, known[1]
    now = state.partitions
    names = [t.name for t in known[0].topics] == [t.name for t in state.topics]
    if not (names and np.array_equal(before.topic, now.topic) and np.array_equal(before.number, now.number)):
        return None
    sizes = Loads.from_state(state)
    return replace(loads, size_bytes=sizes.size_bytes, known=(loads.known - {DISK}) | sizes.known)


def with_racks(state: ClusterState, known: Mapping[int, str]) -> tuple[ClusterState, Mapping[int, str]]:
    """Give brokers that are down the racks that they named before; and remember those that are named now."""
    remembered = dict(known) | {b.id: b.rack for b in state.brokers if b.rack is not None}
    if all(b.rack is not None or b.alive or b.id not in remembered for b in state.brokers):
        return state, remembered
    brokers = tuple(
        replace(b, rack=remembered.get(b.id)) if b.rack is None and not b.alive else b for b in state.brokers
    )
    return replace(state, brokers=brokers), remembered
