"""Decommission brokers, from leadership to the word that they can be stopped; asked again, it goes on where things are."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from ballast.app.journal_reading import read_drained
from ballast.app.runs import Session, require_not_paused
from ballast.core.cluster import ClusterState
from ballast.core.named_brokers import NamedBrokers
from ballast.core.plan import Plan
from ballast.core.planner import PlannerPolicy
from ballast.core.planner.retirement import DecommissionPhase, Step, next_step
from ballast.core.wording import ShowLine, human_total
from ballast.errors import Incomplete, NoPlanFound
from ballast.executor.driver.events import RunResult
from ballast.executor.machine.policy import ExecutionPolicy

LOOK_S: Final = 2.0
"""Between looks while something else has to happen first."""
PATIENCE_S: Final = 600.0
"""How long foreign reassignments on these brokers are waited for."""
LEADERSHIP_TRIES: Final = 3
"""Runs that may try to take leadership away before data goes all the same: reordering does not help where no other broker can lead."""
COPIES: Final = frozenset({DecommissionPhase.LEADERSHIP, DecommissionPhase.DATA})


@dataclass(frozen=True, slots=True)
class BrokersEmpty:
    """The brokers hold nothing and lead nothing."""

    brokers: frozenset[int]
    sentence: str


def decommission(
    begin: Callable[[], AbstractContextManager[Session]],
    named: NamedBrokers,
    policy: PlannerPolicy,
    execution: ExecutionPolicy,
    *,
    follow_s: float = 0.0,
) -> RunResult | BrokersEmpty:
    """Empty these brokers: that they can be stopped, or the result of a run that did not end well.

    Each look has a session of its own, so that hours of copying hold no connection.
    """
    retiring: _Retiring | None = None
    while True:
        with begin() as session:
            state = session.opened.cluster.snapshot()
            if retiring is None:
                drained = read_drained(session.opened, state, session.user_interface.show_line)
                retiring = _Retiring(named.among(state.broker_index), policy.with_drained(drained), follow_s)
            step = retiring.next_step(state)
            if not retiring.agreed and step.phase in {*COPIES, DecommissionPhase.WAITING}:
                if retiring.data is not None:
                    session.tell_pace(session.opened.cluster.snapshot(), retiring.data, execution)
                session.user_interface.confirm(f"{retiring.outline} Execute it?")
                retiring.begin()
                # An earlier life of this command may have left its run: a plan made beside it would fight with it.
                left = session.finish_open_runs()
                if left is not None:
                    return left
                continue
            if step.phase in COPIES and step.plan is not None:
                session.user_interface.show_line(step.sentence)
                result = session.execute(step.plan, execution)
                if result.exit_code != 0:
                    return result
                require_not_paused(result.paused_by)
                continue
        if step.phase is DecommissionPhase.STUCK:
            remedy = step.plan.obstacles[0].remedy if step.plan is not None and step.plan.obstacles else None
            raise NoPlanFound(step.sentence, hint=remedy or None)
        if not retiring.wait(step, session.user_interface.show_line):
            return BrokersEmpty(retiring.brokers, step.sentence)


class _Retiring:
    """One decommission in progress: what has been tried, and since when there is nothing to do."""

    def __init__(self, brokers: frozenset[int], policy: PlannerPolicy, follow_s: float) -> None:
        self.brokers = brokers
        self.policy = policy
        self.follow_s = follow_s
        self.agreed = False
        self.outline = ""
        self.data: Plan | None = None
        """What is to be copied in all, by the first look."""
        self._free_tries = 0
        self._idle_since_s: float | None = None

    def begin(self) -> None:
        """A person has agreed; what was seen so far is looked at again."""
        self.agreed = True
        self._free_tries = 0

    def next_step(self, state: ClusterState) -> Step:
        """The next step; the first look also tells the cost of all of it."""
        step = next_step(state, self.brokers, policy=self.policy, leadership=self._free_tries < LEADERSHIP_TRIES)
        if not self.outline:
            self.outline = self._outline(state, step)
        # Data that has gone may have let another broker lead: the next free step counts anew.
        self._free_tries = self._free_tries + 1 if step.phase is DecommissionPhase.LEADERSHIP else 0
        if step.plan is not None:
            self._idle_since_s = None
        return step

    def _outline(self, state: ClusterState, step: Step) -> str:
        data = step
        if step.phase is DecommissionPhase.LEADERSHIP:
            data = next_step(state, self.brokers, policy=self.policy, leadership=False)
        self.data = data.plan
        if data is step or data.plan is None:
            return step.sentence + _bytes(step)
        return f"{step.sentence} {data.then}{_bytes(data)}"

    def wait(self, step: Step, on_line: ShowLine) -> bool:
        """Look again later?  Waits while there is a reason to; raises when it has lasted too long."""
        now = time.monotonic()
        if self._idle_since_s is None:
            self._idle_since_s = now
            if step.phase is DecommissionPhase.WAITING:
                on_line(f"{step.sentence} Waiting for it to end.")
            elif self.follow_s:
                on_line(f"{step.sentence} Following what lands on it for another {self.follow_s:.0f} s.")
        waited = now - self._idle_since_s
        if step.phase is DecommissionPhase.WAITING:
            if waited >= PATIENCE_S:
                raise Incomplete(step.sentence, hint="Run it again when these moves have ended.")
        elif waited >= self.follow_s:
            return False
        time.sleep(LOOK_S)
        return True


def _bytes(step: Step) -> str:
    plan = step.plan
    if plan is None or plan.known_bytes == 0:
        return ""
    return f" Copied: {human_total(plan.bytes_moved, plan.unknown_sizes)}."
