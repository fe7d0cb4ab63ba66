"""The throttle of each broker, as a run sets it now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.plan import Move
from ballast.core.throttles import brokers_involved
from ballast.core.throttles.headroom import brokers_of_unknown_growth, busiest_side, headroom
from ballast.core.throttles.pace import Basis, Bounds, Known, Start, least, start
from ballast.errors import UsageError
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Run
from ballast.executor.machine.stages import HoldsThrottle


def broker_rates(run: Run, brokers: Iterable[int]) -> dict[int, int]:
    """Bytes/s of each broker; one for which this run sets none is left out."""
    found = {b: _rate(run, b) for b in brokers}
    return {b: rate for b, rate in found.items() if rate is not None}


def require_rates(policy: ExecutionPolicy, moves: Iterable[Move], brokers: Collection[int]) -> None:
    """Refuse rates by broker that name an unknown broker, or leave a broker of these moves without any."""
    named = policy.throttle_per_broker
    unknown = sorted(set(named) - set(brokers))
    if unknown:
        raise UsageError(
            f"The throttle names broker {unknown[0]}, and the cluster has {', '.join(map(str, sorted(brokers)))}.",
            hint="Leave it out, or correct the id.",
        )
    bare = sorted(brokers_involved(moves) - set(named)) if named and policy.throttle == "none" else []
    if bare:
        also = f" (and {len(bare) - 1} more)" if len(bare) > 1 else ""
        raise UsageError(
            f"The throttle says nothing of broker {bare[0]}{also}, which sends or receives in this plan.",
            hint=f"Add {bare[0]}=RATE, or default=RATE (or default=auto) for all that are not named.",
        )


def max_rate(run: Run, broker: int) -> int:
    """The most that ``auto`` gives a broker: its headroom where that is known, and never under its minimum."""
    policy = run.policy
    most = min(policy.auto_max_bytes_per_s, run.headroom.get(broker, policy.auto_max_bytes_per_s))
    return max(min_rate(run, broker), most)


def min_rate(run: Run, broker: int) -> int:
    """The least that ``auto`` gives a broker: what its copies in progress need to keep up with producers, or more."""
    return max(run.policy.auto_min_bytes_per_s, run.needed.get(broker, 0))


def start_rate(run: Run, broker: int) -> Start | None:
    """The rate that a broker begins with and what it was chosen by; None where this run sets none."""
    policy = run.policy
    if not policy.follows(broker):
        rate = policy.rate(broker)
        return None if rate is None else Start(rate, Basis.STATED)
    traffic = run.traffic.get(broker)
    left = run.headroom.get(broker) if traffic is not None else None
    known = Known(headroom=left, traffic=traffic, copies=run.copies.get(broker))
    bounds = Bounds(
        minimum=min_rate(run, broker),
        maximum=max_rate(run, broker),
        cautious=policy.auto_start_bytes_per_s,
        small_rate=policy.auto_small_copy_bytes_per_s,
        small_bytes=policy.small_bytes,
    )
    return start(known, bounds)


def _rate(run: Run, broker: int) -> int | None:
    if broker in run.rates:
        rate = run.rates[broker]
    elif (begins := start_rate(run, broker)) is None:
        return None
    else:
        rate = begins.bytes_per_s
    return max(min_rate(run, broker), min(rate, max_rate(run, broker))) if run.policy.follows(broker) else rate


def measure_traffic(run: Run, state: ClusterState, growth: Mapping[TopicPartition, float]) -> Run:
    """The run with the traffic and headroom of each broker by a measurement.

    The headroom is the most that a broker may be given; one of which not all is known has no traffic, and begins cautiously.  Only what a run knows before its first copy decides where its rates start; the headroom is followed all the time.
    """
    if not run.policy.auto:
        return run
    network = run.policy.network_bytes_per_s
    if network is not None:
        run = replace(
            run, headroom=headroom(state, growth, network_bytes_per_s=network, share=run.policy.network_fraction)
        )
    if run.traffic:
        return run
    blind = brokers_of_unknown_growth(state, growth)
    return replace(run, traffic={b: rate for b, rate in busiest_side(state, growth).items() if b not in blind})


def measure_late(run: Run, growth: Mapping[TopicPartition, float]) -> Run:
    """The run with what a later reading tells of partitions that the measurement before the first copy did not."""
    told = {name: growth[name] for name in run.unmeasured & growth.keys()}
    return replace(run, inbound={**run.inbound, **told}, unmeasured=run.unmeasured - told.keys()) if told else run


def needed_rates(run: Run, state: ClusterState) -> dict[int, int]:
    """Bytes/s that each broker needs for its moves in progress together to keep up with what producers write."""
    inbound: defaultdict[int, float] = defaultdict(float)
    sending: defaultdict[int, float] = defaultdict(float)
    for name, m in run.moves.items():
        rate = run.inbound.get(name, 0.0)
        if rate <= 0 or not isinstance(m.stage, HoldsThrottle) or name not in state.index:
            continue
        for broker in m.move.adding:
            inbound[broker] += rate
        sending[int(state.partitions.leader[state.index[name]])] += rate * len(m.move.adding)
    return {b: least(max(inbound[b], sending[b])) for b in inbound.keys() | sending.keys()}
