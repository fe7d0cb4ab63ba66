"""The journal in the cluster itself: a compacted topic with one writer, and the lock that is a record in it.

The writer is the process that holds one transactional id.  To become it, a candidate watches the lease record for one whole lease on
its own clock, then calls ``init_transactions``, which fences the writer before it, writes one record that says nothing, reads
up to it, looks again, and writes a lease of its own.  Every transaction carries a beat of the lease, so that a holder at work renews it by working.

A producer that is fenced, or that ended with a fatal error, writes no more.  That alone does not mean that the lock is lost:
brokers fence a producer whose transaction took too long as well, while one of them is frozen for example.  The lease says whose
it is.  Where it is still ours, the holder makes a new producer and goes on; where it is not, the lock is lost for good.

The fence protects this topic.  It cannot protect the cluster's own calls: see ``check``.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ballast.adapters.clock import SystemClock
from ballast.adapters.journal.client_errors import TRANSACTIONAL_ID, lock_lost
from ballast.adapters.journal.log import TopicLog
from ballast.adapters.journal.loss import NOTICED_WITHIN_S
from ballast.adapters.journal.producer import JournalProducer, Transaction, start_transactions
from ballast.adapters.journal.requests import RequestsTopic
from ballast.adapters.kafka import librdkafka
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.errors import BallastError, Fenced, JournalLost, LockHeld, Refused, Unavailable
from ballast.ports.journal import (
    JOURNAL_TOPIC,
    REQUESTS_TOPIC,
    Holder,
    JournalRestart,
    Record,
    Request,
    always,
    restart_record,
)
from ballast.ports.journal_codec import (
    FENCE_KEY,
    LEASE_KEY,
    JournalView,
    encode_lease,
    encode_record,
    encode_request,
)
from ballast.ports.journal_lease import HeldLease, LeaseWatch, lock_contended, lock_held, lock_unwanted
from ballast.ports.time import Clock

JOURNAL_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # Beats of the lease are most of what is written; short segments let compaction take them away.
    "segment.bytes": str(8 * 1024 * 1024),
    "segment.ms": str(6 * 3600 * 1000),
    "min.cleanable.dirty.ratio": "0.2",
    "compression.type": "producer",
    # A replica without the newest records must not lead: they say what is owed.
    "unclean.leader.election.enable": "false",
}
POLL_S: Final = 0.5
RIVAL_S: Final = 5.0
"""How long a candidate that was fenced by another one waits to be told which."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What a reader knew of a journal that is lost, and since when it has known that it is."""

    view: JournalView
    since_s: float

    def left_s(self, now_s: float) -> float:
        """How long its holder still has to make it again: no other process knows as much of it."""
        lease = self.view.lease()
        return 0.0 if lease is None else self.since_s + lease[0].lease_s - now_s


