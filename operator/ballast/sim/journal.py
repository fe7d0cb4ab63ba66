"""A journal in memory: one ``JournalStore`` stands for the cluster's topics, each ``MemoryJournal`` for a process's handle.

It keeps what it is given as the same bytes that the journal topic holds, so that a value which would not survive there does
not survive here.  The fence is an epoch that each ``acquire`` raises, as the broker does for a transactional id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ballast.errors import Fenced, JournalLost, Refused, Unavailable
from ballast.ports.journal import Holder, Record, Request, always
from ballast.ports.journal_codec import (
    LEASE_KEY,
    Entry,
    JournalView,
    RequestsView,
    encode_lease,
    encode_record,
    encode_request,
)
from ballast.ports.journal_lease import HeldLease, LeaseWatch, lock_held, lock_unwanted
from ballast.ports.time import Clock

POLL_S = 0.5


@dataclass(slots=True)
class JournalStore:
    """What outlives every process."""

    view: JournalView = field(default_factory=JournalView)
    requests: dict[str, bytes] = field(default_factory=dict)
    epoch: int = 0
    """Raised by every writer that begins; an older one is fenced."""
    available: bool = True
    """While false, every call raises ``Unavailable``."""
    generation: int = 0
    """Raised whenever the journal is lost."""
    lost: str = ""
    """How it was lost; empty once a process that remembered it has made it again."""
    log: list[Entry] = field(default_factory=list)
    """Everything that was written, in order."""
    failing_remakes: int = 0
    """So many of the next remakes end half-way: the journal is there again, and nothing has been written into it."""

    def write(self, key: str, data: bytes | None) -> None:
        """One entry at the end of the log."""
        self.log.append((key, data))
        self.view.apply(key, data)

    def lose(self, how: str = "deleted", *, keep: int = 0) -> None:
        """The journal is deleted from outside, its lease with it; ``truncated``, the first ``keep`` entries of its log are left."""
        self.log = self.log[:keep]
        self.view = JournalView(self.log)
        self.generation += 1
        self.lost = how


class MemoryJournal:
    """One process's handle on the store."""

    def __init__(self, store: JournalStore, clock: Clock, *, call_s: float = 0.05) -> None:
        self._store = store
        self._clock = clock
        self._call_s = call_s
        self._epoch: int | None = None
        self._holder: Holder | None = None
        self._beat = 0
        self._skipped: Mapping[str, str] = {}
        self._held = HeldLease(0.0)
        self._generation = store.generation
        self._view = JournalView()
        """What this handle has read and written."""
        self._half_made = False
        """A remake has begun and not come to its end."""

    def acquire(self, holder: Holder, *, wait_s: float = 0.0, wanted: Callable[[], bool] = always) -> Holder:
        """Become the writer or raise ``LockHeld``; the holder of the lock makes a lost journal again."""
        try:
            self._wait_for_lock(holder, wait_s, wanted)
        except JournalLost:
            if self._holder is None:
                raise
            if not wanted():
                raise lock_unwanted() from None
            self.remake()
            self._store.epoch += 1
            self._epoch = self._store.epoch
        return self._require_holder()

    def _wait_for_lock(self, holder: Holder, wait_s: float, wanted: Callable[[], bool]) -> None:
        self._spend()
        deadline = self._clock.monotonic_s() + wait_s
        watch = LeaseWatch(self._clock.monotonic_s())
        while not watch.may_take(lease := self._store.view.lease(), now := self._clock.monotonic_s()):
            assert lease is not None
            if now >= deadline or not wanted():
                raise lock_held(lease[0], left_s=watch.left_s(lease, now))
            self._clock.sleep(min(POLL_S, max(deadline - now, 0.01)))
            self._require_whole()
        if not wanted():
            raise lock_unwanted()
        self._store.epoch += 1
        self._epoch, self._holder = self._store.epoch, replace(holder, since_ms=self._clock.now_ms())
        self._held = HeldLease(holder.lease_s)
        self._refresh()
        self._write([])

    @property
    def term(self) -> int:
        """The epoch of the last acquisition."""
        return self._epoch or 0

    @property
    def is_behind(self) -> bool:
        """The journal has been lost, and this handle has not noticed it or has not come to the end of making it again."""
        return self._half_made or self._generation != self._store.generation

    def renew(self, doing: str = "") -> None:
        """Write the next beat when it is due, or when what is being done has changed."""
        holder = self._require_holder()
        if doing and doing != holder.doing:
            self._holder = replace(holder, doing=doing)
        elif not self._held.is_due(self._clock.monotonic_s()):
            return
        self._spend()
        self._write([])

    def check(self) -> None:
        """Raise ``Fenced`` unless the lease is surely ours; a lapsed lease that no other process took is renewed."""
        self._require_holder()
        if self._half_made:
            self._require_whole()
        if not self._held.is_sure(self._clock.monotonic_s()):
            self._spend()
            self._write([])

    def release(self) -> None:
        """Give the lock up."""
        if self._holder is None:
            return
        self._spend()
        if self._epoch == self._store.epoch:
            self._store.write(LEASE_KEY, None)
        self._holder = None

    def holder(self) -> Holder | None:
        """Who holds the lock as far as the store says."""
        self._spend()
        lease = self._store.view.lease()
        return None if lease is None else lease[0]

    def renewed_ms(self) -> int | None:
        """Not known: the store keeps no times."""
        return None

    def append(self, records: Sequence[Record]) -> None:
        """Write all of these or none."""
        self._require_holder()
        self._spend()
        self._write(records)

    def read(self) -> Sequence[Record]:
        """The newest value of every key."""
        self._spend()
        self._refresh()
        return self._view.records()

    def remake(self) -> None:
        """Make the journal again from what this handle remembers."""
        holder = self._require_holder()
        self._reach()
        self._generation, self._half_made = self._store.generation, True
        lease = self._store.view.lease()
        left_by_others = lease is None and self._store.lost != "truncated" and bool(self._store.view.records())
        if left_by_others or (lease is not None and lease[0].id != holder.id):
            self._holder, self._half_made = None, False
            self._refresh()
            raise Fenced("Another process has taken this cluster's lock.", hint="This process stops.")
        if self._store.failing_remakes:
            self._store.failing_remakes -= 1
            raise Unavailable("The journal was created again and is not writable yet.")
        self._store.log = list(self._view.entries())
        self._store.view = JournalView(self._store.log)
        self._write([])
        self._half_made, self._store.lost = False, ""

    def remove(self) -> None:
        """Delete everything that outlives a process."""
        self.check()
        self._require_whole()
        self._store.lose()
        self._store.lost = ""
        self._view = JournalView()
        self._store.requests.clear()
        self._generation, self._holder = self._store.generation, None

    def request(self, request: Request) -> None:
        """Leave a request for the holder."""
        self._spend()
        if request.id not in RequestsView(self._store.requests.items()).known:
            self._store.requests[request.id] = encode_request(request)

    def requests(self) -> Sequence[Request]:
        """Requests and their answers, oldest first."""
        self._spend()
        found = RequestsView(self._store.requests.items())
        self._skipped = found.skipped
        return list(found.known.values())

    def skipped_requests(self) -> Mapping[str, str]:
        """Of the last ``requests``: by id, why a request cannot be read."""
        return self._skipped

    def answer(self, request_id: str, answer: str, *, refused: bool = False) -> None:
        """Say what came of a request."""
        self._require_holder()
        self._spend()
        self._write([])
        request = RequestsView(self._store.requests.items()).known.get(request_id)
        if request is None:
            raise Refused(f"There is no request {request_id}.")
        self._store.requests[request_id] = encode_request(replace(request, answer=answer, refused=refused))

    def close(self) -> None:
        """Forget what was held; the lease stays in the store until it lapses."""
        self._holder = None

    def _write(self, records: Sequence[Record]) -> None:
        """One transaction: the records and a beat of the lease."""
        holder = self._require_holder()
        if self._epoch != self._store.epoch:
            self._holder = None
            raise Fenced(
                "Another process has taken this cluster's lock.", hint="This process stops; the other goes on."
            )
        began = self._clock.monotonic_s()
        entries = [e for r in records for e in encode_record(r, pieces_before=self._view.pieces(r.key))]
        self._beat += 1
        for key, data in [*entries, (LEASE_KEY, encode_lease(holder, self._beat))]:
            self._store.write(key, data)
            self._view.apply(key, data)
        self._held.record_renewal(began)

    def _require_holder(self) -> Holder:
        if self._holder is None:
            raise Fenced("This process does not hold this cluster's lock.", hint="Acquire it first.")
        return self._holder

    def _refresh(self) -> None:
        self._view = JournalView(self._store.view.entries())

    def _spend(self) -> None:
        self._reach()
        self._require_whole()

    def _reach(self) -> None:
        self._clock.sleep(self._call_s)
        if not self._store.available:
            raise Unavailable("The journal does not answer.", hint="Check the brokers that hold it.")

    def _require_whole(self) -> None:
        if self.is_behind:
            if self._holder is None:
                # Told once, as the topic's reader is.
                self._generation, self._half_made, self._view = self._store.generation, False, JournalView()
            how = self._store.lost or "deleted"
            raise JournalLost(how, f"The journal was {how}.")
