"""What the HTTP API answers of the cluster in figures: now, and over the last day."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ballast.core.document_types import Known, OneOf
from ballast.daemon.web.answers.base import Answer, Moment, Pair, Part, Text


class LogDirError(Pair):
    """A log dir that its broker reports with an error."""

    path: str
    error: str
    """Kafka's name: ``KAFKA_STORAGE_ERROR`` is a failed disk."""


class Broker(Part):
    """One broker in figures; bytes are null where it did not say."""

    id: int
    rack: str | None
    alive: bool
    reachable: bool
    """It answered when it was last asked for its log dirs: one that does not may still be alive to the cluster."""
    log_dir_errors: list[LogDirError]
    controller: bool
    cordoned: bool
    draining: bool
    """The settings or a person drain it: it has no share of its own, and is not judged by the bands."""
    replicas: int
    leaders: int
    preferred_leaders: int
    """Partitions whose preferred leader it is."""
    preferred_not_led: int
    """Of these, those that another broker leads."""
    imbalance_ratio: float
    """``preferredNotLed`` as a part of ``preferredLeaders``."""
    over_threshold: bool
    replica_bytes: Known
    disk_total_bytes: Known
    disk_used_bytes: Known
    """By replicas or by anything else."""
    leader_bytes: Known


class Share(Part):
    """One broker's part of one resource, in the resource's own unit."""

    load: float
    fair: float
    low: float
    high: float


class Range(Part):
    """One resource over the brokers that share it, and the range of each in which it is left alone."""

    resource: str
    label: str
    unit: Annotated[str, OneOf("bytes", "bytes/s", "cpu", "")]
    """Empty for counts."""
    tolerance: float
    """How far from its fair share a broker may be, as a part of that share."""
    skew: float
    """The largest distance from a fair share, as a part of that share."""
    brokers_out_of_range: Annotated[list[int], Field(validation_alias="outside")]
    shares: dict[int, Share]
    """By broker id."""


class Throttles(Part):
    """Replication throttles that are set now, by Ballast or another user."""

    topics: list[str]
    brokers: list[int]
    bytes_per_s: Known
    """The lowest rate on any broker; null where none is set."""


class Gap(Part):
    """What is not known of the cluster."""

    subject: str
    broker: int | None
    """The broker, where the subject is one."""
    missing: str
    detail: Annotated[str, Field(validation_alias="reason")]


class Cluster(Part):
    """The cluster in figures."""

    id: Annotated[str, Field(validation_alias="cluster_id")]
    kafka_version: str | None
    taken_at_ms: Moment
    """When it was read."""
    topics: int
    partitions: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    min_isr_unknown: int
    """Under-replicated, of topics whose minimum could not be read: in neither of the two."""
    offline: int
    reassigning: Annotated[int, Field(validation_alias="moving")]
    leader_imbalance_threshold_ratio: Annotated[float, Field(validation_alias="threshold")]
    """0 to 1; a broker over it counts as imbalanced."""
    brokers: list[Broker]
    ranges: list[Range]
    throttles: Throttles
    gaps: list[Gap]
    """What the reading lacks."""


class Point(Part):
    """The cluster at one moment; a figure that the reading did not have is null."""

    at_ms: Moment
    imbalance_ratio: Annotated[float, Field(validation_alias="imbalance")]
    """The worst broker's share of preferred leaderships that it does not lead."""
    disk_skew: float | None
    """The largest distance of a broker's disk from its fair share, as a part of that share."""
    bytes_in_per_s: Annotated[float | None, Field(validation_alias="bytes_in")]
    """Null for the first one without measured bytes in, and where sizes are not known."""
    bytes_in_source: Annotated[str, OneOf("measured", "growth")] | None
    """``measured`` by the brokers, of the minute before; ``growth`` of logs since the point before is the least that came in."""
    reassigning: Annotated[int, Field(validation_alias="moving")]
    under_replicated: int


class DaemonSeries(Answer):
    """The last day, a point a minute, oldest first."""

    kind: Literal["DaemonSeries"] = "DaemonSeries"
    points: list[Point]
    problem: Text
    """Why points are missing or not kept; null where nothing fails."""
