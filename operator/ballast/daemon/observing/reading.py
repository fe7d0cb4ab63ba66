"""The newest reading of the cluster, what only shows over several of them, and what is decided from both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ballast.core.cluster import ClusterState
from ballast.core.cluster.isr import leaves_every_isr_after_s, leaving_sentence
from ballast.core.plan.log_dirs import brokers_to_rebuild
from ballast.core.planner import Loads, PlannerPolicy
from ballast.core.wording import human_many, human_time
from ballast.daemon.context.view import Board
from ballast.daemon.observing.presence import BrokersSince, Presence
from ballast.daemon.policy import LivePolicy
from ballast.errors import Unavailable
from ballast.executor.driver.look import FullReading
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.time import Clock


@dataclass(frozen=True, slots=True)
class Held:
    """Brokers that are missed and not rebuilt before a moment: the rest of their rack usually follows the one that returned."""

    brokers: tuple[int, ...]
    until_ms: int
    returned: int


@dataclass(slots=True)
class Reading:
    """The observe check takes readings in, the end of a run drops the newest, and each plan notes its loads.

    Bounded by the number of brokers, never by time.
    """

    clock: Clock
    board: Board
    policy: LivePolicy
    state: ClusterState | None = None
    """The newest reading, sizes and configs carried over from the newest full one."""
    full: FullReading | None = None
    """The newest full reading, for a run as well."""
    read_at_s: float | None = None
    """Monotonic time of the newest reading; None where it counts no more."""
    loads: tuple[ClusterState, Loads] | None = None
    """What history told of traffic when a plan was last made, and the reading it belongs to."""
    presence: Presence = field(default_factory=Presence)
    failed_disks: BrokersSince = field(default_factory=BrokersSince)
    """Live brokers of which replicas are offline since a log dir failed."""

    def keep_full(self, state: ClusterState, began_s: float) -> None:
        """Keep a reading that has sizes and configs, and since when they hold at the earliest."""
        self.full = FullReading(state, began_s, self.clock.monotonic_s())

    def take(self, state: ClusterState, began_s: float, racks: Mapping[int, str]) -> None:
        """Take in the newest reading, and which brokers came, left, or have failed log dirs by it."""
        self.state, self.read_at_s = state, self.clock.monotonic_s()
        self.presence = self.presence.see(state.alive, state.missing, began_s, racks)
        self.failed_disks = self.failed_disks.see(brokers_to_rebuild(state), began_s)

    def drop(self) -> None:
        """Decide nothing more from the newest reading: the cluster has been changed since."""
        self.read_at_s = None

    def note_loads(self, state: ClusterState, loads: Loads | None) -> None:
        """Keep what history told of traffic when a plan was made from ``state``; None where it told nothing."""
        self.loads = None if loads is None else (state, loads)

    def fresh(self) -> ClusterState:
        """The newest reading; raises ``Unavailable`` when it is too old to decide from."""
        state, age = self.state, self.age_s()
        too_old = age is None or age > self.policy.now.guards.max_reading_age_s
        if state is None or too_old or self.board.view.outage is not None:
            raise Unavailable(
                "There is no fresh reading of the cluster.",
                hint="See the observe check for what keeps it from being read.",
            )
        return state

    def age_s(self) -> float | None:
        """Age of the newest reading in seconds."""
        return None if self.read_at_s is None else self.clock.monotonic_s() - self.read_at_s

    def taken_at_ms(self) -> int | None:
        """When the newest reading was taken, by the wall clock."""
        return None if self.state is None else self.state.taken_at_ms

    def execution(self) -> ExecutionPolicy:
        """How the next run is executed, as far as this cluster can do what the settings say."""
        execution = self.policy.now.execution
        return execution.adapt(self.state.api) if self.state is not None else execution

    @property
    def balance(self) -> PlannerPolicy:
        """How plans are made: as the settings say, those of the execution as well, and brokers that people drained are drained like those of the settings."""
        policy = self.policy.now
        drained = policy.balance.with_drained(d.broker for d in self.board.view.drains)
        return replace(drained, replicas_below_min_isr=policy.execution.replicas_below_min_isr == "allow")

    def held_brokers(self) -> Mapping[int, tuple[int, float]]:
        """Missed brokers that are not rebuilt yet, since their rack is coming back: which broker came up last, and until when they wait (monotonic)."""
        return self.presence.held_brokers(self.policy.now.guards.membership_cool_down_s, self.clock.monotonic_s())

    def list_held(self, brokers: Collection[int]) -> tuple[Held, ...]:
        """Until when the repair of these waits, and why; empty where it does not."""
        held, ahead_ms = self.held_brokers(), self.clock.now_ms() - self.clock.monotonic_s() * 1000
        alike: dict[tuple[float, int], list[int]] = {}
        for broker in sorted(held.keys() & set(brokers)):
            returned, until_s = held[broker]
            alike.setdefault((until_s, returned), []).append(broker)
        return tuple(
            Held(tuple(waiting), round(ahead_ms + until_s * 1000), returned)
            for (until_s, returned), waiting in sorted(alike.items())
        )

    def quiet_reason(self) -> str:
        """Why the cluster is to be left in peace now; empty when it is not."""
        wait_s = self.presence.seconds_until_quiet(
            self.policy.now.guards.membership_cool_down_s, self.clock.monotonic_s()
        )
        figures = self.board.view.figures
        if wait_s > 0:
            return f"a broker came or went; {human_time(wait_s)} to wait."
        if figures is not None and figures.under_replicated:
            leaving = "" if self.state is None else leaving_sentence(leaves_every_isr_after_s(self.state))
            return f"{human_many(figures.under_replicated, 'partition')} with replicas out of sync. {leaving}".rstrip()
        return ""
