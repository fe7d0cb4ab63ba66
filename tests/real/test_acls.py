"""The least rights, as docs/acls.md lists them: enough with all of them, and each of them missed when it is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests import waiting
from tests.clusters import properties_of
from tests.real.daemon_process import Daemon, start, until

from ballast.core.cluster import TopicPartition
from ballast.sandbox import Sandbox
from ballast.sandbox.layout import as_properties
from ballast.sandbox.security import ALICE
from ballast.wiring.cluster import open_cluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

DOC = Path(__file__).resolve().parents[2] / "docs" / "acls.md"
Right = tuple[str, str, str, str]
"""Resource type, name, pattern, operation."""
AdminOf = Callable[[Sandbox], AdminClient]


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
def admin_of(own_cluster: Callable[..., Sandbox]) -> Iterator[AdminOf]:
    """Admin clients that end before their cluster does: one that outlives it goes on asking for it, and says so."""
    with ExitStack() as stack:
        yield lambda sandbox: stack.enter_context(
            AdminClient({"bootstrap.servers": sandbox.bootstrap_server, **sandbox.librdkafka_properties})
        )


def test_with_these_rights_it_acts(
    own_cluster: Callable[..., Sandbox], admin_of: AdminOf, daemons: list[Daemon], tmp_path: Path
) -> None:
    """It takes the lock, moves replicas under a throttle, elects, and leaves nothing behind."""
    sandbox = own_cluster(security="acl", brokers=3, racks=1)
    admin = admin_of(sandbox)
    for future in admin.create_acls([binding(right) for right in documented()]).values():
        future.result(timeout=waiting.PATIENCE_S)
    crowded = [[1 + p % 2, 2 - p % 2] for p in range(12)]
    admin.create_topics([NewTopic("orders", 12, replica_assignment=crowded)])["orders"].result(
        timeout=waiting.PATIENCE_S
    )
    client = tmp_path / "alice.properties"
    client.write_text(as_properties(properties_of(sandbox, ALICE)))
    settings = {"mode": "auto", "execution": {"throttle": 10_000_000}}
    daemon = start("alice", tmp_path, sandbox.bootstrap_server, settings, client=client)
    daemons.append(daemon)
    until("the lock", lambda: daemon.role == "active", daemons)
    until("a balanced cluster", lambda: daemon.metrics.get('ballast_broker_replicas{broker="3"}', 0) >= 6, daemons)
    until("no run", lambda: daemon.metrics["ballast_run_active"] == 0, daemons)
    done = until("a run in the history", lambda: json.loads(daemon.get("/api/v1/history")[1])["runs"], daemons)
    assert "done" in {run["status"] for run in done}
    until("no throttles to restore", lambda: daemon.metrics["ballast_throttles_to_restore"] == 0, daemons)
    assert daemon.stop() == 0
    assert not [m for m in daemon.messages() if "AUTHORIZATION" in m.upper() or m.startswith("A bug")]


def test_log_ends_take_describe_on_the_topic_alone(own_cluster: Callable[..., Sandbox], admin_of: AdminOf) -> None:
    """Each replica's own end is told to a user who may describe its topic, and to no other user."""
    sandbox = own_cluster(security="acl", brokers=2, racks=0)
    admin = admin_of(sandbox)
    name = TopicPartition("orders", 0)
    admin.create_topics([NewTopic("orders", 1, replica_assignment=[[1, 2]])])["orders"].result(
        timeout=waiting.PATIENCE_S
    )
    with open_cluster(bootstrap_server=sandbox.bootstrap_server, properties=properties_of(sandbox, ALICE)) as opened:
        asked = {1: [name], 2: [name]}
        assert not any(opened.cluster.log_ends(asked).values())
        admin.create_acls([binding((*TOPICS, "Describe"))])
        waiting.until(lambda: opened.cluster.log_ends(asked) == {1: {name: 0}, 2: {name: 0}})


