"""What every tick works with: the parts, the policy in force, and what the daemon remembers between ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ballast.core.cluster import ClusterState
from ballast.core.cluster.isr import leaves_every_isr_after_s, leaving_sentence
from ballast.core.plan import Plan
from ballast.core.planner import Loads, PlannerPolicy
from ballast.core.wording import human_many
from ballast.daemon.acting.decisions import Approval, Decisions
from ballast.daemon.acting.permission import Acts, Situation, permissions
from ballast.daemon.acting.policy import ActionKind, DaemonPolicy, Mode, WebPolicy
from ballast.daemon.acting.run_views import JournalView, ParsedJournal
from ballast.daemon.context.run_controller import RunController
from ballast.daemon.context.view import Answer, Board, Pause, PlanView, Role
from ballast.daemon.observing.patience import FailedDisks, Hysteresis, Presence
from ballast.daemon.observing.series import Series
from ballast.errors import Unavailable
from ballast.executor.driver.events import RunResult
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.suited import suited
from ballast.ports.cluster import ClusterReader
from ballast.ports.event_sink import EventSink, null_sink
from ballast.ports.journal import Journal, Request
from ballast.ports.time import Clock

ANSWERS_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan and the kind of action that would carry it out."""

    id: str
    kind: ActionKind
    plan: Plan
    approved_by: str | None = None
    beyond: tuple[str, ...] = ()
    """Why it waits for approval whatever the mode; empty where it need not."""
    request: Request | None = None
    """Of the person who asked for it; None where Ballast made it by itself."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """The lock was given up for somebody."""

    who: str
    until_ms: int
    """Wall clock, since every replica goes by it."""


@dataclass(slots=True)
class Memory:
    """What is known from earlier ticks; bounded by the number of brokers and kinds, never by time."""

    state: ClusterState | None = None
    """The newest reading, sizes and configs carried over from the newest full one."""
    read_at_s: float | None = None
    """Monotonic time of the newest reading."""
    full_read_at_s: float | None = None
    loads: tuple[ClusterState, Loads] | None = None
    """What history told of traffic when a plan was last made, and the reading it belongs to."""
    racks: Mapping[int, str] = field(default_factory=dict)
    """The rack that each broker last named: older clusters forget it with the broker."""
    presence: Presence = field(default_factory=Presence)
    failed_disks: FailedDisks = field(default_factory=FailedDisks)
    hysteresis: Hysteresis = field(default_factory=Hysteresis)
    acts: Mapping[ActionKind, Acts] = field(default_factory=dict)
    proposals: dict[ActionKind, Proposal] = field(default_factory=dict)
    wanted: Request | None = None
    """A plan that a person asked for and that is still to be made."""
    asked: Proposal | None = None
    """The plan that was made for a person."""
    asked_elsewhere: PlanView | None = None
    """The same as the one that acts shows it, while this process is not that one."""
    shared: tuple[PlanView | None, tuple[Answer, ...]] = (None, ())
    """What the journal tells the others of plans that were asked for and of answers."""
    rejected: dict[ActionKind, str] = field(default_factory=dict)
    """By kind, the name of the plan that a person rejected last: it is not proposed again."""
    approved: dict[ActionKind, Approval] = field(default_factory=dict)
    """By kind, the plan that a person approved, until it starts or is no longer wanted."""
    series: Series = field(default_factory=Series)
    running: ActionKind | None = None
    """The kind of action that the current run is."""
    saw_run: bool = False
    """A run was in flight when this was last looked at, whoever started it."""
    journal_view: JournalView = field(default_factory=JournalView)
    """What the journal said of runs when it was read last."""
    parsed: ParsedJournal = field(default_factory=ParsedJournal)
    """What the loop that reads the journal has parsed of it."""
    decisions: Decisions = field(default_factory=Decisions)
    """What the journal said then of people's decisions; a process that only observes goes by it."""
    reserved: Reserved | None = None
    """Whom the lock was last given up for."""

    def approval_of(self, kind: ActionKind, plan: str) -> str | None:
        """Who approved this plan; None where nobody has."""
        approval = self.approved.get(kind)
        return approval.by if approval is not None and approval.plan == plan else None


