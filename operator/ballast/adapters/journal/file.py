"""The journal in a file, for clusters that cannot be written to; used only when a person says ``file:PATH``.

The same contract as the topic's: a lease with a fence.  Each line of the file is one transaction with a checksum, appended
under ``flock`` and forced to disk before the call returns; a torn last line never counts and is cut off by the next writer.
The fence is an epoch that each new holder raises.  The file guards only against processes that use the same file on the same
machine: what holds a cluster's own journal knows nothing of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from ballast.adapters.clock import SystemClock
from ballast.errors import Fenced, JournalLost, Refused, Unavailable, UsageError
from ballast.ports.journal import Corrupt, Holder, Record, Request, always
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

POLL_S: Final = 0.25
COMPACT_FROM_BYTES: Final = 4 * 1024 * 1024
"""The file is rewritten when it is longer than this and than twice what it needs."""
_REQUEST: Final = "request/"
_EPOCH: Final = "epoch"


class FileJournal:
    """One process's handle on a journal file."""

    def __init__(self, path: Path, *, clock: Clock | None = None, compact_from_bytes: int = COMPACT_FROM_BYTES) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._compact_from_bytes = compact_from_bytes
        self._view = JournalView()
        self._read_to: tuple[int, int] = (0, 0)
        """Inode and length of what the view holds."""
        self._lost: JournalView | None = None
        """What stood in the file that another one has replaced under the holder, for ``remake``."""
        self._epoch: int | None = None
        self._holder: Holder | None = None
        self._beat = 0
        self._skipped: Mapping[str, str] = {}
        self._held = HeldLease(0.0)

    # The lock

    def acquire(self, holder: Holder, *, wait_s: float = 0.0, wanted: Callable[[], bool] = always) -> Holder:
        """Become the writer or raise ``LockHeld``; a holder that did not release it costs one lease of waiting.

        The holder of the lock makes a lost file again: no other process remembers what stood in it.
        """
        watch = LeaseWatch(self._clock.monotonic_s())
        deadline = self._clock.monotonic_s() + wait_s
        while True:
            if not wanted():
                raise lock_unwanted()
            with self._lock_file() as file:
                lease, now = self._view.lease(), self._clock.monotonic_s()
                lost = self._holder is not None and self._lost is not None
                if not lost and watch.may_take(lease, now):
                    return self._take(file, replace(holder, since_ms=self._clock.now_ms()))
            if lost:
                self._epoch = self.term + 1
                self.remake()
                return self._require_holder()
            assert lease is not None
            if now >= deadline:
                raise lock_held(lease[0], left_s=watch.left_s(lease, now))
            self._clock.sleep(min(POLL_S, max(watch.left_s(lease, now), 0.01), max(deadline - now, 0.01)))

    @property
    def term(self) -> int:
        """The epoch of the last acquisition."""
        return self._epoch or 0

    def renew(self, doing: str = "") -> None:
        """Write the next beat when it is due, or when what is being done has changed."""
        holder = self._require_holder()
        if doing and doing != holder.doing:
            self._holder = replace(holder, doing=doing)
        elif not self._held.is_due(self._clock.monotonic_s()):
            return
        self._write([])

    def check(self) -> None:
        """Raise ``Fenced`` unless the lease is surely ours; one that lapsed and that no other process took is renewed."""
        self._require_holder()
        if not self._held.is_sure(self._clock.monotonic_s()):
            self._write([])

    def release(self) -> None:
        """Give the lock up; quietly does nothing where it was lost already."""
        if self._holder is None:
            return
        with self._lock_file() as file:
            if self._lost is None and self._stored_epoch() == self._epoch:
                self._append(file, [(LEASE_KEY, None)])
        self._holder = None

    def holder(self) -> Holder | None:
        """Who holds the lock as far as the file says."""
        with self._lock_for_reading():
            lease = self._view.lease()
        return None if lease is None else lease[0]

    def renewed_ms(self) -> int | None:
        """Not known: requests of others are written to the same file."""
        return None

    # Records and requests

    def append(self, records: Sequence[Record]) -> None:
        """Write all of these or none, and a beat of the lease with them."""
        self._require_holder()
        self._write([entry for r in records for entry in encode_record(r, piece_bytes=1 << 40)])

    def read(self) -> Sequence[Record]:
        """The newest value of every key."""
        with self._lock_for_reading():
            return self._view.records()

    def remake(self) -> None:
        """Write the file again, with all that this handle remembers; raises ``Fenced`` where another process holds it."""
        holder = self._require_holder()
        kept = self._view if self._lost is None else self._lost
        began = self._clock.monotonic_s()
        with self._lock_file() as file:
            lease = self._view.lease()
            if lease is not None and lease[0].id != holder.id:
                self._holder = None
                raise Fenced("Another process has taken this cluster's lock.", hint="This process stops.")
            known = dict(kept.entries())
            stale = [(key, None) for key, _ in self._view.entries() if key not in known]
            known |= {_EPOCH: str(self._epoch).encode(), LEASE_KEY: encode_lease(holder, self._beat + 1)}
            self._append(file, [*stale, *known.items()])
            self._lost = None
            self._beat += 1
        self._held.record_renewal(began)

    def remove(self) -> None:
        """Delete the file; one that another process put in its place stays."""
        self.check()
        with self._lock_file():
            self._require_ours()
            self._path.unlink()
        self._view, self._read_to, self._holder = JournalView(), (0, 0), None

    def request(self, request: Request) -> None:
        """Leave a request for the holder; one with a known id is not written again."""
        with self._lock_file() as file:
            if request.id not in self._requests().known:
                self._append(file, [(_REQUEST + request.id, encode_request(request))])

    def requests(self) -> Sequence[Request]:
        """Requests and their answers, oldest first."""
        with self._lock_for_reading():
            found = self._requests()
        self._skipped = found.skipped
        return found.in_order()

    def skipped_requests(self) -> Mapping[str, str]:
        """Of the last ``requests``: by id, why a request cannot be read."""
        return self._skipped

    def answer(self, request_id: str, answer: str, *, refused: bool = False) -> None:
        """Say what came of a request."""
        self._require_holder()
        known = {r.id: r for r in self.requests()}
        if request_id not in known:
            raise Refused(f"There is no request {request_id}.")
        answered = replace(known[request_id], answer=answer, refused=refused)
        self._write([(_REQUEST + request_id, encode_request(answered))])

    def close(self) -> None:
        """Forget what was held; the lease stays in the file until it lapses."""
        self._holder = None

    # Writing

    def _take(self, file: IO[bytes], holder: Holder) -> Holder:
        began = self._clock.monotonic_s()
        epoch = self._stored_epoch() + 1
        lease = encode_lease(holder, 0)
        self._append(file, [(_EPOCH, str(epoch).encode()), (LEASE_KEY, lease)])
        self._epoch, self._holder, self._beat, self._lost = epoch, holder, 0, None
        self._held = HeldLease(holder.lease_s)
        self._held.record_renewal(began)
        return holder

    def _write(self, entries: Sequence[Entry]) -> None:
        """One transaction of the holder's."""
        holder = self._require_holder()
        began = self._clock.monotonic_s()
        with self._lock_file() as file:
            self._require_ours()
            self._append(file, [*entries, (LEASE_KEY, encode_lease(holder, self._beat + 1))])
            self._beat += 1
            if self._read_to[1] > self._compact_from_bytes:
                self._compact()
        self._held.record_renewal(began)

    def _require_ours(self) -> None:
        """Raise where the file is another one, or where another process holds the lock in it."""
        if self._lost is not None:
            raise JournalLost(
                "recreated",
                f"The journal file {self._path} was deleted or replaced.",
                hint="What it holds now was not written by this process.",
            )
        if self._stored_epoch() != self._epoch:
            self._holder = None
            raise Fenced(
                "Another process has taken this cluster's lock.", hint="This process stops; the other goes on."
            )

    def _append(self, file: IO[bytes], entries: Sequence[Entry]) -> None:
        """Add one line and force it to disk; leaves the file as it was where that fails."""
        start = self._read_to[1]
        line = _line(entries)
        handle = file.fileno()
        try:
            os.ftruncate(handle, start)
            _write_all(handle, line, start)
            os.fsync(handle)
        except OSError as failure:
            os.ftruncate(handle, start)
            raise Unavailable(f"The journal file {self._path} cannot be written: {failure.strerror}.") from failure
        self._apply(entries)
        self._read_to = (self._read_to[0], start + len(line))

    def _compact(self) -> None:
        """Rewrite the file with the newest value of each key only, if that makes it less than half as long."""
        line = _line(list(self._view.entries()))
        if len(line) * 2 > self._read_to[1]:
            return
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            with open(fresh, "wb", opener=_private) as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            # It only saves room, and a full disk has none for a second copy: what is there is whole.
            fresh.unlink(missing_ok=True)
            return
        fresh.replace(self._path)
        _sync_folder(self._path.parent)
        self._read_to = (self._path.stat().st_ino, len(line))

    # Reading

    @contextmanager
    def _lock_file(self) -> Iterator[IO[bytes]]:
        """Alone with the file, and up to date with it."""
        with self._flock(fcntl.LOCK_EX):
            created = not self._path.exists()
            with open(self._path, "r+b" if not created else "x+b", opener=_private) as file:
                if created:
                    _sync_folder(self._path.parent)
                self._refresh(file)
                yield file

    @contextmanager
    def _lock_for_reading(self) -> Iterator[None]:
        """Up to date with the file while no process writes to it; a file that is not there is an empty journal."""
        if not self._path.exists():
            yield
            return
        with self._flock(fcntl.LOCK_SH), self._path.open("rb") as file:
            self._refresh(file)
            yield

    @contextmanager
    def _flock(self, kind: int) -> Iterator[None]:
        # The lock lies beside the journal, because compaction puts another file in the journal's place.
        lock = self._path.with_name(self._path.name + ".lock")
        try:
            with open(lock, "ab", opener=_private) as handle:
                fcntl.flock(handle, kind)
                yield
        except (FileNotFoundError, PermissionError, IsADirectoryError, FileExistsError) as failure:
            raise UsageError(
                f"The journal file {self._path} cannot be used: {failure.strerror}.",
                hint="Name a file in a folder that exists and that this user may write.",
            ) from failure
        except OSError as failure:
            raise Unavailable(f"The journal file {self._path} cannot be used: {failure.strerror}.") from failure

    def _refresh(self, file: IO[bytes]) -> None:
        found = os.fstat(file.fileno())
        inode = found.st_ino
        # A file that was made again may have the inode of the one before; this journal only ever grows in its place.
        if inode != self._read_to[0] or found.st_size < self._read_to[1]:
            if self._holder is not None and self._lost is None:
                self._lost = self._view
            self._view, self._read_to = JournalView(), (inode, 0)
        position = self._read_to[1]
        file.seek(position)
        for line in file:
            entries = _parse(line)
            if entries is None:
                break
            self._apply(entries)
            position += len(line)
        else:
            self._read_to = (inode, position)
            return
        self._read_to = (inode, position)
        if file.read(1):
            raise Corrupt(
                f"The journal file {self._path} is damaged at byte {position}, with whole lines after it.",
                hint="Restore it from a backup, or move it away and look at the cluster yourself first.",
            )

    def _apply(self, entries: Sequence[Entry]) -> None:
        for key, data in entries:
            self._view.apply(key, data)

    def _stored_epoch(self) -> int:
        return int(dict(self._view.entries()).get(_EPOCH, b"0"))

    def _requests(self) -> RequestsView:
        entries = self._view.entries()
        return RequestsView((k.removeprefix(_REQUEST), data) for k, data in entries if k.startswith(_REQUEST))

    def _require_holder(self) -> Holder:
        if self._holder is None:
            raise Fenced("This process does not hold this cluster's lock.", hint="Acquire it first.")
        return self._holder


def _line(entries: Sequence[Entry]) -> bytes:
    body: Any = [[key, None if data is None else data.decode()] for key, data in entries]
    text = json.dumps(body, separators=(",", ":"))
    return f"{hashlib.sha256(text.encode()).hexdigest()[:16]} {text}\n".encode()


def _parse(line: bytes) -> list[Entry] | None:
    """The entries of a line; None where the line is not whole."""
    checksum, _, text = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or hashlib.sha256(text).hexdigest()[:16].encode() != checksum:
        return None
    return [(key, None if value is None else value.encode()) for key, value in json.loads(text)]


def _write_all(handle: int, data: bytes, at: int) -> None:
    """Past the file's buffer: one that could not be written is tried again by every later call, also by truncate."""
    done = 0
    while done < len(data):
        done += os.pwrite(handle, data[done:], at + done)


def _private(path: str, flags: int) -> int:
    """Plans and names of topics are for its owner alone."""
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    """Force a new file's entry in its folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
