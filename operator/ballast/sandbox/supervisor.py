"""The process that holds a cluster's JVMs: when it dies they die, and when its owner dies it ends itself.

It knows nothing of Kafka.  It starts the programs that ``nodes.json`` in its folder names, passes signals on, and answers on
a Unix socket, one JSON request per connection:

- ``{"do": "start", "node": NAME}`` starts a node, reading its command afresh;
- ``{"do": "signal", "node": NAME, "signal": N}``; ``{"do": "status"}``; ``{"do": "detach"}``; ``{"do": "down"}``.

Three nets, so that nothing survives a ``kill -9`` of any process: the kernel kills each node with the supervisor
(PR_SET_PDEATHSIG), the supervisor watches its owner's pidfd, and a parent process does nothing but wait for the supervisor and
remove the folder.  Should that parent be killed as well, the next sandbox sweeps the folder away.

It inherits the sockets that hold its cluster's ports (``ballast.sandbox.ports``), for brokers that are down as well.

Single-threaded on purpose: PR_SET_PDEATHSIG fires when the *thread* that started the child ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from ballast.sandbox.folders import ALIVE_LOCK

SOCKET: Final = "supervisor.sock"
NODES: Final = "nodes.json"
PR_SET_PDEATHSIG: Final = 1
REQUEST_LIMIT_BYTES: Final = 65536
BACKLOG: Final = 128
"""Requests that may wait while a node is being started; on a busy machine that takes a while."""


class Supervisor:
    """The nodes of one folder, and the loop that looks after them."""

    def __init__(self, folder: Path, *, owner: int | None) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.selector = selectors.DefaultSelector()
        self.owner_fd: int | None = None
        self.over = False
        if owner is not None:
            self._watch(owner)

    def _watch(self, owner: int) -> None:
        try:
            self.owner_fd = os.pidfd_open(owner)
        except ProcessLookupError:
            self.over = True
            return
        self.selector.register(self.owner_fd, selectors.EVENT_READ, self._owner_died)

    def _owner_died(self) -> None:
        self.over = True

    def serve(self) -> None:
        """Answer until told to end, until a signal says so, or until the owner dies; then kill what still runs."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: setattr(self, "over", True))
        # A signal's handler runs, but select would go back to sleep: the wake-up pipe ends that sleep.
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer)
        self.selector.register(reader, selectors.EVENT_READ, lambda: os.read(reader, 512))
        listener = listening(self.folder)
        self.selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))
        try:
            while not self.over:
                for key, _ in self.selector.select():
                    key.data()
        finally:
            self._kill_all()

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                request = json.loads(connection.makefile("rb").readline(REQUEST_LIMIT_BYTES))
                answer = {"ok": True, **self._answer(request)}
            except (OSError, ValueError, KeyError, TypeError) as problem:
                answer = {"ok": False, "error": f"{type(problem).__name__}: {problem}"}
            try:
                connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                return  # the client has gone; what it asked for is done

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "start":
                return {"pid": self._start(str(request["node"]))}
            case "signal":
                self.processes[str(request["node"])].send_signal(int(request["signal"]))
                return {}
            case "status":
                return {"nodes": {name: self._state(process) for name, process in self.processes.items()}}
            case "detach":
                self._detach()
                return {}
            case "down":
                self.over = True
                self._kill_all()
                return {}
            case other:
                raise ValueError(f"unknown request {other!r}")

    def _detach(self) -> None:
        if self.owner_fd is not None:
            self.selector.unregister(self.owner_fd)
            os.close(self.owner_fd)
            self.owner_fd = None

    def _start(self, name: str) -> int:
        running = self.processes.get(name)
        if running is not None and running.poll() is None:
            return running.pid
        node = json.loads((self.folder / NODES).read_text())[name]
        log = self.folder / node["log"]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self.processes[name] = subprocess.Popen(
                node["argv"],
                cwd=self.folder,
                env=node["env"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 — this process has a single thread
            )
        return self.processes[name].pid

    @staticmethod
    def _state(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        return {"pid": process.pid, "exit_code": process.poll()}

    def _kill_all(self) -> None:
        for process in self.processes.values():
            process.kill()  # also ends one that is stopped by SIGSTOP
        for process in self.processes.values():
            process.wait()


def listening(folder: Path) -> socket.socket:
    """A socket that listens before it gets its name, so that a client that sees the name can connect; makes the folder the current one."""
    # Relative to the folder, since a socket's path may have no more than 108 bytes.
    os.chdir(folder)
    unnamed = f"{SOCKET}.new"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(unnamed)
    listener.listen(BACKLOG)
    Path(unnamed).rename(SOCKET)
    return listener


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends; called between fork and exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(argv: list[str]) -> int:
    """Run as ``python -m ballast.sandbox.supervisor FOLDER OWNER_PID``; an owner of 0 means that no process owns the cluster."""
    folder, owner = Path(argv[0]), int(argv[1])
    # Locked before it gets its name, so that no sweep ever sees the name without the lock.
    unnamed = folder / f"{ALIVE_LOCK}.new"
    lock = unnamed.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / ALIVE_LOCK)
    child = os.fork()
    if child == 0:
        die_with_parent()
        Supervisor(folder, owner=owner or None).serve()
        return 0
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
