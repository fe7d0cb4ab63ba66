"""The last look at partitions right before replica lists are sent for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.executor.machine.observation import target
from ballast.executor.machine.run import MoveRun
from ballast.executor.machine.transitions import Effect, EffectKind
from ballast.ports.cluster import OK, Cluster, Outcome, PartitionState


def recheck(
    cluster: Cluster,
    effect: Effect,
    moves: Mapping[TopicPartition, MoveRun],
    state: ClusterState | None,
    ids: Mapping[str, str],
) -> tuple[Mapping[TopicPartition, tuple[int, ...] | None], dict[TopicPartition, Outcome]]:
    """Ask the cluster once more: judging lies seconds back where throttles were set since.

    Requests name a topic, not its id: one that was deleted and recreated since would be moved, or its move cancelled.  A move
    that another process has started meanwhile would be overridden; one to the very same replicas is what is asked for, perhaps by us,
    in a request whose answer was an error: it is taken for done.  Where the cluster cannot guard the replica count for us
    (KIP-860), the replicas are looked at again as well.  ``ids`` are those of topics that were read a moment ago.

    Answers what is to be sent, and the outcomes of all else.
    """
    counts = effect.kind is EffectKind.SUBMIT and state is not None and "reassign-v1" not in state.api
    unsure = [n for n in effect.targets if counts or ids.get(n.topic) != moves[n].topic_id]
    present = cluster.partitions(unsure) if unsure else {}
    known = {
        n: _change_outcome("another topic has its name now") for n, s in present.items() if _is_another(moves[n], s)
    }
    if effect.kind is not EffectKind.CANCEL:
        for name, going in _list_targets(cluster, effect.targets).items():
            same = going == effect.targets[name]
            known.setdefault(
                name, OK if same else _change_outcome(f"a foreign reassignment is moving it to {list(going)}")
            )
    if counts:
        for name, seen in present.items():
            move = moves[name].move
            if set(seen.replicas) not in (set(move.old), set(move.new)):
                known.setdefault(name, _change_outcome(f"its replicas are {list(seen.replicas)} now"))
    return {n: t for n, t in effect.targets.items() if n not in known}, known


def _list_targets(cluster: Cluster, names: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Where those of them that are being moved are going."""
    return {n: target(r) for n, r in cluster.reassignments().items() if n in names}


def _is_another(m: MoveRun, seen: PartitionState) -> bool:
    return None not in (m.topic_id, seen.topic_id) and m.topic_id != seen.topic_id


def _change_outcome(how: str) -> Outcome:
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
