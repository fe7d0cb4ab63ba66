"""What the page tells of a run, and what it does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import UNKNOWN
from ballast.core.plan import Move, Plan
from ballast.daemon.run_views import run_view
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.run import Now, Stage, new_run, with_moves


@pytest.mark.parametrize(("planned", "read", "shown"), [(UNKNOWN, 0, None), (UNKNOWN, 7, 7), (0, 0, 0), (5, 0, 5)])
def test_a_size_that_no_broker_has_said_is_not_shown_as_nothing(planned: int, read: int, shown: int | None) -> None:
    """An empty partition is zero bytes; one whose size is not known is not."""
    move = Move("t", 0, (1, 2), (3, 2), planned)
    run = new_run("r", Plan("test", "c", "f", (move,)), ExecutionPolicy(), Now(0, 0.0))
    run = with_moves(run, {move.name: replace(run.moves[move.name], stage=Stage.MOVING, total_bytes=read)})
    assert [m.size_bytes for m in run_view(run).moves] == [shown]
