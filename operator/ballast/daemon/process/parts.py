"""The one place where the daemon's parts are put together: each takes what it needs in its constructor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ballast.core.cluster import ClusterState
from ballast.core.planner import Loads
from ballast.daemon.acting.drains import Drains
from ballast.daemon.acting.journal_view import JournalReader
from ballast.daemon.acting.permission import Permissions
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access, Tools
from ballast.daemon.context.view import Board
from ballast.daemon.observing.reading import Reading
from ballast.daemon.observing.series import Series
from ballast.daemon.planning.asking import RequestedPlans
from ballast.daemon.planning.background import InBackground
from ballast.daemon.planning.leaders import LeaderCheck
from ballast.daemon.planning.plans import BalanceCheck, PlanMaker, RepairCheck
from ballast.daemon.policy import LivePolicy
from ballast.daemon.process.lock import Lock
from ballast.daemon.process.observe import Observer
from ballast.daemon.process.requests import Requests
from ballast.executor.driver.events import RunResult
from ballast.executor.driver.look import FullReading
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import ClusterReader
from ballast.ports.event_sink import EventSink, null_sink
from ballast.ports.journal import Holder, Journal
from ballast.ports.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHooks:
    """What a run controller asks and tells of its runs."""

    policy: Callable[[], ExecutionPolicy]
    full_reading: Callable[[], FullReading | None]
    ended: Callable[[RunResult], None]
    refused: Callable[[str], None]
    """Told the code of each guard that holds moves back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What the parts are given of the world."""

    cluster: ClusterReader
    clock: Clock
    board: Board
    policy: LivePolicy
    holder: Holder
    reading_journal: Journal | None = None
    tools: Callable[[RunHooks], Tools | None] = lambda _: None
    """Makes journal and run controller, when the mode first asks for them."""
    event_sink: EventSink = null_sink
    """Carries news to people who do not read the page or the log."""
    series: Series = field(default_factory=Series)
    on_state: Callable[[ClusterState], None] = lambda _: None
    """Told about every full reading: the sampler."""
    loads: Callable[[ClusterState], Loads | None] = lambda _: None
    """Loads from history; None where there is none yet."""
    per_topic: bool = False
    """Are figures kept for each topic, too?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """What the parts ask of the loops that run them."""

    look_again: Callable[[], None]
    """Makes the checks due at once: something ended or changed."""
    in_background: InBackground
    lock_waits: Callable[[], None]
    """The lock loop shows that it lives."""
    refused: Callable[[str, str], None]
    """Told about every plan that may not start, and moves of a ``run`` that may not: the kind and the code."""
    run_ended: Callable[[RunResult], None]
    """Told what came of every run that ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What has a check, or is asked by the service itself; the parts do not know this value."""

    access: Access
    reading: Reading
    runs: Runs
    permissions: Permissions
    journal: JournalReader
    proposals: Proposals
    observer: Observer
    asked: RequestedPlans
    leaders: LeaderCheck
    repair: RepairCheck
    balance: BalanceCheck
    requests: Requests
    lock: Lock


def assemble(given: Outside, loops: Loops) -> Parts:
    """Put the parts together, each after those that it takes."""
    clock, board, policy, look_again = given.clock, given.board, given.policy, loops.look_again
    reading = Reading(clock, board, policy)
    hooks = RunHooks(
        policy=reading.execution,
        full_reading=lambda: reading.full,
        ended=loops.run_ended,
        refused=lambda code: loops.refused("run", code),
    )
    access = Access(board, lambda: given.tools(hooks), given.reading_journal)
    runs = Runs(board, policy, access)
    permissions = Permissions(clock, board, policy, reading, access, runs)
    journal = JournalReader(clock, board, policy, access, runs, given.event_sink)
    proposals = Proposals(
        clock, board, policy, reading, access, runs, permissions, given.event_sink, loops.refused, look_again
    )
    observer = Observer(
        given.cluster, clock, board, policy, reading, given.series, access, journal, permissions, proposals,
        look_again, given.on_state, given.per_topic,
    )  # fmt: skip
    plans = PlanMaker(clock, reading, given.loads, loops.in_background, look_again)
    drains = Drains(clock, board, policy, access, reading, look_again)
    asked = RequestedPlans(clock, board, reading, runs, proposals, drains, plans, look_again)
    return Parts(
        access=access,
        reading=reading,
        runs=runs,
        permissions=permissions,
        journal=journal,
        proposals=proposals,
        observer=observer,
        asked=asked,
        leaders=LeaderCheck(clock, policy, reading, runs, proposals),
        repair=RepairCheck(clock, board, policy, reading, access, journal, proposals, plans),
        balance=BalanceCheck(board, reading, runs, proposals, plans),
        requests=Requests(clock, board, policy, access, runs, permissions, proposals, drains, asked),
        lock=Lock(
            given.holder,
            clock,
            board,
            policy,
            access,
            runs,
            proposals,
            journal,
            given.event_sink,
            look_again,
            loops.lock_waits,
        ),
    )
