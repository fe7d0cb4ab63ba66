"""What the HTTP API answers, each answer defined once as a type; OpenAPI and ``docs/schemas`` are generated from it.

One style with what ``--output json`` prints.  A part is built from the view that it shows, by the same names; a view's time
in milliseconds, ``since_ms``, is written as a time, ``since``.  ``api`` and ``details`` build the answers.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from ballast.core import document_types
from ballast.core.document_types import Known, OneOf, Parameters, moment
from ballast.core.plan.file import BrokerSummary, ResourceSummary
from ballast.daemon.context.view import Role, TickResult

Moment = Annotated[str, BeforeValidator(moment), Field(json_schema_extra={"format": "date-time"})]
"""Milliseconds since 1970 inside."""
_EMPTY: Final = BeforeValidator(lambda text: text or None)
Text = Annotated[str | None, _EMPTY]
"""Empty inside where there is nothing to say; written as null."""
STYLE: Final = ConfigDict(from_attributes=True, alias_generator=lambda name: to_camel(name.removesuffix("_ms")))


class Part(document_types.Part):
    """An object of an answer."""

    model_config = STYLE


class Pair(Part):
    """An object of two, which have no names inside."""

    @model_validator(mode="before")
    @classmethod
    def _of_pair(cls, found: object) -> object:
        return dict(zip(cls.model_fields, found, strict=True)) if isinstance(found, tuple) else found


class Answer(document_types.Document):
    """A whole answer."""

    model_config = STYLE


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
    """Partitions that prefer it as their leader."""
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
    moving: int
    leader_imbalance_threshold_ratio: Annotated[float, Field(validation_alias="threshold")]
    """0 to 1; a broker over it counts as imbalanced."""
    brokers: list[Broker]
    ranges: list[Range]
    throttles: Throttles
    gaps: list[str]
    """What the reading lacks, and why."""


class Outage(Part):
    """The cluster cannot be read now; every figure is as old as the newest reading before."""

    code: Annotated[str, OneOf("unreachable", "access-denied", "refused")]
    sentence: str
    since_ms: Moment
    """When reading it first failed."""


class Absence(Part):
    """A broker that is down and holds replicas."""

    broker: int
    since_ms: Moment
    """When it was first missed."""
    repair_at_ms: Moment
    """When its replicas are to be rebuilt on other brokers, unless it returns before."""


class Permission(Part):
    """Whether one kind of action may start now, and the sentence that says why."""

    kind: str
    mode: str
    allowed: bool
    code: str
    sentence: str


class Other(Part):
    """Another balancer of this cluster, or a foreign reassignment."""

    code: str
    sentence: str
    blocking: bool
    """Ballast does not act while this lasts."""


class Pause(Part):
    """The pause switch."""

    by: str
    since_ms: Moment
    reason: Text


class Drain(Part):
    """A broker that a person drained: it takes no replica until the drain is ended."""

    broker: int
    by: str
    since_ms: Moment


class Lock(Part):
    """The cluster's lock as far as this process knows."""

    held: bool
    holder: Text
    since_ms: Moment | None
    journal_readable: bool | None
    """Null when there is no journal to read (observe mode)."""


class Balance(Part):
    """What the newest balance check concluded."""

    verdict: Annotated[str, OneOf("unknown", "balanced", "unbalanced", "stuck")]
    """``unbalanced``: a plan would help; ``stuck``: out of the band, and no plan helps."""
    sentence: Text


class Move(Part):
    """One partition on its way."""

    topic: str
    partition: int
    old: list[int]
    new: list[int]
    size_bytes: int | None
    copied_bytes: int
    stage: str
    reason: str


