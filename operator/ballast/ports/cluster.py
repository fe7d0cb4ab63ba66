"""A cluster as the inside sees it: read it, and change it.

Both halves are implemented by the real adapters and by ``sim``, and one contract suite (``tests/contract``) holds them to
each other.  Methods raise ``BallastError`` subclasses only: ``Unavailable`` when the cluster does not answer,
``AuthorizationFailed`` when it refuses us as a whole.  What failed for one partition is an ``Outcome``, not an exception.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from ballast.core.cluster import UNKNOWN, ClusterState, ConfigValue, LogDir, TopicPartition
from ballast.core.cluster.log_ends import LocalStarts, LogEnds
from ballast.ports.time import Clock


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the cluster said about one partition or resource."""

    ok: bool
    code: str = ""
    """Kafka's error name in capitals, for example ``NO_REASSIGNMENT_IN_PROGRESS``; empty when ok."""
    message: str = ""
    """The broker's own sentence where the protocol carries one."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


OK = Outcome(ok=True)


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move in progress: ``replicas`` is the union."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What matters about one partition while it is being changed."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    topic_id: str | None = None
    """The topic's id as Kafka writes it; None where the cluster has none (before 2.8)."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Which leadership a partition is in."""

    leader: int
    """Goes up with each new leader; ``UNKNOWN`` where the brokers do not tell it."""
    controller: int = UNKNOWN
    """The epoch of the controller that wrote the partition's state znode; only clusters with ZooKeeper have it."""


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica in one log dir of one broker."""

    log_dir: str
    size_bytes: int
    offset_lag: int
    """What DescribeLogDirs says. Of a current replica it is always 0, whatever the truth: see ``log_ends``."""
    is_future: bool = False


@dataclass(frozen=True, slots=True)
class BrokerLogs:
    """A broker's log dirs and the replicas in them."""

    dirs: tuple[LogDir, ...]
    replicas: Mapping[TopicPartition, tuple[ReplicaLog, ...]]


@dataclass(frozen=True, slots=True)
class Offsets:
    """A partition's offsets as its leader gives them; ``UNKNOWN`` where it did not."""

    earliest: int
    """Of a tiered topic it may be in remote storage: see ``local_starts``."""
    high_watermark: int


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """``topic`` and its name, or ``broker`` and its id (an empty name is the cluster-wide default)."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One incremental change: ``set``, ``delete``, ``append`` or ``subtract``."""

    resource: ConfigResource
    key: str
    operation: str
    value: str | None = None


class ClusterReader(Protocol):
    """Reading never changes the cluster."""

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        """Read the whole cluster; brokers that do not answer leave gaps.

        Without ``patient`` it ends soon where no server lets us in: for callers that read again by themselves, and show it.
        """
        ...

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Every move in progress, Ballast's and foreign ones."""
        ...

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """The present state of some partitions; those that do not exist are absent."""
        ...

    def await_change(self, clock: Clock, seconds: float) -> bool:
        """Wait this long, or less where the cluster tells by itself that ISRs have changed: True then; never raises."""
        ...

    def log_dirs(self, brokers: Collection[int]) -> Mapping[int, BrokerLogs]:
        """Log dirs of some brokers, asked side by side; those that do not answer are absent."""
        ...

    def epochs(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Epochs]:
        """Leader and controller epochs of some partitions; those that do not exist are absent."""
        ...

    def log_ends(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """The log end of replicas, by the brokers that hold them, each told by that broker itself, side by side.

        A broker that does not answer is absent, and so is a replica of which a broker has none or which we may not describe.
        """
        ...

    def local_starts(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LocalStarts:
        """The first offset that replicas have on their brokers' disks, told as ``log_ends`` are.

        It is the earliest offset but for tiered topics (KIP-405).  Brokers before 3.6 do not tell it.
        """
        ...

    def offsets(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Offsets]:
        """Earliest offset and high watermark."""
        ...

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """The entries that are set (not defaults) on some resources."""
        ...

    def close(self) -> None:
        """Close every connection and thread."""
        ...


class ClusterWriter(Protocol):
    """Every call that changes the cluster."""

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Start moves, or cancel where the target is None; answers per partition.

        Going back while a move is in progress is a *cancel*, never a new target: KRaft (seen on 4.3, not on 3.9) takes the old list as a
        target and then never ends the move, with the same broker both adding and removing, until it is cancelled.
        """
        ...

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Hold elections; ``ELECTION_NOT_NEEDED`` counts as ok."""
        ...

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Apply incremental changes, all of one resource together."""
        ...

    def alter_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Outcome]:
        """Move replicas (partition, broker) to another log dir of the same broker."""
        ...

    def create_topic(
        self, topic: str, assignment: Mapping[int, tuple[int, ...]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with this explicit assignment."""
        ...

    def create_partitions(self, topic: str, total: int, assignment: Mapping[int, tuple[int, ...]]) -> None:
        """Grow a topic to ``total`` partitions, the new ones placed as given."""
        ...


class Cluster(ClusterReader, ClusterWriter, Protocol):
    """One cluster, read and written."""
