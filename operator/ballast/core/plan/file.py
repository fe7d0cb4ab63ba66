"""The plan file: a plan as versioned JSON, and back.

The file carries everything that ``apply`` needs (moves in order, the assignment before, the fingerprint of the input)
and what people want to know of it later (reasons, bound, obstacles, summary).  ``dumps`` writes the same bytes for the
same plan.  ``loads`` trusts nothing: whatever is not a plan is refused with a ``UsageError`` that names the place.
The form is documented in ``docs/planning.md``; a change that older readers would misread raises ``PLAN_VERSION``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.document import Reader, opened
from ballast.core.plan.model import PLAN_VERSION, LogDirError, Move, Obstacle, Plan, Reason
from ballast.errors import UsageError

FORMAT: Final = "ballast-plan"
STATUSES: Final = ("meets-all-goals", "nothing-to-do", "misses-some-goals", "infeasible")


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
        "bytes_moved": plan.known_bytes,
        "bound": {"bytes": plan.bound_bytes, "method": plan.bound_method},
        "allow_replication_factor_change": plan.allow_replication_factor_change,
        "in_order": plan.in_order,
        "topic_ids": dict(plan.topic_ids),
        "assumptions": list(plan.assumptions),
        "obstacles": [
            {"code": o.code, "subject": o.subject, "detail": o.detail, "remedy": o.remedy} for o in plan.obstacles
        ],
        "log_dir_errors": [
            {"broker": e.broker, "path": e.path, "error": e.error, "offline_replicas": e.offline_replicas}
            for e in plan.log_dir_errors
        ],
        "request": plan.request,
        "summary": plan.summary,
        "elections": [{"topic": e.topic, "partition": e.partition} for e in plan.elections],
    }
    fields = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in head.items()]
    moves = ",\n".join(f"    {json.dumps(_move_out(m))}" for m in plan.moves)
    fields.append(f'  "moves": [\n{moves}\n  ]' if moves else '  "moves": []')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def loads(text: str, *, source: str = "the plan file") -> Plan:
    """Read a plan that ``dumps`` wrote; ``source`` names it in errors."""
    return _plan(
        opened(
            text,
            source=source,
            form=FORMAT,
            version=PLAN_VERSION,
            what="a Ballast plan",
            hint="Make one with ballast plan balance --save plan.json; stock reassignment JSON goes to ballast reassign --execute.",
            changed="Make the plan again; this file was changed.",
        )
    )


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


def _move(r: Reader) -> Move:
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


def _partition(r: Reader) -> TopicPartition:
    return TopicPartition(r.text("topic"), r.integer("partition"))


def _obstacle(r: Reader) -> Obstacle:
    return Obstacle(r.text("code"), r.text("subject"), r.text("detail"), r.text("remedy"))


def _log_dir_error(r: Reader) -> LogDirError:
    return LogDirError(r.integer("broker"), r.text("path"), r.text("error"), r.integer("offline_replicas"))


def _plan(r: Reader) -> Plan:
    bound = r.child("bound")
    plan = Plan(
        intent=r.text("intent"),
        cluster_id=r.text("cluster_id"),
        fingerprint=r.text("fingerprint"),
        moves=r.each("moves", _move),
        elections=r.each("elections", _partition),
        status=r.text("status"),
        obstacles=r.each("obstacles", _obstacle),
        log_dir_errors=r.each("log_dir_errors", _log_dir_error),
        assumptions=r.texts("assumptions"),
        seed=r.integer("seed"),
        created_at_ms=r.integer("created_at_ms"),
        bound_bytes=bound.optional_integer("bytes"),
        bound_method=bound.text("method"),
        allow_replication_factor_change=r.flag("allow_replication_factor_change"),
        in_order=r.flag("in_order"),
        topic_ids=r.named_texts("topic_ids"),
        # Older plans do not have it, and can be carried out all the same.
        request=r.mapping("request") if r.has("request") else {},
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
