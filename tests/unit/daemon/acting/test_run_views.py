"""What the page tells of a run, and what it does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import UNKNOWN
from ballast.core.plan import Move, Plan
from ballast.daemon.acting.run_views import changes, past_runs, run_view
from ballast.daemon.context.view import View
from ballast.daemon.metrics.gauges import GAUGES
from ballast.executor.journal.history import summarise
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.progress import Speedometer
from ballast.executor.machine.run import Now, Phase, Status, new_run, with_moves
from ballast.executor.machine.stages import Failed, Moving, RolledBack, Verified


@pytest.mark.parametrize(
    ("planned", "read", "shown"), [(UNKNOWN, None, None), (UNKNOWN, 7, 7), (UNKNOWN, 0, 0), (0, None, 0), (5, None, 5)]
)
def test_a_size_that_no_broker_has_said_is_not_shown_as_nothing(
    planned: int, read: int | None, shown: int | None
) -> None:
    """An empty partition is zero bytes; one whose size is not known is not."""
    move = Move("t", 0, (1, 2), (3, 2), planned)
    run = new_run("r", Plan("test", "c", "f", (move,)), ExecutionPolicy(), Now(0, 0.0))
    run = with_moves(run, {move.name: replace(run.moves[move.name], stage=Moving(), total_bytes=read)})
    assert [m.size_bytes for m in run_view(run).moves] == [shown]


def test_a_run_that_ended_is_shown_from_its_numbers_as_it_was_from_its_moves() -> None:
    """Nothing of the page's history depends on whether its moves are read."""
    moves = tuple(Move("t", i, (1, 2), (3, 2), 10) for i in range(3))
    run = new_run("r", Plan("test", "c", "f", moves, (moves[0].name,)), ExecutionPolicy(), Now(1, 0.0))
    stages = zip(moves, (Verified(), Failed(), RolledBack()), strict=True)
    run = with_moves(run, {m.name: replace(run.moves[m.name], stage=stage) for m, stage in stages})
    run = replace(run, phase=Phase.ENDED, status=Status.INCOMPLETE, ended_ms=9)
    assert past_runs([summarise(run)]) == (run_view(run),)


def test_what_a_run_does_is_said_in_the_words_of_its_plan() -> None:
    """Each kind of change with its own count, from its first moment on; one that has ended is told by its result."""
    moves = (
        Move("t", 0, (1, 2), (3, 2), 10),
        Move("t", 1, (1, 2), (2, 1), 10),
        Move("t", 2, (1, 2), (1, 2), log_dirs=("/a", "any")),
    )
    plan = Plan("test", "c", "f", moves, (moves[1].name,))
    run = new_run("r", plan, ExecutionPolicy(), Now(1, 0.0))
    said = ("1 move", "1 replica list change", "1 move between log dirs", "1 preferred leader election")
    assert run_view(run).changes == said == changes(plan.moves, 1)
    assert run_view(replace(run, phase=Phase.ENDED, status=Status.DONE, ended_ms=9)).changes == ()


def test_a_rate_that_is_not_known_yet_is_not_nothing() -> None:
    """Before two readings tell a rate the page has none and the metric is absent; without a run it is zero."""
    run = new_run("r", Plan("test", "c", "f", (Move("t", 0, (1, 2), (3, 2), 10),)), ExecutionPolicy(), Now(0, 0.0))
    view = run_view(run, Speedometer().read(run, 1.0))
    assert view.bytes_per_s is None
    (rate,) = (spec for spec in GAUGES if spec.name == "ballast_run_rate_bytes_per_second")
    assert list(rate.samples(View(run=view))) == []
    assert list(rate.samples(View(run=replace(view, bytes_per_s=5.0)))) == [((), 5.0)]
    assert list(rate.samples(View())) == [((), 0.0)]