CLUSTER, TOPICS = ("Cluster", "kafka-cluster", "LITERAL"), ("Topic", "*", "LITERAL")
OWN, FENCE = ("Topic", "__ballast_", "PREFIXED"), ("TransactionalId", "ballast-journal", "LITERAL")
OBSERVED: dict[Right, str] = {
    (*CLUSTER, "Describe"): "requires Describe on the cluster",
    (*CLUSTER, "DescribeConfigs"): "requires DescribeConfigs on the cluster",
    (*TOPICS, "Describe"): "requires Describe on the topics",
    (*TOPICS, "DescribeConfigs"): "requires DescribeConfigs on the topic",
}
"""What a daemon that observes needs, and the words of its sentence when it is missing."""
ACTING: dict[Right, str] = {
    # First, while the topics do not exist yet.
    (*OWN, "Create"): r"Not authorized to .*__ballast_journal",
    (*CLUSTER, "Alter"): "requires Alter on the cluster",
    (*CLUSTER, "AlterConfigs"): "requires AlterConfigs on the cluster",
    (*TOPICS, "AlterConfigs"): "requires AlterConfigs on the topic",
    (*OWN, "Read"): "Not authorized to read __ballast_journal",
    (*OWN, "Write"): "Not authorized to commit to __ballast_journal",
    (*FENCE, "Write"): "Not authorized to .*ransactional",
    ("Group", "ballast-journal-reader", "LITERAL", "Describe"): "Not authorized to .*roup",
}
"""What one that acts needs besides."""
IMPLIED: set[Right] = {(*FENCE, "Describe")}
"""Kafka takes these for granted with another right of the page."""


class Alice:
    """The user whose rights are taken away one at a time."""

    def __init__(self, sandbox: Sandbox, admin: AdminClient, folder: Path, daemons: list[Daemon]) -> None:
        self.sandbox, self.admin, self.folder, self.daemons = sandbox, admin, folder, daemons
        self.client = folder / "alice.properties"
        self.client.write_text(as_properties(properties_of(sandbox, ALICE)))

    def may(self, rights: Iterable[Right]) -> None:
        """Exactly these."""
        anything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{ALICE}", None, AclOperation.ANY,
            AclPermissionType.ANY,
        )  # fmt: skip
        for gone in self.admin.delete_acls([anything]).values():
            gone.result(timeout=waiting.PATIENCE_S)
        for made in self.admin.create_acls([binding(right) for right in rights]).values():
            made.result(timeout=waiting.PATIENCE_S)

    def start(self, mode: str) -> Daemon:
        """A daemon that is her."""
        settings = {"mode": mode, "execution": {"throttle": 10_000_000, "measure_s": 0}}
        name = f"{mode}-{len(self.daemons)}"
        daemon = start(name, self.folder, self.sandbox.bootstrap_server, settings, client=self.client)
        self.daemons.append(daemon)
        return daemon

    def is_told(self, daemon: Daemon, missing: Right, words: str) -> None:
        """That the right is missing, in the log or as a gap of the reading."""

        def told() -> bool:
            gaps = (daemon.status.get("cluster") or {}).get("gaps", [])
            said = [*daemon.messages(), *(f"{g['subject']}: {g['missing']} missing ({g['detail']})" for g in gaps)]
            return any(re.search(words, sentence) for sentence in said)

        until(f"a sentence that names {missing}", told, [daemon], 240)


def test_every_right_is_accounted_for() -> None:
    """Each line of the page is missed below, or implied by another one."""
    assert set(documented()) == OBSERVED.keys() | ACTING.keys() | IMPLIED


def test_with_one_less_it_says_which(
    own_cluster: Callable[..., Sandbox], admin_of: AdminOf, daemons: list[Daemon], tmp_path: Path
) -> None:
    """Every right of the page, taken away alone, is named in a sentence of the daemon."""
    sandbox = own_cluster(security="acl", brokers=2, racks=1, heap_mib=192)
    alice = Alice(sandbox, admin_of(sandbox), tmp_path, daemons)
    # All on one broker: a daemon that acts wants to move half of it at once.
    alice.admin.create_topics([NewTopic("orders", 8, replica_assignment=[[1]] * 8)])["orders"].result(
        timeout=waiting.PATIENCE_S
    )
    # Ended here: one that is left to the garbage collector goes on asking for its cluster long after it has ended.
    with Producer({"bootstrap.servers": sandbox.bootstrap_server, **sandbox.librdkafka_properties}) as producer:
        for n in range(80):
            producer.produce("orders", b"x" * 100_000, partition=n % 8)
            producer.poll(0)
        assert producer.flush(waiting.PATIENCE_S) == 0
    for missing, words in ACTING.items():
        alice.may(right for right in documented() if right != missing)
        daemon = alice.start("auto")
        alice.is_told(daemon, missing, words)
        daemon.stop()
    # Rights may go while it runs, too; no two of these sentences are alike.
    watcher = alice.start("observe")
    for missing, words in OBSERVED.items():
        alice.may(right for right in OBSERVED if right != missing)
        alice.is_told(watcher, missing, words)
    assert watcher.stop() == 0
