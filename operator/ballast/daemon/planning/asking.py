"""Plans that a person asks for on the page: balance now, drain a broker, elect preferred leaders.

Made by the work loop, since a plan of a large cluster takes its time, and shown like every other plan.  None starts before a
person has approved it, in whatever mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ballast.core.catalogue import Message, Messages, Said
from ballast.core.cluster import ClusterState
from ballast.core.leadership.elections import election_plan, elections
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.planner import Balance, Decommission
from ballast.daemon.acting.answers import answer, refusal
from ballast.daemon.acting.drains import Drains, named_broker
from ballast.daemon.acting.plan_views import outline
from ballast.daemon.acting.proposal import Proposal, name_of
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.view import Board
from ballast.daemon.observing.reading import Reading
from ballast.daemon.planning.notes import note
from ballast.daemon.planning.plans import PlanMaker
from ballast.daemon.policy import ActionKind
from ballast.errors import BallastError
from ballast.ports.journal import Request
from ballast.ports.time import Clock

INTENTS: Final = ("balance", "drain", "elect")


@dataclass(frozen=True, slots=True)
class RequestedPlans:
    """Notes what is asked for, and makes it when the work loop comes to it."""

    clock: Clock
    board: Board
    reading: Reading
    runs: Runs
    proposals: Proposals
    drains: Drains
    plans: PlanMaker
    look_again: Callable[[], None]

    def want(self, request: Request) -> Message:
        """Note the request for the work loop; the newest one counts."""
        if request.body.get("intent") not in INTENTS:
            raise refusal("plan-unknown", intent=request.body.get("intent"), known=", ".join(INTENTS))
        if (drained := self.drains.begin_empty(request)) is not None:
            self.board.tell(request.id, str(drained), ok=True, at_ms=self.clock.now_ms())
            return drained
        self.proposals.want(request)
        self.look_again()
        return answer("plan-requested", by=request.by, intent=request.body["intent"])

    def make(self) -> Said | str:
        """Make the plan that a person waits for; what came of it is told under the request's id."""
        with self.proposals.deciding:
            if (request := self.proposals.wanted) is None:
                return note("none-requested")
            if self.proposals.notice_end():
                return answer("run-ended")
            self.proposals.want(None)
        said: Said | str
        try:
            said, ok = self._make(request), True
        except BallastError as failure:
            said, ok = str(failure), False
        self.board.tell(request.id, str(said), ok=ok, at_ms=self.clock.now_ms())
        return said

    def _make(self, request: Request) -> Said:
        if run := self.runs.in_flight():
            raise refusal("run-in-progress", run=run)
        state = self.reading.fresh()
        kind, plan = self._plan(state, request)
        if plan.is_empty:
            self.proposals.show_asked(None)
            said = answer("no-plan", obstacles=plan.obstacles[:2]) if plan.obstacles else answer("no-plan-needed")
            broken = (note("log-dir-error", warning=warning) for warning in warnings(plan))
            return Messages((said, *broken))
        name = f"requested-{name_of(kind, plan)}"
        self.proposals.show_asked(Proposal(id=name, kind=kind, plan=plan, request=request))
        return answer("plan-ready", outline=outline(plan))

    def _plan(self, state: ClusterState, request: Request) -> tuple[ActionKind, Plan]:
        match request.body["intent"]:
            case "elect":
                home = frozenset(state.alive) - self.reading.balance.draining
                names = elections(state, home)
                return ActionKind.ELECTIONS, election_plan(state, names, created_at_ms=self.clock.now_ms())
            case "drain":
                broker = named_broker(state, request)
                return ActionKind.MOVES, self.plans.make(state, Decommission(brokers=frozenset({broker})))
            case _:
                return ActionKind.MOVES, self.plans.make(state, Balance())
