"""Opens a cluster: security, clients and the ZooKeeper side behind one port."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ballast.adapters.auth.security import ENVIRONMENT_PREFIX, Security
from ballast.adapters.kafka.cluster import KafkaCluster
from ballast.adapters.kafka.confluent import Admin
from ballast.adapters.kafka.diagnosis import first_to_answer, parse_servers
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.adapters.kafka.kafka_python import Wire
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.errors import UsageError
from ballast.ports.cluster import Cluster
from ballast.settings import load_settings
from ballast.settings.model import Settings

if TYPE_CHECKING:
    from ballast.adapters.zookeeper.client import ZooKeeper

LONGEST_TIMEOUT_S: Final = 3600
"""No call waits longer for one answer; the clients take whole milliseconds, and no infinity."""


@dataclass(frozen=True, slots=True)
class OpenCluster:
    """A connected cluster and what it was reached by; a context manager that closes it."""

    cluster: Cluster
    bootstrap_server: str
    zookeeper: str | None = None
    security: Security = field(default_factory=Security)
    """For further clients of the same cluster (the journal)."""
    identity: ClusterIdentity = field(default_factory=ClusterIdentity)
    """Which cluster it is; every client of it confirms that it has reached the same one."""
    journal_file: Path | None = None
    """Where the settings that name it keep its journal; None for the topic in the cluster."""

    def check_answers(self) -> None:
        """Raise, in one sentence and within seconds, what keeps us from the first broker, unless one of them lets us in."""
        first_to_answer(parse_servers(self.bootstrap_server), self.security)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()


def open_cluster(
    *,
    bootstrap_server: str | None,
    command_config: Path | None = None,
    zookeeper: str | None = None,
    config: Path | None = None,
    timeout_s: float = 30.0,
    properties: dict[str, str] | None = None,
    retry: RetryPolicy | None = None,
    cluster_id: str | None = None,
) -> OpenCluster:
    """Open the cluster that the arguments, the settings file or the environment name, in this order.

    Nothing is sent to brokers before the first question; ZooKeeper is asked for them where nothing else names them.
    ``cluster_id`` is the only one that it may be.  ``properties`` are client properties that are already at hand and stand in
    for ``command_config``.
    """
    whole = load_settings(config, os.environ) if config or not bootstrap_server else Settings()
    settings, journal_file = whole.cluster, whole.journal.file
    if journal_file is not None and bootstrap_server and bootstrap_server != settings.bootstrap_server:
        raise UsageError(
            f"The settings keep their cluster's journal in {journal_file}, and --bootstrap-server names other brokers than they do.",
            hint="Leave out --bootstrap-server, or where another cluster is meant, --config (BALLAST_CONFIG).",
        )
    bootstrap_server = bootstrap_server or settings.bootstrap_server
    hosts = zookeeper or settings.zookeeper
    if not bootstrap_server and hosts is None:
        raise UsageError(
            "No bootstrap server is configured.",
            hint="Give --bootstrap-server HOST:PORT (or --zookeeper HOST:PORT, where the cluster still has it), or start one "
            "to play with: ballast sandbox up.",
        )
    if not 0 < timeout_s <= LONGEST_TIMEOUT_S:
        raise UsageError(f"--timeout must be more than 0 seconds, and {LONGEST_TIMEOUT_S} at most.")
    security = client_security(command_config or settings.command_config, properties)
    zookeeper_client = None if hosts is None else _zookeeper(hosts, security, timeout_s)
    bootstrap_server = bootstrap_server or _find_registered(zookeeper_client, security)
    parse_servers(bootstrap_server)
    identity = ClusterIdentity(
        expected=cluster_id or settings.id, zookeeper=None if zookeeper_client is None else zookeeper_client.cluster_id
    )
    wire = Wire(bootstrap_server, security, timeout_s=timeout_s, retry=retry, identity=identity)
    admin = Admin(bootstrap_server, security, timeout_s=timeout_s, retry=retry, identity=identity)
    brokers = KafkaCluster(wire, admin, zookeeper=zookeeper_client)
    if zookeeper_client is None:
        return OpenCluster(brokers, bootstrap_server, None, security, identity, journal_file)
    cluster = _with_zookeeper(brokers, zookeeper_client)
    return OpenCluster(cluster, bootstrap_server, hosts, security, identity, journal_file)


def _zookeeper(hosts: str, security: Security, timeout_s: float) -> ZooKeeper:
    # Its client is imported here and below since most clusters have no ZooKeeper, and every command would pay for it.
    from ballast.adapters.zookeeper.client import ZooKeeper  # noqa: PLC0415

    return ZooKeeper(hosts, security, timeout_s=min(10.0, timeout_s))


def _with_zookeeper(brokers: KafkaCluster, zookeeper_client: ZooKeeper) -> Cluster:
    """The cluster whose old brokers are asked through ZooKeeper."""
    from ballast.adapters.zookeeper.admin import ZooKeeperWrites  # noqa: PLC0415
    from ballast.adapters.zookeeper.cluster import ZooKeeperCluster  # noqa: PLC0415
    from ballast.adapters.zookeeper.isr import IsrWatch  # noqa: PLC0415

    return ZooKeeperCluster(
        brokers,
        ZooKeeperWrites(zookeeper_client),
        IsrWatch(zookeeper_client),
        is_old=lambda: "reassign" not in brokers.api(),
    )


def _find_registered(zookeeper_client: ZooKeeper | None, security: Security) -> str:
    """The brokers that stand in ZooKeeper, where the user named none."""
    from ballast.adapters.zookeeper.brokers import find_brokers  # noqa: PLC0415

    assert zookeeper_client is not None
    try:
        return find_brokers(zookeeper_client.registrations(), security.protocol)
    except BaseException:
        zookeeper_client.close()
        raise


def client_security(command_config: Path | None, properties: dict[str, str] | None = None) -> Security:
    """From the file, the properties at hand, or the environment: the first that is there."""
    if command_config is not None:
        return Security.from_file(command_config)
    if properties is not None:
        return Security.from_properties(properties)
    if any(name.startswith(ENVIRONMENT_PREFIX) for name in os.environ):
        return Security.from_environment(os.environ)
    return Security()
