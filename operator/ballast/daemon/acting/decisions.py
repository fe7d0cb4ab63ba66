"""What people have decided, as the journal keeps it: the pause, plans rejected and approved, brokers drained.

The process that holds the lock writes it; every other one reads it whenever it reads the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from ballast.core.cluster.drain import Drain
from ballast.core.document_types import STYLE
from ballast.core.field_types import Moment
from ballast.daemon.context.view import Answer, PlanView
from ballast.daemon.policy import ActionKind
from ballast.executor.journal.drains import drains_in
from ballast.executor.journal.pause import Pause, find_pause
from ballast.ports.journal import Record, read_record

ASKED_KEY: Final = "daemon/asked"
ANSWERS_KEY: Final = "daemon/answers"
RESERVED_KEY: Final = "lock-reserved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The plan of a kind that a person approved and that has not started yet."""

    plan: str
    by: str


@dataclass(frozen=True, slots=True)
class _Rejection:
    plan: str


@dataclass(frozen=True, slots=True)
class Reserved:
    """The lock was released for a person."""

    who: Annotated[str, Field(validation_alias="for")]
    until_ms: Moment
    """Wall clock, since every replica goes by it."""


def reserved_record(reserved: Reserved) -> Record:
    """Whom every daemon leaves the lock to for a moment."""
    return Record(RESERVED_KEY, {"for": reserved.who, "until_ms": reserved.until_ms})


def find_reserved(records: Iterable[Record]) -> Reserved | None:
    """Whom the lock was last released for."""
    for record in records:
        if record.key == RESERVED_KEY and record.value is not None:
            return read_record(record, Reserved)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Everything that holds until a person ends it, or until its plan is no longer wanted."""

    pause: Pause | None = None
    rejected: Mapping[ActionKind, str] = field(default_factory=dict)
    """By kind, the name of the plan that was rejected last."""
    approved: Mapping[ActionKind, Approval] = field(default_factory=dict)
    drains: tuple[Drain, ...] = ()
    """By broker."""
    asked: PlanView | None = None
    """The plan that was asked for on some page, as the leader shows it."""
    answers: tuple[Answer, ...] = ()
    """What that one answered last."""
    not_shown: tuple[str, ...] = ()
    """What of these two another version wrote, and this one cannot read: then that one's page is where it is."""


def decisions_in(records: Iterable[Record]) -> Decisions:
    """What the journal says; a decision that is not whole is refused by name, since without it more would be allowed."""
    found = {r.key: r for r in records if r.value is not None}
    asked, answers = found.get(ASKED_KEY), found.get(ANSWERS_KEY)
    rejected = {kind: found[_rejection_key(kind)] for kind in ActionKind if _rejection_key(kind) in found}
    approved = {kind: found[_approval_key(kind)] for kind in ActionKind if _approval_key(kind) in found}
    shown, told = (None if asked is None else _plan(asked.value)), ([] if answers is None else _answers(answers.value))
    return Decisions(
        pause=find_pause(found.values()),
        rejected={kind: read_record(record, _Rejection).plan for kind, record in rejected.items()},
        approved={kind: read_record(record, Approval) for kind, record in approved.items()},
        drains=drains_in(found.values()),
        asked=shown,
        answers=tuple(told or ()),
        not_shown=(
            *(("the plan that was asked for",) if asked is not None and shown is None else ()),
            *(("the answers to requests",) if told is None else ()),
        ),
    )


def rejection_record(kind: ActionKind, plan: str) -> Record:
    """A plan of this kind that is not wanted."""
    return Record(_rejection_key(kind), {"plan": plan})


def approval_record(kind: ActionKind, approval: Approval | None) -> Record:
    """A plan of this kind that may start; None once it has, or is no longer wanted."""
    return Record(_approval_key(kind), None if approval is None else asdict(approval))


def shared_records(asked: PlanView | None, answers: tuple[Answer, ...]) -> list[Record]:
    """What only the leader knows, for the pages of the standbys."""
    plan = None if asked is None else asdict(asked)
    return [Record(ASKED_KEY, plan), Record(ANSWERS_KEY, {"answers": [asdict(a) for a in answers]})]


@cache
def _reader(kind: type[Any]) -> TypeAdapter[list[Any]]:
    """Made when the first is read; of a list, since a style can be given to no dataclass from outside."""
    return TypeAdapter(list[kind], config=STYLE)  # type: ignore[valid-type]


def _plan(value: Mapping[str, Any] | None) -> PlanView | None:
    """None where another version wrote what this one does not know."""
    if value is None or value.keys() != PlanView.__dataclass_fields__.keys():
        return None
    try:
        plan: PlanView = _reader(PlanView).validate_python([value])[0]
    except ValidationError:
        return None
    return plan


def _answers(value: Mapping[str, Any] | None) -> list[Answer] | None:
    """None where another version wrote what this one does not know."""
    try:
        return [] if value is None else _reader(Answer).validate_python(value["answers"])
    except (KeyError, ValidationError):
        return None


def _rejection_key(kind: ActionKind) -> str:
    return f"daemon/rejected/{kind.value}"


def _approval_key(kind: ActionKind) -> str:
    return f"daemon/approved/{kind.value}"