class Run(Part):
    """The run that is being carried out, or one that ended."""

    id: str
    """``throttles`` while throttles of runs that have ended are removed: there is nothing to cancel."""
    intent: str
    phase: str
    started_at_ms: Moment
    ended_at_ms: Moment | None
    status: str
    """``open``, or how it ended: ``done``, ``incomplete``, ``cancelled``, ``refused``."""
    moves_total: int
    moves_verified: int
    moves_ended_otherwise: int
    moves_in_flight: int
    elections_total: int
    elections_held: int
    bytes_total: int | None
    """Null where the size of a move is unknown, and so is ``bytesLeft``."""
    bytes_left: int | None
    bytes_per_s: float | None
    """Null until two readings show one."""
    seconds_left: float | None
    throttle_bytes_per_s: int | None
    sentence: Text
    moves: list[Move]
    """The ones in flight, at most a page of them."""


class Reason(Pair):
    """Why moves or elections are in a plan: a resource that is out of range, or what a move is for."""

    code: str
    count: int


class Plan(Part):
    """A plan that waits for a person, or that the daemon would carry out if it were allowed to."""

    id: str
    kind: str
    intent: str
    created_at_ms: Moment
    moves: int
    elections: int
    copies: int
    """Moves that copy data; the others only change an order."""
    bytes_moved: int | None
    """Of those of them together; null where a size is unknown."""
    bound_bytes: int | None
    status: str
    waiting: bool
    """True when a person's approval would start it."""
    approved_by: Text
    reasons: list[Reason]
    resources: list[ResourceSummary]
    brokers: list[BrokerSummary]
    reorders: int
    """Replica lists whose order alone changes."""
    throttle: Text
    """``auto``, ``none``, or ``fixed``: how copies are throttled when this plan runs."""
    throttle_bytes_per_s: int | None
    """The rate that ``seconds`` was computed with; null where there is none."""
    seconds: float | None
    """About how long its copies take at that rate; null where no rate or no size is known."""
    asked_by: Text
    """Null for plans that Ballast made by itself."""
    blocked: Text
    """Why it may not start now even when it is approved."""
    examples: list[Move]
    obstacles: list[str]


class Tick(Part):
    """How one kind of tick went last time, in one sentence."""

    sentence: str
    at_ms: Moment
    duration_s: float
    result: Annotated[str, OneOf(*(r.value for r in TickResult))]
    failures: int
    """Failures in a row."""
    reading_ms: Annotated[Moment | None, Field(serialization_alias="readAt")]
    """When the reading was taken that it went by; null where it goes by none."""
    stale: Annotated[Literal["outage", "earlier-reading"] | None, _EMPTY]
    """Why it no longer shows how things are; null where it does."""


class Outcome(Part):
    """What came of something that a person asked of this process."""

    request: str
    """The id that the API gave for it."""
    sentence: str
    ok: bool
    at_ms: Moment


class DaemonStatus(Answer):
    """Everything that the page shows."""

    kind: Literal["DaemonStatus"] = "DaemonStatus"
    version: int
    """Grows with every change."""
    now_ms: Moment
    """The daemon's clock, by which ages are counted."""
    name: str
    instance: str
    started_at_ms: Moment
    role: Annotated[str, OneOf(*(r.value for r in Role))]
    mode: Annotated[str, OneOf("observe", "approve", "auto")]
    actions_enabled: bool
    """False: the page is read-only."""
    read_only: Text
    """Why no user may act; null where a user may."""
    cluster: Cluster | None
    outage: Outage | None
    absences: list[Absence]
    """Brokers that are down and hold replicas."""
    permissions: list[Permission]
    others: list[Other]
    pause: Pause | None
    drains: list[Drain]
    """Brokers that people drained, by ``plan`` and its approval."""
    lock: Lock
    balance: Balance
    run: Run | None
    """The run that this process carries out."""
    run_elsewhere: Run | None
    """On a standby: the run that another process carries out, as the journal shows it."""
    plans: list[Plan]
    ticks: dict[str, Tick]
    """By the tick's name."""
    answers: list[Outcome]
    """What came of the newest requests to this process."""
    throttles_to_restore: int
    """Throttles that Ballast set and has not yet removed."""
    settings_problem: Text
    """Why the newest settings are not in force; null when they are."""


