"""What a sandbox cluster should be: its size, its age, its mode, how it is guarded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from ballast.errors import UsageError

Mode = Literal["kraft", "zookeeper"]

NEWEST: Final = "4.3.1"
"""The Kafka a sandbox runs unless told otherwise; the newest whose published artifacts resolve as they are."""

NEWEST_WITH_ZOOKEEPER: Final = "3.9.2"
"""Kafka 4 has no ZooKeeper."""

FIRST_CONTROLLER: Final = 9001
"""Node ids of separate KRaft controllers start here, far from any broker's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """One cluster, described."""

    brokers: int = 3
    """How many brokers; their ids are 1, 2, 3, …"""
    racks: int = 3
    """Over how many racks they are dealt in turn, named ``rack-1``, ``rack-2``, …; 0 leaves the brokers without racks."""
    mode: Mode = "kraft"
    """Who keeps the metadata."""
    kafka_version: str = NEWEST
    """One of the versions that have a lock file in ``ballast/sandbox/locks``."""
    controllers: int = 1
    """How many separate KRaft controllers; ZooKeeper mode has none."""
    security: str | None = None
    """None for plaintext, or one of ``ballast.sandbox.security.KINDS``."""
    log_dirs: int = 1
    """How many log dirs each broker has."""
    heap_mib: int = 256
    """Upper limit of each JVM's heap."""
    session_timeout_ms: int = 4000
    """After how long without a heartbeat a broker counts as dead."""
    broker_configs: dict[str, str] = field(default_factory=dict)
    """Further broker settings; they win over the sandbox's own."""
    archive_classes: bool = False
    """Write a class archive when a node ends, to start later ones faster; used while preparing only."""

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= 100:
            raise UsageError(f"{self.brokers} brokers are not a sandbox.", hint="Ask for 1 to 100.")
        if self.racks < 0:
            raise UsageError("The number of racks cannot be negative.", hint="0 leaves the brokers without racks.")
        if self.mode == "kraft" and self.controllers < 1:
            raise UsageError("A KRaft cluster needs a controller.", hint="Ask for 1 or 3 controllers.")

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the brokers."""
        return tuple(range(1, self.brokers + 1))

    @property
    def controller_ids(self) -> tuple[int, ...]:
        """The node ids of the separate controllers."""
        if self.mode == "zookeeper":
            return ()
        return tuple(range(FIRST_CONTROLLER, FIRST_CONTROLLER + self.controllers))

    def rack_of(self, broker: int) -> str | None:
        """The rack a broker stands in: brokers are dealt over the racks in turn."""
        return f"rack-{(broker - 1) % self.racks + 1}" if self.racks else None
