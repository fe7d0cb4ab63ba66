"""A run on a simulated cluster that takes its time, for a test that sits at its terminal; prints how it ended."""

from __future__ import annotations

import sys
import time

from tests.unit.executor.scenes import MB, scene

from ballast.cli.run_screen import execute, screen_for
from ballast.core.plan import Move
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.sim import SimClock

STEP_S = 0.02
"""Real time that passes in each wait of the simulated clock."""


def main() -> None:
    """Two moves, one after the other, which take minutes of real time unless a user interrupts them."""
    simulated = SimClock.sleep

    def paced(self: SimClock, seconds: float) -> None:
        time.sleep(STEP_S)
        simulated(self, seconds)

    SimClock.sleep = paced  # type: ignore[method-assign]
    s = scene({0: (1, 2), 1: (1, 2)}, size_bytes=100_000 * MB)
    moves = [Move("t", p, (1, 2), (3, 2), 100_000 * MB) for p in (0, 1)]
    screen = screen_for("table")
    s.driver.listen(screen)
    result = execute(
        lambda: s.driver.execute(s.plan(*moves), ExecutionPolicy(moves_in_per_broker=1), run_id="r"), s.driver, screen
    )
    in_flight = len(s.cluster.reassignments())
    sys.stdout.write(f"ended: {result.status}, in flight {in_flight}, back {result.rollback_wanted}\n")


if __name__ == "__main__":
    main()
