"""The JSON files and lists of Kafka's own tools, in and out.

Read as Kafka 4.3's tools read them: strict about types (a partition is a JSON integer that fits 32 bits, never ``"1"`` or
``1.0``), forgiving about a missing ``version``, unknown keys and text behind the closing brace.  What a file
*says* is decided here; whether a cluster can do it is decided in ``core.stock.checks``.

Every refusal is a ``StockFormatError`` that names the file, the place in it and the reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ballast.core.cluster import TopicPartition
from ballast.core.placement.java_random import utf16
from ballast.core.plan import ANY_LOG_DIR
from ballast.errors import UsageError

VERSION: Final = 1
"""The only version that Kafka's tools know, and what they assume where a file names none."""


_LONGEST_NUMBER: Final = 1_000
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One thing wrong with a file."""

    place: str
    """``partitions[3].replicas`` or ``line 2 column 7``; empty for the file as a whole."""
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


class StockFormatError(UsageError):
    """A file or list in one of the stock tools' formats cannot be used."""

    id = "stock-format"

    def __init__(self, source: str, problems: Sequence[FileProblem], *, hint: str | None = None) -> None:
        shown = "; ".join(map(str, problems[:5]))
        more = f"; and {len(problems) - 5} more problems" if len(problems) > 5 else ""
        super().__init__(f"{source}: {shown}{more}", hint=hint)
        self.source = source
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ReassignmentEntry:
    """One element of ``partitions`` in a reassignment file."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None
    """Per replica ``any`` or an absolute path; None where the file has no such key."""

    @property
    def name(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


def parse_topics_to_move(text: str, *, source: str = "topics-to-move JSON") -> tuple[str, ...]:
    """Topics of ``{"topics": [{"topic": "a"}, …], "version": 1}``, in order; without ``topics`` there are none."""
    document = _parse(text, source)
    _check_version(document)
    topics = tuple(item.field("topic").string() for item in document.optional_array("topics"))
    repeated = [name for name, n in Counter(topics).items() if n > 1]
    if repeated:
        document.refuse(f"the list of topics contains duplicate entries: {', '.join(repeated)}")
    return topics


def parse_reassignment(text: str, *, source: str = "reassignment JSON") -> tuple[ReassignmentEntry, ...]:
    """Entries of ``{"version": 1, "partitions": [{"topic", "partition", "replicas", "log_dirs"?}, …]}``, in order.

    Without ``partitions`` there are none.  Duplicates and empty lists pass, as they do for ``--verify`` and ``--cancel``;
    ``core.stock.checks.check_entries`` refuses them.
    """
    document = _parse(text, source)
    _check_version(document)
    return tuple(_reassignment_entry(item) for item in document.optional_array("partitions"))


def _reassignment_entry(item: _Node) -> ReassignmentEntry:
    topic, partition = item.field("topic").string(), item.field("partition").integer()
    replicas = tuple(r.integer() for r in item.field("replicas").array())
    log_dirs = None
    if item.has("log_dirs"):
        log_dirs = tuple(d.string() for d in item.field("log_dirs").array())
        if len(log_dirs) != len(replicas):
            item.field("log_dirs").refuse(
                f"{topic}-{partition} has {len(replicas)} replicas and {len(log_dirs)} log dirs; each replica needs one",
                hint='Write "any" where the broker may choose, or leave log_dirs out.',
            )
    return ReassignmentEntry(topic, partition, replicas, log_dirs)


def parse_election(text: str, *, source: str = "election JSON") -> tuple[TopicPartition, ...]:
    """Partitions of ``{"partitions": [{"topic", "partition"}, …]}``, in order; a ``version`` is not looked at."""
    document = _parse(text, source)
    items = document.field("partitions").array()
    names = tuple(TopicPartition(i.field("topic").string(), i.field("partition").integer()) for i in items)
    repeated = [str(name) for name, n in Counter(names).items() if n > 1]
    if repeated:
        document.refuse(f"the election names partitions more than once: {', '.join(repeated)}")
    return names


def parse_broker_list(text: str, *, source: str = "--broker-list") -> tuple[int, ...]:
    """Broker ids of ``0,1,2``: Java integers without space around them; trailing commas are ignored."""
    pieces = text.split(",")
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    problems = [
        FileProblem("", f"{_short(repr(piece))} is not a broker id") for piece in pieces if not _is_java_int(piece)
    ]
    if problems:
        raise StockFormatError(source, problems, hint="Write ids separated by commas, without space: 0,1,2.")
    ids = tuple(map(int, pieces))
    repeated = [str(i) for i, n in Counter(ids).items() if n > 1]
    if repeated:
        raise StockFormatError(source, [FileProblem("", f"contains duplicate entries: {', '.join(repeated)}")])
    negative = [str(i) for i in ids if i < 0]
    if negative:
        raise StockFormatError(source, [FileProblem("", f"broker ids are not negative: {', '.join(negative)}")])
    return ids


def format_reassignment(
    assignment: Mapping[TopicPartition, Sequence[int]],
    log_dirs: Mapping[tuple[TopicPartition, int], str] | None = None,
) -> str:
    """The reassignment JSON as the stock tool prints it: one line, by topic and partition, ``log_dirs`` in full."""
    chosen = log_dirs or {}
    partitions = [
        {
            "topic": name.topic,
            "partition": name.partition,
            "replicas": list(assignment[name]),
            "log_dirs": [chosen.get((name, broker), ANY_LOG_DIR) for broker in assignment[name]],
        }
        for name in sort_as_kafka(assignment)
    ]
    return _dump({"version": VERSION, "partitions": partitions})


def sort_as_kafka(names: Iterable[TopicPartition]) -> list[TopicPartition]:
    """By topic as Java compares strings, then by number."""
    return sorted(names, key=lambda name: (utf16(name.topic), name.partition))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def _is_java_int(text: str) -> bool:
    """Would ``Integer.parseInt`` take it?"""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    return digits.isdecimal() and len(digits) <= _LONGEST_NUMBER and _INT_MIN <= int(text) <= _INT_MAX


def _check_version(document: _Node) -> None:
    if document.has("version"):
        version = document.field("version").integer()
        if version != VERSION:
            document.field("version").refuse(f"version {version} is not supported, only {VERSION} is")


def _parse(text: str, source: str) -> _Node:
    """Read one JSON value; what follows it is ignored, as Kafka's tools ignore it."""

    def refuse_constant(name: str) -> NoReturn:
        raise StockFormatError(source, [FileProblem("", f"it is not valid JSON: {name} is no JSON number")])

    def integer(digits: str) -> int:
        if len(digits) > _LONGEST_NUMBER:
            raise StockFormatError(source, [FileProblem("", f"it holds a number of {len(digits)} digits")])
        return int(digits)

    decoder = json.JSONDecoder(parse_constant=refuse_constant, parse_int=integer)
    body = text.lstrip(" \t\r\n")
    if not body:
        raise StockFormatError(source, [FileProblem("", "the file is empty")])
    if body[0] == "\ufeff":
        raise StockFormatError(
            source,
            [FileProblem("", "it begins with a byte order mark, which JSON does not know")],
            hint="Save it as UTF-8 without a byte order mark (BOM).",
        )
    try:
        value, _ = decoder.raw_decode(body)
    except json.JSONDecodeError as mistake:
        skipped = len(text) - len(body)
        line = text.count("\n", 0, skipped + mistake.pos) + 1
        column = skipped + mistake.pos - text.rfind("\n", 0, skipped + mistake.pos)
        place = f"line {line} column {column}"
        raise StockFormatError(source, [FileProblem(place, f"it is not valid JSON: {mistake.msg}")]) from None
    except RecursionError:
        raise StockFormatError(source, [FileProblem("", "it is nested too deeply")]) from None
    return _Node(value, "", source)


