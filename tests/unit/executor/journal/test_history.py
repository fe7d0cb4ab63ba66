"""Runs in a line each: in which order, what of them, and which are forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.plan import Move, Plan
from ballast.executor.journal.history import KEPT_IN_PLACE_KEY, expire, load_ended, load_summaries, summarise
from ballast.executor.journal.records import dump_run, ended_key, run_key
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, Run, new_run
from ballast.ports.journal import Record

NOW = Now(0, 0.0)


def run_of(run_id: str, started_ms: int, *, ended: bool = True) -> Run:
    """A run of one move."""
    run = new_run(run_id, Plan("test", "c", "", (Move("t", 0, (1, 2), (3, 2), 1),)), ExecutionPolicy(), NOW)
    return replace(run, started_ms=started_ms, phase=Phase.ENDED if ended else run.phase)


def test_runs_are_told_from_the_oldest_on() -> None:
    """By their start, and by their ids where that is the same, open ones among them."""
    runs = [run_of("b", 7), run_of("z", 3), run_of("a", 7), run_of("m", 5, ended=False)]
    records = [record for run in runs for record in dump_run(run)]
    assert [r.id for r in load_ended(records).runs] == ["z", "a", "b"]
    assert [r.id for r in load_summaries(records, NOW).runs] == ["z", "m", "a", "b"]


@pytest.mark.parametrize("ended", [True, False])
def test_what_a_run_undoes_and_who_stopped_it_stand_in_its_line(*, ended: bool) -> None:
    """Of one that has ended they are read from its header alone."""
    run = replace(run_of("r", 1, ended=ended), rollback_of="first", stopped_by="Ada")
    (found,) = load_summaries(dump_run(run), NOW).runs
    assert (found.rollback_of, found.stopped_by) == ("first", "Ada")
    assert found == summarise(run)


def test_a_header_that_names_no_user_is_of_a_run_that_no_user_stopped() -> None:
    """It is read all the same."""
    packed, header = dump_run(run_of("r", 1))
    bare = {key: value for key, value in (header.value or {}).items() if key not in {"stopped_by", "rollback_of"}}
    (found,) = load_ended([packed, Record(header.key, bare)]).runs
    assert (found.stopped_by, found.rollback_of) == ("", None)


def test_the_oldest_runs_are_forgotten_whatever_their_ids() -> None:
    """One that does not tell its start counts as the oldest: nothing keeps it."""
    packed, header = dump_run(run_of("q", 9))
    blank = Record(header.key, {**(header.value or {}), "started_ms": "?"})
    records = [packed, blank, *(record for run in (run_of("a", 7), run_of("z", 1)) for record in dump_run(run))]
    gone = [Record(key("q"), None) for key in (ended_key, run_key)]
    assert expire(records, 2) == gone
    assert expire(records, 1) == [*gone, *(Record(key("z"), None) for key in (ended_key, run_key))]


def test_counts_that_are_no_numbers_are_refused_by_their_place() -> None:
    """The run is skipped and told by its id."""
    packed, header = dump_run(run_of("r", 1))
    tally = {**(header.value or {})["tally"], "moves": {"verified": "many"}}
    found = load_ended([packed, Record(header.key, {**(header.value or {}), "tally": tally})])
    assert found.runs == ()
    assert found.skipped["r"].code == "corrupt"
    assert "moves" in found.skipped["r"].values["message"]


def test_an_order_whose_process_died_before_the_answer_is_forgotten_with_the_next_run() -> None:
    """To keep a replica in its log dir: no reader would ever take it up, and it would stay in the journal for good."""
    left, answered = Record(f"{KEPT_IN_PLACE_KEY}1", {"version": 1}), Record(f"{KEPT_IN_PLACE_KEY}2", None)
    assert expire([left, answered, *dump_run(run_of("r", 1))]) == [Record(left.key, None)]
