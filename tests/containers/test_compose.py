"""The compose file's Kafka and Ballast run as it says: they find each other, the page is on the loopback, and Ballast stops in time."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.containers.compose import LOOPBACK, as_container, grace_s, properties_of
from tests.containers.docker_host import DockerHost
from tests.containers.image import JARS, JAVA, ensure_image
from tests.containers.pod import NotUnderstood
from tests.containers.test_pod import get, until
from tests.ports import free_ports

from ballast.sandbox import SandboxSpec, layout
from ballast.sandbox.jars import ensure_jars, read_lock
from ballast.sandbox.java import Java, ensure_java
from ballast.sandbox.warm import first_records

pytestmark = [pytest.mark.containers, pytest.mark.kafka]

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose" / "compose.yaml"
LOG_DIR = "/data/log"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """What the file says."""
    return dict(yaml.safe_load(COMPOSE.read_text())["services"])


Start = Callable[..., Any]


@pytest.fixture
def start(docker_client: Any, docker_host: DockerHost) -> Iterator[Start]:
    """Starts a service under its name, on one network for all of them."""
    with ExitStack() as stack:
        network = docker_client.networks.create("compose", labels=docker_host.labels)
        stack.callback(network.remove)

        def begin(name: str, arguments: Mapping[str, Any], files: bytes | None = None) -> Any:
            place = docker_client.api.create_endpoint_config(aliases=[name])
            container = docker_client.containers.create(
                **arguments, labels=docker_host.labels, network=network.name, networking_config={network.name: place}
            )
            stack.callback(container.remove, force=True)
            if files is not None:
                container.put_archive("/", files)
            container.start()
            return container

        yield begin


def packed(files: Mapping[str, bytes]) -> bytes:
    """Files by their path, as a container takes them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def kafka(client: Any, service: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The Kafka service on the tests' own image, of the newest Kafka and not the one that the file names, formatted as Kafka's image formats itself."""
    version = SandboxSpec().kafka_version
    jars = tuple(Path(JARS) / jar.file_name for jar in read_lock(f"kafka-{version}"))
    main = ["kafka.Kafka", "/data/server.properties"]
    command = layout.java_command(Java(Path(JAVA), 25), jars, heap_mib=256, options=[], main=main)
    configs = {**properties_of(service["environment"]), "log.dirs": LOG_DIR}
    identity = {"version": "1", "cluster.id": layout.new_id(), "node.id": configs["node.id"]}
    files = {
        "data/server.properties": layout.as_properties(configs).encode(),
        f"{LOG_DIR[1:]}/meta.properties": layout.as_properties(identity | {"directory.id": layout.new_id()}).encode(),
        f"{LOG_DIR[1:]}/bootstrap.checkpoint": first_records(
            version, ensure_java(), ensure_jars(f"kafka-{version}"), on_line=lambda _: None
        ),
    }
    arguments = as_container(service, image=ensure_image(client, version), host_ports={})
    return {**arguments, "command": command, "environment": {}}, packed(files)


def test_the_laptop_of_the_compose_file_runs(
    docker_client: Any, ballast_image: str, start: Start, services: dict[str, Any]
) -> None:
    """Ballast reads the one broker by the service's name, shows it on the loopback, observes, and stops within its grace."""
    broker = start("kafka", *kafka(docker_client, services["kafka"]))
    (port,) = free_ports(1)
    own = services["ballast"]
    ballast = start("ballast", as_container(own, image=ballast_image, host_ports={8080: port}))
    page = f"http://{LOOPBACK}:{port}"

    def ready() -> bool:
        broker.reload()
        assert broker.status == "running", broker.logs(tail=40).decode()
        return get(f"{page}/healthz")[0] == 200

    until("ready", ready, ballast, 240)
    status = json.loads(get(f"{page}/api/v1/status")[1])
    assert [b["id"] for b in status["cluster"]["brokers"]] == [1]
    assert (status["name"], status["role"]) == ("laptop", "observing")
    assert "ballast_cluster_info{" in get(f"{page}/metrics")[1]
    began = time.monotonic()
    ballast.stop(timeout=grace_s(own))
    assert time.monotonic() - began < grace_s(own)
    assert ballast.wait()["StatusCode"] == 0


@pytest.mark.parametrize(
    "strange", [{"privileged": True}, {"ports": ["8080:8080"]}, {"network_mode": "host"}, {"volumes": ["./a:/a"]}]
)
def test_what_is_not_executed_is_refused(services: dict[str, Any], strange: dict[str, Any]) -> None:
    """Otherwise a passing test would prove less than it seems to."""
    with pytest.raises(NotUnderstood):
        as_container({**services["ballast"], **strange}, image="any", host_ports={8080: 1})


def test_the_environment_of_kafkas_image_becomes_its_configuration() -> None:
    """One underscore is a dot, two are an underscore, three a dash."""
    assert properties_of({"KAFKA_LOG_DIRS": "/a", "KAFKA_A__B": "1", "KAFKA_C___D": "2"}) == {
        "log.dirs": "/a", "a_b": "1", "c-d": "2",
    }  # fmt: skip
