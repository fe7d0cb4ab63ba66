"""Clusters for the tests, and what a test needs of the machine.

A shared cluster ends with the file that uses it: brokers are quicker to start than idle ones are cheap to keep.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings

from ballast.sandbox import Sandbox, SandboxSpec

# How long an example takes is the machine's business: tests run beside others on two cores.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

pytest_plugins = ["tests.parts", "tests.requirements"]


def pytest_configure() -> None:
    """Let commands under test be interrupted as from a terminal, however the run itself was started.

    A shell gives its background jobs an ignored SIGINT; every command that a test starts would inherit it and hear nothing.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class ClusterFactory(Protocol):
    """Starts a cluster of the test's own; the fixture ends it."""

    def __call__(self, **spec: object) -> Sandbox:
        """Start a cluster described by the fields of ``SandboxSpec``."""


def _say(line: str) -> None:
    sys.stderr.write(f"[sandbox] {line}\n")


@pytest.fixture(scope="module")
def kraft() -> Iterator[Sandbox]:
    """The newest Kafka: three brokers in three racks and a separate controller; no test breaks it."""
    with Sandbox.up(SandboxSpec(), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def kraft39() -> Iterator[Sandbox]:
    """Kafka 3.9 with KRaft, three brokers in three racks; no test breaks it."""
    with Sandbox.up(SandboxSpec(kafka_version="3.9.2"), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def zk39() -> Iterator[Sandbox]:
    """Kafka 3.9 with ZooKeeper, three brokers in three racks; no test breaks it."""
    with Sandbox.up(SandboxSpec(kafka_version="3.9.2", mode="zookeeper"), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def zk23() -> Iterator[Sandbox]:
    """Kafka 2.3.1 with ZooKeeper (before KIP-455), three brokers in three racks; no test breaks it."""
    with Sandbox.up(SandboxSpec(kafka_version="2.3.1", mode="zookeeper"), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def quorum3() -> Iterator[Sandbox]:
    """The newest Kafka with a quorum of three controllers; no test breaks it."""
    with Sandbox.up(SandboxSpec(controllers=3), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def secured() -> Iterator[Callable[[str], Sandbox]]:
    """Guarded clusters of one broker, one per kind of ``ballast.sandbox.security``: ``secured("sasl-tls")``; kept for the file."""
    with ExitStack() as stack:
        started: dict[str, Sandbox] = {}

        def start(kind: str) -> Sandbox:
            if kind not in started:
                spec = SandboxSpec(brokers=1, racks=0, security=kind)
                started[kind] = stack.enter_context(Sandbox.up(spec, say=_say))
            return started[kind]

        yield start


@pytest.fixture
def own_cluster() -> Iterator[ClusterFactory]:
    """Clusters of a test's own, to break: ``own_cluster(brokers=4, racks=2)``."""
    with ExitStack() as stack:

        def start(**spec: object) -> Sandbox:
            return stack.enter_context(Sandbox.up(SandboxSpec(**spec), say=_say))  # type: ignore[arg-type]

        yield start
