"""What the daemon needs to act: a ``RunController``, which executes plans.

The daemon decides whether and when; ``driving`` puts the executor's driver behind this.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Plan
from ballast.daemon.context.heartbeat import Heartbeat
from ballast.daemon.context.view import RunView


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
