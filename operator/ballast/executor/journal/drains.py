"""Brokers that people drained, as the journal keeps them: every command that reads or fills a cluster asks for these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ballast.core.cluster.drain import Drain
from ballast.core.field_types import Moment
from ballast.ports.journal import STRANGE_HINT, Corrupt, Record, read_record

_DRAIN: Final = "drain/"


@dataclass(frozen=True, slots=True)
class _Signed:
    by: str
    since_ms: Moment


def drains_in(records: Iterable[Record]) -> tuple[Drain, ...]:
    """The draining brokers, by broker; one that is not whole is refused by name, since without it a plan would fill the broker."""
    found = {r.key: r for r in records if r.value is not None and r.key.startswith(_DRAIN)}
    return tuple(sorted((_drain(record) for record in found.values()), key=lambda d: d.broker))


def drain_record(broker: int, drain: Drain | None) -> Record:
    """A broker that is drained; None ends it."""
    value = None if drain is None else {"by": drain.by, "since_ms": drain.since_ms}
    return Record(f"{_DRAIN}{broker}", value)


def _drain(record: Record) -> Drain:
    broker = record.key.removeprefix(_DRAIN)
    if not broker.isdecimal():
        raise Corrupt(f"The journal's record {record.key} names no broker.", hint=STRANGE_HINT)
    signed = read_record(record, _Signed)
    return Drain(broker=int(broker), by=signed.by, since_ms=signed.since_ms)
