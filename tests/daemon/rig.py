"""A daemon's parts on a simulated cluster, check by check: what the loops do by themselves, a test does one at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.core.catalogue import Message, Messages, Said
from ballast.core.plan import Plan
from ballast.daemon.acting.driving import DriverParts, DriverRunController, Spawn
from ballast.daemon.acting.proposal import Proposal
from ballast.daemon.context.access import Access, RunController, Tools
from ballast.daemon.context.view import Board, Role, View
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.policy import ActionKind, DaemonPolicy, LivePolicy, WebPolicy
from ballast.daemon.process.parts import Loops, Outside, Parts, assemble
from ballast.daemon.process.requests import Requests
from ballast.daemon.process.service import Service, ServiceParts
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import ClusterReader
from ballast.ports.event_sink import EventSink, null_sink
from ballast.ports.journal import Holder, Journal, Request
from ballast.ports.time import Clock
from ballast.sim.journal import JournalStore, MemoryJournal


def holder(name: str = "tests", lease_s: float = 15.0) -> Holder:
    """Who takes the lock in tests."""
    return Holder(id=name, description=f"{name} on this machine", lease_s=lease_s)


@dataclass
class Rig:
    """The parts, and what a test may put in the place of the loops around them at any time."""

    cluster: ClusterReader
    clock: Clock
    board: Board
    live: LivePolicy
    event_sink: EventSink = null_sink
    take_tools: Callable[[], Tools | None] = lambda: None
    refused: Callable[[str, str], None] = lambda _kind, _code: None
    look_again: Callable[[], None] = lambda: None
    in_background: Callable[[Callable[[], Any]], Any] = lambda make: make()
    waiting: Callable[[], None] = lambda: None
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        def late(name: str) -> Callable[..., Any]:
            def call(*given: Any) -> Any:
                return getattr(self, name)(*given)

            return call

        self.parts = assemble(
            Outside(
                cluster=self.cluster,
                clock=self.clock,
                board=self.board,
                policy=self.live,
                holder=holder(),
                tools=lambda _: self.take_tools(),
                event_sink=late("event_sink"),
            ),
            Loops(
                look_again=late("look_again"),
                in_background=late("in_background"),
                lock_waits=late("waiting"),
                refused=late("refused"),
                run_ended=lambda _: None,
            ),
        )

    @property
    def policy(self) -> DaemonPolicy:
        """The policy in force."""
        return self.live.now

    @policy.setter
    def policy(self, policy: DaemonPolicy) -> None:
        self.live.now = policy

    @property
    def access(self) -> Access:
        """The journal and the run controller."""
        return self.parts.access

    @property
    def journal(self) -> Journal | None:
        """The journal to write."""
        return self.access.journal

    @property
    def reading_journal(self) -> Journal | None:
        """The journal to read."""
        return self.access.journal_to_read

    @reading_journal.setter
    def reading_journal(self, journal: Journal) -> None:
        self.access.journal_to_read = journal

    @property
    def run_controller(self) -> RunController | None:
        """Who executes runs."""
        return self.access.run_controller


def a_service(
    cluster: ClusterReader, clock: Clock, board: Board, policy: DaemonPolicy, web: WebPolicy | None = None, **more: Any
) -> Service:
    """A whole daemon without wiring."""
    web = web or WebPolicy(port=0)
    outside = Outside(
        cluster=cluster,
        clock=clock,
        board=board,
        policy=LivePolicy(policy),
        holder=holder(),
        per_topic=web.topic_metrics,
    )
    return Service(ServiceParts(outside=outside, web=web, metrics=Metrics(board), **more))


def a_rig(cluster: ClusterReader, clock: Clock, board: Board, policy: DaemonPolicy | None = None) -> Rig:
    """A daemon that has just begun."""
    return Rig(cluster, clock, board, LivePolicy(policy or DaemonPolicy()))


def tools(rig: Rig, store: JournalStore, spawn: Spawn = lambda body: body()) -> tuple[Journal, DriverRunController]:
    """A memory journal, and runs that are executed on the spot, in simulated time."""
    numbers, journal = itertools.count(1), MemoryJournal(store, rig.clock)
    return journal, DriverRunController(
        DriverParts(
            cluster=rig.cluster,  # type: ignore[arg-type] # the simulated cluster is writer and reader in one
            journal=journal,
            clock=rig.clock,
            policy=rig.parts.reading.execution,
            full_reading=lambda: rig.parts.reading.full,
            new_id=lambda: f"run-{next(numbers)}",
            refused=lambda code: rig.refused("run", code),
            spawn=spawn,
        )
    )


def give_run_controller(
    rig: Rig, store: JournalStore, policy: ExecutionPolicy | None = None, spawn: Spawn = lambda body: body()
) -> DriverRunController:
    """Let a daemon act."""
    rig.policy = replace(rig.policy, execution=policy or ExecutionPolicy())
    rig.access.journal, controller = tools(rig, store, spawn)
    rig.access.journal_to_read, rig.access.run_controller = MemoryJournal(store, rig.clock), controller
    return controller


def lead(rig: Rig, store: JournalStore, spawn: Spawn = lambda body: body()) -> None:
    """Take the lock, as a process does that has just started."""
    give_run_controller(rig, store, spawn=spawn)
    rig.board.set_role(Role.STARTING)
    keep_lock(rig, holder())


def watch(board: Board) -> list[View]:
    """Every view from now on, as it is published."""
    seen: list[View] = []
    update = board.update

    def noted(change: Callable[[View], Mapping[str, Any]]) -> View:
        seen.append(update(change))
        return seen[-1]

    board.update = noted  # type: ignore[method-assign]
    return seen


def codes(said: object) -> list[str]:
    """The codes of what was said, in its order."""
    assert isinstance(said, Message | Messages)
    return [m.code for m in (said if isinstance(said, Messages) else (said,))]


def guard(said: object) -> tuple[str, Mapping[str, Any]]:
    """Of a plan that was proposed and may not start: the code of the guard that refuses, with its figures."""
    (found,) = (m.values["guard"] for m in (said if isinstance(said, Messages) else (said,)) if m.code == "proposed")  # type: ignore[attr-defined]
    return found.code, found.parameters


def observe(rig: Rig) -> str:
    """The observe check."""
    return rig.parts.observer.observe()


def check_leaders(rig: Rig) -> Said:
    """The leaders check."""
    return rig.parts.leaders.check()


def check_repair(rig: Rig) -> Said:
    """The repair check."""
    return rig.parts.repair.check()


def check_balance(rig: Rig) -> Said:
    """The balance check."""
    return rig.parts.balance.check()


def make_wanted(rig: Rig) -> Said | str:
    """The check that makes plans that were asked for."""
    return rig.parts.asked.make()


def act(rig: Rig) -> Said:
    """The act check."""
    return rig.parts.proposals.act()


def keep_lock(rig: Rig, who: Holder, waiting: Callable[[], None] = lambda: None) -> Message:
    """The lock check, as this holder."""
    rig.parts.lock.holder, rig.waiting = who, waiting
    return rig.parts.lock.keep()


def load_journal(rig: Rig, journal: Journal) -> None:
    """What the lock check reads when a role changes."""
    rig.parts.lock.load_journal(journal)


def read_journal_view(rig: Rig) -> str:
    """The journal check."""
    return rig.parts.journal.read()


def show_run(rig: Rig) -> str:
    """The run check."""
    return rig.parts.journal.show_run()


def requests(rig: Rig) -> Requests:
    """What people ask for."""
    return rig.parts.requests


def submit(rig: Rig, request: Request) -> None:
    """What the page does with a request."""
    requests(rig).submit(request)


def answer(rig: Rig, request: Request) -> str:
    """One request, at once."""
    return str(requests(rig).answer(request))


def answer_requests(rig: Rig) -> str:
    """The requests check."""
    return requests(rig).answer_all()


def propose(rig: Rig, kind: ActionKind, plan: Plan) -> Message:
    """What a check does with its plan."""
    return rig.parts.proposals.propose(kind, plan)


def withdraw(rig: Rig, kind: ActionKind) -> None:
    """What a check does where nothing is to be done."""
    rig.parts.proposals.withdraw(kind)


def publish_proposals(rig: Rig) -> None:
    """Show every plan again."""
    rig.parts.proposals.publish()


def start(rig: Rig, proposal: Proposal) -> Message:
    """Begin a run."""
    return rig.parts.proposals.start(proposal)
