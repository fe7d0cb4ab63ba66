"""Plays a plan on the simulator: the production machine and driver, the same batches, throttles and guards, in seconds.

The answer says how long it takes, what each broker's disk and network see at most, and what happens when brokers fail on the
way.  What a simulation cannot know (client traffic that was not measured, other tenants of the disks, page caches) it does
not make up: ``Playback.assumptions`` lists what was taken for granted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Plan
from ballast.core.planner import Loads
from ballast.core.planner.loads import BYTES_IN, BYTES_OUT
from ballast.core.what_if.loss import Health, health_of
from ballast.core.wording import human_brokers, human_bytes, human_many
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Ending, Refusing, RunEvent
from ballast.executor.journal.notes import RunNote
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.journal import Holder
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import Physics
from ballast.sim.picture import BOUNDLESS, world_of
from ballast.sim.scenario_claims import bound_s
from ballast.sim.world import SimWorld

LOOKS: Final = 400
"""About so many looks at the cluster make a play; longer plans are looked at less often, not longer."""
PATIENCE: Final = 3.0
"""A run is given up when it takes so many times what its busiest link needs …"""
PATIENCE_S: Final = 3_600.0
"""… and this long besides."""
WATCH_AFTER_S: Final = 600.0
"""How long a run is watched after a failure for good, besides the time that its busiest link needs."""
OF_A_KIND: Final = 3
"""Refusals of one kind that are kept."""
NOTES: Final = 60
"""Different notes and kinds of refusals that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFailure:
    """Brokers that fail on the way."""

    brokers: frozenset[int]
    at_share: float = 0.5
    """When this share of the plan's bytes has been copied …"""
    at_s: float | None = None
    """… or, where it is given, so many seconds after the start."""
    restart_after_s: float | None = None
    """Seconds until they run again; None leaves them down."""


@dataclass(slots=True)
class BrokerPeak:
    """What one broker saw."""

    broker: int
    disk_before: float = 0.0
    disk_peak: float = 0.0
    disk_peak_at_s: float = 0.0
    disk_after: float = 0.0
    disk_total: float | None = None
    """Size of its log dirs, None where it is not known."""
    in_peak: float = 0.0
    """Most bytes a second that copying brought in, on top of what producers and followers do anyway."""
    out_peak: float = 0.0
    in_usual: float | None = None
    """Bytes a second that come in anyway, None where traffic is not known."""
    out_usual: float | None = None
    leaders_before: int = 0
    leaders_after: int = 0


@dataclass(slots=True)
class Playback:
    """What came of a plan on the simulated cluster."""

    status: str = "done"
    """As of a run (``done``, ``incomplete``, ``refused``, ``cancelled``), or ``waiting``: it would wait for a person or another process."""
    seconds: float = 0.0
    min_seconds: float = 0.0
    """What the busiest link needs for its bytes alone."""
    moves: int = 0
    moves_ended: int = 0
    """Moves that were done and verified when the play ended."""
    bytes_copied: float = 0.0
    brokers: list[BrokerPeak] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
    """What happened when, in seconds since the start."""
    failed_at_s: float | None = None
    worst: Health | None = None
    """The partitions in trouble right after the failure."""
    after: Health | None = None
    """The partitions in trouble at the end."""
    troubled: dict[str, list[TopicPartition]] = field(default_factory=dict)
    """The names behind ``worst``, by field of ``Health``."""
    assumptions: list[str] = field(default_factory=list)


class _Horizon(BaseException):
    """The play has lasted long enough; nothing but the player catches it."""


def play(
    state: ClusterState,
    plan: Plan,
    policy: ExecutionPolicy,
    *,
    loads: Loads,
    nic_bytes_per_s: float,
    failure: BrokerFailure | None = None,
) -> Playback:
    """Execute the plan on a simulated copy of the cluster; never touches the cluster itself."""
    return _Player(state, plan, policy, loads=loads, nic_bytes_per_s=nic_bytes_per_s, failure=failure).run()


