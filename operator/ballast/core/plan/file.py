"""The plan file: a plan as a JSON document, and back.

The file carries everything that ``apply`` needs (moves in order, the assignment before, the fingerprint of the input)
and what people want to know of it later (reasons, bound, obstacles, summary).  ``dumps`` writes the same bytes for the
same plan.  ``loads`` trusts nothing: whatever is not a plan is refused with a ``UsageError`` that names the place.
``docs/planning.md`` tells what the fields mean.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic.alias_generators import to_camel, to_snake
from typing_extensions import TypedDict

from ballast.core.catalogue import plain
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.document_types import (
    Document,
    Figures,
    Part,
    figures,
    read,
)
from ballast.core.field_types import Count, Moment, OneOf, Written, camel, milliseconds
from ballast.core.plan.model import LogDirError, Move, Obstacle, Plan, Purpose, Reason
from ballast.errors import UsageError

HINT: Final = (
    "Make one with ballast plan balance --save plan.json; Kafka's reassignment JSON goes to ballast reassign --execute."
)


def _in_style(parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if info.mode == "json" and any(to_camel(to_snake(k)) != k or camel(v) != v for k, v in parameters.items()):
        raise ValueError("should have keys in camelCase only")
    return parameters


def _different(brokers: list[int]) -> list[int]:
    if len(set(brokers)) != len(brokers):
        raise ValueError("should be a list of different broker ids")
    return brokers


Created = Annotated[Moment, BeforeValidator(lambda at, info: milliseconds(str(at)) if info.mode == "json" else at)]
Brokers = Annotated[list[Count], AfterValidator(_different)]


class Spread(TypedDict):
    """Over the brokers that share a resource."""

    minimum: float
    """Load of the least loaded broker over its fair share."""
    maximum: float
    out_of_range: int
    """Brokers out of range."""


class ResourceSummary(TypedDict):
    """A resource before and after."""

    name: str
    label: str
    unit: str
    band: float
    """The range that was asked for."""
    range: float
    """The range that counts: wider where empty partitions count for next to nothing."""
    idle: float
    shares_change: bool
    before: Spread
    after: Spread


class BrokerSummary(TypedDict):
    """A broker before and after, by resource."""

    broker: int
    rack: str | None
    alive: bool
    before: dict[str, int]
    after: dict[str, int]
    range: dict[str, list[float]]
    """Lowest and highest load that is within its range."""
    share: dict[str, int]
    bytes_received: int
    bytes_sent: int
    bytes_deleted: int
    """Of replicas that leave its disk."""


class Colocation(TypedDict):
    """What the loss of one broker and of two does to replica lists."""

    partitions: int
    different_sets: int
    preferred_leaders_min: int
    preferred_leaders_max: int
    max_leaders_taken_over: int
    min_brokers_taking_over: int
    max_partitions_shared_by_pair: int
    mean_partitions_shared_by_pair: float


class PlacementSummary(TypedDict):
    """The lists of now, those of the plan, and those of the naive layout (``ballast plan place``)."""

    algorithm: str
    now: Colocation
    placed: Colocation
    naive: Colocation


class InsteadSummary(TypedDict):
    """What balancing the same topics would do (``ballast plan place``)."""

    intent: str
    status: str
    moves: int
    bytes_moved: int | None
    elections: int


class LeadSummary(TypedDict):
    """What a broker leads before and after, in partitions or in bytes."""

    broker: int
    before: int
    after: int


class LeaderBalance(TypedDict):
    """The least possible maximum that a broker leads (``ballast plan leaders --minimize``)."""

    measure: Annotated[str, OneOf("counts", "bytes")]
    max_before: int
    max_after: int
    bound: float
    """No replica list changes reach less; counts reach it."""
    gap: float
    """How far ``maxAfter`` is above the bound, as a part of it."""
    brokers: list[LeadSummary]
    unknown_sizes: int
    """Partitions that count as empty."""


class CrossRackFigures(TypedDict):
    """Bytes per second from one rack to another."""

    bytes_per_s: int
    """All that is known of the three below."""
    producers: int
    followers: int
    consumers: int | None
    """Null where nothing is known of what consumers read from other racks."""
    unknown_reads: int
    """Partitions whose consumers may read from other racks, where it is not known how much."""
    cost_per_day: float | None
    """Null without a price (``balance.cross_rack.price_per_gib``)."""


class CrossRackSummary(TypedDict):
    """Traffic between racks before and after; left out where racks or what producers write are not known."""

    before: CrossRackFigures
    after: CrossRackFigures
    nearest_replica: bool
    """Consumers were taken to fetch from a replica in their own rack."""
    currency: str


class TieredSummary(TypedDict):
    """What a plan moves of tiered topics."""

    partitions: int
    bytes_moved: int | None
    """What their leaders have on disk; null where a size is unknown."""
    at_most_on: list[int]
    """Brokers that copy this at most, since their new replicas begin at the last tiered offset."""


class Summary(TypedDict, total=False):
    """Before and after, for people and reports."""

    replica_moves: int
    replica_list_changes: int
    leader_changes: int
    bytes_moved: int | None
    busiest_bytes: int | None
    tiered: TieredSummary
    """Left out where no tiered topic is copied."""
    resources: list[ResourceSummary]
    brokers: list[BrokerSummary]
    empty_afterwards: list[int]
    """Of the brokers that were to be emptied, those that then hold nothing."""
    search_ended_early: bool
    cross_rack: CrossRackSummary
    leader_balance: LeaderBalance
    placement: PlacementSummary
    instead: InsteadSummary


class MoveReason(Part):
    """Why a move is in the plan."""

    code: str
    detail: str


class MoveLine(Part):
    """One partition from one replica list to another; the first is the preferred leader."""

    topic: str
    partition: Count
    old: Brokers
    new: Annotated[Brokers, Field(min_length=1)]
    size_bytes: Count | None
    """Of one replica; null where no broker said."""
    reason: MoveReason
    log_dirs: list[str] | None
    """For each new replica an absolute log directory or ``any``; null where nothing asks for one."""


class ElectionLine(Part):
    """A preferred election."""

    topic: str
    partition: Count


class ObstacleLine(Part):
    """Why the plan stops short of what was asked."""

    code: str
    cause: str = ""
    """Which of the code's causes; empty in a file that does not name it."""
    subject: str
    parameters: Annotated[Figures, AfterValidator(_in_style), Written(camel, dict[str, Any])] = Field(
        default_factory=dict
    )
    """The figures of ``detail`` and ``remedy``."""
    detail: str
    remedy: str

    @classmethod
    def of(cls, o: Obstacle) -> ObstacleLine:
        """The same obstacle."""
        return cls(
            code=o.code,
            cause=o.cause,
            subject=o.subject,
            parameters=plain(o.values),
            detail=o.detail,
            remedy=o.remedy,
        )


