"""What ``status``, ``topics``, ``leaders``, ``drains`` and ``throttles`` tell of a cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from ballast.cli.documents.base import Document, Known, Moment, OneOf, Part, Partition
from ballast.core.cluster import Gap, LogDir
from ballast.core.cluster.balancers import OtherBalancer
from ballast.core.cluster.drain import Drain
from ballast.core.cluster.topic_description import ReplicaDescription
from ballast.core.leadership.skew import TopicSkew
from ballast.core.plan.file import CrossRackFigures


class Cluster(Part):
    """The cluster as a whole."""

    id: str
    kafka_version: str | None
    mode: Annotated[str, OneOf("kraft", "zookeeper")]
    controller_id: Known
    """Null while there is none; on KRaft it may be a node that is no broker."""
    topics: int
    internal_topics: int
    deleting_topics: list[str]
    partitions: int
    replicas: int


class Imbalance(Part):
    """Leader imbalance over the whole cluster."""

    threshold_ratio: float
    threshold_origin: Annotated[str, OneOf("settings", "cluster", "default")]
    """Where it comes from: the flag or the settings, the cluster's ZooKeeper controller, or Kafka's default."""
    ratio: float
    brokers_over_threshold: list[int]


class Skew(Part):
    """A resource of which some broker has more or less than its range, as ``ballast plan balance`` judges it."""

    resource: str
    brokers_out_of_range: list[int]


class CrossRack(CrossRackFigures):
    """Bytes per second from one rack to another, now."""

    currency: str


class Broker(Part):
    """A broker that the cluster or any replica list names."""

    id: int
    rack: str | None
    host: str | None
    """Null for a broker that is down."""
    port: int | None
    alive: bool
    reachable: bool
    """False for a broker that is down, and for one that the cluster still lists as alive and that did not answer."""
    controller: bool
    cordoned: bool
    replicas: int
    leaders: int
    preferred_leaders: int
    preferred_not_led: int
    imbalance_ratio: float
    over_threshold: bool
    out_of_sync_replicas: int
    offline_replicas: int
    replica_bytes: Known
    """Without the replicas counted in ``replicasOfUnknownSize``; null when the broker reported nothing."""
    replicas_of_unknown_size: int
    disk_total_bytes: Known
    disk_used_bytes: Known
    log_dirs: tuple[LogDir, ...]


class Problems(Part):
    """Partitions with problems; one may be in several lists."""

    offline: list[Partition]
    under_min_isr: list[Partition]
    under_replicated: list[Partition]
    min_isr_unknown: list[Partition]
    """They lack a replica, and their topic's ``min.insync.replicas`` is not known."""


class Moving(Partition):
    """A reassignment in progress."""

    replicas: list[int]
    """The union of old and new."""
    adding: list[int]
    removing: list[int]
    copied_bytes: Known
    """What lies on the brokers in ``adding``."""
    total_bytes: Known


class ThrottleSetting(Part):
    """A throttle that is set, and what needs it."""

    resource_type: Annotated[str, OneOf("broker", "topic")]
    resource_name: str
    """Empty: every broker."""
    key: str
    value: str
    stale: bool
    detail: str


class JournalFate(Part):
    """What became of Ballast's journal on this cluster."""

    state: Annotated[str, OneOf("none", "present", "deleted", "recreated-empty", "unknown")]
    recreated_at_ms: Moment | None


class Status(Document):
    """``ballast status``; with ``--watch`` one a line."""

    kind: Literal["Status"] = "Status"
    taken_at_ms: Moment
    cluster: Cluster
    needs_attention: bool
    leader_imbalance: Imbalance
    skew: list[Skew]
    cross_rack: CrossRack | None
    """Null where brokers name no racks, or what producers write is not known (``--store``)."""
    brokers: list[Broker]
    partitions_with_problems: Problems
    leaves_isr_after_ms: int | None
    """A follower that has stopped fetching is out of every ISR after this long at most: 1.5 times the largest
    ``replica.lag.time.max.ms`` of the brokers; null where none reported it."""
    reassigning: list[Moving]
    throttles: list[ThrottleSetting]
    other_balancers: tuple[OtherBalancer, ...]
    drains: tuple[Drain, ...] | None
    """Null where Ballast's journal is there and did not answer."""
    journal: JournalFate
    gaps: tuple[Gap, ...]


