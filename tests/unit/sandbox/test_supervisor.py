"""The supervisor: it starts and ends nodes, is waited for, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S, eventually

from ballast.errors import Unavailable
from ballast.sandbox import ports
from ballast.sandbox.folders import has_supervisor
from ballast.sandbox.ports import hold_ports, port_of
from ballast.sandbox.supervisor import SOCKET, listening
from ballast.sandbox.supervisor_client import SupervisorClient, start_supervisor


def test_the_supervisor_starts_signals_and_clears_away(tmp_path: Path) -> None:
    """A node is started, seen running, killed, seen dead; at the end its folder is gone."""
    folder = tmp_path / "held"
    folder.mkdir()
    sleeper = {"argv": [sys.executable, "-c", "import time; time.sleep(60)"], "env": {}, "log": "logs/a.log"}
    (folder / "nodes.json").write_text(json.dumps({"a": sleeper}))
    supervisor = start_supervisor(folder, owner=os.getpid())
    pid = supervisor.start("a")
    assert supervisor.start("a") == pid
    assert supervisor.running() == {"a": True}
    supervisor.signal("a", signal.SIGKILL)
    deadline = time.monotonic() + 10
    while supervisor.running()["a"]:
        assert time.monotonic() < deadline
    with pytest.raises(Unavailable, match="refused"):
        supervisor.start("unknown")
    supervisor.down()
    assert not folder.exists()
    assert not has_supervisor(folder)
    with pytest.raises(Unavailable, match="gone"):
        SupervisorClient(folder).running()


def test_ports_stay_held_until_the_supervisor_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of brokers that are down, and after the process that chose them has ended."""
    (holder,) = hold_ports(1)
    port = port_of(holder)
    monkeypatch.setattr(ports, "LOW", port)
    monkeypatch.setattr(ports, "HIGH", port + 1)
    (folder := tmp_path / "held").mkdir()
    with holder:
        supervisor = start_supervisor(folder, owner=os.getpid(), holders=[holder])
    with pytest.raises(Unavailable, match="fewer than 1 are free"):
        hold_ports(1)
    supervisor.down()

    def is_free() -> bool:
        with suppress(Unavailable), closing(hold_ports(1)[0]):
            return True
        return False

    # The last process of the supervisor gives up its lock, for which ``down`` waits, and then its ports.
    assert eventually(is_free, within_s=PATIENCE_S)


def test_down_waits_for_the_supervisors_own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ``down`` there is no process of the sandbox, though the last one removes the folder before it ends."""
    folder = tmp_path / "held"
    folder.mkdir()
    supervisor = start_supervisor(folder, owner=os.getpid())
    lock = (folder / "alive.lock").open("r")
    supervisor.down()
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lingering = tmp_path / "lingering"
    lingering.mkdir()
    held = (lingering / "alive.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            asked.append(json.loads(connection.makefile("rb").readline()))
            shutil.rmtree(lingering)
            connection.sendall(b'{"ok": true}\n')
        threading.Timer(0.3, held.close).start()

    asked: list[object] = []
    # The socket is bound in the current folder, which goes with it.
    monkeypatch.chdir(tmp_path)
    with listening(lingering) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        SupervisorClient(lingering).down()
        thread.join()
    assert asked == [{"do": "down"}]
    assert held.closed


def test_the_supervisors_socket_gets_its_name_when_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that waits for the name can connect at once, however slow the machine is between bind and listen."""
    monkeypatch.chdir(tmp_path)
    seen_before_listening: list[bool] = []

    class Watched(socket.socket):
        def listen(self, *args: int) -> None:
            seen_before_listening.append((tmp_path / SOCKET).exists())
            super().listen(*args)

    monkeypatch.setattr(socket, "socket", Watched)
    with listening(tmp_path), socket.socket(socket.AF_UNIX) as client:
        client.connect(SOCKET)
    assert seen_before_listening == [False]


def test_a_supervisor_that_lives_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is tried again while the supervisor holds its lock, and fails at once when it does not."""
    monkeypatch.chdir(tmp_path)
    answerer = socket.socket(socket.AF_UNIX)
    answerer.bind(SOCKET)
    refused = threading.Event()

    class Watched(socket.socket):
        def connect(self, address: object) -> None:
            try:
                super().connect(address)  # type: ignore[arg-type]
            except ConnectionRefusedError:
                refused.set()
                raise

    def answer_late() -> None:
        assert refused.wait(10)
        answerer.listen()
        connection, _ = answerer.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b'{"ok": true, "nodes": {"a": {"exit_code": null}}}\n')

    monkeypatch.setattr(socket, "socket", Watched)
    with (tmp_path / "alive.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        late = threading.Thread(target=answer_late)
        late.start()
        assert SupervisorClient(tmp_path).running() == {"a": True}
        late.join()
    answerer.close()
    began_s = time.monotonic()
    with pytest.raises(Unavailable, match="does not answer"):
        SupervisorClient(tmp_path).running()
    assert time.monotonic() - began_s < 5


def test_a_supervisor_that_ends_at_once_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it said is in the sentence, and a minute is not spent on it."""
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(Unavailable, match="it said nothing"):
        start_supervisor(tmp_path, owner=None)
