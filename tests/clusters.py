"""Clusters for the tests: some of a test's own, to break, and some that no test breaks, shared by the files of a group.

Brokers cost seconds of both cores to start, and idle ones take their share of every test that runs meanwhile.  So a shared
cluster starts when a test first asks for it, serves every later test of the group (``tests/parts.py``), and ends with the last
file of these that needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from typing import Final, Protocol

import pytest
from tests.parts import group_of

from ballast.sandbox import Sandbox, SandboxSpec

SPECS: Final[dict[str, SandboxSpec]] = {
    "kraft": SandboxSpec(),
    "kraft39": SandboxSpec(kafka_version="3.9.2"),
    "zk39": SandboxSpec(kafka_version="3.9.2", mode="zookeeper"),
    "zk23": SandboxSpec(kafka_version="2.3.1", mode="zookeeper"),
    "quorum3": SandboxSpec(controllers=3),
}
"""Fixture, and the cluster that it hands out."""
SECURED: Final = "secured"


def say(line: str) -> None:
    """The sandbox's story, for the report of a test that fails."""
    sys.stderr.write(f"[sandbox] {line}\n")


class SharedClusters:
    """Those that run in this process, by fixture; of the guarded ones one for each kind of security."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str | None], Sandbox] = {}

    def get(self, fixture: str, spec: SandboxSpec) -> Sandbox:
        """The cluster, started if it does not run."""
        key = (fixture, spec.security)
        if key not in self._running:
            self._running[key] = Sandbox.up(spec, on_line=say)
        return self._running[key]

    def keep(self, fixtures: Collection[str]) -> None:
        """End those of all other fixtures."""
        for key in [key for key in self._running if key[0] not in fixtures]:
            self._running.pop(key).down()


CLUSTERS: Final = SharedClusters()


@pytest.fixture(scope="module")
def kraft() -> Sandbox:
    """The newest Kafka: three brokers in three racks and a separate controller; no test breaks it."""
    return CLUSTERS.get("kraft", SPECS["kraft"])


@pytest.fixture(scope="module")
def kraft39() -> Sandbox:
    """Kafka 3.9 with KRaft, three brokers in three racks; no test breaks it."""
    return CLUSTERS.get("kraft39", SPECS["kraft39"])


@pytest.fixture(scope="module")
def zk39() -> Sandbox:
    """Kafka 3.9 with ZooKeeper, three brokers in three racks; no test breaks it."""
    return CLUSTERS.get("zk39", SPECS["zk39"])


@pytest.fixture(scope="module")
def zk23() -> Sandbox:
    """Kafka 2.3.1 with ZooKeeper (before KIP-455), three brokers in three racks; no test breaks it."""
    return CLUSTERS.get("zk23", SPECS["zk23"])


@pytest.fixture(scope="module")
def quorum3() -> Sandbox:
    """The newest Kafka with a quorum of three controllers; no test breaks it."""
    return CLUSTERS.get("quorum3", SPECS["quorum3"])


@pytest.fixture(scope="module")
def secured() -> Callable[[str], Sandbox]:
    """Guarded clusters of one broker, one per kind of ``ballast.sandbox.security``: ``secured("sasl-tls")``."""
    return lambda kind: CLUSTERS.get(SECURED, SandboxSpec(brokers=1, racks=0, security=kind))


class ClusterFactory(Protocol):
    """Starts a cluster of the test's own; the fixture ends it."""

    def __call__(self, **spec: object) -> Sandbox:
        """Start a cluster described by the fields of ``SandboxSpec``."""


@pytest.fixture
def own_cluster() -> Iterator[ClusterFactory]:
    """Clusters of a test's own, to break: ``own_cluster(brokers=4, racks=2)``."""
    with ExitStack() as stack:

        def start(**spec: object) -> Sandbox:
            return stack.enter_context(Sandbox.up(SandboxSpec(**spec), on_line=say))  # type: ignore[arg-type]

        yield start


def properties_of(sandbox: Sandbox, user: str) -> dict[str, str]:
    """Client properties of another user of a guarded cluster."""
    assert sandbox.guard is not None
    return sandbox.guard.client_properties(user)


def needed(items: Iterable[pytest.Item]) -> set[str]:
    """The shared clusters that these tests ask for: as fixtures, or by name as parameters."""
    known = {*SPECS, SECURED}
    found: set[str] = set()
    for item in items:
        callspec = getattr(item, "callspec", None)
        parameters = callspec.params.values() if callspec is not None else ()
        found |= known.intersection(getattr(item, "fixturenames", ()))
        found |= known.intersection(p for p in parameters if isinstance(p, str))
    return found


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After the fixtures of a file are gone: end the clusters that none of the tests to come here needs.

    Not within a file: its fixtures live on, and a test may have asked for one in mid-run, which is not known before.
    """
    group = group_of(item.path)
    if nextitem is not None and nextitem.path == item.path:
        return
    if nextitem is None or group_of(nextitem.path) != group:
        CLUSTERS.keep(())
        return
    items = item.session.items
    CLUSTERS.keep(needed(later for later in items[items.index(nextitem) :] if group_of(later.path) == group))


def pytest_sessionfinish() -> None:
    """However the last test ended."""
    CLUSTERS.keep(())
