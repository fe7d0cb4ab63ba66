"""Docker and a cluster in it, for the fault tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.containers.cluster import ContainerCluster
from tests.containers.docker_host import DockerHost

from ballast.sandbox import SandboxSpec


@pytest.fixture(scope="session")
def docker_host() -> Iterator[DockerHost]:
    """A Docker that answers, with a keeper that takes away all of the run's containers at the end."""
    host = DockerHost.open()
    yield host
    host.close()


@pytest.fixture(scope="session")
def containers_cluster(docker_host: DockerHost) -> Iterator[ContainerCluster]:
    """One controller and three brokers in three racks, each in a container; every test leaves it whole."""
    cluster = ContainerCluster.up(docker_host, SandboxSpec())
    yield cluster
    cluster.down()
