"""What a person may ask of the HTTP API, each request's body defined once as a type, and how it is read.

Whatever is not one is refused with its place: a key that the type does not name, a key that is there twice, a text that
cannot be shown.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from starlette.exceptions import HTTPException

from ballast.core.document_errors import problem, repeated_key
from ballast.core.document_types import Part


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be shown")
    return text


_PRINTABLE: Final = AfterValidator(_printable)
Line = Annotated[str, Field(max_length=200), _PRINTABLE]
Id = Annotated[str, Field(min_length=1, max_length=200), _PRINTABLE]
BrokerId = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Body(Part):
    """What the body of every request may have."""

    by: Annotated[str, Field(max_length=80), _PRINTABLE] = ""
    """Who asks, for the audit log; a token with a name signs with that name instead."""

    def to_record(self) -> dict[str, str]:
        """What the request says beside its kind and who asks, as the journal has it."""
        found = self.model_dump(exclude={"by", "rollback"}, exclude_unset=True, exclude_none=True)
        return {name: str(value) for name, value in found.items()}


class PauseRequest(Body):
    """Start nothing new until it is resumed; it survives restarts."""

    reason: Line = ""


class ResumeRequest(Body):
    """Switch the pause off."""


class PlanRequest(Body):
    """Have a plan made; it waits for approval."""

    intent: Literal["balance", "drain", "elect"]
    broker: BrokerId | None = None
    """The broker to drain; from the plan's approval on it takes no replica until the drain is ended."""

    @model_validator(mode="after")
    def _drain_names_its_broker(self) -> PlanRequest:
        if (self.intent == "drain") != (self.broker is not None):
            raise ValueError("broker should be there with the intent drain, and with no other one")
        return self


class ApproveRequest(Body):
    """Let a waiting plan start."""

    plan: Id
    """The plan's id, as the status shows it."""


class RejectRequest(Body):
    """Do not propose this plan again."""

    plan: Id
    reason: Line = ""


class CancelRequest(Body):
    """Cancel the reassignments in progress."""

    run: Id | None = None
    """The run that is meant, as the status shows it; another one is then left alone."""
    reason: Line = ""
    rollback: bool = False
    """Also roll back completed moves."""


class EndDrainRequest(Body):
    """Let a drained broker take replicas again."""

    broker: BrokerId
    """As ``drains`` of the status names it."""


ACTIONS: Final[dict[str, type[Body]]] = {
    "pause": PauseRequest,
    "resume": ResumeRequest,
    "plan": PlanRequest,
    "approve": ApproveRequest,
    "reject": RejectRequest,
    "cancel": CancelRequest,
    "end-drain": EndDrainRequest,
}
"""By the last part of the action's address."""


def read(kind: str, raw: bytes) -> Body:
    """The body of a request; raises where it is none.  One that is empty says nothing."""
    text = raw or b"{}"
    try:
        found = ACTIONS[kind].model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise HTTPException(400, _explain(error)) from error
    if said := repeated_key(text):
        raise HTTPException(400, f"The body is refused: {said}")
    return found


def _explain(error: ValidationError) -> str:
    match error.errors(include_url=False, include_context=False)[0]["type"]:
        case "json_invalid":
            return f"The body is not JSON: {problem(error)}"
        case "model_type":
            return "The body must be a JSON object."
    return f"The body is refused: {problem(error)}"
