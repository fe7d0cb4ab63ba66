"""The throttle of each broker, as a run sets it now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.headroom import headroom
from ballast.core.plan import Move
from ballast.core.throttles import brokers_involved
from ballast.errors import UsageError
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.run import Run


def broker_rates(run: Run, brokers: Iterable[int]) -> dict[int, int]:
    """Bytes/s of each broker; one for which this run sets none is left out."""
    found = {b: _rate(run, b) for b in brokers}
    return {b: rate for b, rate in found.items() if rate is not None}


def require_rates(policy: ExecutionPolicy, moves: Iterable[Move], brokers: Collection[int]) -> None:
    """Refuse rates by broker that name a stranger, or leave a broker of these moves without any."""
    named = policy.throttle_per_broker
    strangers = sorted(set(named) - set(brokers))
    if strangers:
        raise UsageError(
            f"The throttle names broker {strangers[0]}, and the cluster has {', '.join(map(str, sorted(brokers)))}.",
            hint="Leave it out, or correct the id.",
        )
    bare = sorted(brokers_involved(moves) - set(named)) if named and policy.throttle_bytes_per_s is None else []
    if bare and not policy.throttle_auto:
        also = f" (and {len(bare) - 1} more)" if len(bare) > 1 else ""
        raise UsageError(
            f"The throttle says nothing of broker {bare[0]}{also}, which sends or receives in this plan.",
            hint=f"Add {bare[0]}=RATE, or default=RATE for all that are not named.",
        )


def ceiling(run: Run, broker: int) -> int:
    """The most that ``throttle_auto`` gives a broker: its headroom where that is known, and never under the floor."""
    policy = run.policy
    most = min(policy.auto_ceiling_bytes_per_s, run.headroom.get(broker, policy.auto_ceiling_bytes_per_s))
    return max(policy.auto_floor_bytes_per_s, most)


def _rate(run: Run, broker: int) -> int | None:
    policy = run.policy
    if not policy.throttle_auto:
        return run.rates.get(broker, policy.rate(broker))
    begins = policy.rate(broker)
    if begins is None:
        room = run.headroom.get(broker)
        begins = policy.auto_floor_bytes_per_s * 8 if room is None else room // 2
    rate = run.rates.get(broker, max(policy.auto_floor_bytes_per_s, begins))
    return min(rate, ceiling(run, broker))


def with_headroom(run: Run, state: ClusterState, growth: Mapping[TopicPartition, float]) -> Mapping[int, int]:
    """The headroom of each broker by a new measurement; unknown, and so empty, where no link capacity is stated."""
    link = run.policy.link_bytes_per_s
    if not run.policy.throttle_auto or link is None:
        return run.headroom
    return headroom(state, growth, link_bytes_per_s=link, share=run.policy.link_share)
