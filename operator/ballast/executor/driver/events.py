"""What the driver tells its listeners: the terminal's bars, JSON lines, the daemon's page, a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ballast.core.cluster import TopicPartition
from ballast.core.guards import Verdict
from ballast.core.plan.work import Work, work_of
from ballast.core.throttles import Setting
from ballast.core.wording import human_many
from ballast.executor.driver.pace import Pace
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.notes import MoveNote, text_of
from ballast.executor.machine.progress import Progress, total_of
from ballast.executor.machine.run import ElectionStage, Run
from ballast.executor.machine.stages import Ended, Failed, InFlight, RolledBack, Stage, Verified
from ballast.executor.machine.transitions import Effect


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A run starts, or is resumed."""

    run: Run
    resumed: bool


@dataclass(frozen=True, slots=True)
class MoveChanged:
    """A move entered another stage."""

    name: TopicPartition
    before: Stage
    after: Stage
    outcome: str
    why: MoveNote | None

    @property
    def detail(self) -> str:
        """Why, in a sentence; empty where nothing is to be said."""
        return text_of(self.why)


@dataclass(frozen=True, slots=True)
class Performing:
    """An effect is about to be journaled and sent."""

    effect: Effect


@dataclass(frozen=True, slots=True)
class Refusing:
    """What the guards refuse now; empty when they have stopped refusing."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far the run has come."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The driver is done with the run."""

    result: RunResult


@dataclass(frozen=True, slots=True)
class Paced:
    """The rates at which the run begins, once traffic has been measured."""

    pace: Pace


RunEvent = RunBegan | Paced | MoveChanged | Performing | Refusing | Progressed | RunNote | RunEnded


class Listener(Protocol):
    """Hears of everything in order; must not block and must not raise."""

    def on_event(self, event: RunEvent) -> None:
        """Take note of it."""
        ...


class NullListener:
    """Listens to nothing."""

    def on_event(self, event: RunEvent) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Ending:
    """One move or election that did not simply succeed."""

    subject: str
    outcome: str
    why: MoveNote | None

    @property
    def detail(self) -> str:
        """Why, in a sentence; empty where nothing is to be said."""
        return text_of(self.why)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run."""

    run_id: str
    status: str
    """``done``, ``incomplete``, ``cancelled``, ``refused``, with moves still in progress ``left``, or ``not-begun``: it was to
    leave before anything was written down."""
    verified: int = 0
    """Partitions that are as the run wanted them; ``work`` has by kind those that it changed."""
    work: Work = field(default_factory=Work)
    rolled_back: int = 0
    failed: int = 0
    still_open: int = 0
    elections_completed: int = 0
    unclean: bool = False
    """Its elections might choose a replica out of sync."""
    bytes_moved: int | None = 0
    """None where the size of a move was never known."""
    seconds: float = 0.0
    endings: tuple[Ending, ...] = ()
    throttles_to_restore: tuple[Setting, ...] = ()
    """Throttle settings that could not be removed yet; unless ``restore_commands`` tells how, the next start removes them."""
    restore_commands: tuple[str, ...] = ()
    """Where the journal does not hold them: the commands with which a person puts the settings back."""
    rollback_wanted: bool = False
    paused_by: str = ""
    """Who paused every run meanwhile and has not resumed: a command that would go on with another run waits for that."""

    @property
    def verified_by_kind(self) -> str:
        """What was done, each kind with its count, and how many partitions had the wanted replicas already."""
        there = self.verified - self.work.partitions
        told = [f"{', '.join(self.work.parts()) or '0 moves'} verified"] if self.work.partitions or not there else []
        return ", ".join([*told, *([f"{human_many(there, 'partition')} as wanted already"] if there > 0 else [])])

    @property
    def exit_code(self) -> int:
        """The documented exit code of a command that ends so."""
        return {"done": 0, "incomplete": 7, "cancelled": 8, "refused": 5, "left": 130, "not-begun": 130}[self.status]


def summary(run: Run, status: str, seconds: float) -> RunResult:
    """The result of a run in this state: what the run itself says, nothing that needs a port."""
    verified = run.moves_in(Verified)
    endings = [
        Ending(str(m.move.name), m.outcome or m.stage.code, m.note) for m in run.moves_in(Failed, RolledBack, InFlight)
    ]
    endings += [
        Ending(f"election of {n}", e.stage.value, e.note)
        for n, e in run.elections.items()
        if e.stage is not ElectionStage.COMPLETED
    ]
    return RunResult(
        run_id=run.id,
        status=status,
        verified=len(verified),
        work=work_of(m.move for m in verified if not m.found_in_place),
        rolled_back=len(run.moves_in(RolledBack)),
        failed=len(run.moves_in(Failed)),
        still_open=len(run.moves) - len(run.moves_in(Ended)),
        unclean=run.unclean,
        elections_completed=sum(e.stage is ElectionStage.COMPLETED for e in run.elections.values()),
        bytes_moved=total_of(verified),
        seconds=seconds,
        endings=tuple(endings),
        rollback_wanted=run.rollback_when_cancelled,
    )
