"""Opens a cluster: security, clients and the ZooKeeper side behind one port."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from ballast.adapters.confluent import Admin
from ballast.adapters.diagnosis import knock, parse_servers
from ballast.adapters.kafka_cluster import KafkaCluster
from ballast.adapters.kafka_python import Wire
from ballast.adapters.retry import RetryPolicy
from ballast.adapters.security import ENVIRONMENT_PREFIX, Security
from ballast.adapters.zk_admin import ZooKeeperWrites
from ballast.adapters.zk_cluster import ZooKeeperCluster
from ballast.adapters.zk_isr import IsrWatch
from ballast.adapters.zookeeper import ZooKeeper
from ballast.errors import UsageError
from ballast.ports.cluster import Cluster
from ballast.settings import load_settings
from ballast.settings.model import ClusterSettings

LONGEST_TIMEOUT_S: Final = 3600
"""Nobody waits longer for one answer; the clients take whole milliseconds, and no infinity."""


@dataclass(frozen=True, slots=True)
class OpenCluster:
    """A connected cluster and what it was reached by; a context manager that closes it."""

    cluster: Cluster
    bootstrap_server: str
    zookeeper: str | None = None
    security: Security = field(default_factory=Security)
    """For further clients of the same cluster (the journal)."""

    def knock(self) -> None:
        """Raise, in one sentence and within seconds, what keeps us from the first broker, unless one of them lets us in."""
        knock(parse_servers(self.bootstrap_server), self.security)

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
) -> OpenCluster:
    """Open the cluster that the arguments, the settings file or the environment name, in this order.

    Nothing is sent before the first question.  ``properties`` are client properties that are already at hand and stand in
    for ``command_config``.
    """
    settings = load_settings(config, os.environ).cluster if config or not bootstrap_server else ClusterSettings()
    bootstrap_server = bootstrap_server or settings.bootstrap_server
    if not bootstrap_server:
        raise UsageError(
            "No cluster is named.",
            hint="Give --bootstrap-server HOST:PORT, or start one to play with: ballast sandbox up.",
        )
    if not 0 < timeout_s <= LONGEST_TIMEOUT_S:
        raise UsageError(f"--timeout must be more than 0 seconds, and {LONGEST_TIMEOUT_S} at most.")
    parse_servers(bootstrap_server)
    security = _security(command_config or settings.command_config, properties)
    hosts = zookeeper or settings.zookeeper
    wire = Wire(bootstrap_server, security, timeout_s=timeout_s, retry=retry)
    admin = Admin(bootstrap_server, security, timeout_s=timeout_s, retry=retry)
    if hosts is None:
        return OpenCluster(KafkaCluster(wire, admin), bootstrap_server, None, security)
    keeper = ZooKeeper(hosts, security, timeout_s=min(10.0, timeout_s))
    brokers = KafkaCluster(wire, admin, zookeeper=keeper)
    cluster = ZooKeeperCluster(
        brokers, ZooKeeperWrites(keeper), IsrWatch(keeper), is_old=lambda: "reassign" not in brokers.api()
    )
    return OpenCluster(cluster, bootstrap_server, hosts, security)


def _security(command_config: Path | None, properties: dict[str, str] | None) -> Security:
    """From the file, the properties at hand, or the environment: the first that is there."""
    if command_config is not None:
        return Security.from_file(command_config)
    if properties is not None:
        return Security.from_properties(properties)
    if any(name.startswith(ENVIRONMENT_PREFIX) for name in os.environ):
        return Security.from_environment(os.environ)
    return Security()