@dataclass(frozen=True, slots=True)
class _Node:
    """A JSON value that knows where it stands."""

    value: Any
    place: str
    source: str

    def refuse(self, reason: str, *, hint: str | None = None) -> NoReturn:
        raise StockFormatError(self.source, [FileProblem(self.place, reason)], hint=hint)

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self.refuse(f"expected a JSON object, found {self._excerpt()}")
        return self.value

    def has(self, key: str) -> bool:
        return key in self._object()

    def field(self, key: str) -> _Node:
        if key not in self._object():
            self.refuse(f'the field "{key}" is missing')
        return _Node(self.value[key], f"{self.place}.{key}" if self.place else key, self.source)

    def array(self) -> Iterator[_Node]:
        if not isinstance(self.value, list):
            self.refuse(f"expected a JSON array, found {self._excerpt()}")
        return (_Node(item, f"{self.place}[{i}]", self.source) for i, item in enumerate(self.value))

    def optional_array(self, key: str) -> Iterator[_Node]:
        return self.field(key).array() if self.has(key) else iter(())

    def string(self) -> str:
        if not isinstance(self.value, str):
            self.refuse(f"expected a string, found {self._excerpt()}")
        return self.value

    def integer(self) -> int:
        # A JSON true is a Python int; a JSON 1.0 is not an integer for Kafka either.
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not _INT_MIN <= self.value <= _INT_MAX:
            self.refuse(f"expected a whole number of 32 bits, found {self._excerpt()}")
        return self.value

    def _excerpt(self) -> str:
        return _short(_dump(self.value))
