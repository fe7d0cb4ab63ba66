"""The sandbox itself: real brokers, and nothing of them left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from tests.waiting import PATIENCE_S, eventually

from ballast.errors import UsageError
from ballast.sandbox import Sandbox, SandboxSpec

pytestmark = pytest.mark.kafka

OWNER = """
import sys, time
from pathlib import Path
from ballast.sandbox import Sandbox, SandboxSpec
sandbox = Sandbox.up(SandboxSpec(brokers=1, racks=0), folder=Path(sys.argv[1]))
print("ready", flush=True)
time.sleep(600)
"""


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every process whose command line names the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(folder) in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_brokers_stand_in_their_racks_and_listen_on_the_loopback_only(kraft: Sandbox) -> None:
    """Three brokers, three racks, and every address that clients are told is 127.0.0.1."""
    admin = AdminClient({"bootstrap.servers": kraft.bootstrap_server})
    nodes = admin.describe_cluster().result(PATIENCE_S).nodes
    assert {(node.id, node.rack, node.host) for node in nodes} == {
        (1, "rack-1", "127.0.0.1"),
        (2, "rack-2", "127.0.0.1"),
        (3, "rack-3", "127.0.0.1"),
    }


def test_a_killed_broker_leaves_and_comes_back(own_cluster: Callable[..., Sandbox]) -> None:
    """Kill, see it gone from metadata within the session timeout and some slack, start it, see it serve."""
    sandbox = own_cluster(brokers=2, racks=0)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server})
    sandbox.kill_broker(2)
    assert sandbox.running() == {1: True, 2: False}
    assert eventually(lambda: set(admin.list_topics(timeout=PATIENCE_S).brokers) == {1}, within_s=PATIENCE_S)
    sandbox.start_broker(2)
    assert eventually(lambda: set(admin.list_topics(timeout=PATIENCE_S).brokers) == {1, 2}, within_s=PATIENCE_S)


@pytest.mark.parametrize("victim", ["owner", "supervisor", "watcher"])
def test_nothing_survives_a_kill(victim: str, tmp_path: Path) -> None:
    """Kill -9 the owner, the supervisor, or the supervisor's parent: brokers and folder are gone soon."""
    folder = tmp_path / "cluster"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        of_supervisor = [p for p in processes_of(folder) if "ballast.sandbox.supervisor" in p.cmdline()]
        watcher = next(p for p in of_supervisor if p.ppid() not in {other.pid for other in of_supervisor})
        supervisor = next(p for p in of_supervisor if p != watcher)
        os.kill({"owner": owner.pid, "supervisor": supervisor.pid, "watcher": watcher.pid}[victim], signal.SIGKILL)
        assert eventually(lambda: all(p.pid == owner.pid for p in processes_of(folder)), within_s=PATIENCE_S)
        if victim != "watcher":
            assert eventually(lambda: not folder.exists(), within_s=PATIENCE_S)
    finally:
        owner.kill()
        owner.wait()


def test_an_unknown_broker_is_refused(kraft: Sandbox) -> None:
    """A broker that the sandbox does not have cannot be killed, and the sentence names those it has."""
    with pytest.raises(UsageError, match=r"no broker 7.*1, 2, 3"):
        kraft.kill_broker(7)


def test_an_unknown_version_is_refused() -> None:
    """A version without a lock is refused with those that have one."""
    with pytest.raises(UsageError, match=r"0\.8\.2.*4\.3\.1"):
        Sandbox.up(SandboxSpec(kafka_version="0.8.2"))
