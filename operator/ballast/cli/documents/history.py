"""What ``sample``, ``pipeline`` and ``fleet`` tell."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ballast.cli.documents.base import Document, Part, TableTime
from ballast.core.plan.model import LogDirError

Milli = Annotated[float, AfterValidator(lambda seconds: round(seconds, 3))]
"""Seconds to the millisecond."""


class Sample(Document):
    """``ballast sample``."""

    kind: Literal["Sample"] = "Sample"
    cluster: str
    store: str
    recorded: bool
    """False where this minute was recorded already."""
    partitions: int
    replicas: int
    gaps: int
    """How many things are not known."""
    seconds: Milli


class PipelineJob(Part):
    """A table that was brought up to date."""

    table: str
    replaced: list[str]
    """Hours, days or clusters made anew."""
    rows: int
    seconds: Milli


class PipelineRun(Document):
    """``ballast pipeline run``."""

    kind: Literal["PipelineRun"] = "PipelineRun"
    newest_hour: TableTime | None
    """Up to which the load model knows everything; null while it knows nothing."""
    lag_seconds: float | None
    jobs: list[PipelineJob]


class FleetPlan(Part):
    """What a plan for a cluster would cost and gain, in one scenario; figures are null where planning failed or they are not known."""

    cluster: str
    name: str
    taken_at: TableTime
    scenario: str
    """``balance``, ``lose-broker``, ``lose-rack``, ``add-brokers``, ``change-rf`` or ``grow``."""
    subject: str
    brokers: int
    partitions: int
    bytes_stored: int
    """Of the replicas whose size is known."""
    sizes_unknown: int
    """Replicas whose size is not."""
    status: str
    """A plan's status, or ``not-planned``."""
    detail: str
    log_dir_errors: tuple[LogDirError, ...]
    moves: int | None
    replica_list_changes: int | None
    bytes_moved: int | None
    bound_bytes: int | None
    worst_before: float | None
    worst_after: float | None
    disk_full_before: float | None
    disk_full_after: float | None
    preferred_leaders_before: float | None
    preferred_leaders_after: float | None
    imbalance_ratio: Annotated[float, Field(validation_alias="imbalance")]
    offline: int | None
    under_min_isr: int | None
    days_to_full: float | None
    disk_total_bytes: Annotated[int | None, Field(validation_alias="disk_bytes")]
    disk_usable_bytes: Annotated[int | None, Field(validation_alias="disk_free_bytes")]
    growth_bytes_per_day: int | None
    growth_unknown: int
    digest: str
    seconds: float


class Unreachable(Part):
    """A cluster that did not answer."""

    name: str
    tried_at: TableTime
    detail: str
    last_read: TableTime | None


class SameCluster(Part):
    """A cluster that the list names more than once."""

    cluster: str
    names: list[str]


class FleetReport(Document):
    """``ballast fleet report``."""

    kind: Literal["FleetReport"] = "FleetReport"
    plans: list[FleetPlan]
    unreachable: list[Unreachable]
    unplanned: list[str]
    same_cluster: list[SameCluster]
