"""What ``simulate`` tells."""

from __future__ import annotations

from typing import Annotated, Literal

from ballast.cli.documents.base import Bytes, Document, OneOf, Part, Partition, Seconds
from ballast.core.plan.file import ObstacleLine


class BrokerFailure(Part):
    """Partitions in trouble right after the brokers fail, and how many are at the end."""

    brokers: list[int]
    at_second: Seconds
    offline: list[Partition]
    under_min_isr: list[Partition]
    at_min_isr: list[Partition]
    offline_at_end: int | None
    under_replicated_at_end: int | None


class BrokerPeak(Part):
    """A broker while the plan is executed; copies come on top of what is usual."""

    id: int
    disk_bytes_before: Bytes
    disk_bytes_peak: Bytes
    disk_peak_at_second: Seconds
    disk_bytes_after: Bytes
    disk_total_bytes: Bytes | None
    copy_in_peak_bytes_per_s: Bytes
    copy_out_peak_bytes_per_s: Bytes
    usual_in_bytes_per_s: Bytes | None
    """Null where traffic is not known."""
    usual_out_bytes_per_s: Bytes | None
    leaders_before: int
    leaders_after: int


class SimulatedEvent(Part):
    """What happens, and when."""

    second: Seconds
    detail: str


class Simulation(Document):
    """``ballast simulate PLAN`` and ``ballast plan … --simulate``."""

    kind: Literal["Simulation"] = "Simulation"
    intent: str
    status: str
    """A run's (``done``, ``incomplete``, ``cancelled``, ``refused``), or ``waiting`` for a run that would still wait for an operator."""
    seconds: Seconds
    min_seconds: Seconds
    """What the busiest link needs for its bytes alone."""
    moves: int
    moves_ended: int
    bytes_copied: Bytes
    broker_failure: BrokerFailure | None
    """Null where no broker fails."""
    brokers: list[BrokerPeak]
    events: list[SimulatedEvent]
    assumptions: list[str]


class Repair(Part):
    """The plan that would rebuild elsewhere what the lost brokers hold (``ballast plan evacuate``)."""

    status: Annotated[str, OneOf("meets-all-goals", "nothing-to-do", "misses-some-goals", "no-plan-found")]
    replicas: int
    bytes: int | None
    """Null where a size is not known."""
    obstacles: list[ObstacleLine]


class BrokerLoss(Part):
    """A broker before the loss, after it, and after the repair; disks with everything that lies on them."""

    id: int
    rack: str | None
    lost: bool
    leaders_before: int
    leaders_after: int
    disk_bytes_before: int | None
    disk_bytes_after_repair: int | None
    disk_total_bytes: int | None
    replica_bytes_before: int | None
    """Of Kafka's replicas alone: known also where the broker does not tell how full its disks are."""
    replica_bytes_after_repair: int | None


class Loss(Document):
    """``ballast simulate --kill-broker`` and ``--kill-rack`` without a plan."""

    kind: Literal["Loss"] = "Loss"
    brokers_lost: list[int]
    leaders_moved: int
    under_replicated: int
    offline: list[Partition]
    """All that are offline afterwards, those included that were before; so for the next two."""
    under_min_isr: list[Partition]
    at_min_isr: list[Partition]
    min_isr_unknown: list[Partition]
    """They lack a replica and are of topics whose ``min.insync.replicas`` is not known: in neither of the two before."""
    repair: Repair
    brokers: list[BrokerLoss]
