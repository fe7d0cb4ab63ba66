"""The stages of a move: each is a type that carries what is known while a move is in it, and only then.

``transitions.TRANSITIONS`` says which may follow which.  Of all this the journal keeps a stage's ``code``, its ``outcome`` and
whether it ``raced``; the rest is seen again after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one move stands."""

    code: ClassVar[str]
    """What the journal, JSON and people call it."""


@dataclass(frozen=True, slots=True)
class HoldsThrottle(Stage):
    """The move's replicas stand in the throttle lists."""


@dataclass(frozen=True, slots=True)
class InFlight(HoldsThrottle):
    """The cluster may be copying this partition."""


@dataclass(frozen=True, slots=True)
class Ended(Stage):
    """Nothing is left to do for the move."""

    outcome: str = ""
    """How, by a closed set of codes: see ``transitions.OUTCOMES``."""


@dataclass(frozen=True, slots=True)
class Copying(InFlight):
    """It is expected to copy, and has a time for that: see ``time_limit``."""

    grown_at_s: float = 0.0
    """Monotonic time at which a destination was last seen to grow."""
    mark_s: float = 0.0
    """Monotonic time at which its clock was last started."""
    mark_left_bytes: int = 0
    """Bytes that were left then."""


@dataclass(frozen=True, slots=True)
class Reassigning(Copying):
    """The controller lists it as a reassignment of ours."""

    replicas_after_cancel: tuple[int, ...] = ()
    """The replicas that a cancel would leave, in their order, by the controller's own list; empty before that was seen."""
    raced: bool = False
    """Our submission met another list than the one that was planned for, and is cancelled."""
    cancel_at_s: float = 0.0
    """Not cancelled before this monotonic time: a cancel was refused."""
    unlisted_since_s: float | None = None
    """Monotonic time since when the controller no longer lists it and metadata does not show it done."""


@dataclass(frozen=True, slots=True)
class Planned(Stage):
    """The move waits to be started."""

    code: ClassVar[str] = "planned"
    retry_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Throttled(HoldsThrottle):
    """Its throttle is intended (journaled); it is set before the move is submitted."""

    code: ClassVar[str] = "throttled"


@dataclass(frozen=True, slots=True)
class Submitted(InFlight):
    """Its submission is intended (journaled); whether the cluster has it, the cluster says."""

    code: ClassVar[str] = "submitted"


@dataclass(frozen=True, slots=True)
class Moving(Reassigning):
    """It copies, as far as is known."""

    code: ClassVar[str] = "moving"

    def stall(self, cause: str) -> Stalled:
        """The same reassignment, standing still; its clock goes on, or it could stall and recover without end."""
        return Stalled(**_of_reassignment(self), cause=cause)


@dataclass(frozen=True, slots=True)
class Stalled(Reassigning):
    """It stands still, or is over its time."""

    code: ClassVar[str] = "stalled"
    cause: str = ""
    """See ``stalls.CAUSES``; empty where the process that named it has died since."""

    def recover(self, now_s: float) -> Moving:
        """The same reassignment, copying again."""
        return Moving(**{**_of_reassignment(self), "grown_at_s": now_s})


def _of_reassignment(stage: Reassigning) -> dict[str, Any]:
    return {f.name: getattr(stage, f.name) for f in fields(Reassigning)}


@dataclass(frozen=True, slots=True)
class Moved(Stage):
    """List and metadata agree that it has arrived."""

    code: ClassVar[str] = "moved"
    in_log_dirs: bool = False
    """Its replicas were seen in the log dirs that it names; until then a move that names some has not arrived."""


@dataclass(frozen=True, slots=True)
class Relocating(Copying):
    """Replicas are on the right brokers and are being moved to the log dirs asked for."""

    code: ClassVar[str] = "relocating"
    retry_at_s: float = 0.0
    cause: str = ""
    """Why it stands still or is over its time, see ``stalls.CAUSES``; empty while it is neither."""
    named_s: float = 0.0
    """With a ``cause``: when the first was found."""
    given_up: bool = False
    """Copies between log dirs that were given up are being stopped: see ``relocation``."""
    seen_on: frozenset[int] = frozenset()
    """Brokers that have told of the replica, or a copy of it, in the log dir asked for."""


@dataclass(frozen=True, slots=True)
class Unthrottled(Stage):
    """Its throttle is no longer wanted; it is seen once more."""

    code: ClassVar[str] = "unthrottled"


@dataclass(frozen=True, slots=True)
class Cancelling(InFlight):
    """Its cancel is intended (journaled)."""

    code: ClassVar[str] = "cancelling"
    replicas_after_cancel: tuple[int, ...] = ()
    """As of the reassignment."""
    raced: bool = False
    """As of the reassignment."""
    acknowledged: bool = False
    """The controller has answered the cancel with yes."""


@dataclass(frozen=True, slots=True)
class Restoring(Stage):
    """Cancelled, but Kafka left the old replicas in another order; the old order is being put back."""

    code: ClassVar[str] = "restoring"
    retry_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Verified(Ended):
    """It arrived and is in sync."""

    code: ClassVar[str] = "verified"


@dataclass(frozen=True, slots=True)
class RolledBack(Ended):
    """As it was before the run (also when it was never started)."""

    code: ClassVar[str] = "rolled-back"


@dataclass(frozen=True, slots=True)
class Failed(Ended):
    """Ended otherwise; ``outcome`` says how."""

    code: ClassVar[str] = "failed"


STAGES: Final[tuple[type[Stage], ...]] = (
    Planned,
    Throttled,
    Submitted,
    Moving,
    Stalled,
    Moved,
    Relocating,
    Unthrottled,
    Verified,
    Cancelling,
    Restoring,
    RolledBack,
    Failed,
)
ENDED_CODES: Final = frozenset(stage.code for stage in STAGES if issubclass(stage, Ended))
