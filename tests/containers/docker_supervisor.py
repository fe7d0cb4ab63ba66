"""The process that takes away what a test run put into Docker, however that run ends.

``python -m tests.containers.docker_supervisor FOLDER OWNER_PID start|use`` waits for the owner's death (or SIGTERM), removes
every container and network that carries the run's label, ends the Docker daemon where it started one, and removes the
folder.  It is the only one who does so: an orderly end takes the same road as a kill -9 of the test run.

When this process itself is killed, the daemon it started gets SIGTERM from the kernel and ends its containers in order; the
folder waits for the next run's sweep.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import docker
from docker.errors import APIError, DockerException

LABEL: Final = "ballast.tests.run"
READY: Final = "ready"
SOCKET: Final = "docker.sock"
DAEMON_UP_WITHIN_S: Final = 90.0
PR_SET_PDEATHSIG: Final = 1


def daemon_url(folder: Path) -> str:
    """The address of the daemon that a supervisor started in a folder."""
    return f"unix://{folder / SOCKET}"


def main(folder: Path, owner: int, *, start: bool) -> int:
    """Keep until the owner is gone, then clean up."""
    lock = (folder / "alive.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    over, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    daemon = start_daemon(folder) if start else None
    url = daemon_url(folder) if start else None
    try:
        client = wait_for_daemon(url, daemon)
        (folder / READY).touch()
        gone = os.pidfd_open(owner)
        select.select([over, gone], [], [])
        tell("removing containers")
        remove_containers(client, str(folder))
        client.close()
    except ProcessLookupError:
        pass  # the owner died before it could be watched
    finally:
        tell("ending the daemon")
        end_daemon(daemon)
        tell("deleting its files")
        unmount_under(folder)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def tell(step: str) -> None:
    """Write to the log what happens now."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {step}\n")
    sys.stdout.flush()


def start_daemon(folder: Path) -> subprocess.Popen[bytes]:
    """A Docker daemon whose every file is in the folder."""
    command = ["dockerd", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")]
    command += ["--pidfile", str(folder / "dockerd.pid"), "--host", daemon_url(folder), "--group", "root"]
    with (folder / "dockerd.log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 — this process has a single thread
        )


def end_with_parent() -> None:
    """Ask the kernel for a SIGTERM when the parent ends: on a SIGKILL the daemon would leave its containers behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_for_daemon(url: str | None, daemon: subprocess.Popen[bytes] | None) -> Any:
    """A client of the daemon, as soon as it answers."""
    deadline = time.monotonic() + DAEMON_UP_WITHIN_S
    while True:
        try:
            client = docker.DockerClient(base_url=url, timeout=60) if url else docker.from_env(timeout=60)
            client.ping()
        except DockerException:
            if time.monotonic() > deadline or (daemon is not None and daemon.poll() is not None):
                raise
            time.sleep(0.2)
        else:
            return client


def remove_containers(client: Any, run: str) -> None:
    """Every container and network of a run."""
    ours = {"label": f"{LABEL}={run}"}
    for container in client.containers.list(all=True, filters=ours, ignore_removed=True):
        try:
            container.remove(force=True, v=True)
        except APIError:
            continue  # gone meanwhile, or being removed by the test itself
    for network in client.networks.list(filters=ours):
        try:
            network.remove()
        except APIError:
            continue


def end_daemon(daemon: subprocess.Popen[bytes] | None) -> None:
    """Let the daemon end in order; it ends containerd."""
    if daemon is None:
        return
    daemon.terminate()
    try:
        daemon.wait(timeout=60)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def unmount_under(folder: Path) -> None:
    """Mounts of a daemon that has ended would keep the folder from being removed."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((m for m in mounts if m.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), start=sys.argv[3] == "start"))
