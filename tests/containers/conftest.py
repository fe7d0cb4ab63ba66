"""Docker and a cluster in it, for the fault tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers.ballast_image import build
from tests.containers.cluster import ContainerCluster
from tests.containers.docker_host import DockerHost
from tests.containers.proof import Lives
from tests.real.execution_scene import Scene, scene

from ballast.sandbox import SandboxSpec

collect_ignore = [] if "BALLAST_SOAK_MINUTES" in os.environ else ["test_soak.py"]


@pytest.fixture(scope="package")
def docker_host() -> Iterator[DockerHost]:
    """A Docker that answers, with a supervisor that takes away all of the run's containers at the end."""
    host = DockerHost.open()
    yield host
    host.close()


@pytest.fixture(scope="package")
def docker_client(docker_host: DockerHost) -> Iterator[Any]:
    """A client of the run's Docker."""
    client = docker_host.client()
    yield client
    client.close()


@pytest.fixture(scope="package")
def ballast_image(docker_client: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ballast's own image."""
    return build(docker_client, tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="package")
def history_image(docker_client: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of a daemon that keeps samples."""
    return build(docker_client, tmp_path_factory.mktemp("history-image"), "ballast-history")


@pytest.fixture(scope="package")
def spark_image(docker_client: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The pipeline's image."""
    return build(docker_client, tmp_path_factory.mktemp("spark-image"), "ballast-spark")


@pytest.fixture(scope="package")
def containers_cluster(docker_host: DockerHost) -> Iterator[ContainerCluster]:
    """One controller and four brokers of two log dirs each, in three racks, each in a container; every test leaves it whole."""
    cluster = ContainerCluster.up(docker_host, SandboxSpec(brokers=4, log_dirs=2))
    yield cluster
    cluster.down()


@pytest.fixture
def at(containers_cluster: ContainerCluster, tmp_path: Path) -> Iterator[Scene]:
    """The cluster in containers, with an open connection."""
    with scene(containers_cluster, tmp_path) as opened:
        yield opened


@pytest.fixture
def lives(at: Scene) -> Iterator[Lives]:
    """Processes that end with the test; a run that a failed test left open is cancelled, or the next test would carry it on."""
    found = Lives(at)
    yield found
    found.close()
    for run in at.runs().values():
        if not run.ended:
            found.begin("cancel", run.id, "--yes", "--lock-wait", "60").code()
