"""How journal records become bytes, and bytes records again: the part that every form of the journal shares.

An *entry* is a key and bytes (None deletes the key) in a log that may be compacted by key.  A record is one entry, or, where
its value is longer than a message may be, a head entry and pieces under keys of their own.  Every value says which version of
Ballast's journal wrote it; a newer version is refused, never guessed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from ballast.core.document import parse
from ballast.errors import BallastError
from ballast.ports.journal import JOURNAL_VERSION, STRANGE_HINT, Corrupt, Holder, OtherVersion, Record, Request

Entry = tuple[str, bytes | None]

LEASE_KEY: Final = "lease"
FENCE_KEY: Final = "fence"
"""What a new writer deletes first of all; it never has a value."""
RECORD_PREFIX: Final = "record/"
PIECE_PREFIX: Final = "piece/"
PIECE_BYTES: Final = 256 * 1024
"""Length of a piece; well under the smallest message limit in use."""
_MOST_PIECES: Final = 100_000

T = TypeVar("T", Holder, Request)


def encode_value(value: Mapping[str, Any]) -> bytes:
    """One versioned JSON object."""
    return _encode({"value": value})


def decode_value(key: str, data: bytes) -> dict[str, Any]:
    """Undo ``encode_value``; raises ``OtherVersion`` for a newer one, ``Corrupt`` for what is none of ours."""
    return _value_of(key, _decode(key, data))


def _value_of(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
    value = body.get("value")
    if not isinstance(value, dict):
        raise _not_ours(key)
    return value


def _encode(body: Mapping[str, Any]) -> bytes:
    return encode_json({"version": JOURNAL_VERSION, **body})


def encode_json(value: object) -> bytes:
    """JSON whose keys are sorted, so that equal values are equal bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if "\\ud" in text:
        # A user's name or a path may hold bytes that are no text, and what is read must be text.
        value = _from_json(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text.encode()


def _from_json(data: bytes) -> Any:
    from pydantic_core import from_json  # noqa: PLC0415 — no command waits for it that finds nothing to read

    return from_json(data)


def _decode(key: str, data: bytes) -> dict[str, Any]:
    try:
        body = _from_json(data)
    except ValueError:
        raise _not_ours(key) from None
    version = body.get("version") if isinstance(body, dict) else None
    if type(version) is not int:
        raise _not_ours(key)
    if version > JOURNAL_VERSION:
        raise OtherVersion(key, version, JOURNAL_VERSION)
    return cast("dict[str, Any]", body)


def _not_ours(key: str) -> Corrupt:
    return Corrupt(f"The journal's entry {key} is not one of Ballast's.", hint=STRANGE_HINT)


def encode_record(record: Record, *, pieces_before: int = 0, piece_bytes: int = PIECE_BYTES) -> Iterator[Entry]:
    """The entries that write one record over whatever its key held; ``pieces_before`` are deleted where unused."""
    pieces: list[bytes] = []
    head: bytes | None = None
    if record.value is not None:
        head = encode_value(record.value)
        if len(head) > piece_bytes:
            pieces = [head[i : i + piece_bytes] for i in range(0, len(head), piece_bytes)]
            head = _encode({"pieces": len(pieces), "sha256": hashlib.sha256(head).hexdigest()})
    for i in range(max(len(pieces), pieces_before)):
        yield f"{PIECE_PREFIX}{i}/{record.key}", pieces[i] if i < len(pieces) else None
    # The head comes last, so that its place in the log is where the record was written.
    yield RECORD_PREFIX + record.key, head


def encode_lease(holder: Holder, beat: int) -> bytes:
    """The lease record; ``beat`` differs each time it is renewed."""
    return encode_value({**_as_dict(holder), "beat": beat})


def encode_request(request: Request) -> bytes:
    """A request, with its answer if it has one."""
    return encode_value(_as_dict(request))


def decode_request(key: str, data: bytes) -> Request:
    """Undo ``encode_request``; raises ``OtherVersion`` for a newer one, ``Corrupt`` for what is none of ours."""
    return _build(Request, key, decode_value(key, data))


class RequestsView:
    """What a log of requests says, entry by entry.

    Many may write requests, one reads them: what is not one, or is one of a newer version, is no order and must not keep
    the holder from its work.  It is named; its sender waits for an answer in vain, and says so.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.known: dict[str, Request] = {}
        self.skipped: dict[str, str] = {}
        """By id, why a request cannot be read."""
        for key, data in entries:
            self.apply(key, data)

    def apply(self, key: str, data: bytes | None) -> None:
        """Take the next entry of the log; an answer is not undone by the request that is sent once more."""
        self.skipped.pop(key, None)
        known = self.known.pop(key, None)
        if data is None:
            return
        try:
            request = decode_request(key, data)
        except BallastError as failure:
            self.skipped[key] = failure.message
            return
        if known is None or known.answer is None or request.answer is not None:
            known = request
        self.known[key] = known

    def in_order(self) -> list[Request]:
        """Requests and their answers, oldest first."""
        return sorted(self.known.values(), key=lambda r: (r.at_ms, r.id))


def _build(cls: type[T], key: str, value: Mapping[str, Any]) -> T:
    """An instance whose every field is of its type, and that is all; ``Corrupt`` otherwise."""
    from pydantic_core import to_json  # noqa: PLC0415 — no command waits for it that finds nothing to read

    try:
        return parse(cls, to_json(value), extra="forbid")
    except ValueError:
        raise _not_ours(key) from None


def _as_dict(value: Holder | Request) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


class JournalView:
    """What the log says, entry by entry: the newest value of each key, in the order of their last writes."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, bytes] = {}
        self._decoded: dict[str, Record] = {}
        """By head, what was decoded of it: a record is the same object until its key is written again."""
        for key, data in entries:
            self.apply(key, data)

    def apply(self, key: str, data: bytes | None) -> None:
        """Take the next entry of the log."""
        self._entries.pop(key, None)
        self._decoded.pop(key, None)
        if key.startswith(PIECE_PREFIX):
            self._decoded.pop(RECORD_PREFIX + key.split("/", 2)[-1], None)
        if data is not None:
            self._entries[key] = data

    def lease(self) -> tuple[Holder, int] | None:
        """Who holds the lock and the number of the last beat; None when it was released or never taken."""
        data = self._entries.get(LEASE_KEY)
        if data is None:
            return None
        value = decode_value(LEASE_KEY, data)
        beat = value.pop("beat", None)
        if not isinstance(beat, int):
            raise _not_ours(LEASE_KEY)
        return _build(Holder, LEASE_KEY, value), beat

    def records(self) -> tuple[Record, ...]:
        """Every record that is not deleted; costs the decoding of those that were written since the last call."""
        return tuple(
            self._decoded.get(key) or self._decode(key, data)
            for key, data in self._entries.items()
            if key.startswith(RECORD_PREFIX)
        )

    def _decode(self, key: str, data: bytes) -> Record:
        found = self._decoded[key] = Record(key.removeprefix(RECORD_PREFIX), self._value(key, data))
        return found

    def pieces(self, key: str) -> int:
        """How many pieces this record's key has now."""
        if f"{PIECE_PREFIX}0/{key}" not in self._entries:
            return 0
        data = self._entries.get(RECORD_PREFIX + key)
        return 0 if data is None else _pieces(key, _decode(key, data))

    def entries(self) -> Iterator[tuple[str, bytes]]:
        """The compacted log."""
        yield from self._entries.items()

    def _value(self, head_key: str, data: bytes) -> dict[str, Any]:
        head = _decode(head_key, data)
        if "pieces" not in head:
            return _value_of(head_key, head)
        key = head_key.removeprefix(RECORD_PREFIX)
        whole = b"".join(self._entries.get(f"{PIECE_PREFIX}{i}/{key}", b"") for i in range(_pieces(head_key, head)))
        if hashlib.sha256(whole).hexdigest() != head.get("sha256"):
            raise Corrupt(
                f"The journal's record {key} is incomplete.",
                hint="Pieces of it are missing; check the topic's cleanup.policy and retention.",
            )
        return decode_value(key, whole)


def _pieces(key: str, head: Mapping[str, Any]) -> int:
    """How many pieces a head says there are; no record needs more than a few thousand."""
    pieces = head.get("pieces", 0)
    if type(pieces) is not int or not 0 <= pieces <= _MOST_PIECES:
        raise _not_ours(key)
    return pieces
