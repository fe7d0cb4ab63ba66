"""What is drawn from a seed."""

from __future__ import annotations

import json

import pytest
from tests.chaos.faults import Faults
from tests.chaos.schedule import (
    AFTER_JOURNAL_S,
    BALLASTS,
    KINDS,
    MOST_BROKERS_AWAY,
    Step,
    as_json,
    draw_schedule,
)

HOUR_S = 3600.0
BROKERS = (1, 2, 3, 4)
SEEDS = range(20)


def drawn(seed: int) -> tuple[Step, ...]:
    """An hour of faults."""
    return draw_schedule(seed, seconds=HOUR_S, brokers=BROKERS)


def test_a_seed_draws_the_same_schedule_every_time() -> None:
    """And another seed another one."""
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_an_hour_holds_every_kind_of_fault() -> None:
    """None is too rare to be met."""
    assert {step.kind for seed in SEEDS for step in drawn(seed)} == set(KINDS)


def test_only_the_kinds_that_were_asked_for_are_drawn() -> None:
    """For a short run, or to look for one thing."""
    steps = draw_schedule(1, seconds=HOUR_S, brokers=BROKERS, kinds=("ballast-kill", "pile-up"))
    assert {step.kind for step in steps} == {"ballast-kill", "pile-up"}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_has_ended_before_the_run_has(seed: int) -> None:
    """In the order in which they begin."""
    steps = drawn(seed)
    assert list(steps) == sorted(steps, key=lambda s: s.at_s)
    assert all(s.at_s + s.lasts_s <= HOUR_S + 0.1 for s in steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_target_is_hurt_twice_at_a_time(seed: int) -> None:
    """And never more than two brokers."""
    hurting: list[Step] = []
    for step in drawn(seed):
        hurting = [s for s in hurting if s.at_s + s.lasts_s > step.at_s + 0.1]
        if KINDS[step.kind].on != "cluster":
            assert step.target not in {s.target for s in hurting}
        hurting.append(step)
        assert sum(KINDS[s.kind].on == "broker" for s in hurting) <= MOST_BROKERS_AWAY


@pytest.mark.parametrize("seed", SEEDS)
def test_ballast_is_left_alone_after_its_journal_was_deleted(seed: int) -> None:
    """Who remembers what stood in it must live to write it again."""
    steps = drawn(seed)
    for gone in (s for s in steps if s.kind == "journal-deleted"):
        after = [s for s in steps if gone.at_s < s.at_s < gone.at_s + AFTER_JOURNAL_S - 0.1]
        assert not [s for s in after if s.target in BALLASTS]


def test_every_kind_is_executed_by_a_method() -> None:
    """A name in the table is a method of the faults."""
    assert [name for name in KINDS if not hasattr(Faults, name.replace("-", "_"))] == []


def test_the_file_holds_the_whole_schedule() -> None:
    """It is kept beside a violation."""
    tree = json.loads(as_json(7, drawn(7)))
    assert tree["seed"] == 7
    assert tuple(Step(**step) for step in tree["steps"]) == drawn(7)
