"""The plan file: a plan as versioned JSON, and back.

The file carries everything that ``apply`` needs (moves in order, the assignment before, the fingerprint of the input)
and what people want to know of it later (reasons, bound, obstacles, summary).  ``dumps`` writes the same bytes for the
same plan.  ``loads`` trusts nothing: whatever is not a plan is refused with a ``UsageError`` that names the place.
The form is documented in ``docs/planning.md``; a change that older readers would misread raises ``PLAN_VERSION``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.plan import PLAN_VERSION, Move, Obstacle, Plan, Reason
from ballast.errors import UsageError

T = TypeVar("T")

FORMAT: Final = "ballast-plan"
STATUSES: Final = ("complete", "nothing-to-do", "partial", "infeasible")


def dumps(plan: Plan) -> str:
    """The plan as JSON text, one move a line so that people can read and compare it."""
    head = {
        "format": FORMAT,
        "version": PLAN_VERSION,
        "intent": plan.intent,
        "cluster_id": plan.cluster_id,
        "fingerprint": plan.fingerprint,
        "status": plan.status,
        "seed": plan.seed,
        "created_at_ms": plan.created_at_ms,
        "bytes_moved": plan.bytes_moved,
        "bound": {"bytes": plan.bound_bytes, "method": plan.bound_method},
        "allow_replication_factor_change": plan.allow_replication_factor_change,
        "assumptions": list(plan.assumptions),
        "obstacles": [
            {"code": o.code, "subject": o.subject, "detail": o.detail, "remedy": o.remedy} for o in plan.obstacles
        ],
        "summary": plan.summary,
        "elections": [{"topic": e.topic, "partition": e.partition} for e in plan.elections],
    }
    fields = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in head.items()]
    moves = ",\n".join(f"    {json.dumps(_move_out(m))}" for m in plan.moves)
    fields.append(f'  "moves": [\n{moves}\n  ]' if moves else '  "moves": []')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def loads(text: str, *, source: str = "the plan file") -> Plan:
    """Read a plan that ``dumps`` wrote; ``source`` names it in errors."""
    try:
        document = json.loads(text)
    except ValueError as broken:
        raise UsageError(
            f"{source} is not JSON: {broken}.", hint="Make a plan with ballast plan --output json."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(
            f"{source} is not a Ballast plan.",
            hint="Make one with ballast plan --output json; stock reassignment JSON goes to ballast reassign --execute.",
        )
    if document.get("version") != PLAN_VERSION:
        raise UsageError(
            f"{source} is a plan of version {document.get('version')!r}; this Ballast reads version {PLAN_VERSION}.",
            hint="Make the plan again with this version.",
        )
    return _plan(_Reader(document, source))


def kafka_json(plan: Plan) -> str:
    """The moves as stock reassignment JSON (``kafka-reassign-partitions --reassignment-json-file``)."""
    partitions = [
        {
            "topic": m.topic,
            "partition": m.partition,
            "replicas": list(m.new),
            "log_dirs": list(m.log_dirs) if m.log_dirs is not None else ["any"] * len(m.new),
        }
        for m in plan.moves
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":")) + "\n"


class _Reader:
    """One JSON object being read, with the name of its place for errors."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, Mapping):
            raise UsageError(f"{place} should be an object.", hint="Make the plan again; this file was changed.")
        self._value: Mapping[str, Any] = value
        self.place = place

    def _wrong(self, key: str, expected: str) -> UsageError:
        return UsageError(
            f"{self.place}: {key!r} should be {expected}.", hint="Make the plan again; this file was changed."
        )

    def _typed(self, key: str, kind: type[T], expected: str) -> T:
        value = self._value.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self._wrong(key, expected)
        return value

    def text(self, key: str) -> str:
        return self._typed(key, str, "a text")

    def integer(self, key: str, at_least: int = 0) -> int:
        value = self._typed(key, int, "a whole number")
        if value < at_least:
            raise self._wrong(key, f"at least {at_least}")
        return value

    def optional_integer(self, key: str) -> int | None:
        return None if self._value.get(key) is None else self.integer(key)

    def flag(self, key: str) -> bool:
        return self._typed(key, bool, "true or false")

    def mapping(self, key: str) -> dict[str, Any]:
        return self._typed(key, dict, "an object")

    def child(self, key: str) -> _Reader:
        return _Reader(self.mapping(key), f"{self.place}: {key}")

    def items(self, key: str) -> list[Any]:
        return self._typed(key, list, "a list")

    def each(self, key: str, read: Callable[[_Reader], T]) -> tuple[T, ...]:
        return tuple(read(_Reader(v, f"{self.place}: {key}[{i}]")) for i, v in enumerate(self.items(key)))

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.items(key)
        if not all(isinstance(v, str) for v in values):
            raise self._wrong(key, "a list of texts")
        return tuple(values)

    def brokers(self, key: str) -> tuple[int, ...]:
        values = self.items(key)
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values):
            raise self._wrong(key, "a list of broker ids")
        if len(set(values)) != len(values):
            raise self._wrong(key, "a list of different broker ids")
        return tuple(values)

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None


