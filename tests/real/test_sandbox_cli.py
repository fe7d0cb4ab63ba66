"""``ballast sandbox`` as a person uses it: up, look, fill, break, mend, down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.documents import validated
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment whose sandbox is not the one that the person at this machine may have running."""
    environment = {**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("sandboxes"))}
    environment.pop("BALLAST_BOOTSTRAP_SERVER", None)
    yield environment
    ballast(environment, "sandbox", "down", expect=None)


def ballast(environment: dict[str, str], *words: str, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run the command; its exit code must be the expected one."""
    command = [sys.executable, "-m", "ballast", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert expect is None or done.returncode == expect, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def sandbox_status(environment: dict[str, str]) -> dict[str, object]:
    """What ``sandbox status`` says to programs."""
    (answer,) = validated(ballast(environment, "sandbox", "status", "--output", "json").stdout)
    return answer


def test_a_persons_session(home: dict[str, str]) -> None:
    """Each command does what it says, other commands find the sandbox, and nothing is left after down."""
    assert "No sandbox is running" in ballast(home, "sandbox", "status", expect=2).stderr
    up = ballast(home, "sandbox", "up", "--brokers", "2", "--racks", "2", "--security", "plain")
    assert "127.0.0.1:" in up.stdout
    assert "running already" in ballast(home, "sandbox", "up", expect=2).stderr
    told = sandbox_status(home)
    assert told["brokers"] == [
        {"id": 1, "rack": "rack-1", "running": True},
        {"id": 2, "rack": "rack-2", "running": True},
    ]
    folder = Path(str(told["folder"]))
    assert folder.stat().st_mode & 0o077 == 0

    ballast(home, "sandbox", "fill", "--topics", "1", "--partitions", "2", "--megabytes", "1", "--prefix", "things")
    described = ballast(home, "topics", "describe", "things-1", "--output", "json").stdout
    assert json.loads(described)
    for words in (("cancel",), ("runs", "resume"), ("throttles", "--clean"), ("runs",), ("throttles",)):
        ballast(home, *words)
    # Where nothing was ever executed there is nothing to write down: no journal has been made.
    looked = json.loads(ballast(home, "status", "--output", "json").stdout)
    assert looked["cluster"]["topics"] - looked["cluster"]["internalTopics"] == 1

    assert json.loads(ballast(home, "status", "--check", "--output", "json").stdout)["needsAttention"] is False
    ballast(home, "sandbox", "kill-broker", "2")
    # At once: the cluster goes on listing it as alive until its session has ended.
    killed = json.loads(ballast(home, "status", "--check", "--output", "json", expect=3).stdout)
    assert [b["reachable"] for b in killed["brokers"]] == [True, False]
    assert sandbox_status(home)["brokers"] == [
        {"id": 1, "rack": "rack-1", "running": True},
        {"id": 2, "rack": "rack-2", "running": False},
    ]
    ballast(home, "sandbox", "start-broker", "2")
    ballast(home, "sandbox", "kill-broker", "2", "--freeze")
    ballast(home, "sandbox", "start-broker", "2")
    assert "no broker 9" in ballast(home, "sandbox", "kill-broker", "9", expect=2).stderr

    ballast(home, "sandbox", "down")
    assert not folder.exists()

    def left() -> list[int]:
        return [
            p.pid for p in psutil.process_iter(["cmdline"]) if any(str(folder) in w for w in p.info["cmdline"] or [])
        ]

    assert eventually(lambda: not left(), within_s=PATIENCE_S), left()
    assert "none was running" in ballast(home, "sandbox", "down").stderr


def test_versions_are_told() -> None:
    """What ``up`` can be asked for, for people and for programs."""
    (told,) = validated(ballast(dict(os.environ), "sandbox", "versions", "--output", "json").stdout)
    assert {"4.3.1", "3.9.2", "2.3.1"} <= set(told["kafkaVersions"])
    assert "sasl-tls" in told["security"]
    assert "sasl-tls" in ballast(dict(os.environ), "sandbox", "versions").stdout