class Drains(Document):
    """``ballast drains``."""

    kind: Literal["Drains"] = "Drains"
    drains: tuple[Drain, ...]


class TopicPartition(Part):
    """A partition of the topic."""

    partition: int
    leader: Known
    """Null while there is none."""
    preferred_leader: Known
    assigned_replicas: list[int]
    in_sync_replicas: list[int]
    out_of_sync_replicas: list[int]
    reassigning: bool
    earliest_offset: Known
    """Of a tiered topic it may be in remote storage."""
    local_log_start_offset: Known
    """The first offset on the leader's disk; the earliest offset where the topic is not tiered."""
    high_watermark: Known
    leader_epoch: Known
    controller_epoch: Known
    leaves_isr_after_ms: int | None
    size_bytes: Known
    replicas: tuple[ReplicaDescription, ...]


class Topic(Document):
    """``ballast topics describe``."""

    kind: Literal["Topic"] = "Topic"
    topic: str
    topic_id: str | None
    """Null on clusters before Kafka 2.8."""
    internal: bool
    deleting: bool
    min_isr: Known
    configs: dict[str, str | None]
    """What is set on the topic itself."""
    partitions: list[TopicPartition]


class ListedTopic(Part):
    """A topic as a whole."""

    topic: str
    topic_id: str | None
    """Null on clusters before Kafka 2.8."""
    internal: bool
    deleting: bool
    min_isr: Known
    partitions: int
    min_replication_factor: Known
    """The smallest of its partitions, replicas being added left out; null without partitions."""
    max_replication_factor: Known
    replica_bytes: Known
    """All replicas, without those counted in ``replicasOfUnknownSize``; null when no size is known."""
    replicas_of_unknown_size: int
    under_replicated: int
    """Partitions, as are ``offline`` and ``reassigning``."""
    offline: int
    reassigning: int


class Topics(Document):
    """``ballast topics list``."""

    kind: Literal["Topics"] = "Topics"
    topics: list[ListedTopic]


class NewPartition(Part):
    """A partition that is created."""

    partition: int
    replicas: list[int]


class TopicPlacement(Document):
    """``ballast topics create`` and ``ballast topics add-partitions``: the new partitions."""

    kind: Literal["TopicPlacement"] = "TopicPlacement"
    topic: str
    partitions: list[NewPartition]
    algorithm: str
    """Kafka's algorithm, or ``manual``."""
    seed: int | None
    """The same seed gives the same placement; null where nothing was drawn."""
    dry_run: bool
    """True where nothing is created."""


class Share(Part):
    """Of what a broker or a rack is the preferred leader."""

    partitions: int
    partitions_ratio: float
    """1 is its part if alive brokers shared equally."""
    bytes: int
    """Partitions of unknown size count as 0 here, see ``unknownSizes``."""
    bytes_ratio: float


class BrokerShare(Share):
    """A broker's part, and how many of its partitions others lead."""

    broker: int
    preferred_not_led: int
    imbalance_ratio: float


class RackShare(Share):
    """A rack's part."""

    rack: str


class Leaders(Document):
    """``ballast leaders``."""

    kind: Literal["Leaders"] = "Leaders"
    brokers: list[BrokerShare]
    racks: list[RackShare]
    topics: tuple[TopicSkew, ...]
    unknown_sizes: int
    """Partitions without a known size."""


class Throttle(Part):
    """A throttle setting, and who needs it."""

    resource_type: Annotated[str, OneOf("broker", "topic")]
    resource_name: str
    key: str
    value: str
    stale: bool
    set_by_ballast: bool
    set_by_hand: bool
    """Set with ``ballast throttles set``."""
    detail: str


class Throttles(Document):
    """``ballast throttles``."""

    kind: Literal["Throttles"] = "Throttles"
    throttles: list[Throttle]


class ThrottlesRemoved(Document):
    """``ballast throttles --clean``."""

    kind: Literal["ThrottlesRemoved"] = "ThrottlesRemoved"
    removed: list[Throttle]