class _Player:
    """One play; the world, its watcher, and what has been seen."""

    def __init__(
        self,
        state: ClusterState,
        plan: Plan,
        policy: ExecutionPolicy,
        *,
        loads: Loads,
        nic_bytes_per_s: float,
        failure: BrokerFailure | None,
    ) -> None:
        self.plan, self.failure = plan, failure
        self.clock = SimClock(start_ms=max(state.taken_at_ms, 0))
        focus = _focus(state, plan, failure)
        probe = world_of(state, loads, SimClock(), nic_bytes_per_s=nic_bytes_per_s, focus=focus)
        self.least_s = bound_s(plan, probe, policy)
        self.policy = _pace(policy, self.least_s)
        physics = Physics(tick_s=max(0.5, self.least_s / LOOKS))
        self.world = world_of(
            state,
            loads,
            self.clock,
            nic_bytes_per_s=nic_bytes_per_s,
            physics=physics,
            focus=focus,
            topic_ids=plan.topic_ids,
        )
        self.cluster = SimCluster(self.world, api=state.api & {"reassign", "reassign-v1"} or frozenset({"reassign"}))
        self.out = Playback(moves=len(plan.moves), min_seconds=self.least_s)
        self.out.assumptions = _assumptions(state, loads, nic_bytes_per_s, focus)
        self.meter = _Meter(state, loads, self.world)
        self.heard: Counter[str] = Counter()
        self.began_s = 0.0

    def run(self) -> Playback:
        journal = MemoryJournal(JournalStore(), self.clock)
        journal.acquire(Holder("simulation", "simulation"))
        driver = Driver(self.cluster, journal, self.clock, self)
        self.began_s = self.clock.monotonic_s()
        self.clock.subscribe(self._watch)
        self.clock.after(self.least_s * PATIENCE + PATIENCE_S, self._give_up)
        if self.failure is not None and self.failure.at_s is not None:
            self.clock.after(self.failure.at_s, self._fail)
        try:
            result = driver.execute(self.plan, self.policy, run_id="simulation")
            self.out.status, self.out.moves_ended = result.status, result.verified
            self._tell_endings(result.endings)
        except _Horizon:
            self.out.status = "waiting"
            run = driver.run
            self.out.moves_ended = 0 if run is None else len(run.moves) - sum(1 for _ in run.open_moves)
        self.out.seconds = self.clock.monotonic_s() - self.began_s
        self.out.bytes_copied = sum(self.world.received.values())
        self.out.brokers = self.meter.finish(self.out.seconds)
        if self.out.failed_at_s is not None:
            self.out.after = health_of(self._truth())
        self._tell(f"The run ends: {self.out.status}.")
        return self.out

    def on_event(self, event: RunEvent) -> None:
        """Keep the first few refusals and notes of each kind, dated."""
        if isinstance(event, Refusing):
            for verdict in event.verdicts[:1]:
                self.heard[verdict.code] += 1
                if self.heard[verdict.code] <= OF_A_KIND:
                    self._tell(f"{verdict.subject} waits: {verdict}")
        elif isinstance(event, RunNote):
            text = str(event)
            self.heard[text] += 1
            if self.heard[text] == 1 and len(self.heard) < NOTES:
                self._tell(text)

    def _tell_endings(self, endings: tuple[Ending, ...]) -> None:
        """Why moves or elections ended otherwise: the first few of each outcome."""
        for ending in endings:
            self.heard[ending.outcome] += 1
            if self.heard[ending.outcome] <= OF_A_KIND:
                self._tell(f"{ending.subject}: {ending.outcome}{f', {ending.detail}' if ending.detail else ''}")

    def _watch(self, elapsed: float) -> None:
        now = self.clock.monotonic_s() - self.began_s
        self.meter.read(elapsed, now)
        failure = self.failure
        if failure is None or failure.at_s is not None or self.out.failed_at_s is not None:
            return
        if sum(self.world.received.values()) >= failure.at_share * max(self.plan.bytes_moved, 1):
            self._fail()

    def _fail(self) -> None:
        failure = self.failure
        assert failure is not None
        self.out.failed_at_s = self.clock.monotonic_s() - self.began_s
        named = _name_brokers(failure.brokers)
        self._tell(f"{named} {'fail' if len(failure.brokers) > 1 else 'fails'}.")
        for broker in sorted(failure.brokers):
            self.world.kill(broker)
        # What it means for partitions is known when the controller has given the brokers up.
        self.clock.after(self.world.physics.session_timeout_s + 1.0, self._count_unhealthy)
        if failure.restart_after_s is None:
            self.clock.after(self.least_s + WATCH_AFTER_S, self._give_up)
        else:
            self.clock.after(failure.restart_after_s, self._restart)

    def _count_unhealthy(self) -> None:
        state = self._truth()
        self.out.worst = health_of(state)
        for kind in ("offline", "under_min_isr", "at_min_isr"):
            rows = getattr(self.out.worst, kind).tolist()
            self.out.troubled[kind] = [state.name(row) for row in rows]

    def _restart(self) -> None:
        assert self.failure is not None
        for broker in sorted(self.failure.brokers):
            self.world.start(broker)
        self._tell(f"{_name_brokers(self.failure.brokers)} back.")

    def _truth(self) -> ClusterState:
        """The partitions in focus as they are, without what they hold: cheap, and no time passes."""
        world = self.world
        rows = [
            PartitionRow(p.topic, p.number, p.leader, tuple(p.replicas), tuple(p.isr), tuple(p.adding), tuple(p.removing))
            for p in world.partitions()
        ]  # fmt: skip
        topics = tuple(Topic(t.name, min_isr=t.min_isr) for t in world.topics.values())
        return build("sim", tuple(Broker(b.id, alive=b.registered) for b in world.brokers.values()), topics, rows)

    def _give_up(self) -> None:
        raise _Horizon

    def _tell(self, sentence: str) -> None:
        self.out.events.append((self.clock.monotonic_s() - self.began_s, sentence))


