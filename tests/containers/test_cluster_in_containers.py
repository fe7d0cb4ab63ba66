"""Brokers in containers: reached on the loopback, and taken away whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from tests.containers.cluster import ContainerCluster
from tests.containers.docker_host import DockerHost
from tests.containers.docker_supervisor import LABEL
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.containers

OWNER = """
import sys, time
from tests.containers.docker_host import DockerHost
from tests.containers.image import ensure_image
host = DockerHost.open()
client = host.client()
image = ensure_image(client, "4.3.1")
sleeper = ["/java/bin/java", "-cp", "/kafka/*", "kafka.tools.StorageTool", "random-uuid"]
client.containers.create(image, sleeper, labels=host.labels)
print(host.folder, host.supervisor.pid, flush=True)
time.sleep(600)
"""


def test_every_published_port_is_on_the_loopback(containers_cluster: ContainerCluster) -> None:
    """No client outside the machine can reach a broker."""
    for broker in containers_cluster.spec.broker_ids:
        container = containers_cluster.containers[broker]
        container.reload()
        published = [binding for bindings in container.ports.values() for binding in bindings or []]
        assert published == [{"HostIp": "127.0.0.1", "HostPort": str(containers_cluster.ports[broker])}]


def test_brokers_in_containers_stand_in_their_racks(containers_cluster: ContainerCluster) -> None:
    """The same picture as any other cluster gives."""
    admin = AdminClient({"bootstrap.servers": containers_cluster.bootstrap_server})
    nodes = admin.describe_cluster().result(timeout=PATIENCE_S).nodes
    assert {node.id: node.rack for node in nodes} == {1: "rack-1", 2: "rack-2", 3: "rack-3", 4: "rack-1"}


def test_nothing_in_docker_survives_a_killed_run(docker_host: DockerHost) -> None:
    """A test run killed with -9 leaves no container, no daemon of its own and no folder."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    try:
        assert owner.stdout is not None
        folder, supervisor = owner.stdout.readline().split()
        os.kill(owner.pid, signal.SIGKILL)
        assert eventually(lambda: not psutil.pid_exists(int(supervisor)), within_s=90)
        assert not Path(folder).exists()
        client = docker_host.client()
        assert client.containers.list(all=True, filters={"label": f"{LABEL}={folder}"}) == []
        client.close()
    finally:
        owner.kill()
        owner.wait()
