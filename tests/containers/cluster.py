"""Brokers in containers on a network of their own, with KRaft or ZooKeeper, and the faults that only containers can have."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from docker.errors import APIError
from docker.types import DriverConfig, Mount
from tests.containers.docker_host import DockerHost
from tests.containers.image import JARS, JAVA, ensure_image, java_of
from tests.ports import free_ports
from tests.waiting import until

from ballast.sandbox import SandboxSpec, layout
from ballast.sandbox.jars import ensure_jars, read_lock
from ballast.sandbox.java import Java, ensure_java
from ballast.sandbox.readiness import wait_for_brokers
from ballast.sandbox.warm import first_records

CONTROLLER: Final = 9001
CONTROLLER_PORT: Final = 9093
INSIDE_PORT: Final = 9092
OUTSIDE_PORT: Final = 19092
ZOOKEEPER_PORT: Final = 2181
FETCH_BYTES: Final = 128 * 1024
"""A throttled follower takes this much and then pauses until the rate allows more: small, so that slow copies are seen to grow."""
READY_WITHIN_S: Final = 240.0
LOG_DIR: Final = "/data/log"
SECOND_LOG_DIR: Final = "/data/second"
SMALL_LOG_DIR: Final = "/data/small"
SMALL_MIB: Final = 12


@dataclass(slots=True)
class ContainerCluster:
    """One controller (or ZooKeeper) and some brokers, each in a container."""

    spec: SandboxSpec
    ports: dict[int, int]
    """Broker id to the port on the host's loopback under which clients reach it."""
    labels: dict[str, str]
    image: str
    zookeeper_port: int = 0
    """The port on the host's loopback under which clients reach ZooKeeper, where there is one."""
    cramped: int | None = None
    """The broker whose second log dir is the small memory disk."""
    containers: dict[int, Any] = field(default_factory=dict)
    network: Any = None
    cluster_id: str = field(default_factory=layout.new_id)
    stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def up(cls, host: DockerHost, spec: SandboxSpec) -> Self:
        """Start the cluster and wait until every broker serves."""
        from testcontainers.core.network import Network

        client = host.client()
        image = ensure_image(client, spec.kafka_version)
        client.close()
        ports = dict(zip(spec.broker_ids, free_ports(spec.brokers), strict=True))
        cluster = cls(spec, ports, host.labels, image)
        if spec.mode == "zookeeper":
            (cluster.zookeeper_port,) = free_ports(1)
        try:
            network = Network(docker_network_kw={"labels": host.labels})
            cluster.network = cluster.stack.enter_context(network)
            for node in (CONTROLLER, *spec.broker_ids):
                cluster._start(node)
            cluster.wait_until_ready(spec.broker_ids)
        except BaseException:
            cluster.down()
            raise
        return cluster

    def add_cramped_broker(self) -> int:
        """One more broker, whose second log dir is a disk of a few MiB; it stays until the cluster goes down."""
        self.cramped = max(self.ports) + 1
        (self.ports[self.cramped],) = free_ports(1)
        self._start(self.cramped)
        self.wait_until_ready((self.cramped,))
        return self.cramped

    def _start(self, node: int) -> None:
        from testcontainers.core.container import DockerContainer

        name = layout.node_name(node)
        version = self.spec.kafka_version
        jars = tuple(Path(JARS) / jar.file_name for jar in read_lock(f"kafka-{version}"))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain" if self._keeps_znodes(node) else "kafka.Kafka"
        command = layout.java_command(
            Java(Path(JAVA), java_of(version)),
            jars,
            heap_mib=self.spec.heap_mib,
            options=["-Dzookeeper.jmx.log4j.disable=true"] if self.spec.mode == "zookeeper" else [],
            main=[main, "/data/server.properties"],
        )
        container = (
            DockerContainer(self.image, labels=self.labels, hostname=name, **self._small_disk(node))
            .with_network(self.network)
            .with_network_aliases(name)
            .with_command(command)
            .with_copy_into_container(layout.as_properties(self.properties(node)).encode(), "data/server.properties")
        )
        if self.spec.mode == "kraft":
            self._format(container, node)
        # Not with_bind_ports, which publishes on every address of the host.
        if node in self.ports:
            container.ports[f"{OUTSIDE_PORT}/tcp"] = (layout.LOOPBACK, self.ports[node])
        elif self._keeps_znodes(node):
            container.ports[f"{ZOOKEEPER_PORT}/tcp"] = (layout.LOOPBACK, self.zookeeper_port)
        self.stack.enter_context(container)
        self.containers[node] = container.get_wrapped_container()

    def _format(self, container: Any, node: int) -> None:
        """What Kafka's storage tool would write."""
        version = self.spec.kafka_version
        checkpoint = first_records(version, ensure_java(), ensure_jars(f"kafka-{version}"), on_line=lambda _: None)
        container.with_copy_into_container(checkpoint, "data/log/bootstrap.checkpoint")
        for folder in self.log_dirs(node):
            identity = {"version": "1", "cluster.id": self.cluster_id, "node.id": str(node)}
            text = layout.as_properties(identity | {"directory.id": layout.new_id()})
            container.with_copy_into_container(text.encode(), f"{folder[1:]}/meta.properties")

    def _keeps_znodes(self, node: int) -> bool:
        """The node in the controller's place is ZooKeeper where brokers need one."""
        return self.spec.mode == "zookeeper" and node == CONTROLLER

    def _small_disk(self, node: int) -> dict[str, Any]:
        """The disk exists while a container mounts it: the controller does, so that a test can write to it first."""
        if node == CONTROLLER:
            return {"mounts": [small_disk()]}
        return {"volumes_from": [self.containers[CONTROLLER].id]} if node == self.cramped else {}

    def log_dirs(self, node: int) -> tuple[str, ...]:
        """Where a node keeps replicas."""
        if node == self.cramped:
            return (LOG_DIR, SMALL_LOG_DIR)
        return (LOG_DIR, SECOND_LOG_DIR) if node in self.spec.broker_ids and self.spec.log_dirs > 1 else (LOG_DIR,)

    def properties(self, node: int) -> dict[str, str]:
        """A node's configuration: names on the network inside, the host's loopback outside."""
        return self._with_zookeeper(node) if self.spec.mode == "zookeeper" else self._with_quorum(node)

    def _with_zookeeper(self, node: int) -> dict[str, str]:
        if node == CONTROLLER:
            ports = layout.Ports(brokers={}, controllers={}, internals={}, zookeeper=ZOOKEEPER_PORT)
            znodes = layout.zookeeper_properties(ports, Path("/data/znodes"))
            # The brokers reach it from their own containers.
            return {key: value for key, value in znodes.items() if key != "clientPortAddress"}
        return {
            **layout.common_configs(self.spec),
            "broker.id": str(node),
            "log.dirs": ",".join(self.log_dirs(node)),
            "zookeeper.connect": f"{layout.node_name(CONTROLLER)}:{ZOOKEEPER_PORT}",
            "zookeeper.session.timeout.ms": str(self.spec.session_timeout_ms),
            "zookeeper.connection.timeout.ms": "30000",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            **self._listeners(node),
        }

    def _with_quorum(self, node: int) -> dict[str, str]:
        own = layout.node_name(node)
        shared = {
            **layout.common_configs(self.spec),
            "node.id": str(node),
            "log.dirs": ",".join(self.log_dirs(node)),
            "metadata.log.dir": LOG_DIR,
            "controller.quorum.voters": f"{CONTROLLER}@{layout.node_name(CONTROLLER)}:{CONTROLLER_PORT}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "broker.session.timeout.ms": str(self.spec.session_timeout_ms),
            "broker.heartbeat.interval.ms": "500",
        }
        if node == CONTROLLER:
            return shared | {"process.roles": "controller", "listeners": f"CONTROLLER://{own}:{CONTROLLER_PORT}"}
        return {**shared, "process.roles": "broker", **self._listeners(node)}

    def _listeners(self, node: int) -> dict[str, str]:
        own, outside = layout.node_name(node), f"OUTSIDE://{layout.LOOPBACK}:{self.ports[node]}"
        rack = self.spec.rack_of(node)
        return {
            "replica.fetch.max.bytes": str(FETCH_BYTES),
            "listeners": f"INSIDE://0.0.0.0:{INSIDE_PORT},OUTSIDE://0.0.0.0:{OUTSIDE_PORT}",
            "advertised.listeners": f"INSIDE://{own}:{INSIDE_PORT},{outside}",
            "inter.broker.listener.name": "INSIDE",
            **({"broker.rack": rack} if rack else {}),
        }

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Every broker, those that were added among them."""
        return tuple(sorted(self.ports))

    @property
    def zookeeper(self) -> str | None:
        """Where clients on the host reach ZooKeeper; None where there is none."""
        return f"{layout.LOOPBACK}:{self.zookeeper_port}" if self.spec.mode == "zookeeper" else None

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

    def pause(self, node: int) -> None:
        """Freeze every process of a node's container; where they begin threads all the time, that takes several tries."""

        def is_frozen() -> bool:
            try:
                self.containers[node].pause()
            except APIError as failure:
                if "unable to freeze" not in str(failure):
                    raise
                return False
            return True

        until(is_frozen, f"node {node} to be frozen")

    def unpause(self, node: int) -> None:
        """Let it go on."""
        self.containers[node].unpause()

    def kill(self, node: int) -> None:
        """Kill -9."""
        self.containers[node].kill()

    def start(self, node: int) -> None:
        """Start a killed node, and wait until it serves where it is a broker."""
        self.containers[node].start()
        if node != CONTROLLER:
            self.wait_until_ready((node,))

    def disconnect(self, node: int) -> None:
        """Cut a node off from the others, and a broker from its clients."""
        self._network().disconnect(self.containers[node])

    def reconnect(self, node: int) -> None:
        """Undo ``disconnect``."""
        self._network().connect(self.containers[node], aliases=[layout.node_name(node)])

    def _network(self) -> Any:
        return self.containers[CONTROLLER].client.networks.get(self.network.id)

    def down(self) -> None:
        """Remove the containers and the network."""
        for container in self.containers.values():
            container.reload()
            if container.status == "paused":
                container.unpause()
        self.stack.close()


def small_disk() -> Mount:
    """A memory disk in a volume without a name, which goes when its containers do."""
    options = {"type": "tmpfs", "device": "tmpfs", "o": f"size={SMALL_MIB}m"}
    return Mount(SMALL_LOG_DIR, None, driver_config=DriverConfig("local", options))
