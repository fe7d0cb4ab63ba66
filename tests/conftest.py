"""Clusters for the tests, and what a test needs of the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest

from ballast.sandbox import Sandbox, SandboxSpec

pytest_plugins = ["tests.parts", "tests.requirements"]


class ClusterFactory(Protocol):
    """Starts a cluster of the test's own; the fixture ends it."""

    def __call__(self, **spec: object) -> Sandbox:
        """Start a cluster described by the fields of ``SandboxSpec``."""


def _say(line: str) -> None:
    sys.stderr.write(f"[sandbox] {line}\n")


@pytest.fixture(scope="session")
def kraft() -> Iterator[Sandbox]:
    """The newest Kafka: three brokers in three racks and a separate controller; no test breaks it."""
    with Sandbox.up(SandboxSpec(), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def kraft39() -> Iterator[Sandbox]:
    """Kafka 3.9 with KRaft, three brokers in three racks; no test breaks it."""
    with Sandbox.up(SandboxSpec(kafka_version="3.9.2"), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def zk39() -> Iterator[Sandbox]:
    """Kafka 3.9 with ZooKeeper, three brokers in three racks; no test breaks it."""
    with Sandbox.up(SandboxSpec(kafka_version="3.9.2", mode="zookeeper"), say=_say) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def zk23() -> Iterator[Sandbox]:
    """Kafka 2.3.1 with ZooKeeper (before KIP-455), three brokers in three racks; no test breaks it."""
    with Sandbox.up(SandboxSpec(kafka_version="2.3.1", mode="zookeeper"), say=_say) as sandbox:
        yield sandbox


@pytest.fixture
def own_cluster() -> Iterator[ClusterFactory]:
    """Clusters of a test's own, to break: ``own_cluster(brokers=4, racks=2)``."""
    with ExitStack() as stack:

        def start(**spec: object) -> Sandbox:
            return stack.enter_context(Sandbox.up(SandboxSpec(**spec), say=_say))  # type: ignore[arg-type]

        yield start
