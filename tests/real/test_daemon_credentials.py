"""Credentials that expire and are replaced while the daemon runs, on brokers that really ask for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real.daemon_process import Daemon, start, until

from ballast.sandbox import Sandbox
from ballast.sandbox.layout import as_properties

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

WRONG = "certainly-not-the-password"


def test_a_password_changed_in_its_file_is_used_without_a_restart(
    secured: Callable[[str], Sandbox], daemons: list[Daemon], tmp_path: Path
) -> None:
    """Refused with the old one it says so, now and then; with the new one in the file it acts; a broken file changes nothing."""
    sandbox = secured("scram")
    right = as_properties(sandbox.client_properties)
    password = next(p for p in right.split('"') if p and "password" not in p and f'password="{p}"' in right)
    client = tmp_path / "client.properties"
    client.write_text(right.replace(password, WRONG))
    began_s = time.monotonic()
    daemon = start("rotated", tmp_path, sandbox.bootstrap_server, {"mode": "auto"}, client=client)
    daemons.append(daemon)

    def refusals() -> list[str]:
        return [m for m in daemon.messages() if "rejected the user" in m]

    until("refusals", lambda: len(refusals()) >= 2, daemons)
    assert daemon.get("/healthz")[0] == 503
    fresh = client.with_suffix(".new")
    fresh.write_text("security.protocol=CARRIER_PIGEON\n")
    fresh.replace(client)
    until("the mistake", lambda: any("CARRIER_PIGEON" in m for m in daemon.messages()), daemons)
    assert daemon.process.poll() is None
    fresh.write_text(right)
    fresh.replace(client)
    until("the lock", lambda: daemon.role == "active" and daemon.get("/healthz")[0] == 200, daemons)
    # Each loop asks again after twice the pause, up to 15 s for the one that reads: not two or three times a second.
    elapsed_s = time.monotonic() - began_s
    assert len(refusals()) <= 10 + elapsed_s / 6, f"within {elapsed_s:.0f} s"
    assert WRONG not in daemon.log.read_text()
    assert password not in daemon.log.read_text()
    assert daemon.stop() == 0
