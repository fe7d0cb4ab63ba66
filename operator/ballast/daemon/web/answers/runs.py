"""What the HTTP API answers of plans and runs."""

from __future__ import annotations

from typing import Literal

from ballast.core.document_types import Parameters
from ballast.core.plan.file import BrokerSummary, ResourceSummary
from ballast.daemon.web.answers.base import Answer, Moment, Pair, Part, Text


class Move(Part):
    """One partition on its way."""

    topic: str
    partition: int
    old: list[int]
    new: list[int]
    size_bytes: int | None
    copied_bytes: int
    stage: str
    detail: str


class Purpose(Part):
    """What a plan or a run is for, as data: ``intent`` says the same in words."""

    code: str
    """``balance``, ``decommission``, ``evacuate``, ``evacuate-offline``, ``elect``, …; ``other`` where only the words tell."""
    brokers: list[int]
    """The brokers that it names; of ``replace`` the old one first."""
    racks: list[str]
    """The racks that it names."""


class Run(Part):
    """The run that is being executed, or one that ended."""

    id: str
    """``throttles`` while throttles of runs that have ended are removed: there is nothing to cancel."""
    intent: str
    purpose: Purpose
    phase: str
    started_at_ms: Moment
    ended_at_ms: Moment | None
    status: str
    """``open``, or how it ended: ``done``, ``incomplete``, ``cancelled``, ``refused``."""
    changes: list[str]
    """Each kind of change with its own count, in words; empty for one that has ended."""
    moves_total: int
    """Partitions that it changes, of all kinds together."""
    moves_verified: int
    moves_ended_otherwise: int
    moves_in_flight: int
    elections_total: int
    elections_completed: int
    bytes_total: int | None
    """Null where the size of a move is unknown, and so is ``bytesLeft``."""
    bytes_left: int | None
    bytes_per_s: float | None
    """Null until two readings show one."""
    seconds_left: float | None
    throttle_bytes_per_s: int | None
    detail: Text
    moves: list[Move]
    """The ones in progress, at most a page of them."""


class Reason(Pair):
    """Why moves or elections are in a plan: a resource that is out of range, or what a move is for."""

    code: str
    count: int


class Plan(Part):
    """A plan that waits for a person, or that the daemon would execute if it were allowed to."""

    id: str
    action: str
    intent: str
    purpose: Purpose
    created_at_ms: Moment
    changes: list[str]
    """Each kind of change with its own count and what it copies, in words."""
    moves: int
    """Partitions that it changes, of all kinds together."""
    elections: int
    copies: int
    """Moves that copy data; the others only change an order."""
    bytes_moved: int | None
    """Of those of them together; null where a size is unknown."""
    bound_bytes: int | None
    status: str
    pending_approval: bool
    """True when a person's approval would start it."""
    approved_by: Text
    reasons: list[Reason]
    resources: list[ResourceSummary]
    brokers: list[BrokerSummary]
    replica_list_changes: int
    """Replica lists whose order alone changes."""
    throttle: Text
    """``auto``, ``none``, or ``fixed``: how copies are throttled when this plan runs."""
    throttle_bytes_per_s: int | None
    """The rate that ``seconds`` was computed with; null where there is none."""
    seconds: float | None
    """About how long its copies take at that rate; null where no rate or no size is known."""
    asked_by: Text
    """Null for plans that Ballast made by itself."""
    blocked: Text
    """Why it may not start now even when it is approved."""
    examples: list[Move]
    obstacles: list[str]


class SkippedRun(Part):
    """A run of the journal that cannot be read."""

    id: str
    code: str
    parameters: Parameters
    """The figures of ``detail``."""
    detail: str


class DaemonRuns(Answer):
    """Runs that ended, newest first; fifty at most."""

    kind: Literal["DaemonRuns"] = "DaemonRuns"
    runs: list[Run]
    skipped: list[SkippedRun]
    problem: Text
    """Why they are not known; null where they are."""