@dataclass(slots=True)
class DaemonContext:
    """The parts and the memory."""

    cluster: ClusterReader
    clock: Clock
    board: Board
    policy: DaemonPolicy
    web: WebPolicy = field(default_factory=WebPolicy)
    journal: Journal | None = None
    """None in observe mode: nothing is written to the cluster."""
    reading_journal: Journal | None = None
    """A second handle on the same journal, for reading, in observe mode too, and for requests: the first one blocks while it
    waits for the lock."""
    run_controller: RunController | None = None
    take_tools: Callable[[], None] = lambda: None
    """Makes journal and run controller, when the mode first asks for them."""
    on_state: Callable[[ClusterState], None] | None = None
    """Told about every full reading: the sampler."""
    loads: Callable[[ClusterState], Loads | None] = lambda _: None
    """Loads from history; None where there is none yet: then plans go by what the reading itself says."""
    in_background: Callable[[Callable[[], tuple[Loads | None, Plan]]], tuple[Loads | None, Plan]] = lambda make: make()
    """Makes a plan while the cluster goes on being read."""
    refused: Callable[[str, str], None] = lambda _kind, _code: None
    """Told about every plan that may not start: the kind of action and the guard's code; ``run`` for moves of a run."""
    retried: Callable[[str], None] = lambda _operation: None
    """Told about every question to the cluster that is asked again."""
    event_sink: EventSink = null_sink
    """Carries news to where people look who do not look here."""
    run_ended: Callable[[RunResult], None] = lambda _result: None
    """Told what came of every run that ends here."""
    give_way: str = ""
    """Whom the lock is to be given up for; the lock tick does it."""
    look_again: Callable[[], None] = lambda: None
    """Makes the checks due at once: something ended or changed."""
    memory: Memory = field(default_factory=Memory)

    def fresh_state(self) -> ClusterState:
        """The newest reading; raises ``Unavailable`` when it is too old to decide from."""
        state, age = self.memory.state, self.reading_age_s()
        too_old = age is None or age > self.policy.caution.max_snapshot_age_s
        if state is None or too_old or self.board.view.outage is not None:
            raise Unavailable(
                "There is no fresh reading of the cluster.",
                hint="See the observe tick for what keeps it from being read.",
            )
        return state

    def execution(self) -> ExecutionPolicy:
        """How the next run is carried out, as far as this cluster can do what the settings say."""
        state = self.memory.state
        return suited(self.policy.execution, state.api) if state is not None else self.policy.execution

    @property
    def balance(self) -> PlannerPolicy:
        """How plans are made: as the settings say, and brokers that people drained are drained like those of the settings."""
        return self.policy.balance.with_drained(d.broker for d in self.board.view.drains)

    def reading_age_s(self) -> float | None:
        """Age of the newest reading in seconds."""
        read = self.memory.read_at_s
        return None if read is None else self.clock.monotonic_s() - read

    def run_in_flight(self) -> str:
        """The run that this process or, as far as the journal tells, another one carries out; empty for none."""
        run = (self.run_controller.current() if self.run_controller else None) or self.board.view.run_elsewhere
        return run.id if run else ""

    def tell(self, request: str, sentence: str, *, ok: bool) -> None:
        """Show what came of a request to whoever made it."""
        answer = Answer(request=request, sentence=sentence, ok=ok, at_ms=self.clock.now_ms())
        self.board.publish(answers=(*self.board.view.answers, answer)[-ANSWERS_KEPT:])

    def quiet_reason(self) -> str:
        """Why the cluster is to be left in peace now; empty when it is not."""
        now_s = self.clock.monotonic_s()
        wait_s = self.memory.presence.unquiet(self.policy.caution.quiet_after_return_s, now_s)
        figures = self.board.view.figures
        if wait_s > 0:
            return f"a broker came or went; {wait_s:.0f} s to wait."
        if figures is not None and figures.under_replicated:
            state = self.memory.state
            leaving = "" if state is None else leaving_sentence(leaves_every_isr_after_s(state))
            return f"{human_many(figures.under_replicated, 'partition')} with replicas out of sync. {leaving}".rstrip()
        return ""

    def situation(self) -> Situation:
        """Everything a permission depends on, now."""
        view = self.board.view
        run = self.run_controller.current() if self.run_controller else None
        return Situation(
            now_ms=self.clock.now_ms(),
            role=view.role,
            reading_age_s=self.reading_age_s(),
            outage=view.outage,
            pause=view.pause,
            run=run.id if run else None,
            give_way=self.give_way,
            others=view.others,
            quiet_reason=self.quiet_reason(),
            acts=self.memory.acts,
        )

    def publish_permissions(self) -> None:
        """Show what may start now and what may not, and why."""
        self.board.publish(permissions=permissions(self.policy, self.situation()), mode=self.policy.mode.value)

    def yield_to(self, who: str) -> None:
        """Ask the lock tick to give the lock up."""
        self.give_way = who

    def set_pause(self, pause: Pause | None) -> None:
        """Show the pause switch; the run in flight heeds it."""
        self.board.publish(pause=pause)
        self.hold_run()

    def hold_run(self) -> None:
        """Hold the next moves of the run in flight back while a person paused, or while its kind is in observe mode."""
        if self.run_controller is not None:
            self.run_controller.pause(paused=self.board.view.pause is not None or bool(self.held_by_mode()))

    def held_by_mode(self) -> str:
        """Why the run in flight begins no further move, as far as modes go; empty where it may.

        A run whose kind nobody wrote down is held only where nothing at all is written.
        """
        kind = self.memory.running
        if kind is not None and self.policy.mode_of(kind) is Mode.OBSERVE:
            return f"the mode for {kind.value} is observe"
        return "" if self.policy.writes else "the mode is observe"

    def kind_of(self, run: str) -> ActionKind | None:
        """The kind of action that this run was started as; None where no record tells."""
        return next((kind for kind, acts in self.memory.acts.items() if acts.run == run), None)

    def take_up(self, run: str) -> None:
        """A run of the journal is the current one from now on; empty for none."""
        self.memory.running = self.kind_of(run) if run else None
        self.hold_run()

    def set_role(self, role: Role) -> None:
        """Show what this process is."""
        if self.board.view.role is not role:
            self.board.publish(role=role)
