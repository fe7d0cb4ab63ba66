"""The least rights, as docs/acls.md lists them: enough with all of them, and each of them missed when it is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.real.daemon_process import Daemon, start, until

from ballast.sandbox import Sandbox
from ballast.sandbox.layout import as_properties
from ballast.sandbox.security import ALICE

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

DOC = Path(__file__).resolve().parents[2] / "docs" / "acls.md"
Right = tuple[str, str, str, str]
"""Resource type, name, pattern, operation."""


def documented() -> list[Right]:
    """The rights in the table of the page, one each."""
    rights = []
    for resource, operations in re.findall(r"^\| (\w+.*?) \| ([\w, ]+) \|", DOC.read_text(), re.MULTILINE):
        if resource == "resource":
            continue
        kind = resource.split()[0]
        name = (re.findall(r"`(.+?)`", resource) or ["kafka-cluster"])[0]
        pattern = "PREFIXED" if "prefixed" in resource else "LITERAL"
        rights += [(kind, name, pattern, operation) for operation in operations.split(", ")]
    return rights


def binding(right: Right) -> AclBinding:
    """The ACL of one right for Alice."""
    kind, name, pattern, operation = right
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
    resource = {
        "Cluster": ResourceType.BROKER,
        "Topic": ResourceType.TOPIC,
        "TransactionalId": ResourceType.TRANSACTIONAL_ID,
        "Group": ResourceType.GROUP,
    }
    return AclBinding(
        resource[kind],
        name,
        ResourcePatternType[pattern],
        f"User:{ALICE}",
        "*",
        AclOperation[words],
        AclPermissionType.ALLOW,
    )


def test_the_page_lists_rights() -> None:
    """The table is read as it is written; thirteen rights."""
    rights = documented()
    assert len(rights) == 13
    assert len(set(rights)) == 13
    assert ("Cluster", "kafka-cluster", "LITERAL", "Alter") in rights


@pytest.fixture
def daemons() -> Iterator[list[Daemon]]:
    """Every daemon of a test; ended with it."""
    started: list[Daemon] = []
    yield started
    for daemon in started:
        if daemon.process.poll() is None:
            daemon.kill()


def test_with_these_rights_it_acts(own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path) -> None:
    """It takes the lock, moves replicas under a throttle, elects, and leaves nothing behind."""
    sandbox = own_cluster(security="acl", brokers=3, racks=1)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server, **sandbox.librdkafka_properties})
    for future in admin.create_acls([binding(right) for right in documented()]).values():
        future.result(timeout=30)
    crowded = [[1 + p % 2, 2 - p % 2] for p in range(12)]
    admin.create_topics([NewTopic("orders", 12, replica_assignment=crowded)])["orders"].result(timeout=30)
    client = tmp_path / "alice.properties"
    client.write_text(as_properties(sandbox.client_properties_of(ALICE)))
    settings = {"mode": "auto", "execution": {"throttle_bytes_per_s": 10_000_000}}
    daemon = start("alice", tmp_path, sandbox.bootstrap_server, settings, client=client)
    daemons.append(daemon)
    until("the lock", lambda: daemon.role == "leader", daemons, 90)
    until("a level cluster", lambda: daemon.metrics.get('ballast_broker_replicas{broker="3"}', 0) >= 6, daemons, 180)
    until("no run", lambda: daemon.metrics["ballast_run_active"] == 0, daemons, 60)
    history = until("history", lambda: daemon.get("/api/v1/history")[1].count('"outcome": "done"') or
                    daemon.get("/api/v1/history")[1].count('"outcome":"done"'), daemons)  # fmt: skip
    assert history >= 1
    assert daemon.metrics["ballast_throttle_debts"] == 0
    assert daemon.stop() == 0
    assert not [m for m in daemon.messages() if "AUTHORIZATION" in m.upper() or m.startswith("A bug")]


@pytest.mark.parametrize(
    ("missing", "word"),
    [
        (("Topic", "__ballast_", "PREFIXED", "Create"), "__ballast_journal"),
        (("Topic", "__ballast_", "PREFIXED", "Write"), "__ballast_journal"),
        (("TransactionalId", "ballast-journal", "LITERAL", "Write"), "ransactional"),
    ],
    ids=lambda value: value[3] + value[0] if isinstance(value, tuple) else None,
)
def test_with_one_less_it_says_which(
    own_cluster: Callable[..., Sandbox], daemons: list[Daemon], tmp_path: Path, missing: Right, word: str
) -> None:
    """A sentence of the daemon names the authorization that failed and what it was for."""
    sandbox = own_cluster(security="acl", brokers=1, racks=1)
    admin = AdminClient({"bootstrap.servers": sandbox.bootstrap_server, **sandbox.librdkafka_properties})
    for future in admin.create_acls([binding(r) for r in documented() if r != missing]).values():
        future.result(timeout=30)
    client = tmp_path / "alice.properties"
    client.write_text(as_properties(sandbox.client_properties_of(ALICE)))
    daemon = start("alice", tmp_path, sandbox.bootstrap_server, {"mode": "auto"}, client=client)
    daemons.append(daemon)

    def told() -> bool:
        said = [*daemon.messages(), *(daemon.status.get("cluster") or {}).get("gaps", [])]
        return any(
            re.search(r"authori[sz]|not (allowed|permitted)|may not", m, re.IGNORECASE) and word in m for m in said
        )

    until("the sentence", told, daemons, 90)
