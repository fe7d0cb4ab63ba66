"""What a run is throttled to and how long that takes, as a value that is shown before the user confirms it.

The same value is told by ``ballast apply`` before it asks and by the run when it has measured.  ``lines`` says it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.copying import copying_of, leader_in
from ballast.core.field_types import OneOf
from ballast.core.plan import Move, Plan
from ballast.core.throttles.pace import Basis, least
from ballast.core.wording import human_brokers, human_bytes, human_time
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Run, new_run
from ballast.executor.machine.scheduling.speeds import max_rate, measure_traffic, start_rate

UNTHROTTLED: Final = (
    "No throttle: copies take all that disks and network give. To limit them: --throttle auto, or --throttle 50MB."
)
SHORT_S: Final = 60.0
"""Of copies that take less than this, asking, looking and verifying is a good part of a run's time."""
CHANGE: Final = "To change it: --throttle 50MB, --network 125MB (what a broker's network carries), or --no-throttle."


@dataclass(frozen=True, slots=True)
class BrokerPace:
    """A broker's rate when the run begins, and what it has to copy."""

    broker: int
    bytes_per_s: int
    basis: Annotated[Basis, OneOf(*Basis)]
    """What the rate was chosen by."""
    bytes: int
    """Received or, as leader, sent, whichever is more."""
    known: float | None = None
    """The figure that the rate was chosen by, in bytes per second: headroom, traffic, or what producers write."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The throttle of a run when it begins."""

    auto: bool
    brokers: tuple[BrokerPace, ...]
    small_bytes: int
    network_bytes_per_s: int | None
    unknown: int
    """Moves whose size no broker tells."""
    unmeasured: tuple[TopicPartition, ...] = ()
    """Of which it was measured, in vain, what producers write: the rates are not checked against it."""

    @property
    def busiest(self) -> BrokerPace | None:
        """The broker that needs the longest at its first rate; None where none has one, or a size is unknown."""
        return None if self.unknown else max(self.brokers, key=lambda b: b.bytes / b.bytes_per_s, default=None)

    @property
    def seconds(self) -> float | None:
        """What the busiest broker needs at its first rate; None where a size is unknown."""
        if self.unknown:
            return None
        return self.busiest.bytes / self.busiest.bytes_per_s if self.busiest else 0.0

    def lines(self) -> Iterator[str]:
        """Rate with its arithmetic, then the time."""
        groups: defaultdict[tuple[int, Basis], list[BrokerPace]] = defaultdict(list)
        for b in self.brokers:
            groups[b.bytes_per_s, b.basis].append(b)
        for (rate, basis), members in sorted(groups.items()):
            yield f"Throttle: {human_bytes(rate)}/s on {human_brokers([b.broker for b in members])} ({self._why(basis, members)})."
        if not self.brokers:
            return
        yield "These brokers receive copies or, as leaders, send them; one that only gives up replicas copies nothing."
        follows = (
            "; auto raises the rate while it is used, and halves it when other replicas fall behind"
            if self.auto
            else ""
        )
        if self.seconds is None:
            yield f"How long copying takes is not known, since some sizes are not{follows}."
        else:
            more = ", and each batch some seconds more" if self.seconds < SHORT_S else ""
            yield f"Copying takes about {human_time(self.seconds)} at this rate{more}{follows}."
        if self.unmeasured:
            more = f" and {len(self.unmeasured) - 1} more" if len(self.unmeasured) > 1 else ""
            yield (
                f"What producers write to {self.unmeasured[0]}{more} is not known, since the leader did not report its log dirs: "
                "the throttle is not checked against it until it does."
            )

    def _why(self, basis: Basis, members: list[BrokerPace]) -> str:
        figure = max((b.known or 0.0 for b in members), default=0.0)
        copies = max((b.bytes for b in members), default=0)
        return {
            Basis.STATED: "as stated",
            Basis.NETWORK: f"half of the {human_bytes(figure)}/s that other traffic leaves of the stated network, {human_bytes(self.network_bytes_per_s or 0)}/s",
            Basis.TRAFFIC: f"no network stated: half of the {human_bytes(figure)}/s that it carries now",
            Basis.SMALL: (
                f"little to copy, {human_bytes(copies)} at most on one broker; up to {human_bytes(self.small_bytes)} counts as little"
            ),
            Basis.PRODUCERS: f"raised: producers write {human_bytes(figure)}/s to what it copies",
            Basis.MAXIMUM: "the most that auto gives it",
            Basis.CAUTIOUS: "little known of the network: a cautious start",
        }[basis]


def pace_of(run: Run, state: ClusterState) -> Pace:
    """The rates of a run that is about to begin, producers' writes counted."""
    inbound: defaultdict[int, float] = defaultdict(float)
    moves = [m.move for m in run.open_moves if m.move.adding and not _is_there(m.move, state)]
    leader_of = leader_in(state)
    copying = copying_of(moves, leader_of)
    for move in moves:
        leader = leader_of(move.name)
        written = run.inbound.get(move.name, 0.0)
        for broker in move.adding:
            inbound[broker] = max(inbound[broker], written)
        inbound[leader] = max(inbound[leader], written * len(move.adding))
    brokers = [_broker_pace(run, b, copying.of(b), inbound[b]) for b in sorted(inbound) if b >= 0]
    return Pace(
        auto=run.policy.auto,
        brokers=tuple(b for b in brokers if b is not None),
        small_bytes=run.policy.small_bytes,
        network_bytes_per_s=run.policy.network_bytes_per_s,
        unknown=copying.unknown,
        unmeasured=tuple(sorted(run.unmeasured)),
    )


def _is_there(move: Move, state: ClusterState) -> bool:
    """Has its partition the wanted replicas already, and nothing on the way?  Then the run copies nothing of it."""
    row = state.index.get(move.name)
    return row is not None and state.target(row) == move.new and not bool(state.moving[row])


def _broker_pace(run: Run, broker: int, copies: int, written: float) -> BrokerPace | None:
    begins = start_rate(run, broker)
    if begins is None:
        return None
    wanted = least(written)
    follows = run.policy.follows(broker)
    if wanted > begins.bytes_per_s and (follows or run.policy.raise_throttle):
        rate = min(wanted, max_rate(run, broker)) if follows else wanted
        return BrokerPace(broker, rate, Basis.PRODUCERS, copies, written)
    known = {Basis.NETWORK: run.headroom.get(broker), Basis.TRAFFIC: run.traffic.get(broker)}.get(begins.basis)
    return BrokerPace(broker, begins.bytes_per_s, begins.basis, copies, known)


def first_pace(plan: Plan, state: ClusterState, policy: ExecutionPolicy) -> Pace:
    """The rates that a run of this plan begins with, as far as one reading tells: what producers write, and other traffic, is not measured."""
    return pace_of(new_run("foreseen", plan, policy, Now(0, 0.0)), state)


def measurable(policy: ExecutionPolicy, state: ClusterState, names: list[TopicPartition]) -> list[TopicPartition]:
    """Whose growth tells what this policy starts from: for ``auto`` every partition's, else that of what is to move."""
    return list(state.index) if policy.auto else names


def with_growth(run: Run, state: ClusterState, grown: Mapping[TopicPartition, float]) -> Run:
    """The run with what was measured before its first copy."""
    left = {m.move.name: m for m in run.open_moves}
    inbound = {n: grown[n] for n in left if n in grown}
    unmeasured = frozenset(n for n, m in left.items() if m.move.adding and n not in grown)
    return measure_traffic(replace(run, inbound=inbound, unmeasured=unmeasured), state, grown)
