"""Linear programs: one scheduler whatever else uses HiGHS, and no program that failed is taken for an answer."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import highspy
import pytest
from bench.cases import make
from bench.forms import Case, written
from tests.unit.core.planner.bound.test_bound import searched

from ballast.core.plan import Plan
from ballast.core.planner import Balance, PlannerPolicy, TopicRule, plan
from ballast.core.planner.bound.bound import WHOLE, bound_of
from ballast.core.planner.linear import SolverError, program, solve


@pytest.fixture
def case() -> Case:
    """A small cluster whose bands need more than disk alone says."""
    return written("drifted", *make(brokers=10, racks=5, topics=30, partitions=400, seed=8))


def planned(case: Case, policy: PlannerPolicy | None = None) -> Plan:
    """Its plan, with the bound."""
    policy = policy or PlannerPolicy(band=0.05, trigger=0.05)
    return plan(case.state, Balance(), loads=case.loads, policy=replace(policy, capacities=case.capacities))


def occupy(threads: int) -> None:
    """Another program on this thread, with a scheduler of its own."""
    highspy.Highs.resetGlobalScheduler(True)
    solver = highspy.Highs()
    for option, setting in (("output_flag", False), ("threads", threads)):
        solver.setOptionValue(option, setting)
    solver.addVar(0, 1)
    assert solver.run() == highspy.HighsStatus.kOk


@pytest.mark.parametrize("threads", [0, 2, 3])
def test_the_bound_does_not_depend_on_who_used_highs_before(case: Case, threads: int) -> None:
    """A scheduler with other threads, made by an earlier solver, changes nothing."""
    alone = planned(case)
    occupy(threads)
    assert planned(case).bound_bytes == alone.bound_bytes
    assert alone.bound_method == WHOLE


def test_programs_on_several_threads_at_once_agree(case: Case) -> None:
    """Each thread has its scheduler."""
    found: list[int | None] = []
    threads = [threading.Thread(target=lambda: found.append(planned(case).bound_bytes)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [planned(case).bound_bytes] * 3


def test_a_program_without_an_answer_raises() -> None:
    """Neither an infeasible program nor one that HiGHS would not run is taken for solved."""
    none = program()
    none.addVar(0, 1)
    none.addRow(2, 3, 1, [0], [1.0])
    with pytest.raises(SolverError):
        solve(none, "a test")
    late = program()
    late.addVar(0, 1)
    highspy.Highs.resetGlobalScheduler(True)
    other = highspy.Highs()
    other.setOptionValue("threads", 2)
    other.setOptionValue("output_flag", False)
    other.run()
    with pytest.raises(SolverError):
        solve(late, "a test")


def test_an_unknown_option_raises() -> None:
    """What HiGHS does not take is not left out in silence."""
    with pytest.raises(SolverError):
        program(no_such_option=1)


@pytest.mark.parametrize("pairs", [1 << 40, 0], ids=["whole", "by-broker"])
def test_an_error_in_the_bound_is_never_a_weaker_bound(case: Case, monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    """Both ways of finding prices raise where HiGHS fails."""
    world = searched(
        case.state, Balance(), PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities), case.loads
    )
    monkeypatch.setattr(highspy.Highs, "run", lambda _: highspy.HighsStatus.kError)
    with pytest.raises(SolverError):
        bound_of(world.problem, world.load, world.cur, prove=True, pairs=pairs)


def test_an_error_in_the_checkers_shares_is_a_bug(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker does not judge by a program that did not run."""
    rules = (TopicRule(topics="t0000.*", brokers=frozenset({0, 1, 2, 3, 4, 5})),)
    policy = PlannerPolicy(band=0.05, trigger=0.05, topic_rules=rules, prove=False)
    monkeypatch.setattr(highspy.Highs, "run", lambda _: highspy.HighsStatus.kError)
    with pytest.raises(SolverError):
        planned(case, policy)


def test_a_program_that_breaks_off_says_for_what() -> None:
    """HiGHS's own errors in mid-run come as what they are: a program without an answer."""

    class Breaking:
        def run(self) -> highspy.HighsStatus:
            raise ValueError("vector::reserve")

    with pytest.raises(SolverError, match=r"broke off on the program for a few brokers: vector::reserve"):
        solve(Breaking(), "a few brokers")


def test_a_solver_writes_nothing() -> None:
    """A command's JSON has stdout to itself, and HiGHS writes there past Python."""
    solves = "from ballast.core.planner.linear import program; p = program(); p.addVar(0, 1); p.run()"
    ran = subprocess.run([sys.executable, "-c", solves], check=True, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("", "")
