"""What a sandbox cluster should be: its size, its age, its mode, how it is guarded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from ballast.errors import UsageError
from ballast.sandbox.jars import versions

Mode = Literal["kraft", "zookeeper"]

NEWEST: Final = "4.3.1"
"""The Kafka a sandbox runs unless told otherwise; the newest whose published artifacts resolve as they are."""

NEWEST_WITH_ZOOKEEPER: Final = "3.9.2"
"""Kafka 4 has no ZooKeeper."""

FIRST_WITH_KRAFT: Final = (3, 3)
"""Older releases have KRaft as a preview or not at all."""

ITS_OWN: Final = frozenset(
    {
        "advertised.host.name",
        "advertised.listeners",
        "advertised.port",
        "broker.id",
        "broker.rack",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "host.name",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "port",
        "process.roles",
        "security.inter.broker.protocol",
        "zookeeper.connect",
    }
)
"""Broker settings that the sandbox alone decides: with others it would listen elsewhere than on the loopback, leave files
behind, or not start."""

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
    """After how long without a heartbeat a broker counts as down."""
    broker_configs: dict[str, str] = field(default_factory=dict)
    """Further broker settings; they win over the sandbox's own."""
    controller_configs: dict[str, str] = field(default_factory=dict)
    """Further settings of the separate controllers: what brokers can do is in part for the controller to allow."""
    java_options: tuple[str, ...] = ()
    """Further options of each JVM: some of Kafka's own settings are Java system properties."""
    archive_classes: bool = False
    """Write a class archive when a node ends, to start later ones faster; used while preparing only."""

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= 100:
            raise UsageError(f"{self.brokers} brokers are not a sandbox.", hint="Ask for 1 to 100.")
        if self.racks < 0:
            raise UsageError("The number of racks cannot be negative.", hint="0 leaves the brokers without racks.")
        if self.mode == "kraft" and self.controllers < 1:
            raise UsageError("A KRaft cluster needs a controller.", hint="Ask for 1 or 3 controllers.")
        if self.mode == "zookeeper" and self.controllers != 1:
            raise UsageError("With ZooKeeper the brokers elect the controller.", hint="Leave out --controllers.")
        if not 1 <= self.log_dirs <= 100:
            raise UsageError(f"A broker cannot have {self.log_dirs} log dirs.", hint="Ask for 1 to 100.")
        self._check_version()
        self._check_configs()

    def _check_version(self) -> None:
        if self.kafka_version not in versions():
            return  # refused when its jars are asked for, with the versions that there are
        numbers = tuple(int(part) for part in self.kafka_version.split(".")[:2])
        if self.mode == "zookeeper" and numbers >= (4,):
            raise UsageError(
                f"Kafka {self.kafka_version} has no ZooKeeper.",
                hint=f"Ask for --kafka-version {NEWEST_WITH_ZOOKEEPER} or older, or for --mode kraft.",
            )
        if self.mode == "kraft" and numbers < FIRST_WITH_KRAFT:
            raise UsageError(f"Kafka {self.kafka_version} has no KRaft.", hint="Ask for --mode zookeeper.")

    def _check_configs(self) -> None:
        for name in (*self.broker_configs, *self.controller_configs):
            if not name.strip():
                raise UsageError("A setting has no name.", hint="Write --set NAME=VALUE.")
            if name in ITS_OWN:
                raise UsageError(
                    f"The sandbox decides {name} itself.", hint="Leave it out; see `ballast sandbox up --help`."
                )

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

    @property
    def port_count(self) -> int:
        """On how many ports its nodes listen: guarded brokers on one more each, for themselves."""
        listeners = 2 if self.security else 1
        return listeners * self.brokers + len(self.controller_ids) + (self.mode == "zookeeper")

    def rack_of(self, broker: int) -> str | None:
        """The rack a broker stands in: brokers are dealt over the racks in turn."""
        return f"rack-{(broker - 1) % self.racks + 1}" if self.racks else None
