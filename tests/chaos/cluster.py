"""A sandbox whose every connection goes through one proxy, and the faults that processes of this machine can have."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.chaos.proxy import ANYBODY
from tests.leash import leashed
from tests.ports import free_ports

from ballast.sandbox import Sandbox
from ballast.sandbox.layout import LOOPBACK, ZOOKEEPER, node_name


class ChaosSandbox(Sandbox):
    """Nodes listen on ports that only the proxy knows; the advertised ones are the proxy's."""

    proxy: subprocess.Popen[str] | None = None
    daemons_folder: Path
    """Where the settings files of Ballast's processes lie: by them they are told apart."""
    _apart: frozenset[tuple[str, str]] = frozenset()

    def start_all(self) -> None:
        """Put the proxy between before anything starts."""
        if self.proxy is None:
            self._hide()
        super().start_all()

    def _hide(self) -> None:
        """Let each node listen elsewhere, and the proxy at the ports that everybody knows."""
        shown = {node_name(n): [p] for n, p in self.ports.controllers.items()}
        for broker in self.broker_ids:
            inner = [self.ports.internals[broker]] if self.ports.internals else []
            shown[node_name(broker)] = [self.ports.brokers[broker], *inner]
        if self.ports.zookeeper is not None:
            shown[ZOOKEEPER] = [self.ports.zookeeper]
        free = iter(free_ports(sum(map(len, shown.values()))))
        routes = {name: [[port, next(free)] for port in ports] for name, ports in shown.items()}
        for name, pairs in routes.items():
            self._rewrite(self.folder / "config" / f"{name}.properties", pairs)
        self.daemons_folder = self.folder / "ballast"
        self.daemons_folder.mkdir()
        folders = [f"{self.folder / 'config'}/", f"{self.daemons_folder}/"]
        self.proxy = subprocess.Popen(
            leashed(sys.executable, "-m", "tests.chaos.proxy", *folders),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        self._tell(routes=routes)

    @staticmethod
    def _rewrite(file: Path, pairs: list[list[int]]) -> None:
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            key, _, value = line.partition("=")
            if key not in {"listeners", "clientPort"}:
                continue
            for port, hidden in pairs:
                value = value.replace(str(port), str(hidden))
            lines[number] = f"{key}={value}"
            if key == "listeners" and value.startswith("CONTROLLER:"):
                lines.append(f"advertised.{line}")
        file.write_text("\n".join(lines) + "\n")

    def _tell(self, **order: Any) -> None:
        assert self.proxy is not None
        assert self.proxy.stdin is not None
        assert self.proxy.stdout is not None
        self.proxy.stdin.write(json.dumps(order) + "\n")
        self.proxy.stdin.flush()
        assert self.proxy.stdout.readline() == "done\n", "the proxy has ended"

    def cut_off(self, name: str) -> None:
        """Let nothing through between this node or daemon and anybody."""
        self._set_apart(self._apart | {(name, ANYBODY)})

    def rejoin(self, name: str) -> None:
        """Undo ``cut_off``."""
        self._set_apart(self._apart - {(name, ANYBODY)})

    def _set_apart(self, pairs: frozenset[tuple[str, str]]) -> None:
        self._apart = pairs
        self._tell(apart=[list(pair) for pair in pairs])

    @property
    def inner_server(self) -> str:
        """Where clients without credentials connect."""
        ports = self.ports.internals or self.ports.brokers
        return ",".join(f"{LOOPBACK}:{port}" for port in ports.values())

    def pids(self) -> dict[str, int]:
        """The process id of each node that runs."""
        nodes = self.supervisor._ask(do="status")["nodes"]
        return {name: state["pid"] for name, state in nodes.items() if state["exit_code"] is None}

    def fill_disk(self, broker: int) -> None:
        """From now on no file of this broker grows, as on a disk without room: writes fail, and Kafka gives its log dirs up."""
        pid = self.pids().get(node_name(broker))
        if pid is not None:
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a node that runs."""
        self.supervisor.signal(name, number)

    def down(self) -> None:
        """The proxy as well."""
        super().down()
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.wait()


CLIENT_TIMEOUTS: Final = {"socket.timeout.ms": 20_000, "log_level": 0}
