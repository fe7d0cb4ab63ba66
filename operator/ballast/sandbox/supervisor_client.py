"""Talks to a cluster's supervisor."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TextIO

from ballast.errors import Unavailable
from ballast.sandbox.folders import ALIVE_LOCK, has_supervisor
from ballast.sandbox.supervisor import SOCKET

ANSWER_WITHIN_S: Final = 60.0
CONNECT_WITHIN_S: Final = 10.0
NOT_YET: Final = (ConnectionRefusedError, BlockingIOError, FileNotFoundError)
"""A supervisor that lives may for a moment not listen yet, or have a full queue; nothing has been asked of it then."""


def start_supervisor(folder: Path, *, owner: int | None, holders: Iterable[socket.socket] = ()) -> SupervisorClient:
    """Start the process that will hold the cluster in a folder, and its ports; ``owner`` is whose death ends it."""
    with (folder / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ballast.sandbox.supervisor", str(folder), str(owner or 0)],
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[holder.fileno() for holder in holders],
        )
    client = SupervisorClient(folder)
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while not (has_supervisor(folder) and (folder / SOCKET).exists()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Unavailable(f"The sandbox's supervisor did not start: {_log_end(folder)}")
        time.sleep(0.02)
    return client


def _log_end(folder: Path) -> str:
    try:
        return (folder / "supervisor.log").read_text()[-500:].strip() or "it said nothing."
    except FileNotFoundError:
        return "it ended and took its folder with it."


class SupervisorClient:
    """One request per connection; raises ``Unavailable`` when the supervisor is gone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _ask(self, **request: Any) -> dict[str, Any]:
        # Through the folder's descriptor, since a socket's path may have no more than 108 bytes.
        try:
            folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY)
        except OSError as gone:
            raise Unavailable(f"The sandbox in {self.folder} is gone.") from gone
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(ANSWER_WITHIN_S)
                self._connect(connection, f"/proc/self/fd/{folder}/{SOCKET}")
                connection.sendall(json.dumps(request).encode() + b"\n")
                answer: dict[str, Any] = json.loads(connection.makefile("rb").readline())
        except (OSError, ValueError) as problem:
            raise Unavailable(f"The sandbox's supervisor does not answer: {problem}") from problem
        finally:
            os.close(folder)
        if not answer["ok"]:
            raise Unavailable(f"The sandbox's supervisor refused: {answer['error']}")
        return answer

    def _connect(self, connection: socket.socket, path: str) -> None:
        deadline = time.monotonic() + CONNECT_WITHIN_S
        while True:
            try:
                connection.connect(path)
            except NOT_YET:
                if time.monotonic() > deadline or not has_supervisor(self.folder):
                    raise
                time.sleep(0.02)
            else:
                return

    def start(self, node: str) -> int:
        """Start a node (a running one is left alone); returns its process id."""
        return int(self._ask(do="start", node=node)["pid"])

    def signal(self, node: str, number: signal.Signals) -> None:
        """Send a signal to a node; nothing happens when it has ended."""
        self._ask(do="signal", node=node, signal=int(number))

    def running(self) -> dict[str, bool]:
        """Every node that was ever started, and whether it runs."""
        return {name: state["exit_code"] is None for name, state in self._ask(do="status")["nodes"].items()}

    def detach(self) -> None:
        """From now on the cluster outlives its owner: only the supervisor's own death ends it."""
        self._ask(do="detach")

    def down(self) -> None:
        """End everything and wait until the folder is gone, and the supervisor's processes with it."""
        try:
            # Opened now, since the name goes with the folder; released by the kernel when the last process ends.
            lock = (self.folder / ALIVE_LOCK).open("r")
        except FileNotFoundError as gone:
            raise Unavailable(f"The sandbox in {self.folder} is gone.") from gone
        with lock:
            self._ask(do="down")
            deadline = time.monotonic() + ANSWER_WITHIN_S
            while (self.folder.exists() or _is_held(lock)) and time.monotonic() < deadline:
                time.sleep(0.02)


def _is_held(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
