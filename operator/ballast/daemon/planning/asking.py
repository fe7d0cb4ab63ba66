"""Plans that a person asks for on the page: balance now, drain a broker, elect preferred leaders.

Made by the work loop, since a plan of a large cluster takes its time, and shown like every other plan.  None starts before a
person has approved it, in whatever mode.
"""

from __future__ import annotations

from typing import Final

from ballast.core.cluster import ClusterState
from ballast.core.plan import Plan
from ballast.core.plan.log_dirs import warnings
from ballast.core.planner import Balance, Decommission
from ballast.daemon.acting.drains import drain_empty, named_broker
from ballast.daemon.acting.policy import ActionKind
from ballast.daemon.acting.propose import name_of, outline, publish_proposals
from ballast.daemon.context.daemon_context import DaemonContext, Proposal
from ballast.daemon.planning.leaders import election_plan
from ballast.daemon.planning.plans import make
from ballast.errors import BallastError, Refused
from ballast.ports.journal import Request

INTENTS: Final = ("balance", "drain", "elect")


def want(context: DaemonContext, request: Request) -> str:
    """Note the request for the work loop; the newest one counts."""
    if request.body.get("intent") not in INTENTS:
        raise Refused(f"No plan is called {request.body.get('intent')!r}.", hint=f"Ask for {', '.join(INTENTS)}.")
    if (sentence := drain_empty(context, request)) is not None:
        context.tell(request.id, sentence, ok=True)
        return sentence
    context.memory.wanted = request
    context.look_again()
    return f"A plan was asked for by {request.by}: {request.body['intent']}."


def make_wanted(context: DaemonContext) -> str:
    """Make the plan that somebody waits for; what came of it is told under the request's id."""
    request, context.memory.wanted = context.memory.wanted, None
    if request is None:
        return "Nobody asked for a plan."
    try:
        sentence, ok = _made(context, request), True
    except BallastError as failure:
        sentence, ok = str(failure), False
    context.tell(request.id, sentence, ok=ok)
    return sentence


def _made(context: DaemonContext, request: Request) -> str:
    if run := context.run_in_flight():
        raise Refused(f"Run {run} is in progress.", hint="Ask again when it has ended.")
    state = context.fresh_state()
    kind, plan = _plan(context, state, request)
    if plan.is_empty:
        context.memory.asked = None
        publish_proposals(context)
        why = "; ".join(f"{o.subject}: {o.detail}" for o in plan.obstacles[:2])
        said = f"No plan: {why}." if why else "No plan is needed: there is nothing to do."
        return " ".join([said, *(f"{told} {remedy}" for told, remedy in warnings(plan))])
    name = f"asked-{name_of(kind, plan)}"
    context.memory.asked = Proposal(id=name, kind=kind, plan=plan, request=request)
    publish_proposals(context)
    return f"The plan is ready: {outline(plan)}."


def _plan(context: DaemonContext, state: ClusterState, request: Request) -> tuple[ActionKind, Plan]:
    match request.body["intent"]:
        case "elect":
            home = frozenset(state.alive) - context.balance.draining
            return ActionKind.ELECTIONS, election_plan(state, home, context.clock.now_ms())
        case "drain":
            broker = named_broker(state, request)
            return ActionKind.MOVES, make(context, state, Decommission(brokers=frozenset({broker})))
        case _:
            return ActionKind.MOVES, make(context, state, Balance())