def _move_out(move: Move) -> dict[str, Any]:
    out: dict[str, Any] = {
        "topic": move.topic,
        "partition": move.partition,
        "old": list(move.old),
        "new": list(move.new),
        "size_bytes": move.size_bytes if move.size_bytes != UNKNOWN else None,
        "reason": {"code": move.reason.code, "detail": move.reason.detail},
    }
    if move.log_dirs is not None:
        out["log_dirs"] = list(move.log_dirs)
    return out


def _move(r: _Reader) -> Move:
    reason = r.child("reason")
    size = r.optional_integer("size_bytes")
    move = Move(
        topic=r.text("topic"),
        partition=r.integer("partition"),
        old=r.brokers("old"),
        new=r.brokers("new"),
        size_bytes=UNKNOWN if size is None else size,
        reason=Reason(reason.text("code"), reason.text("detail")),
        log_dirs=r.texts("log_dirs") if r.has("log_dirs") else None,
    )
    if not move.new:
        raise UsageError(f"{r.place}: {move.name} would be left without a replica.", hint="Make the plan again.")
    if move.log_dirs is not None and len(move.log_dirs) != len(move.new):
        raise UsageError(f"{r.place}: 'log_dirs' and 'new' differ in length.", hint="Make the plan again.")
    return move


def _partition(r: _Reader) -> TopicPartition:
    return TopicPartition(r.text("topic"), r.integer("partition"))


def _obstacle(r: _Reader) -> Obstacle:
    return Obstacle(r.text("code"), r.text("subject"), r.text("detail"), r.text("remedy"))


def _plan(r: _Reader) -> Plan:
    bound = r.child("bound")
    plan = Plan(
        intent=r.text("intent"),
        cluster_id=r.text("cluster_id"),
        fingerprint=r.text("fingerprint"),
        moves=r.each("moves", _move),
        elections=r.each("elections", _partition),
        status=r.text("status"),
        obstacles=r.each("obstacles", _obstacle),
        assumptions=r.texts("assumptions"),
        seed=r.integer("seed"),
        created_at_ms=r.integer("created_at_ms"),
        bound_bytes=bound.optional_integer("bytes"),
        bound_method=bound.text("method"),
        allow_replication_factor_change=r.flag("allow_replication_factor_change"),
        summary=r.mapping("summary"),
    )
    if plan.status not in STATUSES:
        raise UsageError(f"{r.place}: status {plan.status!r} is not one of {', '.join(STATUSES)}.")
    _refuse_repeats([m.name for m in plan.moves], r.place)
    return plan


def _refuse_repeats(names: Sequence[TopicPartition], place: str) -> None:
    seen: set[TopicPartition] = set()
    for name in names:
        if name in seen:
            raise UsageError(f"{place}: {name} is moved twice.", hint="Keep one move for each partition.")
        seen.add(name)
