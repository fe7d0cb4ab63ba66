"""The sandbox's parts that need no Kafka: jars against their lock, Java, ports, folders, the supervisor."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ballast.errors import Unavailable, UsageError
from ballast.sandbox import SandboxSpec, current_sandbox, jars, layout, security
from ballast.sandbox.folders import has_supervisor
from ballast.sandbox.ports import HIGH, LOW, free_ports
from ballast.sandbox.security import create_scram_users
from ballast.sandbox.spec import ITS_OWN
from ballast.sandbox.supervisor import SOCKET, listening
from ballast.sandbox.supervisor_client import SupervisorClient, start_supervisor

CONTENT = b"not really a jar"
LOCK = f"# a lock\norg.example:thing:1.0 {hashlib.sha256(CONTENT).hexdigest()}\n"


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one jar and an empty cache; returns where the jar belongs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    (tmp_path / "kafka-0.1.lock").write_text(LOCK)
    return tmp_path / "cache" / "ballast" / "jars" / "kafka-0.1" / "thing-1.0.jar"


def serve(content: bytes, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for the repository: every asked-for jar has this content; returns the paths asked for, as they come."""
    asked: list[str] = []

    def download(files: Mapping[str, Path], _every_s: float) -> Iterator[list[str]]:
        for path, into in files.items():
            asked.append(path)
            into.write_bytes(content)
            yield [path]

    monkeypatch.setattr(jars, "download", download)
    return asked


def test_a_jar_is_fetched_once(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the cache and sound is not asked for again."""
    asked = serve(CONTENT, monkeypatch)
    assert jars.ensure_jars("kafka-0.1") == (locked,)
    assert jars.ensure_jars("kafka-0.1") == (locked,)
    assert asked == ["org/example/thing/1.0/thing-1.0.jar"]


def test_a_damaged_jar_is_fetched_again(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the cache that is not what the lock says is replaced."""
    serve(CONTENT, monkeypatch)
    jars.ensure_jars("kafka-0.1")
    locked.write_bytes(CONTENT[:5])
    jars.ensure_jars("kafka-0.1")
    assert locked.read_bytes() == CONTENT


def test_a_foreign_file_is_refused(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is served with another sha256 never gets its name in the cache."""
    serve(b"something else", monkeypatch)
    with pytest.raises(UsageError, match="not the file that the lock names"):
        jars.ensure_jars("kafka-0.1")
    assert not locked.exists()


def test_every_lock_can_be_read() -> None:
    """Each names its jars with a full sha256, none twice."""
    for name in [f"kafka-{version}" for version in jars.versions()] + [jars.TOOLS]:
        rows = jars.read_lock(name)
        assert len({row.file_name for row in rows}) == len(rows) > 20
        assert all(len(row.sha256) == 64 for row in rows)


def test_ports_are_distinct_and_outside_the_range_of_outgoing_connections() -> None:
    """No client may take a chosen port by accident."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(LOW <= port < HIGH for port in ports)


def test_brokers_are_dealt_over_the_racks() -> None:
    """Five brokers over three racks; without racks there are none."""
    spec = SandboxSpec(brokers=5)
    assert [spec.rack_of(broker) for broker in spec.broker_ids] == ["rack-1", "rack-2", "rack-3", "rack-1", "rack-2"]
    assert SandboxSpec(racks=0).rack_of(1) is None


def test_every_listener_is_on_the_loopback() -> None:
    """No configuration of any kind of cluster names another address."""
    ports = layout.Ports(brokers={1: 1001}, controllers={9001: 1002}, internals={1: 1003}, zookeeper=1004)
    for mode in ("kraft", "zookeeper"):
        spec = SandboxSpec(brokers=1, mode="kraft" if mode == "kraft" else "zookeeper", kafka_version="3.9.2")
        configs = layout.broker_properties(spec, ports, 1, [Path("/data")], None)
        listened = configs["listeners"] + configs["advertised.listeners"]
        assert listened.count("://") == listened.count("://127.0.0.1:") == 2
    assert layout.zookeeper_properties(ports, Path("/data"))["clientPortAddress"] == "127.0.0.1"


def test_a_brokers_own_setting_wins() -> None:
    """What a person sets with --set is what the broker gets."""
    spec = SandboxSpec(brokers=1, broker_configs={"auto.leader.rebalance.enable": "true"})
    ports = layout.Ports(brokers={1: 1}, controllers={9001: 2}, internals={})
    configs = layout.broker_properties(spec, ports, 1, [Path("/data")], None)
    assert configs["auto.leader.rebalance.enable"] == "true"


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


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"mode": "zookeeper", "kafka_version": "4.3.1"}, "has no ZooKeeper"),
        ({"kafka_version": "2.3.1"}, "has no KRaft"),
        ({"mode": "zookeeper", "kafka_version": "3.9.2", "controllers": 3}, "elect the controller"),
        ({"log_dirs": 0}, "0 log dirs"),
        ({"broker_configs": {"": "x"}}, "no name"),
        ({"broker_configs": {"listeners": "PLAINTEXT://0.0.0.0:9092"}}, "decides listeners itself"),
        ({"broker_configs": {"broker.id": "9"}}, "decides broker.id itself"),
    ],
)
def test_what_could_not_start_is_refused_at_once(wrong: dict[str, Any], sentence: str) -> None:
    """In one sentence, before anything is started: no stack trace of Kafka's, and never another address than the loopback."""
    with pytest.raises(UsageError, match=sentence):
        SandboxSpec(**wrong)


