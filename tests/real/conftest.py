"""What the tests on real brokers share beside the clusters of ``tests.clusters``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real.daemon_process import Daemon


@pytest.fixture
def daemons() -> Iterator[list[Daemon]]:
    """Every daemon that a test starts and puts here; ended with it."""
    started: list[Daemon] = []
    yield started
    for daemon in started:
        if daemon.process.poll() is None:
            daemon.kill()
