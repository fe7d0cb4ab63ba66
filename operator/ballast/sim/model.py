"""What a simulated cluster is made of: brokers, partitions, copies, and the settings of the physics.

Only data and the questions that need nothing but the data.  Bytes are floats inside (a tick moves fractions of one) and
whole numbers wherever a port shows them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ballast.core.cluster import NO_LEADER, TopicPartition

MESSAGE_BYTES = 1024
"""Every simulated record has this size, so that offsets can be told from bytes."""


SEGMENT_BYTES = 1 << 30
"""``segment.bytes`` where a topic has none of its own."""


class BrokerHealth(enum.Enum):
    """What has become of a broker's process."""

    UP = "up"
    DOWN = "down"
    """Connections are refused at once."""
    FROZEN = "frozen"
    """Connections stay open and the broker does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """How fast things happen in the simulated cluster."""

    tick_s: float = 0.5
    """Longest step of the mechanics, in seconds, while anything is being copied."""
    call_s: float = 0.02
    """What one answered call takes, in seconds."""
    timeout_s: float = 5.0
    """What a call to a frozen broker or an absent controller takes before it is given up, in seconds."""
    metadata_lag_s: float = 0.5
    """How long a change takes from the controller to what metadata says, in seconds."""
    session_timeout_s: float = 6.0
    """How long a broker may be silent before it is fenced, in seconds."""
    replica_lag_s: float = 30.0
    """How long a follower may lag before it leaves the ISR (``replica.lag.time.max.ms``), in seconds."""
    refuse_down_targets: bool = False
    """ZooKeeper controllers refuse a down destination; KRaft's accept it and the move stays pending."""
    auto_leader_rebalance_s: float | None = None
    """The controller elects preferred leaders by itself this often; None means that it never does."""


METADATA_DIR: Final = 0
"""The index of the log dir that holds the metadata log: the first one, as in KRaft by default."""


@dataclass(slots=True, kw_only=True)
class SimBroker:
    """One broker: its place, its network card, its disks and its state."""

    id: int
    rack: str | None = None
    nic_bytes_per_s: float = 100e6
    """In each direction."""
    dir_bytes: tuple[float, ...] = (1e12,)
    """Size of each log dir."""
    dir_paths: tuple[str, ...] = ()
    """Their paths; made up where none are given."""
    other_bytes: tuple[float, ...] = ()
    """What lies in each log dir and is no simulated replica; nothing where it is left out."""
    cordoned: frozenset[int] = frozenset()
    """Indexes of log dirs that take no new replicas (KIP-1066)."""
    failed: set[int] = field(default_factory=set)
    """Indexes of log dirs that the broker has taken offline, as it does with one that is full or broken, until its restart."""
    configs: dict[str, str] = field(default_factory=dict)
    """Dynamic configs of this broker."""
    static_configs: dict[str, str] = field(default_factory=dict)
    """What stands in its ``server.properties``."""
    health: BrokerHealth = BrokerHealth.UP
    fenced: bool = False
    """The controller has given it up; follows ``health`` after the session timeout."""
    silent_since_s: float | None = None
    """When its last heartbeat was, while it sends none."""

    @property
    def up(self) -> bool:
        """Its process answers and copies."""
        return self.health is BrokerHealth.UP

    @property
    def registered(self) -> bool:
        """The controller counts it as alive."""
        return not self.fenced

    @property
    def can_run(self) -> bool:
        """The log dir with its metadata log, the first one, has not failed."""
        return METADATA_DIR not in self.failed

    def serves(self, copy: Copy) -> bool:
        """Whether it is registered and this copy is not in a failed log dir."""
        return self.registered and copy.log_dir not in self.failed

    def setting(self, key: str, cluster_configs: Mapping[str, str]) -> str | None:
        """The value in force: the broker's own, else the cluster-wide default, else the static one; None where none is set."""
        layers = (self.configs, cluster_configs, self.static_configs)
        return next((configs[key] for configs in layers if key in configs), None)

    def dir_path(self, index: int) -> str:
        """The path that this log dir shows."""
        return self.dir_paths[index] if self.dir_paths else f"/data/{index}"

    def others(self, index: int) -> float:
        """Bytes in this log dir that are no simulated replica."""
        return self.other_bytes[index] if self.other_bytes else 0.0


@dataclass(slots=True)
class Copy:
    """One replica's bytes on one broker."""

    log_dir: int
    end_bytes: float = 0.0
    """Log end."""
    start_bytes: float = 0.0
    """Where the log on this broker's disk begins; what lies before it is in remote storage (KIP-405)."""
    future_dir: int | None = None
    """The log dir it is being moved to within the broker."""
    future_bytes: float = 0.0

    @property
    def size_bytes(self) -> float:
        """What lies on this broker's disk, as DescribeLogDirs tells it."""
        return self.end_bytes - self.start_bytes

    def drop_before(self, start_bytes: float) -> None:
        """Delete local segments before this place, or begin there: nothing of it is on this disk afterwards."""
        self.start_bytes = max(self.start_bytes, start_bytes)
        self.end_bytes = max(self.end_bytes, self.start_bytes)


@dataclass(slots=True)
class SimPartition:
    """The controller's record of a partition, its copies and its load."""

    topic: str
    number: int
    replicas: list[int]
    isr: list[int]
    leader: int
    copies: dict[int, Copy]
    leader_epoch: int = 0
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    end_bytes: float = 0.0
    """Log end of the present leader."""
    acked_bytes: float = 0.0
    """What producers with ``acks=all`` were told is safe; a leader with less than this has lost data."""
    inbound_bytes_per_s: float = 0.0
    refused_s: float = 0.0
    """For how long such producers were refused for want of replicas in sync."""
    lost_bytes: float = 0.0
    """Acked bytes that an unclean election threw away."""
    name: TopicPartition = field(init=False)

    def __post_init__(self) -> None:
        self.name = TopicPartition(self.topic, self.number)

    @property
    def target(self) -> list[int]:
        """The assignment it has or is on its way to."""
        return [b for b in self.replicas if b not in self.removing]

    @property
    def reassigning(self) -> bool:
        """A reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def led(self) -> bool:
        """A broker leads it."""
        return self.leader != NO_LEADER

    def lagging(self) -> Iterator[tuple[int, Copy]]:
        """The replicas that are not in sync, with their copies."""
        for broker in self.replicas:
            if broker not in self.isr:
                yield broker, self.copies[broker]


@dataclass(slots=True)
class SimTopic:
    """A topic's own configs and its partitions."""

    name: str
    topic_id: str
    configs: dict[str, str] = field(default_factory=dict)
    partitions: dict[int, SimPartition] = field(default_factory=dict)

    @property
    def min_isr(self) -> int:
        """``min.insync.replicas``."""
        return int(self.configs.get("min.insync.replicas", "1"))

    @property
    def tiered(self) -> bool:
        """Segments are uploaded as soon as they are rolled (``remote.storage.enable``)."""
        return self.configs.get("remote.storage.enable") == "true"

    def uploaded_bytes(self, end_bytes: float) -> float:
        """How far a log that ends here is in remote storage: whole segments only."""
        segment = float(self.configs.get("segment.bytes", SEGMENT_BYTES))
        return end_bytes // segment * segment

    def local_start_bytes(self, end_bytes: float) -> float:
        """Where a log that ends here begins on disk: uploaded segments go while ``local.retention.bytes`` are left."""
        keep = float(self.configs.get("local.retention.bytes", "inf"))
        return self.uploaded_bytes(max(end_bytes - keep, 0.0))
