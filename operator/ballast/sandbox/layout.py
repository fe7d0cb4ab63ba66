"""The files of a cluster: what each node is configured with and how it is started.

Plain functions from a spec, ports and a folder to text; nothing here starts anything.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ballast.sandbox.java import Java
from ballast.sandbox.security import Guard
from ballast.sandbox.spec import SandboxSpec
from ballast.sandbox.supervisor import NODES

ZOOKEEPER: Final = "zookeeper"
LOOPBACK: Final = "127.0.0.1"
READY_WITHIN_S: Final = 180.0
"""How long a cluster, or one broker of it, may take until it serves; no broker gives up earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Which node listens where, on the loopback."""

    brokers: dict[int, int]
    controllers: dict[int, int]
    internals: dict[int, int]
    """The brokers' second, plaintext listeners; none unless the cluster is guarded."""
    zookeeper: int | None = None


def new_id() -> str:
    """A random id in Kafka's form: 16 bytes, base64 for URLs, never starting with a dash (the tools would take it for a flag)."""
    while (encoded := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return encoded


def node_name(node_id: int) -> str:
    """The supervisor's name of a Kafka node."""
    return f"node-{node_id}"


def common_configs(spec: SandboxSpec) -> dict[str, str]:
    """What every broker of a sandbox has: small, quick to notice a death, and never balancing by itself."""
    copies = min(3, spec.brokers)
    return {
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "delete.topic.enable": "true",
        "offsets.topic.replication.factor": str(copies),
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(min(2, copies)),
        "transaction.state.log.num.partitions": "5",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "num.replica.fetchers": "1",
        "replica.lag.time.max.ms": "10000",
        "replica.fetch.backoff.ms": "250",
        "background.threads": "2",
        "log.cleaner.dedupe.buffer.size": "4194304",
        "log.index.size.max.bytes": "1048576",
    }


def kraft_configs(spec: SandboxSpec, ports: Ports) -> dict[str, str]:
    """What controllers and brokers of a KRaft cluster share."""
    voters = ",".join(f"{node}@{LOOPBACK}:{port}" for node, port in ports.controllers.items())
    copies = min(3, spec.brokers)
    configs = {
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "broker.session.timeout.ms": str(spec.session_timeout_ms),
        "broker.heartbeat.interval.ms": str(max(250, spec.session_timeout_ms // 8)),
        "initial.broker.registration.timeout.ms": str(int(READY_WITHIN_S * 1000)),
        "controller.quorum.election.timeout.ms": "2000",
        "controller.quorum.fetch.timeout.ms": "4000",
    }
    if spec.kafka_version.startswith("4."):
        configs["share.coordinator.state.topic.replication.factor"] = str(copies)
        configs["share.coordinator.state.topic.min.isr"] = str(min(2, copies))
    return configs


def controller_properties(
    spec: SandboxSpec, ports: Ports, node: int, data: Path, guard: Guard | None
) -> dict[str, str]:
    """A separate KRaft controller."""
    return {
        "process.roles": "controller",
        "node.id": str(node),
        "listeners": f"CONTROLLER://{LOOPBACK}:{ports.controllers[node]}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(data),
        **common_configs(spec),
        **kraft_configs(spec, ports),
        **(guard.authorizer_configs(spec.mode) if guard else {}),
        **spec.controller_configs,
    }


def broker_properties(
    spec: SandboxSpec, ports: Ports, broker: int, data: list[Path], guard: Guard | None
) -> dict[str, str]:
    """A broker, in either mode."""
    rack = spec.rack_of(broker)
    identity = {"log.dirs": ",".join(str(folder) for folder in data), **({"broker.rack": rack} if rack else {})}
    if spec.mode == "kraft":
        mode = {"process.roles": "broker", "node.id": str(broker), **kraft_configs(spec, ports)}
    else:
        mode = {
            "broker.id": str(broker),
            "zookeeper.connect": f"{LOOPBACK}:{ports.zookeeper}",
            "zookeeper.session.timeout.ms": str(spec.session_timeout_ms),
            "zookeeper.connection.timeout.ms": "30000",
        }
    return {
        **identity,
        **listeners(ports, broker, guard),
        **common_configs(spec),
        **mode,
        **(guard.broker_configs(spec.mode) if guard else {}),
        **spec.broker_configs,
    }


def listeners(ports: Ports, broker: int, guard: Guard | None) -> dict[str, str]:
    """Where a broker listens: one plaintext listener, or a guarded one for clients and a plaintext one for brokers."""
    if guard is None:
        listener = f"PLAINTEXT://{LOOPBACK}:{ports.brokers[broker]}"
        protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
        between = "PLAINTEXT"
    else:
        client, internal = ports.brokers[broker], ports.internals[broker]
        listener = f"CLIENT://{LOOPBACK}:{client},INTERNAL://{LOOPBACK}:{internal}"
        protocols = f"CONTROLLER:PLAINTEXT,CLIENT:{guard.protocol},INTERNAL:PLAINTEXT"
        between = "INTERNAL"
    return {
        "listeners": listener,
        "advertised.listeners": listener,
        "listener.security.protocol.map": protocols,
        "inter.broker.listener.name": between,
    }


def zookeeper_properties(ports: Ports, data: Path) -> dict[str, str]:
    """A standalone ZooKeeper."""
    return {
        "dataDir": str(data),
        "clientPort": str(ports.zookeeper),
        "clientPortAddress": LOOPBACK,
        "tickTime": "500",
        "maxSessionTimeout": "60000",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }


def as_properties(values: dict[str, str]) -> str:
    """Java's properties form; no value of ours needs escaping beyond the backslash."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in values.items())


def format_log_dir(folder: Path, *, cluster_id: str, node: int, checkpoint: bytes | None) -> None:
    """What Kafka's storage tool writes: the identity of the folder and, where given, the first metadata records."""
    folder.mkdir(parents=True)
    identity = {"version": "1", "cluster.id": cluster_id, "node.id": str(node), "directory.id": new_id()}
    (folder / "meta.properties").write_text(as_properties(identity))
    if checkpoint is not None:
        (folder / "bootstrap.checkpoint").write_bytes(checkpoint)


def java_command(
    java: Java, jars: tuple[Path, ...], *, heap_mib: int, options: list[str], main: list[str]
) -> list[str]:
    """A JVM that starts fast and stays small: no compiler for long runs, one collector thread, little else."""
    return [
        java.executable,
        f"-Xmx{heap_mib}m",
        "-Xms32m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        "-Djava.awt.headless=true",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
        *options,
        "-cp",
        ":".join(str(jar) for jar in jars),
        *main,
    ]


def node_entry(argv: list[str], name: str) -> dict[str, Any]:
    """How the supervisor starts one node; the environment is ours alone, so that no foreign KAFKA_OPTS leaks in."""
    env = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR"}}
    return {"argv": argv, "env": env, "log": f"logs/{name}.log"}


def write_nodes(folder: Path, nodes: dict[str, dict[str, Any]]) -> None:
    """Tell the supervisor what there is to start."""
    (folder / NODES).write_text(json.dumps(nodes))