class PurposeLine(Part):
    """What a plan is for, as data."""

    code: str
    """``balance``, ``decommission``, ``evacuate``, ``evacuate-offline``, ``elect``, …; ``other`` where only the words tell."""
    brokers: list[Count]
    """The brokers that it names; of ``replace`` the old one first."""
    racks: list[str]
    """The racks that it names."""


class Bound(Part):
    """The least bytes that any plan could copy, and how that is known."""

    bytes: Count | None
    method: str


class PlanFile(Document):
    """``ballast plan`` prints and saves it, ``ballast apply`` reads it."""

    kind: Literal["Plan"] = "Plan"
    intent: str
    purpose: PurposeLine
    cluster_id: str
    fingerprint: str
    status: Annotated[str, OneOf("meets-all-goals", "nothing-to-do", "misses-some-goals", "no-plan-found")]
    seed: Count
    created_at_ms: Created | None
    bytes_moved: Count | None
    bound: Bound
    allow_replication_factor_change: bool
    in_order: bool
    topic_ids: dict[str, str]
    assumptions: list[str]
    obstacles: list[ObstacleLine]
    log_dir_errors: tuple[LogDirError, ...]
    request: Figures
    """What was asked, settings by their names; empty where no planner made the plan."""
    summary: Summary
    elections: list[ElectionLine]
    moves: list[MoveLine]


