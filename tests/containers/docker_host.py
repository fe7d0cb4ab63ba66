"""A Docker for the test run: the one that answers, else one of the run's own; always with a supervisor."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import docker
from tests.containers.docker_supervisor import LABEL, READY, daemon_url, remove_containers, unmount_under
from tests.docker_daemon import docker_answers

ROOT: Final = Path(tempfile.gettempdir()) / f"ballast-docker-{os.getuid()}"
UP_WITHIN_S: Final = 120.0
DOWN_WITHIN_S: Final = 600.0
"""Its last step deletes the layers of every image that the run built: hundreds of thousands of files, on a disk that others use."""


@dataclass(frozen=True, slots=True)
class DockerHost:
    """Where the run's containers live."""

    folder: Path
    started: bool
    """Whether the daemon is the run's own."""
    supervisor: subprocess.Popen[bytes]

    @classmethod
    def open(cls) -> Self:
        """Find or start a Docker, and point testcontainers at it."""
        ROOT.mkdir(mode=0o700, exist_ok=True)
        sweep()
        started = not docker_answers()
        folder = Path(tempfile.mkdtemp(dir=ROOT, prefix="run-"))
        words = [str(folder), str(os.getpid()), "start" if started else "use"]
        with (folder / "supervisor.log").open("wb") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "tests.containers.docker_supervisor", *words],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        host = cls(folder, started, supervisor)
        deadline = time.monotonic() + UP_WITHIN_S
        while not (folder / READY).exists():
            if supervisor.poll() is not None or time.monotonic() > deadline:
                supervisor.terminate()
                raise RuntimeError(f"no Docker came up; its supervisor said: {host._told()}")
            time.sleep(0.05)
        if started:
            os.environ["DOCKER_HOST"] = daemon_url(folder)
        os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
        return host

    @property
    def labels(self) -> dict[str, str]:
        """What every container and network of the run must carry, so that the supervisor finds it."""
        return {LABEL: str(self.folder)}

    def client(self) -> Any:
        """A client of the daemon."""
        return docker.DockerClient(base_url=daemon_url(self.folder)) if self.started else docker.from_env()

    def _told(self) -> str:
        """The end of the supervisor's log."""
        try:
            return (self.folder / "supervisor.log").read_text()[-2000:]
        except FileNotFoundError:
            return "nothing that was kept"

    def close(self) -> None:
        """Have the supervisor clean up, and wait for it; what it was at is told if it does not end."""
        self.supervisor.send_signal(signal.SIGTERM)
        try:
            self.supervisor.wait(timeout=DOWN_WITHIN_S)
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"Docker's supervisor does not end; it said: {self._told()}") from error
        if self.started:
            os.environ.pop("DOCKER_HOST", None)


def sweep() -> None:
    """Take away what runs left whose supervisors were killed as well."""
    for folder in ROOT.glob("run-*"):
        lock = folder / "alive.lock"
        if not lock.exists():
            continue
        with lock.open() as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
        if docker_answers():
            client = docker.from_env()
            remove_containers(client, str(folder))
            client.close()
        end_processes_of(folder)
        unmount_under(folder)
        shutil.rmtree(folder, ignore_errors=True)


def end_processes_of(folder: Path) -> None:
    """Kill what a killed daemon left: processes whose command lines name the run's folder."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{folder}/".encode() in words:
            try:
                os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue
