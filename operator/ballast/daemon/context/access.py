"""What this process reads and writes beside the cluster: the journal, and who executes runs.

Shared by the loops: the lock loop opens it and gives it up, the work loop starts runs through it, the pulse loop answers people with it.
The daemon decides whether and when a run is executed; ``driving`` puts the executor's driver behind ``RunController``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Plan
from ballast.daemon.context.heartbeat import Heartbeat
from ballast.daemon.context.view import Board, Role, RunView
from ballast.ports.journal import Journal, Record


class RunController(Protocol):
    """Executes plans, one run at a time, in the background; journals before it acts."""

    def start(self, plan: Plan) -> str:
        """Begin a run and return its id at once; raises ``Refused`` when one is being executed."""
        ...

    def adopt(self) -> str | None:
        """Go on with a run that an earlier process left open and take its throttles over; None when there is none."""
        ...

    def current(self) -> RunView | None:
        """The run being executed."""
        ...

    def heartbeat(self) -> Heartbeat | None:
        """The last sign of life of the run in progress; None while there is none."""
        ...

    def ours(self) -> Collection[TopicPartition]:
        """Partitions that the current run may be moving."""
        ...

    def pause(self, *, paused: bool, by: str = "") -> None:
        """Hold the current run's next moves back, or let them go on; ``by`` is the person, where one paused."""
        ...

    def cancel(self, run_id: str, *, rollback: bool = False, by: str = "") -> bool:
        """Take the moves that this run has in progress back; False when there is no run."""
        ...

    def stop(self, *, wait_s: float) -> None:
        """Stop acting: wait at most so long for moves in progress, then leave them with their throttles."""
        ...


Tools = tuple[Journal, RunController]
"""What a process needs that may write."""


@dataclass(slots=True)
class Access:
    """The journal twice, since the handle that writes blocks while it waits for the lock; and the run controller."""

    board: Board
    make: Callable[[], Tools | None] = lambda: None
    """Makes what writing takes; None where nothing can be written."""
    journal_to_read: Journal | None = None
    """For reading, in observe mode too, and for requests."""
    journal: Journal | None = None
    """None before the mode first asks to write: nothing is written to the cluster."""
    run_controller: RunController | None = None
    release_for: str = ""
    """Whom the lock is to be released for; the lock check does it."""

    def ask_release(self, by: str) -> None:
        """This person wants the lock; until it is released nothing else is begun."""
        self.release_for = by

    def note_released(self) -> None:
        """Who asked for the lock can take it now: when it is held here again, it is not released for them."""
        self.release_for = ""

    def open(self) -> Journal | None:
        """The journal to write; made, with the run controller, when it is first asked for."""
        if self.journal is None and (made := self.make()) is not None:
            self.journal, self.run_controller = made
        return self.journal

    def write(self, record: Record) -> bool:
        """Into the journal, while this process is the leader; False where it is not."""
        if self.journal is None or self.board.view.role is not Role.ACTIVE:
            return False
        self.journal.append([record])
        return True

    def current(self) -> RunView | None:
        """The run that this process executes."""
        return self.run_controller.current() if self.run_controller else None

    def unfinished_run(self) -> RunView | None:
        """The same until it has ended, for people: what is still cleaned up after its end is no run to watch or to cancel."""
        run = self.current()
        return None if run is None or run.ended_at_ms is not None else run

    def stop(self, *, wait_s: float = 0.0) -> None:
        """Leave the run in progress to the next holder of the lock."""
        if self.run_controller is not None:
            self.run_controller.stop(wait_s=wait_s)
