"""What commands that write tell: runs and their steps, one document a line, and what became of the cluster."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ballast.cli.documents.base import Bytes, Document, Known, Moment, OneOf, Parameters, Part, Partition, Seconds
from ballast.core.field_types import Text
from ballast.core.plan import Purpose
from ballast.executor.driver.pace import BrokerPace
from ballast.executor.journal.records import SkippedRun


class RunFigures(Part):
    """A run in numbers."""

    id: str
    intent: str
    purpose: Purpose
    status: str
    """``open``, or how it ended: ``done``, ``incomplete``, ``cancelled``, ``refused``."""
    phase: str
    started_at_ms: Moment
    ended_at_ms: Moment | None
    rollback_of: str | None
    """The run that this one rolls back."""
    stopped_by: str | None
    """Who cancelled it, and why where they said so."""
    moves: dict[str, int]
    """How many are in each stage."""
    elections: dict[str, int]
    """How many are in each stage."""


class LockHolder(Part):
    """Who holds the lock; a process that has died is named until another one takes the lock."""

    description: str
    since_ms: Moment
    doing: str
    """Its run, how many moves have ended, and why others wait; empty where it executes none."""
    lease_expired: bool | None
    """Its lease has surely run out; null where that is not known."""


class Runs(Document):
    """``ballast runs``."""

    kind: Literal["Runs"] = "Runs"
    holder: LockHolder | None
    """Null where no process holds the lock."""
    runs: list[RunFigures]
    """Newest first."""
    skipped: tuple[SkippedRun, ...]


class Noted(Part):
    """A move or an election, and why it is where it is."""

    code: str | None
    """Null where there is nothing to say, or where an old record tells the sentence alone."""
    cause: Text
    """Which of the code's causes; null for the one that goes without saying."""
    parameters: Parameters | None
    """The figures of ``detail``."""
    detail: str


class RunMove(Noted, Partition):
    """A move of a run."""

    old: list[int]
    new: list[int]
    log_dirs: list[str] | None
    size_bytes: Known
    reason: str
    reason_code: str
    """The code that ``reason`` begins with."""
    stage: str
    outcome: str
    attempts: int
    since_ms: Moment


class RunElection(Noted, Partition):
    """An election of a run."""

    stage: str


class Run(Document):
    """``ballast runs show``."""

    kind: Literal["Run"] = "Run"
    run: RunFigures
    holder: LockHolder | None
    """Null where no process holds the lock: an open run then goes on with ``ballast runs resume``."""
    policy: dict[str, Any]
    """The settings of ``execution`` that differ from their defaults, by their names."""
    moves: list[RunMove]
    elections: list[RunElection]
    throttles_to_restore: list[str]
    """Throttle settings that Ballast has not yet removed."""


class RunBegan(Document):
    """A run starts, or is resumed."""

    kind: Literal["RunBegan"] = "RunBegan"
    run: str
    intent: str
    purpose: Purpose
    resumed: bool


class RunThrottle(Document):
    """The rates at which a run begins, once traffic has been measured."""

    kind: Literal["RunThrottle"] = "RunThrottle"
    auto: bool
    seconds: Seconds | None
    """What the busiest broker needs at its first rate; null where a size is not known."""
    brokers: tuple[BrokerPace, ...]
    unmeasured: list[Partition]
    """Of which it was measured, in vain, what producers write."""


class MoveChanged(Noted, Document):
    """A move enters another stage."""

    kind: Literal["MoveChanged"] = "MoveChanged"
    topic: str
    partition: int
    before: str
    after: str
    outcome: str


class Refusal(Part):
    """Why a move may not start."""

    code: str
    cause: str
    """Which of the code's causes; empty where it has one."""
    subject: str
    parameters: Parameters
    """The figures of ``detail`` and ``remedy``."""
    detail: str
    remedy: str


class RunWaiting(Document):
    """What the guards refuse now; empty when they have stopped refusing."""

    kind: Literal["RunWaiting"] = "RunWaiting"
    refusals: list[Refusal]


class RunProgress(Document):
    """How far the run has come."""

    kind: Literal["RunProgress"] = "RunProgress"
    run: str
    phase: str
    moves_total: int
    moves_verified: int
    moves_ended_otherwise: int
    moves_in_flight: int
    moves_waiting: int
    elections_total: int
    elections_completed: int
    bytes_total: int | None
    bytes_done: int
    bytes_per_s: Bytes | None
    """Averaged over the last half minute; null before two readings."""
    seconds_left: Seconds | None
    """At that rate; null while it is not known."""
    refusals: list[str]


class RunNote(Document):
    """Something that a person should know of the run: it went wrong and is being tried again, or was left as it is."""

    kind: Literal["RunNote"] = "RunNote"
    code: str
    parameters: Parameters
    """The figures of ``detail``."""
    detail: str


class MovesEnded(Part):
    """How the moves of a run ended."""

    verified: int
    rolled_back: int
    failed: int
    left: int


class Ending(Noted):
    """A move or an election that did not simply succeed."""

    subject: str
    outcome: str


class RunEnded(Document):
    """What came of a run."""

    kind: Literal["RunEnded"] = "RunEnded"
    run: str
    status: Annotated[str, OneOf("done", "incomplete", "cancelled", "refused", "left", "not-begun")]
    """``left``: with moves still in progress; ``not-begun``: before anything was written."""
    moves: MovesEnded
    elections_completed: int
    bytes_moved: int | None
    """Null where the size of a move was never known."""
    seconds: Seconds
    endings: list[Ending]
    throttles_to_restore: list[str]
    """Throttle settings that could not be removed yet; unless ``restoreCommands`` says how, the next start removes them."""
    restore_commands: list[str]
    """Where the journal does not hold them: the commands with which a person puts the settings back."""


class BrokerFigures(Part):
    """A broker's part of the partitions that were there before the run."""

    leaders: int
    replicas: int
    bytes: Known


class BrokerChange(Part):
    """A broker before and after; null where it was not there."""

    broker: int
    before: BrokerFigures | None
    after: BrokerFigures | None


class BrokerChanges(Document):
    """``ballast apply``, after its run: what it has made of each broker."""

    kind: Literal["BrokerChanges"] = "BrokerChanges"
    brokers: list[BrokerChange]


class Decommission(Document):
    """``ballast decommission``, after those of its runs; printed only when the brokers hold nothing and lead nothing."""

    kind: Literal["Decommission"] = "Decommission"
    brokers: list[int]
    safe_to_stop: Literal[True] = True


class Mismatch(Partition):
    """A partition that is not as it was wanted."""

    code: str
    parameters: Parameters
    """The figures of ``detail``."""
    detail: str


class Verification(Document):
    """``ballast verify``."""

    kind: Literal["Verification"] = "Verification"
    moves: int
    mismatches: list[Mismatch]
    stale_throttles: list[str]


class TopicsDeleted(Document):
    """``ballast uninstall``."""

    kind: Literal["TopicsDeleted"] = "TopicsDeleted"
    topics: list[str]
