"""Plans are made in a thread of their own, while the loop that waits for one goes on reading the cluster.

A thread and not a process: the compiled loops run without the interpreter's lock, and a plan shares the reading that it is made from.
Whatever the plan ends with, also a bug, is raised where it is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass

from ballast.core.plan import Plan
from ballast.core.planner import Loads
from ballast.daemon.context.health import PLAN
from ballast.daemon.context.heartbeat import LONGEST_WAIT_S, Heartbeat
from ballast.errors import Unavailable
from ballast.ports.time import Clock

Made = tuple[Loads | None, Plan]
"""A plan, and the loads from history that it was made with."""
InBackground = Callable[[Callable[[], Made]], Made]
"""Makes a plan while the cluster goes on being read."""


@dataclass(slots=True)
class Background:
    """Waits for one plan at a time."""

    clock: Clock
    meanwhile: Callable[[], float]
    """Does what is due while a plan is made; returns the seconds until more is."""
    stopping: Callable[[], bool]
    heartbeat: Heartbeat | None = None
    """When the plan in progress began; None while there is none."""

    def __call__(self, make: Callable[[], Made]) -> Made:
        """What ``make`` returns or raises; a process that stops does not wait for it."""
        made: Future[Made] = Future()
        self.heartbeat = Heartbeat(at_s=self.clock.monotonic_s(), doing=PLAN)
        threading.Thread(target=_settle, args=(made, make), name="plan", daemon=True).start()
        try:
            while not wait([made], timeout=min(self.meanwhile(), LONGEST_WAIT_S)).done:
                if self.stopping():
                    raise Unavailable("The daemon is stopping: the plan in progress is dropped.")
            return made.result()
        finally:
            self.heartbeat = None


def _settle(made: Future[Made], make: Callable[[], Made]) -> None:
    try:
        made.set_result(make())
    except BaseException as failure:  # noqa: BLE001 — raised again where the plan is waited for
        made.set_exception(failure)