class _Meter:
    """Reads disks and links while time passes."""

    def __init__(self, state: ClusterState, loads: Loads, world: SimWorld) -> None:
        self.world = world
        self.window_s = 0.0
        self.seen_in, self.seen_out = dict(world.received), dict(world.sent)
        usual_in, usual_out = _usual(state, loads)
        elsewhere = Counter(state.partitions.leader.tolist())
        elsewhere.subtract(p.leader for p in world.partitions())
        self.elsewhere = elsewhere
        self.peaks = {b: BrokerPeak(b, in_usual=usual_in.get(b), out_usual=usual_out.get(b)) for b in world.brokers}
        for b, used in self._disks().items():
            total = sum(world.brokers[b].dir_bytes)
            peak = self.peaks[b]
            peak.disk_before = peak.disk_peak = used
            peak.disk_total = None if total >= BOUNDLESS else total
        for b, count in self._leaders().items():
            self.peaks[b].leaders_before = count

    def read(self, elapsed: float, now_s: float) -> None:
        """Rates are means over at least one tick, so that a call of a hundredth of a second makes no peak."""
        self.window_s += elapsed
        if self.window_s < self.world.physics.tick_s:
            return
        for b, peak in self.peaks.items():
            received, sent = self.world.received[b], self.world.sent[b]
            peak.in_peak = max(peak.in_peak, (received - self.seen_in.get(b, 0.0)) / self.window_s)
            peak.out_peak = max(peak.out_peak, (sent - self.seen_out.get(b, 0.0)) / self.window_s)
            self.seen_in[b], self.seen_out[b] = received, sent
        self.window_s = 0.0
        for b, used in self._disks().items():
            if used > self.peaks[b].disk_peak:
                self.peaks[b].disk_peak, self.peaks[b].disk_peak_at_s = used, now_s

    def finish(self, now_s: float) -> list[BrokerPeak]:
        """The last reading."""
        self.read(self.world.physics.tick_s, now_s)
        for b, used in self._disks().items():
            self.peaks[b].disk_after = used
        for b, count in self._leaders().items():
            self.peaks[b].leaders_after = count
        return [self.peaks[b] for b in sorted(self.peaks)]

    def _disks(self) -> dict[int, float]:
        out: Counter[int] = Counter()
        for (b, _), used in self.world.disks().items():
            out[b] += used  # type: ignore[assignment]
        return dict(out)

    def _leaders(self) -> dict[int, int]:
        led = Counter(p.leader for p in self.world.partitions())
        return {b: led[b] + self.elsewhere[b] for b in self.peaks}


