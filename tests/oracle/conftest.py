"""Kafka's own classes, once for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oracle.java import Classic, Jvm, Striped


@pytest.fixture(scope="session")
def classic() -> Iterator[Classic]:
    """The placement of ZooKeeper-mode controllers."""
    jvm = Jvm("kafka-3.9.2")
    yield Classic(jvm)
    jvm.close()


@pytest.fixture(scope="session")
def tools_jvm() -> Iterator[Jvm]:
    """Kafka 4.x with its command line tools."""
    jvm = Jvm("kafka-tools-4.3.1")
    yield jvm
    jvm.close()


@pytest.fixture(scope="session")
def striped(tools_jvm: Jvm) -> Striped:
    """The placement of KRaft controllers."""
    return Striped(tools_jvm)