class SkippedRun(Part):
    """A run of the journal that cannot be read."""

    id: str
    code: str
    parameters: Parameters
    """The figures of ``why``."""
    why: str


class DaemonRuns(Answer):
    """Runs that ended, newest first; fifty at most."""

    kind: Literal["DaemonRuns"] = "DaemonRuns"
    runs: list[Run]
    skipped: list[SkippedRun]
    problem: Text
    """Why they are not known; null where they are."""


class Point(Part):
    """The cluster at one moment; a figure that the reading did not have is null."""

    at_ms: Moment
    imbalance_ratio: Annotated[float, Field(validation_alias="imbalance")]
    """The worst broker's share of preferred leaderships that it does not lead."""
    disk_skew: float | None
    """The largest distance of a broker's disk from its fair share, as a part of that share."""
    bytes_in_per_s: float | None
    """By how much logs grew since the point before; null for the first one, and where sizes are not known."""
    moving: int
    under_replicated: int


class DaemonSeries(Answer):
    """The last day, a point a minute, oldest first."""

    kind: Literal["DaemonSeries"] = "DaemonSeries"
    points: list[Point]
    problem: Text
    """Why points are missing or not kept; null where nothing fails."""


class Setting(Part):
    """A setting in force."""

    name: str
    value: str
    changed: bool
    """It differs from its default."""


class DaemonSettings(Answer):
    """The settings in force; secrets are never among them."""

    kind: Literal["DaemonSettings"] = "DaemonSettings"
    settings: list[Setting]


class LogDir(Part):
    """One log directory."""

    path: str
    total_bytes: Known
    usable_bytes: Known
    cordoned: bool
    error: str | None


class Rate(Part):
    """A replication rate that is set on a broker."""

    key: str
    value: str


class Replica(Part):
    """One replica of a broker."""

    topic: str
    partition: int
    leader: bool
    preferred: bool
    in_sync: bool
    adding: bool
    removing: bool
    size_bytes: Known


class DaemonBroker(Answer):
    """One broker; the largest replicas first."""

    kind: Literal["DaemonBroker"] = "DaemonBroker"
    id: int
    rack: str | None
    host: str | None
    """Null for a broker that is down, and so is ``port``."""
    port: int | None
    alive: bool
    reachable: bool
    controller: bool
    log_dirs: list[LogDir]
    throttles: list[Rate]
    total: int
    """Replicas; at most 1000 of them are listed."""
    replicas: list[Replica]


class Partition(Part):
    """One partition; mid-move, ``replicas`` is the union of old and new."""

    topic: str
    partition: int
    leader: Known
    preferred_leader: int
    replicas: list[int]
    in_sync_replicas: list[int]
    adding: list[int]
    removing: list[int]
    size_bytes: Known
    """Of the leader's log."""
    lag: int | None
    """Messages that the slowest replica is behind; null where log ends were not read: the daemon does not."""


class DaemonTopic(Answer):
    """One topic and its partitions."""

    kind: Literal["DaemonTopic"] = "DaemonTopic"
    topic: str
    internal: bool
    min_isr: Known
    size_bytes: int | None
    """Of all replicas."""
    throttled: bool
    total: int
    """Partitions; at most 1000 of them are listed."""
    partitions: list[Partition]


class DaemonPartitions(Answer):
    """The partitions in one state."""

    kind: Literal["DaemonPartitions"] = "DaemonPartitions"
    state: str
    total: int
    """At most 1000 of them are listed."""
    partitions: list[Partition]


class RequestAccepted(Answer):
    """A request that was taken; the next tick carries it out, and ``answers`` of the status say what came of it."""

    kind: Literal["RequestAccepted"] = "RequestAccepted"
    request: str
    """Its id."""


class RequestRefused(Answer):
    """Why there is no other answer."""

    kind: Literal["RequestRefused"] = "RequestRefused"
    error: str


ANSWERS: Final[dict[str, type[Answer]]] = {found.__name__: found for found in Answer.__subclasses__()}
"""By kind."""
