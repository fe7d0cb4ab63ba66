"""``ballast daemon`` as a process of its own, watched from outside as an operator would."""

from __future__ import annotations

import http.client
import json
import math
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests import waiting
from tests.leash import leashed
from tests.ports import free_ports
from tests.waiting import whole_lines

IMPATIENT: dict[str, Any] = {
    "intervals": {
        "observe_s": 1,
        "log_dirs_s": 2,
        "balance_s": 5,
        "repair_s": 2,
        "act_s": 1,
        "lock_s": 1,
        "journal_s": 2,
    },
    "leaders": {"check_interval_s": 2, "with_controller_rebalance": "act"},
    "guards": {"membership_cool_down_s": 5, "down_broker_grace_s": 3600},
    "actions": {"replica_list_changes": {"cool_down_s": 1}, "moves": {"cool_down_s": 1, "per_day": 50}},
    "journal": {"lease_s": 5},
}
"""A test has no five minutes: the same decisions at shorter intervals."""


ANSWERS_WITHIN_S = 30.0
"""A page of the loopback; a process that is gone refuses at once."""
ENDS_WITHIN_S = 90.0
PATIENCE_S = 240.0
"""The first plan on a fresh machine compiles the planner: twenty seconds of a core, minutes on a busy machine."""


class Series(dict[str, float]):
    """Series to value.  One that is not there, or on a page that did not answer, equals and exceeds nothing."""

    def __missing__(self, name: str) -> float:
        """Not a number."""
        return math.nan


def get(url: str) -> tuple[int, str]:
    """Status and body, of refusals too; 0 where there is no whole answer."""
    try:
        try:
            answer = urllib.request.urlopen(url, timeout=ANSWERS_WITHIN_S)  # noqa: S310 — our own server
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as failure:
        return 0, str(failure)


@dataclass
class Daemon:
    """One process."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path
    file: Path
    """Its settings."""

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; 0 while the daemon does not answer, or where it ends in the middle of its answer."""
        return get(f"http://127.0.0.1:{self.port}{path}")

    @property
    def status(self) -> dict[str, Any]:
        """What the page shows; empty while the daemon does not answer."""
        code, body = self.get("/api/v1/status")
        return dict(json.loads(body)) if code == 200 else {}

    @property
    def role(self) -> str:
        """What it is to the cluster."""
        return str(self.status.get("role", ""))

    @property
    def metrics(self) -> Series:
        """Series to value; empty while the daemon does not answer."""
        code, text = self.get("/metrics")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")] if code == 200 else []
        return Series({series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)})

    @property
    def handles(self) -> int:
        """Open files and sockets."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def thread_names(self) -> list[str]:
        """The names of its threads, those of the client libraries too."""
        names = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # It has ended since.
                names.append((task / "comm").read_text().strip())
        return names

    @property
    def resident_kib(self) -> int:
        """Memory that the process really has."""
        return self._of_status("VmRSS")

    def _of_status(self, name: str) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name}:"))

    def messages(self) -> list[str]:
        """The sentences of its log."""
        lines = whole_lines(self.log)
        return [str(json.loads(line)["message"]) for line in lines if line.startswith("{")]

    def kill(self) -> None:
        """``kill -9``."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(ENDS_WITHIN_S)

    def reconfigure(self, **sections: Any) -> None:
        """Change settings and sections of its file in one step, as a person or a ConfigMap does while it runs."""
        tree = yaml.safe_load(self.file.read_text())
        for section, values in sections.items():
            tree[section] = {**tree.get(section, {}), **values} if isinstance(values, Mapping) else values
        fresh = self.file.with_suffix(".new")
        fresh.write_text(yaml.safe_dump(tree))
        fresh.replace(self.file)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(ENDS_WITHIN_S)


def start(
    name: str,
    folder: Path,
    bootstrap_server: str,
    settings: Mapping[str, Any],
    *,
    client: Path | None = None,
    zookeeper: str | None = None,
    environment: Mapping[str, str] | None = None,
    module: str = "ballast",
) -> Daemon:
    """Start a daemon with these settings over the impatient ones; ``module`` is what Python runs as Ballast."""
    (port,) = free_ports(1)
    cluster: dict[str, Any] = {"name": "sandbox", "bootstrap_server": bootstrap_server}
    if client is not None:
        cluster["command_config"] = str(client)
    if zookeeper is not None:
        cluster["zookeeper"] = zookeeper
    tree = {**IMPATIENT, **settings, "cluster": cluster, "web": {"port": port}}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(tree))
    log = folder / f"{name}.log"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("BALLAST")}
    with log.open("wb") as out:
        process = subprocess.Popen(
            leashed(sys.executable, "-m", module, "daemon", "--config", str(file)),
            stdout=out,
            stderr=out,
            env=inherited | {"BALLAST_INSTANCE": name} | dict(environment or {}),
        )
    return Daemon(name, port, process, log, file)


def until(what: str, probe: Callable[[], Any], daemons: list[Daemon], timeout_s: float = PATIENCE_S) -> Any:
    """Poll; fail with the ends of the logs."""

    def tails() -> str:
        return "\n".join(f"== {d.name}\n" + "\n".join(d.messages()[-15:]) for d in daemons)

    return waiting.until(probe, what, within_s=timeout_s, story=tails)