def dumps(plan: Plan) -> str:
    """The plan as JSON text, one move a line so that people can read and compare it."""
    head = PlanFile(
        intent=plan.intent,
        purpose=PurposeLine(code=plan.purpose.code, brokers=list(plan.purpose.brokers), racks=list(plan.purpose.racks)),
        cluster_id=plan.cluster_id,
        fingerprint=plan.fingerprint,
        status=plan.status,
        seed=plan.seed,
        created_at_ms=plan.created_at_ms or None,
        bytes_moved=plan.known_bytes,
        bound=Bound(bytes=plan.bound_bytes, method=plan.bound_method),
        allow_replication_factor_change=plan.allow_replication_factor_change,
        in_order=plan.in_order,
        topic_ids=dict(plan.topic_ids),
        assumptions=list(plan.assumptions),
        obstacles=[ObstacleLine.of(o) for o in plan.obstacles],
        log_dir_errors=plan.log_dir_errors,
        request=plan.request,
        summary=cast("Summary", plan.summary),
        elections=[ElectionLine(topic=e.topic, partition=e.partition) for e in plan.elections],
        moves=[],
    )
    fields = [
        f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in head.model_dump(mode="json").items()
    ]
    moves = ",\n".join(f"    {_line(m).model_dump_json()}" for m in plan.moves)
    fields[-1] = f'  "moves": [\n{moves}\n  ]' if moves else '  "moves": []'
    return "{\n" + ",\n".join(fields) + "\n}\n"


def loads(text: str, *, source: str = "the plan file") -> Plan:
    """Read a plan that ``dumps`` wrote; ``source`` names it in errors."""
    f = read(PlanFile, text, source=source, what="a Ballast plan", hint=HINT)
    moves = tuple(_move(line, f"{source}: moves[{i}]") for i, line in enumerate(f.moves))
    _refuse_repeats([m.name for m in moves], source)
    return Plan(
        intent=f.intent,
        cluster_id=f.cluster_id,
        fingerprint=f.fingerprint,
        moves=moves,
        elections=tuple(TopicPartition(e.topic, e.partition) for e in f.elections),
        status=f.status,
        obstacles=tuple(
            Obstacle(o.code, o.subject, o.detail, o.remedy, o.cause, figures(o.parameters)) for o in f.obstacles
        ),
        log_dir_errors=f.log_dir_errors,
        assumptions=tuple(f.assumptions),
        seed=f.seed,
        created_at_ms=f.created_at_ms or 0,
        bound_bytes=f.bound.bytes,
        bound_method=f.bound.method,
        allow_replication_factor_change=f.allow_replication_factor_change,
        in_order=f.in_order,
        topic_ids=f.topic_ids,
        purpose=Purpose(f.purpose.code, tuple(f.purpose.brokers), tuple(f.purpose.racks)),
        request=f.request,
        summary=dict(f.summary),
    )


def is_plan(document: object) -> bool:
    """Does this JSON say that it is a plan, and not Kafka's reassignment?"""
    return isinstance(document, dict) and document.get("kind") == "Plan"


def kafka_json(plan: Plan) -> str:
    """The moves as Kafka's reassignment JSON (``kafka-reassign-partitions --reassignment-json-file``)."""
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


def _line(move: Move) -> MoveLine:
    # Not validated: the planner's own values, of which there may be very many.
    return MoveLine.model_construct(
        topic=move.topic,
        partition=move.partition,
        old=list(move.old),
        new=list(move.new),
        size_bytes=move.size_bytes if move.size_bytes != UNKNOWN else None,
        reason=MoveReason.model_construct(code=move.reason.code, detail=move.reason.detail),
        log_dirs=None if move.log_dirs is None else list(move.log_dirs),
    )


def _move(line: MoveLine, place: str) -> Move:
    if line.log_dirs is not None and len(line.log_dirs) != len(line.new):
        raise UsageError(f"{place}: 'logDirs' and 'new' differ in length.", hint=HINT)
    return Move(
        line.topic,
        line.partition,
        tuple(line.old),
        tuple(line.new),
        UNKNOWN if line.size_bytes is None else line.size_bytes,
        Reason(line.reason.code, line.reason.detail),
        None if line.log_dirs is None else tuple(line.log_dirs),
    )


def _refuse_repeats(names: Sequence[TopicPartition], place: str) -> None:
    seen: set[TopicPartition] = set()
    for name in names:
        if name in seen:
            raise UsageError(f"{place}: {name} is moved twice.", hint="Keep one move for each partition.")
        seen.add(name)
