"""What the HTTP API answers, each answer defined once as a type; OpenAPI and ``docs/schemas`` are generated from it.

One style with what ``--output json`` prints.  What the daemon publishes is written as ``context`` declares it; here is what an
answer has beside that.  ``api`` and ``details`` build the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import TypeAdapter

from ballast.core.cluster import LogDir
from ballast.core.document_types import API_VERSION, STYLE
from ballast.core.field_types import Known, Moment, OneOf, Text
from ballast.daemon.context.view import RunView, Status
from ballast.executor.journal.records import SkippedRun

__all__ = ["ANSWERS"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer; a subclass sets ``kind`` to the name of its class."""

    __pydantic_config__ = STYLE

    api_version: Literal["ballast/v1"] = API_VERSION
    kind: str

    def to_json(self) -> bytes:
        """As it is sent; one that is not as its type says is a bug, and is not."""
        return _writer(self.kind).dump_json(self, by_alias=True, warnings="error")


@cache
def _writer(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(ANSWERS[kind])


@dataclass(frozen=True, kw_only=True)
class DaemonStatus(Status, Answer):
    """Everything that the page shows."""

    kind: Literal["DaemonStatus"] = "DaemonStatus"
    now_ms: Moment
    """The daemon's clock, by which ages are counted."""
    actions_enabled: bool
    """False: the page is read-only."""
    read_only: Text
    """Why no user may act; null where a user may."""


@dataclass(frozen=True, kw_only=True)
class DaemonRuns(Answer):
    """Runs that ended, newest first; fifty at most."""

    kind: Literal["DaemonRuns"] = "DaemonRuns"
    runs: tuple[RunView, ...]
    skipped: tuple[SkippedRun, ...]
    problem: Text
    """Why they are not known; null where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """The cluster at one moment; a figure that the reading did not have is null."""

    at_ms: Moment
    imbalance_ratio: float
    """The worst broker's share of preferred leaderships that it does not lead."""
    disk_skew: float | None
    """The largest distance of a broker's disk from its fair share, as a part of that share."""
    bytes_in_per_s: float | None
    """Null for the first one without measured bytes in, and where sizes are not known."""
    bytes_in_source: Annotated[str, OneOf("measured", "growth")] | None
    """``measured`` by the brokers, of the minute before; ``growth`` of logs since the point before is the least that came in."""
    reassigning: int
    under_replicated: int


@dataclass(frozen=True, kw_only=True)
class DaemonSeries(Answer):
    """The last day, a point a minute, oldest first."""

    kind: Literal["DaemonSeries"] = "DaemonSeries"
    points: tuple[ChartPoint, ...]
    problem: Text
    """Why points are missing or not kept; null where nothing fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An active setting."""

    name: str
    value: str
    changed: bool
    """It differs from its default."""


@dataclass(frozen=True, kw_only=True)
class DaemonSettings(Answer):
    """The active settings; secrets are never among them."""

    kind: Literal["DaemonSettings"] = "DaemonSettings"
    settings: tuple[Setting, ...]


@dataclass(frozen=True, kw_only=True)
class RequestAccepted(Answer):
    """A request that was taken; the next check executes it, and ``answers`` of the status say what came of it."""

    kind: Literal["RequestAccepted"] = "RequestAccepted"
    request: str
    """Its id."""


@dataclass(frozen=True, kw_only=True)
class RequestRefused(Answer):
    """Why there is no other answer."""

    kind: Literal["RequestRefused"] = "RequestRefused"
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A replication rate that is set on a broker."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica of a broker."""

    topic: str
    partition: int
    leader: bool
    preferred: bool
    in_sync: bool
    adding: bool
    removing: bool
    size_bytes: Known


@dataclass(frozen=True, kw_only=True)
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
    log_dirs: tuple[LogDir, ...]
    throttles: tuple[Rate, ...]
    total: int
    """Replicas; at most 1000 of them are listed."""
    replicas: tuple[Replica, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition; mid-move, ``replicas`` is the union of old and new."""

    topic: str
    partition: int
    leader: Known
    """Null while there is none."""
    preferred_leader: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    size_bytes: Known
    """Of the leader's log."""
    lag: int | None
    """Messages that the slowest replica is behind its leader; null where one of their brokers has not told, and outside a topic's own answer."""


@dataclass(frozen=True, kw_only=True)
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
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, kw_only=True)
class DaemonPartitions(Answer):
    """The partitions in one state."""

    kind: Literal["DaemonPartitions"] = "DaemonPartitions"
    state: str
    total: int
    """At most 1000 of them are listed."""
    partitions: tuple[Partition, ...]


ANSWERS: Final[dict[str, type[Answer]]] = {found.__name__: found for found in Answer.__subclasses__()}
"""By kind."""
