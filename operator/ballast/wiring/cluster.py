"""Opens a cluster: security, clients and the ZooKeeper side behind one port."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ballast.errors import UsageError
from ballast.ports.cluster import Cluster


@dataclass(frozen=True, slots=True)
class OpenCluster:
    """A connected cluster and what it was reached by; a context manager that closes it."""

    cluster: Cluster
    bootstrap_server: str
    zookeeper: str | None = None

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
) -> OpenCluster:
    """Connect to the cluster that flags, settings, the environment or the running sandbox name."""
    raise UsageError("No cluster is named.", hint="Give --bootstrap-server HOST:PORT.")
