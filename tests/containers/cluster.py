"""Brokers in containers on a network of their own, with the faults that only containers can have."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from tests.containers.docker_host import DockerHost
from tests.containers.image import JARS, JAVA, ensure_image

from ballast.sandbox import SandboxSpec, layout
from ballast.sandbox.jars import ensure_jars, read_lock
from ballast.sandbox.java import Java, ensure_java
from ballast.sandbox.ports import free_ports
from ballast.sandbox.readiness import wait_for_brokers
from ballast.sandbox.warm import first_records

CONTROLLER: Final = 9001
CONTROLLER_PORT: Final = 9093
INSIDE_PORT: Final = 9092
OUTSIDE_PORT: Final = 19092
READY_WITHIN_S: Final = 240.0


@dataclass(slots=True)
class ContainerCluster:
    """One controller and some brokers, each in a container."""

    spec: SandboxSpec
    ports: dict[int, int]
    """Broker id to the port on the host's loopback under which clients reach it."""
    containers: dict[int, Any] = field(default_factory=dict)
    network: Any = None
    stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def up(cls, host: DockerHost, spec: SandboxSpec) -> Self:
        """Start the cluster and wait until every broker serves."""
        from testcontainers.core.network import Network

        client = host.client()
        image = ensure_image(client, spec.kafka_version)
        client.close()
        ports = dict(zip(spec.broker_ids, free_ports(spec.brokers), strict=True))
        cluster = cls(spec, ports)
        try:
            network = Network(docker_network_kw={"labels": host.labels})
            cluster.network = cluster.stack.enter_context(network)
            cluster_id = layout.new_id()
            java = ensure_java()
            jars = ensure_jars(f"kafka-{spec.kafka_version}")
            checkpoint = first_records(spec.kafka_version, java, jars, say=lambda _: None)
            for node in (CONTROLLER, *spec.broker_ids):
                cluster._start(host, image, node, cluster_id, checkpoint)
            cluster.wait_until_ready(spec.broker_ids)
        except BaseException:
            cluster.down()
            raise
        return cluster

    def _start(self, host: DockerHost, image: str, node: int, cluster_id: str, checkpoint: bytes) -> None:
        from testcontainers.core.container import DockerContainer

        name = layout.node_name(node)
        identity = {"version": "1", "cluster.id": cluster_id, "node.id": str(node), "directory.id": layout.new_id()}
        jars = tuple(Path(JARS) / jar.file_name for jar in read_lock(f"kafka-{self.spec.kafka_version}"))
        command = layout.java_command(
            Java(Path(JAVA), 25),
            jars,
            heap_mib=self.spec.heap_mib,
            options=[],
            main=["kafka.Kafka", "/data/server.properties"],
        )
        container = (
            DockerContainer(image, labels=host.labels, hostname=name)
            .with_network(self.network)
            .with_network_aliases(name)
            .with_command(command)
            .with_copy_into_container(layout.as_properties(self.properties(node)).encode(), "data/server.properties")
            .with_copy_into_container(layout.as_properties(identity).encode(), "data/log/meta.properties")
            .with_copy_into_container(checkpoint, "data/log/bootstrap.checkpoint")
        )
        if node in self.ports:
            # Not with_bind_ports, which publishes on every address of the host.
            container.ports[f"{OUTSIDE_PORT}/tcp"] = (layout.LOOPBACK, self.ports[node])
        self.stack.enter_context(container)
        self.containers[node] = container.get_wrapped_container()

    def properties(self, node: int) -> dict[str, str]:
        """A node's configuration: names on the network inside, the host's loopback outside."""
        own = layout.node_name(node)
        shared = {
            **layout.common_configs(self.spec),
            "node.id": str(node),
            "log.dirs": "/data/log",
            "controller.quorum.voters": f"{CONTROLLER}@{layout.node_name(CONTROLLER)}:{CONTROLLER_PORT}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "broker.session.timeout.ms": str(self.spec.session_timeout_ms),
            "broker.heartbeat.interval.ms": "500",
        }
        if node == CONTROLLER:
            return shared | {"process.roles": "controller", "listeners": f"CONTROLLER://{own}:{CONTROLLER_PORT}"}
        outside = f"OUTSIDE://{layout.LOOPBACK}:{self.ports[node]}"
        rack = self.spec.rack_of(node)
        return shared | {
            "process.roles": "broker",
            "listeners": f"INSIDE://0.0.0.0:{INSIDE_PORT},OUTSIDE://0.0.0.0:{OUTSIDE_PORT}",
            "advertised.listeners": f"INSIDE://{own}:{INSIDE_PORT},{outside}",
            "inter.broker.listener.name": "INSIDE",
            **({"broker.rack": rack} if rack else {}),
        }

    @property
    def bootstrap_server(self) -> str:
        """Where clients on the host connect."""
        return ",".join(f"{layout.LOOPBACK}:{port}" for port in self.ports.values())

    def wait_until_ready(self, brokers: tuple[int, ...]) -> None:
        """Wait until these brokers serve."""

        def check() -> None:
            for node, container in self.containers.items():
                container.reload()
                if container.status == "exited" and (node == CONTROLLER or node in brokers):
                    raise RuntimeError(f"node {node} ended: {container.logs().decode(errors='replace')[-2000:]}")

        ports = {broker: self.ports[broker] for broker in brokers}
        wait_for_brokers(self.bootstrap_server, ports, within_s=READY_WITHIN_S, check=check)

    def pause(self, broker: int) -> None:
        """Freeze every process of a broker's container."""
        self.containers[broker].pause()

    def unpause(self, broker: int) -> None:
        """Let it go on."""
        self.containers[broker].unpause()

    def kill(self, broker: int) -> None:
        """Kill -9."""
        self.containers[broker].kill()

    def start(self, broker: int) -> None:
        """Start a killed broker and wait until it serves."""
        self.containers[broker].start()
        self.wait_until_ready((broker,))

    def disconnect(self, broker: int) -> None:
        """Cut a broker off: from the other brokers, the controller and the clients."""
        self._network().disconnect(self.containers[broker])

    def reconnect(self, broker: int) -> None:
        """Undo ``disconnect``."""
        self._network().connect(self.containers[broker], aliases=[layout.node_name(broker)])

    def _network(self) -> Any:
        return self.containers[CONTROLLER].client.networks.get(self.network.id)

    def down(self) -> None:
        """Remove the containers and the network."""
        for container in self.containers.values():
            container.reload()
            if container.status == "paused":
                container.unpause()
        self.stack.close()


def eventually(what: Callable[[], bool], *, within_s: float) -> bool:
    """Whether a condition came true in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.2)
    return what()
