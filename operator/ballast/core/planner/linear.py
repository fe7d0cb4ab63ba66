"""Linear programs: the one place where HiGHS is started, run and asked how it went.

Every program runs on one thread, so that the same program has the same answer.  HiGHS keeps a scheduler for each thread of
the process, made by its first program, and refuses a program that asks for another number of threads; so the scheduler
is made afresh with each program.  A program that did not run is a bug and raises: it is never a weaker answer.
"""

from __future__ import annotations

from typing import Any, Final

import highspy

PARALLEL: Final = 1 << 13
"""HiGHS's number for looking for parallel rows and columns before it solves (``presolve_rule_off``).  Every program goes without it: with
1.15.1 it freed memory that was not its own and ended the process.  Integer programs are not presolved; their heuristics presolve the parts
that they solve, which takes 1.16: with 1.15.1 that broke off ("vector::reserve")."""
ANSWERED: Final = frozenset({highspy.HighsModelStatus.kOptimal})


class SolverError(RuntimeError):
    """HiGHS did not solve a program that has an answer: a bug in Ballast."""


class QuietHighs(highspy.Highs):  # type: ignore[misc]
    """A solver that writes nothing: HiGHS 1.16 writes its name to stdout when callbacks are enabled, which its constructor does."""

    def enableCallbacks(self) -> None:  # noqa: N802 — HiGHS's name
        """After it was told to be silent."""
        self.silent()
        super().enableCallbacks()


def program(**options: object) -> Any:
    """An empty program, silent and on one thread; ``options`` are those of HiGHS."""
    highspy.Highs.resetGlobalScheduler(True)
    solver: Any = QuietHighs()
    settings = {"threads": 1, "random_seed": 0, "presolve_rule_off": PARALLEL, **options}
    for option, setting in settings.items():
        if solver.setOptionValue(option, setting) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS does not take the option {option} = {setting}")
    return solver


def solve(solver: Any, what: str, *, ends: frozenset[Any] = ANSWERED) -> Any:
    """Run a program; its model status, which is one of ``ends``.  ``what`` says what the program is for."""
    try:
        status = solver.run()
    except (ValueError, RuntimeError) as failure:
        raise SolverError(f"HiGHS broke off on the program for {what}: {failure}") from failure
    end = solver.getModelStatus()
    if status == highspy.HighsStatus.kError or end not in ends:
        raise SolverError(f"HiGHS ended with {status.name}, {end.name}, on the program for {what}")
    return end