def test_no_broker_gives_up_before_the_sandbox_does() -> None:
    """On a busy machine the controller may take longer than Kafka's 60 s to register a broker, which then ends."""
    ports = layout.Ports(brokers={1: 1}, controllers={9001: 2}, internals={})
    configs = layout.broker_properties(SandboxSpec(brokers=1), ports, 1, [Path("/data")], None)
    assert int(configs["initial.broker.registration.timeout.ms"]) >= 1000 * layout.READY_WITHIN_S


def test_every_setting_that_the_layout_writes_for_listeners_and_folders_is_its_own() -> None:
    """Whatever is told of addresses, ids and folders cannot be overruled by --set."""
    ports = layout.Ports(brokers={1: 1}, controllers={9001: 2}, internals={}, zookeeper=3)
    for mode in ("kraft", "zookeeper"):
        spec = SandboxSpec(brokers=1, mode="kraft" if mode == "kraft" else "zookeeper", kafka_version="3.9.2")
        configs = layout.broker_properties(spec, ports, 1, [Path("/data")], None)
        placed = {
            name for name, value in configs.items() if "127.0.0.1" in value or "/data" in value or name.endswith(".id")
        }
        assert len(placed) >= 3
        assert placed <= ITS_OWN


def test_after_a_crash_down_clears_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose supervisor was killed along with its watcher goes at the next down; that nothing runs is no failure."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = current_sandbox.current_folder()
    folder.mkdir()
    (folder / "alive.lock").touch()
    assert not current_sandbox.end()
    assert not folder.exists()
    assert not current_sandbox.end()


def test_users_that_cannot_be_created_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a broker takes connections and never answers, once the time is over."""
    monkeypatch.setattr(security, "SCRAM_WITHIN_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        with pytest.raises(Unavailable, match="could not be created"):
            create_scram_users(f"127.0.0.1:{silent.getsockname()[1]}", {"admin": "word"})
        silent.accept()[0].close()


def test_users_are_created_by_the_next_controller_where_one_has_just_been_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker that was asked did nothing: it is no longer the controller, or has just ended."""
    failing = [KafkaError.NOT_CONTROLLER, KafkaError._TRANSPORT]
    asked: list[object] = []

    class Client:
        def __init__(self, _: Mapping[str, object]) -> None:
            pass

        def alter_user_scram_credentials(self, users: object, **_: float) -> dict[str, Future[None]]:
            asked.append(users)
            future: Future[None] = Future()
            if failing:
                future.set_exception(KafkaException(KafkaError(failing.pop())))
            else:
                future.set_result(None)
            return {"admin": future}

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", Client)
    monkeypatch.setattr(security, "SCRAM_PAUSE_S", 0.0)
    create_scram_users("127.0.0.1:1", {"admin": "word"})
    assert len(asked) == 3


def test_users_do_not_wait_for_a_controller_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one client hears of the next controller by metadata that it is asked for meanwhile; left alone, it would give up before."""
    asked: Future[None] = Future()
    gives_up = threading.Timer(3.0, lambda: asked.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT))))
    made: list[Mapping[str, object]] = []

    class Client:
        def __init__(self, config: Mapping[str, object]) -> None:
            made.append(config)

        def alter_user_scram_credentials(self, users: object, **_: float) -> dict[str, Future[None]]:
            del users
            gives_up.start()
            return {"admin": asked}

        def list_topics(self, **_: float) -> None:
            gives_up.cancel()
            asked.set_result(None)

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", Client)
    create_scram_users("127.0.0.1:1", {"admin": "word"})
    assert len(made) == 1
