"""The last look at partitions right before replica lists are sent for them."""

from __future__ import annotations

from collections.abc import Mapping

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.executor.observation import target
from ballast.executor.run import MoveRun
from ballast.executor.transitions import Effect, EffectKind
from ballast.ports.cluster import OK, Cluster, Outcome


def recheck(
    cluster: Cluster, effect: Effect, moves: Mapping[TopicPartition, MoveRun], state: ClusterState | None
) -> tuple[Mapping[TopicPartition, tuple[int, ...] | None], dict[TopicPartition, Outcome]]:
    """Ask the controller once more: judging lies seconds back where throttles were set since.

    A move that somebody has started meanwhile would be overridden.  Where the cluster cannot guard the replica count for
    us (KIP-860), the replicas are looked at again as well.
    """
    if effect.kind is EffectKind.CANCEL:
        return effect.targets, {}
    listed = cluster.reassignments()
    refused = {
        n: _changed(f"somebody is moving it to {list(target(listed[n]))}") for n in effect.targets if n in listed
    }
    if effect.kind is EffectKind.SUBMIT and state is not None and "reassign-v1" not in state.api:
        for name, seen in cluster.partitions(list(effect.targets)).items():
            move = moves[name].move
            if set(seen.replicas) not in (set(move.old), set(move.new)):
                refused.setdefault(name, _changed(f"its replicas are {list(seen.replicas)} now"))
    return {n: t for n, t in effect.targets.items() if n not in refused}, refused


def _changed(how: str) -> Outcome:
    """The answer for a partition that is no longer as it was judged; nothing is sent for it."""
    return Outcome(ok=False, code="CHANGED_MEANWHILE", message=how)


def first_failures(placed: Mapping[tuple[TopicPartition, int], Outcome]) -> dict[TopicPartition, Outcome]:
    """What came of each partition's replicas that were sent to log dirs: the first failure, else ok."""
    out: dict[TopicPartition, Outcome] = {}
    for (name, _), outcome in placed.items():
        # A replica that is not there yet is created in the dir asked for: the broker remembers (REPLICA_NOT_AVAILABLE).
        if not outcome.ok and outcome.code != "REPLICA_NOT_AVAILABLE":
            out.setdefault(name, outcome)
    return out or dict.fromkeys((name for name, _ in placed), OK)
