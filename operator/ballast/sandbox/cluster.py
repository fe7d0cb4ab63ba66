"""A cluster of real brokers on this machine's loopback, and what one may do to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from ballast.core.wording import ShowLine, human_many
from ballast.errors import BallastError, Unavailable, UsageError
from ballast.sandbox import layout
from ballast.sandbox.folders import clusters_root, has_supervisor, sweep
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import Java, java_for
from ballast.sandbox.ports import hold_ports, port_of
from ballast.sandbox.readiness import wait_for_brokers
from ballast.sandbox.security import Guard, create_scram_users, new_users
from ballast.sandbox.spec import SandboxSpec
from ballast.sandbox.supervisor_client import SupervisorClient, start_supervisor
from ballast.sandbox.warm import archive_path, first_records

STATE: Final = "sandbox.json"
ATTEMPTS: Final = 3


class PortTaken(Unavailable):
    """Another process took one of the chosen ports before the broker could; another attempt takes others."""


class Sandbox:
    """A running cluster; a context manager that ends it."""

    def __init__(
        self, folder: Path, spec: SandboxSpec, ports: layout.Ports, cluster_id: str, users: dict[str, str]
    ) -> None:
        self.folder = folder
        self.spec = spec
        self.ports = ports
        self.cluster_id = cluster_id
        self.supervisor = SupervisorClient(folder)
        self.guard = Guard(spec.security, folder / "certificates", users) if spec.security else None

    @classmethod
    def up(
        cls,
        spec: SandboxSpec | None = None,
        *,
        folder: Path | None = None,
        owned: bool = True,
        on_line: ShowLine = lambda _: None,
    ) -> Self:
        """Start a cluster and wait until every broker serves.

        It ends when ``down`` is called, when the process that called this ends (unless ``owned`` is false), and when its
        supervisor is killed.  ``folder`` must not exist yet; it is removed at the end, as is the one chosen by default.
        """
        spec = spec or SandboxSpec()
        sweep()
        for attempt in range(1, ATTEMPTS + 1):
            place = _new_folder(folder)
            try:
                return cls._start(spec, place, owned=owned, on_line=on_line)
            except PortTaken:
                if attempt == ATTEMPTS:
                    raise
                on_line("a port was taken by another process; trying again")
        raise AssertionError("unreachable")

    @classmethod
    def _start(cls, spec: SandboxSpec, folder: Path, *, owned: bool, on_line: ShowLine) -> Self:
        try:
            with ExitStack() as stack:
                holders = [stack.enter_context(holder) for holder in hold_ports(spec.port_count)]
                sandbox = cls._lay_out(spec, folder, map(port_of, holders), on_line)
                start_supervisor(folder, owner=os.getpid(), holders=holders)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            on_line(f"starting {human_many(spec.brokers, 'broker')} of Kafka {spec.kafka_version} ({spec.mode})")
            sandbox.start_all()
            if not owned:
                sandbox.supervisor.detach()
        except BaseException:
            sandbox.down()
            raise
        return sandbox

    @classmethod
    def _lay_out(cls, spec: SandboxSpec, folder: Path, free: Iterator[int], on_line: ShowLine) -> Self:
        java = java_for(spec.kafka_version, on_line=on_line)
        jars = ensure_jars(f"kafka-{spec.kafka_version}", on_line=on_line)
        zookeeper = spec.mode == "zookeeper"
        ports = layout.Ports(
            brokers={broker: next(free) for broker in spec.broker_ids},
            controllers={node: next(free) for node in spec.controller_ids},
            internals={broker: next(free) for broker in spec.broker_ids} if spec.security else {},
            zookeeper=next(free) if zookeeper else None,
        )
        sandbox = cls(folder, spec, ports, layout.new_id(), new_users() if spec.security else {})
        if sandbox.guard:
            sandbox.guard.write_certificates()
        checkpoint = None if zookeeper else first_records(spec.kafka_version, java, jars, on_line=on_line)
        nodes = dict(sandbox.nodes(java, jars, checkpoint))
        layout.write_nodes(folder, nodes)
        sandbox.client_properties_file.write_text(layout.as_properties(sandbox.client_properties))
        (folder / STATE).write_text(
            json.dumps(
                {
                    "spec": asdict(spec),
                    "ports": asdict(ports),
                    "cluster_id": sandbox.cluster_id,
                    "users": sandbox.guard.users if sandbox.guard else {},
                }
            )
        )
        return sandbox

    def nodes(
        self, java: Java, jars: tuple[Path, ...], checkpoint: bytes | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Write every node's configuration and empty log dirs; yields how the supervisor starts each."""
        spec, ports = self.spec, self.ports

        def entry(name: str, configs: dict[str, str], main: str) -> tuple[str, dict[str, Any]]:
            file = self.folder / "config" / f"{name}.properties"
            file.parent.mkdir(exist_ok=True)
            file.write_text(layout.as_properties(configs))
            argv = layout.java_command(
                java,
                jars,
                heap_mib=spec.heap_mib,
                options=options,
                main=[main, str(file)],
            )
            return name, layout.node_entry(argv, name)

        options = [*spec.java_options]
        if spec.mode == "zookeeper":
            options.append("-Dzookeeper.jmx.log4j.disable=true")
        archive = archive_path(spec.kafka_version, java)
        if spec.archive_classes:
            options.append(f"-XX:ArchiveClassesAtExit={archive.with_suffix('.new')}")
        elif archive.exists():
            options.append(f"-XX:SharedArchiveFile={archive}")
        if ports.zookeeper is not None:
            data = self.folder / "data" / layout.ZOOKEEPER
            data.mkdir(parents=True)
            configs = layout.zookeeper_properties(ports, data)
            yield entry(layout.ZOOKEEPER, configs, "org.apache.zookeeper.server.quorum.QuorumPeerMain")
        for node in spec.controller_ids:
            data = self.folder / "data" / layout.node_name(node)
            layout.format_log_dir(data, cluster_id=self.cluster_id, node=node, checkpoint=checkpoint)
            yield entry(
                layout.node_name(node), layout.controller_properties(spec, ports, node, data, self.guard), "kafka.Kafka"
            )
        for broker in spec.broker_ids:
            dirs = self.log_dirs(broker)
            for folder in dirs:
                if spec.mode == "kraft":
                    layout.format_log_dir(folder, cluster_id=self.cluster_id, node=broker, checkpoint=checkpoint)
                else:
                    folder.mkdir(parents=True)
            yield entry(
                layout.node_name(broker), layout.broker_properties(spec, ports, broker, dirs, self.guard), "kafka.Kafka"
            )

    def start_all(self) -> None:
        """Start every node that does not run and wait until all brokers serve."""
        if self.ports.zookeeper is not None:
            self.supervisor.start(layout.ZOOKEEPER)
        for node in (*self.spec.controller_ids, *self.spec.broker_ids):
            self.supervisor.start(layout.node_name(node))
        self.wait_until_ready()
        if self.guard and self.guard.mechanism == "SCRAM-SHA-512":
            create_scram_users(_addresses(self.ports.internals), self.guard.users)

    @classmethod
    def attach(cls, folder: Path) -> Self:
        """The running cluster of a folder, for another process than the one that started it."""
        try:
            state = json.loads((folder / STATE).read_text())
        except OSError as missing:
            raise Unavailable(f"There is no sandbox in {folder}.") from missing
        numbered = {
            name: {int(k): v for k, v in state["ports"][name].items()}
            for name in ("brokers", "controllers", "internals")
        }
        ports = layout.Ports(zookeeper=state["ports"]["zookeeper"], **numbered)
        return cls(folder, SandboxSpec(**state["spec"]), ports, state["cluster_id"], state["users"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the brokers, down ones too."""
        return self.spec.broker_ids

    @property
    def bootstrap_server(self) -> str:
        """Where clients connect: every broker's address."""
        return _addresses(self.ports.brokers)

    @property
    def zookeeper(self) -> str | None:
        """ZooKeeper's address; None on KRaft."""
        return f"{layout.LOOPBACK}:{self.ports.zookeeper}" if self.ports.zookeeper is not None else None

    @property
    def client_properties(self) -> dict[str, str]:
        """What a client must be configured with beside the bootstrap servers, in Kafka's own form."""
        return self.guard.client_properties() if self.guard else {"security.protocol": "PLAINTEXT"}

    @property
    def client_properties_file(self) -> Path:
        """The same as a file, for ``--command-config``."""
        return self.folder / "client.properties"

    @property
    def librdkafka_properties(self) -> dict[str, str]:
        """The same in the words of librdkafka, the library under confluent-kafka."""
        return self.guard.librdkafka_properties() if self.guard else {"security.protocol": "PLAINTEXT"}

    def log_dirs(self, broker: int) -> list[Path]:
        """The log dirs of a broker."""
        home = self.folder / "data" / layout.node_name(broker)
        return [home / f"disk-{number}" for number in range(1, self.spec.log_dirs + 1)]

    def log_text(self, node: int | str) -> str:
        """What a node has logged so far (warnings and worse)."""
        name = node if isinstance(node, str) else layout.node_name(node)
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def running(self) -> dict[int, bool]:
        """Which brokers have a process."""
        states = self.supervisor.running()
        return {broker: states.get(layout.node_name(broker), False) for broker in self.broker_ids}

    def kill_broker(self, broker: int) -> None:
        """``kill -9`` a broker or a controller, and wait until its process is gone."""
        self._end(broker, signal.SIGKILL)

    def stop_broker(self, broker: int) -> None:
        """Ask a broker to shut down in order, and wait until its process is gone."""
        self._end(broker, signal.SIGTERM)

    def pause_broker(self, broker: int) -> None:
        """Freeze a broker: its connections stay open and nothing answers."""
        self.supervisor.signal(self._require_node(broker), signal.SIGSTOP)

    def resume_broker(self, broker: int) -> None:
        """Let a frozen broker go on."""
        self.supervisor.signal(self._require_node(broker), signal.SIGCONT)

    def start_broker(self, broker: int, *, wait: bool = True) -> None:
        """Start a broker (or controller) that was killed or stopped; by default wait until the broker serves."""
        self.supervisor.start(self._require_node(broker))
        if wait and broker in self.broker_ids:
            self.wait_until_ready([broker])

    def _require_node(self, node: int) -> str:
        if node not in (*self.broker_ids, *self.spec.controller_ids):
            raise UsageError(
                f"The sandbox has no broker {node}.", hint=f"It has {', '.join(map(str, self.broker_ids))}."
            )
        return layout.node_name(node)

    def _end(self, node: int, how: signal.Signals) -> None:
        name = self._require_node(node)
        self.supervisor.signal(name, how)
        deadline = time.monotonic() + layout.READY_WITHIN_S
        while self.supervisor.running().get(name):
            if time.monotonic() > deadline:
                raise Unavailable(f"Broker {node} did not end within {layout.READY_WITHIN_S:.0f} s of {how.name}.")
            time.sleep(0.05)

    def wait_until_ready(self, brokers: Collection[int] | None = None) -> None:
        """Wait until these brokers (all by default) serve; fails at once when one of their processes ended."""
        wanted = set(self.broker_ids if brokers is None else brokers)
        nodes = {layout.node_name(broker) for broker in wanted}
        if brokers is None:
            nodes |= {layout.node_name(node) for node in self.spec.controller_ids}
            nodes |= {layout.ZOOKEEPER} if self.zookeeper else set()

        def check() -> None:
            running = self.supervisor.running()
            for name in sorted(nodes):
                if running.get(name) is False:
                    self._raise_for(name)

        # A guarded cluster is asked by its inner listener: its users may not exist yet.
        inner = self.ports.internals or self.ports.brokers
        ports = {broker: inner[broker] for broker in wanted}
        wait_for_brokers(_addresses(inner), ports, within_s=layout.READY_WITHIN_S, check=check)

    def _raise_for(self, name: str) -> None:
        log = self.log_text(name)
        if "Address already in use" in log:
            raise PortTaken(f"{name} found its port taken.")
        raise Unavailable(f"{name} ended while it started; it said: {log[-2000:].strip() or 'nothing'}")

    def down(self) -> None:
        """End every process and remove the folder; fine to call twice."""
        if has_supervisor(self.folder):
            try:
                self.supervisor.down()
            except BallastError:
                if has_supervisor(self.folder):
                    raise


def _addresses(ports: dict[int, int]) -> str:
    return ",".join(f"{layout.LOOPBACK}:{port}" for port in ports.values())


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(dir=clusters_root(), prefix="cluster-"))
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as there:
        raise UsageError(f"{folder} is there already.", hint="Name a folder that does not exist yet.") from there
    return folder