class TopicJournal:
    """One process's handle on the journal topic; may be used from several threads."""

    def __init__(
        self,
        client_config: Mapping[str, Any],
        *,
        clock: Clock | None = None,
        timeout_s: float = 30.0,
        journal_topic: str = JOURNAL_TOPIC,
        requests_topic: str = REQUESTS_TOPIC,
        identity: ClusterIdentity | None = None,
    ) -> None:
        self._client = {"socket.timeout.ms": librdkafka.socket_timeout_ms(timeout_s), **client_config}
        self._clock = clock or SystemClock()
        self._timeout_s = timeout_s
        # Two topics under other names are another journal with another lock.
        self._transactional_id = TRANSACTIONAL_ID if journal_topic == JOURNAL_TOPIC else journal_topic
        self._log = TopicLog(self._client, journal_topic, timeout_s=timeout_s, identity=identity)
        self._requests = RequestsTopic(self._client, requests_topic, timeout_s=timeout_s, identity=identity)
        self._view = JournalView()
        self._producer: JournalProducer | None = None
        self._holder: Holder | None = None
        self._to_remake: JournalView | None = None
        """What the journal has to hold again: a remake has begun and not come to its end."""
        self._remembered: _Remembered | None = None
        """Kept by a process without the lock, until the holder has made the lost journal again or its lease is over."""
        self._first: Sequence[Record] = ()
        """What an empty journal has to begin with: that an earlier one was lost."""
        self._term = 0
        self._beat = 0
        self._held = HeldLease(0.0)
        self._turn = threading.RLock()

    # The lock

    def acquire(self, holder: Holder, *, wait_s: float = 0.0, wanted: Callable[[], bool] = always) -> Holder:
        """Become the writer, or raise ``LockHeld``; takes at least one lease where the last holder did not release it.

        The holder of the lock makes a lost journal again: no other process remembers what stood in it.
        """
        if not wanted():
            raise lock_unwanted()
        try:
            self._wait_for_lock(holder, wait_s, wanted)
        except JournalLost:
            with self._turn:
                if self._holder is None:
                    raise
                if not wanted():
                    raise lock_unwanted() from None
                self.remake()
                self._term += 1
        with self._turn:
            return self._require_holder()

    def _wait_for_lock(self, holder: Holder, wait_s: float, wanted: Callable[[], bool]) -> None:
        if self._remembered is not None and self._inherit(holder, self._clock.monotonic_s() + wait_s, wanted):
            return
        with self._turn:
            if self._holder is not None:
                # Before anything else makes the topic where it is missing.
                self._require_whole()
                self._log.check_not_lost(now=True)
        lost = self._is_lost(holder, wanted)
        with self._turn:
            made = self._log.ensure(JOURNAL_CONFIGS)
            first_of_all = self._requests.ensure()
        if not lost and not first_of_all:
            # It may have been deleted since that look, and what stands there now be empty.
            lost = self._is_lost(holder, wanted, was_gone=made)
        if lost:
            self._first = (restart_record(JournalRestart(self._clock.now_ms(), holder.description)),)
        began = self._clock.monotonic_s()
        watch, deadline = LeaseWatch(began), began + wait_s
        while True:
            before = self._await_lapse(watch, deadline, wanted)
            if not wanted():
                raise lock_unwanted()
            if self._take(holder, watch):
                return
            if not self._wait_for_rival_lease(before) and self._clock.monotonic_s() >= deadline:
                raise lock_contended()

    def _inherit(self, holder: Holder, deadline: float, wanted: Callable[[], bool]) -> bool:
        """Leave a lost journal to its holder for one lease, then make it again from what was read of it; whether that was done.

        An empty one, made at once, would have the holder believe that another has the lock, and what is owed would be forgotten.
        """
        while self._is_missing() and (kept := self._remembered) is not None:
            now = self._clock.monotonic_s()
            if (left_s := kept.left_s(now)) <= 0:
                if self._make_again(holder, kept):
                    return True
                continue
            lease = kept.view.lease()
            if lease is not None and (now >= deadline or not wanted()):
                raise lock_held(lease[0], left_s=left_s)
            self._clock.sleep(min(POLL_S, left_s))
        self._remembered = None
        return False

    def _is_missing(self) -> bool:
        """Whether nothing has been written into the journal since it was lost."""
        with self._turn:
            return not self._log.exists() or not any(True for _ in self._refresh().entries())

    def _make_again(self, holder: Holder, kept: _Remembered) -> bool:
        """Write what was read of it into a new one; False where another process has done so meanwhile."""
        with self._turn:
            self._begin(holder)
            self._view = kept.view
            try:
                self.remake()
            except BallastError as failure:
                self._forget()
                self._log.forget()
                self._view = JournalView()
                if isinstance(failure, Fenced):
                    return False
                raise
            self._remembered = None
            self._term += 1
            return True

    def _is_lost(self, holder: Holder, wanted: Callable[[], bool], *, was_gone: bool = False) -> bool:
        """Whether the journal was deleted and no process makes it again: one that lives and remembers it would.

        Its lease may still hold, and may be shorter than the time in which it notices: both are waited for.

        One in which nothing was ever written is waited for as well: the process that has just made it is about to write.
        """
        ends_s = self._clock.monotonic_s() + holder.lease_s + NOTICED_WITHIN_S
        while (is_gone := self._log.is_gone_beside(self._requests.topic)) or self._is_unwritten(was_gone=was_gone):
            was_gone = was_gone or is_gone
            if not wanted():
                raise lock_unwanted()
            if self._clock.monotonic_s() >= ends_s:
                return was_gone
            self._clock.sleep(POLL_S)
        return False

    def _is_unwritten(self, *, was_gone: bool) -> bool:
        """Nothing was ever written into it; or nothing came through since it was gone: its holder may have tried, and not known."""
        if self._log.is_unwritten():
            return True
        with self._turn:
            return was_gone and not any(True for _ in self._refresh().entries())

    def _take(self, holder: Holder, watch: LeaseWatch) -> bool:
        """Fence the writer before us and write our lease; False where another candidate did so on the way."""
        try:
            with self._turn:
                self._fence_others()
            # A process that renewed or took the lease between our last look and the fence cannot write any more, but may
            # still believe in it: its whole lease has to pass before we act.
            late = self._lease()
            self._await_lapse(watch, self._clock.monotonic_s() + (0.0 if late is None else late[0].lease_s + POLL_S))
            with self._turn:
                self._begin(holder)
                self._term += 1
                self._transact([] if any(True for _ in self._view.entries()) else self._first)
                self._first = ()
        except (Fenced, LockHeld):
            self._forget()
            return False
        except JournalLost:
            # The holder of the lock stays its holder, to make the journal again.
            self._producer = None
            raise
        except BallastError:
            self._forget()
            raise
        return True

    def _begin(self, holder: Holder) -> None:
        """Hold the lock from now on; nothing is written yet."""
        self._holder = replace(holder, since_ms=self._clock.now_ms())
        self._held, self._beat = HeldLease(holder.lease_s), 0

    def _wait_for_rival_lease(self, before: tuple[Holder, int] | None) -> bool:
        """Wait for the lease of the candidate that fenced us: it follows within moments, unless it died in between."""
        deadline = self._clock.monotonic_s() + RIVAL_S
        while self._lease() == before:
            if self._clock.monotonic_s() >= deadline:
                return False
            self._clock.sleep(0.1)
        return True

    @property
    def term(self) -> int:
        """How often this handle has taken the lock."""
        return self._term

    def renew(self, doing: str = "") -> None:
        """Write the next beat when it is due, or when what is being done has changed."""
        with self._turn:
            holder = self._require_holder()
            if doing and doing != holder.doing:
                self._holder = replace(holder, doing=doing)
            elif not self._held.is_due(self._clock.monotonic_s()):
                return
            self._transact([])

    def check(self) -> None:
        """Raise ``Fenced`` unless the lease is surely ours; one that lapsed and that no other process took is renewed.

        No call to a broker while the lease is fresh.  Between this check and the write it guards lies what the process
        may sleep through; that is why a late write may only repeat what the journal already says.
        """
        with self._turn:
            self._require_holder()
            self._require_whole()
            if not self._held.is_sure(self._clock.monotonic_s()):
                self._transact([])

    def release(self) -> None:
        """Give the lock up; quietly does nothing where it was lost already."""
        with self._turn:
            if self._holder is None:
                return
            with contextlib.suppress(Fenced, JournalLost):
                self._transact([], lease=None)
            self._forget()

    def holder(self) -> Holder | None:
        """Who holds the lock as far as the topic says; it may have died since its last beat."""
        lease = self._lease()
        return None if lease is None else lease[0]

    def renewed_ms(self) -> int | None:
        """When the newest transaction was written, since each one carries a beat of the lease."""
        return self._log.newest_ms

    def _lease(self) -> tuple[Holder, int] | None:
        with self._turn:
            return self._refresh().lease()

    def _await_lapse(
        self, watch: LeaseWatch, deadline: float, wanted: Callable[[], bool] = always
    ) -> tuple[Holder, int] | None:
        """The lease that has lapsed, None where the lock was released; raises ``LockHeld`` at the deadline.

        The handle is free for other threads between two looks.
        """
        while True:
            lease = self._lease()
            now = self._clock.monotonic_s()
            if watch.may_take(lease, now):
                return lease
            assert lease is not None
            if now >= deadline or not wanted():
                raise lock_held(lease[0], left_s=watch.left_s(lease, now))
            self._clock.sleep(min(POLL_S, max(watch.left_s(lease, now), 0.01), max(deadline - now, 0.01)))

    def _fence_others(self) -> None:
        """Become the only writer, and have the next reading reach beyond all that others have written.

        A broker that was frozen or cut off serves the topic as it was when it led it, with the lease of that time.  It lacks
        the record that is written here.
        """
        client = start_transactions(self._client, self._transactional_id, timeout_s=self._timeout_s)
        producer = JournalProducer(
            client,
            self._log.topic,
            timeout_s=self._timeout_s,
            committed=self._take_in,
            check_not_lost=self._log.check_not_lost,
        )
        producer.write(Transaction(self._clock.monotonic_s(), ((FENCE_KEY, None),)))
        self._producer = producer

    # Records

    def append(self, records: Sequence[Record]) -> None:
        """Write all of these or none, and a beat of the lease with them."""
        with self._turn:
            self._transact(records)

    def read(self) -> Sequence[Record]:
        """The newest value of every key."""
        with self._turn:
            return self._refresh().records()

    # Requests

    def request(self, request: Request) -> None:
        """Leave a request for the holder; one with a known id is not sent again."""
        with self._turn:
            self._requests.send(request)

    def requests(self) -> Sequence[Request]:
        """Requests and their answers, oldest first."""
        with self._turn:
            return self._requests.read(holds_lock=self._holder is not None).in_order()

    def skipped_requests(self) -> Mapping[str, str]:
        """Of the last ``requests``: by id, why a request cannot be read."""
        with self._turn:
            return dict(self._requests.view.skipped)

    def answer(self, request_id: str, answer: str, *, refused: bool = False) -> None:
        """Say what came of a request, in the same transaction as the beat that proves us to be the holder."""
        with self._turn:
            self._require_holder()
            request = self._requests.read(holds_lock=True).known.get(request_id)
            if request is None:
                raise Refused(f"There is no request {request_id}.")
            self._transact([], answered=replace(request, answer=answer, refused=refused))

    def close(self) -> None:
        """Let the connections go; the lease stays until it lapses."""
        with self._turn:
            self._forget()
            self._log.close()
            self._requests.close()
            self._view = JournalView()

    # Transactions

    def _transact(
        self, records: Sequence[Record], *, lease: str | None = LEASE_KEY, answered: Request | None = None
    ) -> None:
        """One transaction: records, at most one answer, and a beat of the lease (or, with ``lease=None``, its end)."""
        self._require_holder()
        self._require_whole()
        try:
            if self._producer is None or self._producer.dead:
                self._regain()
            try:
                self._write(records, lease, answered)
            except Fenced:
                self._regain()
                self._write(records, lease, answered)
        except Fenced:
            self._forget()
            raise
        except Unavailable:
            # A topic that is gone or another one fails like one whose brokers are busy.
            self._log.check_not_lost(now=True)
            raise

    def remake(self) -> None:
        """Make the topics again and write all that this process remembers; the lock stays its holder's.

        Raises ``Fenced`` where another process holds the lock in what stands there now, or has held it and left records.  A
        remake that failed on its way is due until one has come to its end: everything else raises ``JournalLost`` meanwhile.
        """
        with self._turn:
            holder = self._require_holder()
            kept = self._to_remake = self._view
            self._producer = None
            self._log.rebuild(JOURNAL_CONFIGS)
            self._requests.remake()
            self._fence_others()
            found = JournalView(self._log.new_entries(whole=True))
            lease = found.lease()
            left_by_others = lease is None and not self._log.was_cut_off and bool(found.records())
            if left_by_others or (lease is not None and lease[0].id != holder.id):
                self._forget()
                self._view = found
                raise lock_lost()
            known = dict(kept.entries())
            stale = [(key, None) for key, _ in found.entries() if key not in known]
            beat = (LEASE_KEY, encode_lease(holder, self._beat + 1))
            entries = [*stale, *((k, data) for k, data in known.items() if k != LEASE_KEY), beat]
            self._writer().write(Transaction(self._clock.monotonic_s(), tuple(entries)))
            self._to_remake = None

    def _require_whole(self) -> None:
        """Raise ``JournalLost`` while a remake is due: the topic that stands there lacks what this process knows."""
        if self._to_remake is not None:
            raise JournalLost("deleted", f"{self._log.topic} was lost and has not been written again yet.")

    def remove(self) -> None:
        """Delete both topics, the one with the lock last; topics that another process made in their place stay."""
        with self._turn:
            self.check()
            self._log.check_not_lost(now=True)
            # A producer that lives on asks for its topic, and brokers may make it again for any client that asks.
            self._forget()
            self._view = JournalView()
            self._requests.delete()
            self._log.delete()

    def _write(self, records: Sequence[Record], lease: str | None, answered: Request | None) -> None:
        producer = self._writer()
        producer.settle()
        self._log.check_not_lost()
        began = self._clock.monotonic_s()
        entries = [e for r in records for e in encode_record(r, pieces_before=self._view.pieces(r.key))]
        beat = encode_lease(self._require_holder(), self._beat + 1)
        entries.append((LEASE_KEY, None if lease is None else beat))
        also = [] if answered is None else [(self._requests.topic, answered.id, encode_request(answered))]
        producer.write(Transaction(began, tuple(entries)), *also)

    def _take_in(self, transaction: Transaction, placed: Sequence[int]) -> None:
        """What was committed is read by now: the only writer knows what the journal says without reading its own words back."""
        for key, data in transaction.entries:
            self._view.apply(key, data)
            if key == LEASE_KEY:
                self._beat += 1
                self._held.record_renewal(transaction.began_s)
        for offset in placed:
            self._log.note_written(offset)

    def _regain(self) -> None:
        """Write on with a new producer where the lease is still ours; raise ``Fenced`` where it is not.

        The lease is read before the fence as well: a process that lost the lock must not fence the one that took it.
        """
        self._producer = None
        # In a topic that is another one by now our lease would seem to stand, since nothing in it has been read.
        self._log.check_not_lost(now=True)
        self._require_lease()
        self._fence_others()
        try:
            self._require_lease()
        except BallastError:
            self._producer = None
            raise

    def _require_lease(self) -> None:
        found = self._refresh().lease()
        if found is None or found[0].id != self._require_holder().id:
            raise lock_lost()
        # A commit that was not acknowledged may have come through.
        self._beat = found[1]

    # Reading

    def _refresh(self) -> JournalView:
        self._require_whole()
        writer = self._producer
        try:
            # A transaction of our own that is still open would be waited for in vain.
            entries = self._log.new_entries(whole=writer is not None and not writer.dead and not writer.has_open)
        except JournalLost:
            if self._holder is None:
                # Told once; a reader reads what stands there from now on, and keeps what it knew for the day it gets the lock.
                if self._remembered is None:
                    self._remembered = _Remembered(self._view, self._clock.monotonic_s())
                self._view = JournalView()
                self._log.forget()
            raise
        for key, data in entries:
            self._view.apply(key, data)
        return self._view

    # Small things

    def _require_holder(self) -> Holder:
        if self._holder is None:
            raise Fenced("This process does not hold this cluster's lock.", hint="Acquire it first.")
        return self._holder

    def _writer(self) -> JournalProducer:
        assert self._producer is not None
        return self._producer

    def _forget(self) -> None:
        self._holder, self._to_remake, self._producer = None, None, None
