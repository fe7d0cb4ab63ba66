"""What a plan says of its cost, to people."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.app.apply import outline as question
from ballast.cli.commands.plan.view import cost_lines, headline, move_row
from ballast.cli.commands.runs import destination, run_row
from ballast.cli.run_screen import sentence
from ballast.cli.terminal import ending
from ballast.core.cluster import UNKNOWN
from ballast.core.plan import Move, Plan
from ballast.core.planner.report.page import page
from ballast.core.planner.report.summary import notes
from ballast.daemon.acting.plan_views import outline as daemons
from ballast.executor.driver.events import RunBegan, summary
from ballast.executor.machine.notes import note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run, with_moves
from ballast.executor.machine.stages import Verified

RATE = 1 << 20


def plan(*sizes: int) -> Plan:
    """A replica of each of these sizes goes from broker 2 to broker 3."""
    moves = tuple(Move("t", p, (1, 2), (1, 3), size) for p, size in enumerate(sizes))
    return Plan("balance", "c", "f", moves, summary={"replica_moves": len(moves)})


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((0, 0), "Only partitions without any data move, so no bytes."),
        ((UNKNOWN,), "No size is known, so neither bytes nor time can be estimated."),
        ((0, UNKNOWN), "No size is known, so neither bytes nor time can be estimated."),
        ((0, 1 << 20), "Moves 1.000 MiB."),
    ],
)
def test_an_empty_partition_is_told_from_one_of_unknown_size(sizes: tuple[int, ...], said: str) -> None:
    """Nothing to copy is a figure; not knowing is none."""
    assert cost_lines(plan(*sizes), RATE) == [said]


def test_one_of_a_thing_is_not_many() -> None:
    """The sentence is one that a person would write."""
    assert headline(plan(0)) == "balance: 1 move (0 B)."
    assert headline(plan(0, 0)) == "balance: 2 moves (0 B)."


def test_a_range_that_is_wider_than_asked_for_says_why() -> None:
    """One sentence for the counts that are wider alike, none for the rest."""
    disk = {"label": "disk", "range": 0.08, "idle": 0.0}
    counts = [{"label": name, "range": 0.33, "idle": 0.25} for name in ("replicas", "preferred leaders")]
    assert notes([disk]) == []
    (said,) = notes([disk, *counts])
    assert all(figure in said for figure in ("replicas", "preferred leaders", "33", "8", "empty partitions"))


def test_a_replica_list_is_written_in_one_form() -> None:
    """Wherever a person reads it: the plan's tables, the run's, the report, and what a run says of a move."""
    move = Move("t", 0, (1, 2), (1, 3), 0)
    made = Plan("balance", "c", "f", (move,), summary={"replica_moves": 1})
    assert move_row(move)[1:3] == ["1,2", "1,3"]
    assert run_row(new_run("r", made, ExecutionPolicy(), Now(0, 0.0)).moves[move.name])[1:3] == ["1,2", "1,3"]
    assert "<td>1,2</td><td>1,3</td>" in page(made, rate_bytes_per_s=RATE)
    assert "replica list 1,2" in str(note("not-moving", partition=str(move.name), replicas=(1, 2)))
    placed = replace(move, log_dirs=("any", "/data/1"))
    assert destination(placed) == "1, 3 in /data/1"


def test_each_kind_of_change_has_one_count_and_one_word_from_the_plan_to_the_end_of_its_run() -> None:
    """What copies no data is no move: the plan, its report, the question before it is executed, the daemon, and the run say the same."""
    changes = (
        *(Move("t", p, (1, 2), (1, 3), RATE) for p in range(3)),
        *(Move("t", p, (1, 2), (2, 1), RATE) for p in range(3, 5)),
        Move("t", 5, (1, 2, 3), (1, 2), RATE),
    )
    made = Plan("balance", "c", "f", changes, elections=(changes[3].name,))
    kinds = "3 moves, 2 replica list changes, 1 partition with fewer replicas"
    whole = (
        "3 moves (3.0 MiB), 2 replica list changes (no data copied), 1 partition with fewer replicas (no data copied), "
        "1 preferred leader election (no data copied)"
    )
    assert headline(made) == f"balance: {whole}."
    assert question(made) == f"balance: {whole}"
    assert daemons(made) == whole
    report = page(made, rate_bytes_per_s=RATE)
    assert "<b>3</b><span class='soft'>moves</span>" in report
    assert "<b>2</b><span class='soft'>replica list changes (no data copied)</span>" in report
    run = new_run("r", made, ExecutionPolicy(), Now(0, 0.0))
    assert sentence(RunBegan(run, resumed=False)) == (f"Run r begins: balance ({kinds}, 1 preferred leader election).")
    done = with_moves(run, {m.move.name: replace(m, stage=Verified()) for m in run.moves.values()})
    assert ending(summary(done, "done", 1.0))[-1].startswith(f"Run r done: {kinds} verified; ")
    there = with_moves(
        done, {m.name: replace(done.moves[m.name], stage=Verified("already-there")) for m in changes[2:]}
    )
    assert ending(summary(there, "done", 1.0))[-1].startswith(
        "Run r done: 2 moves verified, 4 partitions as wanted already; "
    )
