"""A cluster that still has ZooKeeper, behind the same port.

Brokers from Kafka 2.4 on are spoken to by their own requests.  Older ones are changed through the admin znodes, and their
leaders and ISRs are read where they are true.

Older brokers propagate an ISR change after 5 quiet seconds or after 60, so their metadata may praise a replica that has left.
Here the state znodes answer for every partition that is asked about, by pipelined reads and without a watch on each; the
notifications that brokers write of ISR changes are watched and tell when it is worth reading again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ballast.adapters.zookeeper.admin import ZooKeeperWrites
from ballast.adapters.zookeeper.isr import IsrWatch
from ballast.core.cluster import NO_LEADERSHIP_RECORD, ClusterState, ConfigValue, TopicPartition
from ballast.core.cluster.log_ends import LocalStarts, LogEnds
from ballast.core.throttles import RATES
from ballast.errors import BallastError
from ballast.ports.cluster import (
    OK,
    BrokerLogs,
    Cluster,
    ConfigChange,
    ConfigResource,
    Epochs,
    Offsets,
    Outcome,
    PartitionState,
    Reassignment,
)
from ballast.ports.time import Clock

DEFAULT_SOURCE: Final = "DYNAMIC_DEFAULT_BROKER_CONFIG"
BROKER_SOURCE: Final = "DYNAMIC_BROKER_CONFIG"


class ZooKeeperCluster:
    """``Cluster`` with moves, elections and ISRs of old brokers taken from and given to ZooKeeper."""

    def __init__(
        self, inner: Cluster, writes: ZooKeeperWrites, isr_watch: IsrWatch, *, is_old: Callable[[], bool]
    ) -> None:
        self._inner = inner
        self._writes = writes
        self._isr_watch = isr_watch
        self._is_old = is_old
        """Whether the brokers lack AlterPartitionReassignments; asked on first use, since asking connects."""

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        """Read the whole cluster; on old brokers leaders, ISRs and hidden rates come from the znodes."""
        state = self._inner.snapshot(log_dirs=log_dirs, configs=configs, patient=patient)
        if not self._is_old():
            return state
        state = with_true_isr(state, self._writes.partitions(state.index))
        if not configs:
            return state
        default = ConfigResource("broker", "")
        own = {ConfigResource("broker", str(b)): dict(entries) for b, entries in state.broker_configs.items()}
        told = self._with_rates({**own, default: dict(state.cluster_configs)})
        return replace(state, broker_configs={int(r.name): told[r] for r in own}, cluster_configs=told[default])

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Every move in progress."""
        return self._inner.reassignments()

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """The present state of some partitions."""
        return self._writes.partitions(names) if self._is_old() else self._inner.partitions(names)

    def await_change(self, clock: Clock, seconds: float) -> bool:
        """Wait this long, on old brokers less when they tell that ISRs have changed."""
        try:
            old = self._is_old()
        except BallastError:
            old = False  # The look that follows meets the same trouble, and tells it.
        waits = self._isr_watch.wait if old else self._inner.await_change
        return waits(clock, seconds)

    def log_dirs(self, brokers: Collection[int]) -> Mapping[int, BrokerLogs]:
        """Log dirs of some brokers."""
        return self._inner.log_dirs(brokers)

    def epochs(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Epochs]:
        """Leader and controller epochs, as the state znodes hold them."""
        return self._writes.epochs(names)

    def log_ends(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """The log end of replicas, each told by its own broker."""
        return self._inner.log_ends(replicas)

    def local_starts(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LocalStarts:
        """The first offset that each broker has on its own disk."""
        return self._inner.local_starts(replicas)

    def offsets(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Offsets]:
        """Earliest offset and high watermark."""
        return self._inner.offsets(names)

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """The entries that are set; rates that old brokers hide come from their znodes."""
        told = {r: dict(entries) for r, entries in self._inner.configs(resources).items()}
        return self._with_rates(told) if self._is_old() else told

    def _with_rates(
        self, told: Mapping[ConfigResource, dict[str, ConfigValue]]
    ) -> dict[ConfigResource, dict[str, ConfigValue]]:
        """Old brokers do not know their own throttle rates as configs: they show them as secrets, without a value."""
        brokers = [r for r in told if r.kind == "broker"]
        if not brokers:
            return dict(told)
        znodes = self._writes.broker_entries({"", *(r.name for r in brokers)})
        default = {k: ConfigValue(v, DEFAULT_SOURCE) for k, v in znodes.get("", {}).items() if k in RATES}
        filled = dict(told)
        for resource in brokers:
            own = znodes.get(resource.name, {}) if resource.name else {}
            plain = {k: v for k, v in told[resource].items() if k not in RATES or v.value is not None}
            mine = {k: ConfigValue(v, BROKER_SOURCE) for k, v in own.items() if k in RATES}
            filled[resource] = plain | default | mine
        return filled

    def close(self) -> None:
        """Close every connection and thread."""
        self._inner.close()

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Start moves, or cancel where the target is None."""
        doer = self._writes if self._is_old() else self._inner
        return doer.alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Hold elections."""
        doer = self._writes if self._is_old() else self._inner
        return doer.elect_leaders(names, unclean=unclean)

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Apply incremental changes; old brokers list twice what is appended twice, and subtract it once."""
        if not self._is_old():
            return self._inner.alter_configs(changes)
        wanted = self._without_present(changes)
        untouched = {c.resource for c in changes} - {c.resource for c in wanted}
        return {**dict.fromkeys(untouched, OK), **(self._inner.alter_configs(wanted) if wanted else {})}

    def _without_present(self, changes: Collection[ConfigChange]) -> list[ConfigChange]:
        """The changes without the entries that stand already; an append that adds nothing is left out."""
        appending = {c.resource for c in changes if c.operation == "append"}
        stands = self._inner.configs(appending) if appending else {}
        out = []
        for change in changes:
            entry = stands.get(change.resource, {}).get(change.key) if change.operation == "append" else None
            if entry is None:
                out.append(change)
                continue
            present = set((entry.value or "").split(","))
            added = [e for e in (change.value or "").split(",") if e not in present]
            if added:
                # To an empty list old brokers append after a comma, which they then refuse.
                operation = "append" if entry.value else "set"
                out.append(replace(change, operation=operation, value=",".join(added)))
        return out

    def alter_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Outcome]:
        """Move replicas to another log dir of the same broker."""
        return self._inner.alter_log_dirs(targets)

    def create_topic(
        self, topic: str, assignment: Mapping[int, tuple[int, ...]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with this explicit assignment."""
        self._inner.create_topic(topic, assignment, configs)

    def create_partitions(self, topic: str, total: int, assignment: Mapping[int, tuple[int, ...]]) -> None:
        """Grow a topic."""
        self._inner.create_partitions(topic, total, assignment)


def with_true_isr(state: ClusterState, truth: Mapping[TopicPartition, PartitionState]) -> ClusterState:
    """The same picture with other leaders and ISRs; a partition whose truth is not known keeps what metadata said."""
    p = state.partitions
    leader, in_sync = p.leader.copy(), p.in_sync.copy()
    for name, row in state.index.items():
        known = truth.get(name)
        if known is not None and known.leader != NO_LEADERSHIP_RECORD:
            run = slice(p.start[row], p.start[row + 1])
            leader[row] = known.leader
            in_sync[run] = np.isin(p.replica[run], known.isr)
    return replace(state, partitions=replace(p, leader=leader, in_sync=in_sync))