def _focus(state: ClusterState, plan: Plan, failure: BrokerFailure | None) -> set[int]:
    """Rows that can change in this play: what moves, is elected, is moving, is under-replicated, or sits on a broker that fails."""
    p = state.partitions
    rows = {state.index[name] for name in (*(m.name for m in plan.moves), *plan.elections) if name in state.index}
    rows |= set(np.flatnonzero(state.moving).tolist())
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    rows |= set(row[~p.in_sync].tolist())
    if failure is not None:
        rows |= set(row[np.isin(p.replica, sorted(failure.brokers))].tolist())
    return rows


def _pace(policy: ExecutionPolicy, least_s: float) -> ExecutionPolicy:
    """Look less often at what takes hours; nothing else changes."""
    poll_s = max(policy.poll_s, least_s / LOOKS)
    return replace(
        policy,
        poll_s=poll_s,
        progress_s=max(policy.progress_s, 5 * poll_s),
        guard_s=max(policy.guard_s, 10 * poll_s),
        submit_grace_s=max(policy.submit_grace_s, 15 * poll_s),
        stall_after_s=max(policy.stall_after_s, 20 * poll_s),
    )


def _usual(state: ClusterState, loads: Loads) -> tuple[dict[int, float], dict[int, float]]:
    """Traffic before, by broker; empty where it is not known."""
    p = state.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    ids = [b.id for b in state.brokers]
    incoming: dict[int, float] = {}
    outgoing: dict[int, float] = {}
    if BYTES_IN in loads.known:
        at = np.searchsorted(ids, p.replica)
        sums = np.bincount(at, weights=loads.bytes_in_per_s[row], minlength=len(ids))
        incoming = dict(zip(ids, sums.tolist(), strict=True))
    if BYTES_OUT in loads.known:
        led = np.isin(p.leader, ids)
        sums = np.bincount(
            np.searchsorted(ids, p.leader[led]), weights=loads.bytes_out_per_s[led], minlength=len(ids)
        )  # fmt: skip
        outgoing = dict(zip(ids, sums.tolist(), strict=True))
    return incoming, outgoing


def _assumptions(state: ClusterState, loads: Loads, nic_bytes_per_s: float, focus: set[int]) -> list[str]:
    out = [
        f"Each network card carries {human_bytes(nic_bytes_per_s)}/s in each direction, and copying may use all of it."
    ]
    if BYTES_IN not in loads.known:
        out.append("Nothing is produced meanwhile: traffic is not known.")
    if len(focus) < len(state.partitions):
        still = len(state.partitions) - len(focus)
        out.append(
            f"{still:,} partitions that neither move nor sit on a failing broker stay as they are and do not grow."
        )
    untold = sum(t.min_isr == UNKNOWN for t in state.topics)
    if untold:
        out.append(f"min.insync.replicas is 1 for {human_many(untold, 'topic')} of which it is not known.")
    nameless = frozenset(b.id for b in state.brokers if b.alive and b.capacity_bytes < 0)
    if nameless:
        whose = "any broker" if nameless == state.alive else _name_brokers(nameless).lower()
        out.append(f"The disk of {whose} never fills: its size is not known.")
    return out


def _name_brokers(brokers: frozenset[int]) -> str:
    return human_brokers(sorted(brokers), len(brokers), start=True)
