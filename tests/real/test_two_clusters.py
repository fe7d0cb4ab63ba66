"""Two clusters on one machine: no option and no setting leads a command from one into the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.real import daemon_process
from tests.waiting import becomes, until

from ballast.cli.main import cli
from ballast.core.cluster import TopicPartition
from ballast.errors import BallastError, WrongCluster
from ballast.ports.journal import JOURNAL_TOPIC, REQUESTS_TOPIC
from ballast.sandbox import Sandbox
from ballast.sandbox.current_sandbox import RunningSandbox
from ballast.wiring.cluster import OpenCluster, open_cluster
from ballast.wiring.journal import journal_of

pytestmark = pytest.mark.kafka
LEFT, RIGHT = (1, 2), (1, 3)


@pytest.fixture
def running(kraft: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenCluster]:
    """The cluster that commands mean where nothing is named: a sandbox without ZooKeeper."""
    person = RunningSandbox(
        kraft.bootstrap_server, kraft.zookeeper, kraft.client_properties, kraft.client_properties_file
    )
    monkeypatch.setattr("ballast.sandbox.running", lambda: person)
    monkeypatch.setenv("BALLAST_RUN_FOLLOWER", "off")
    with open_cluster(bootstrap_server=kraft.bootstrap_server) as opened:
        yield opened


@pytest.fixture(params=["zk39", "zk23"])
def other(request: pytest.FixtureRequest) -> Sandbox:
    """A cluster with ZooKeeper beside it."""
    sandbox: Sandbox = request.getfixturevalue(request.param)
    return sandbox


def ballast(*arguments: str) -> Result:
    """A command as ``main`` runs it, in this process."""
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def replicas(opened: OpenCluster, name: TopicPartition) -> tuple[int, ...] | None:
    """Where a partition is now."""
    states = opened.cluster.partitions([name])
    return states[name].replicas if name in states else None


def make(opened: OpenCluster, topic: str) -> TopicPartition:
    """A topic of one partition, known to the cluster."""

    def is_settled() -> bool:
        try:
            return len(opened.cluster.snapshot(log_dirs=False, configs=False).alive) == 3
        except BallastError:
            return False

    until(is_settled, "the brokers know each other")
    name = TopicPartition(topic, 0)
    if replicas(opened, name) is None:
        opened.cluster.create_topic(topic, {0: LEFT})
    until(lambda: replicas(opened, name) is not None, "the topic is there")
    # ZooKeeper tells of a new topic before its controller has told the brokers.
    until(lambda: topic in opened.cluster.snapshot(log_dirs=False, configs=False).topic_index, "brokers know the topic")
    return name


ARGUMENTS = {
    "decommission": ("--yes", "3"),
    "drains end": ("3",),
    "elect": ("--yes", "--topic", "of-two-clusters"),
    "plan change-rf": ("of-two-clusters", "--replication-factor", "1"),
    "plan decommission": ("3",),
    "plan demote": ("3",),
    "plan evacuate": ("3",),
    "plan expand": ("3",),
    "plan place": ("of-two-clusters",),
    "plan replace": ("1", "3"),
    "rollback": ("--yes", "any"),
    "cancel": ("--yes",),
    "runs show": ("any",),
    "throttles list": ("--clean", "--yes"),
    "throttles remove": ("--yes",),
    "throttles set": ("--topic", "of-two-clusters", "--rate", "1MB"),
    "topics create": ("never", "--partitions", "1", "--replication-factor", "1", "--yes"),
    "topics describe": ("of-two-clusters",),
    "topics add-partitions": ("of-two-clusters", "--partitions", "2", "--yes"),
    "uninstall": ("--yes",),
}
"""What commands need beside the cluster."""


def commands_of_a_cluster() -> set[str]:
    """Every command that takes brokers and ZooKeeper, as it is typed."""

    def below(command: click.Command, typed: tuple[str, ...]) -> Iterator[str]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                if (found := command.get_command(context, name)) is not None:
                    yield from below(found, (*typed, name))
        elif "zookeeper" in {option.name for option in command.params}:
            yield " ".join(typed)

    return set(below(cli, ()))


def moves_file(folder: Path, topic: str, target: tuple[int, ...]) -> Path:
    """Kafka's own reassignment file."""
    path = folder / "moves.json"
    move = {"topic": topic, "partition": 0, "replicas": list(target), "log_dirs": ["any"] * len(target)}
    path.write_text(json.dumps({"version": 1, "partitions": [move]}), encoding="utf-8")
    return path


def test_zookeeper_alone_means_the_cluster_behind_it(running: OpenCluster, other: Sandbox, tmp_path: Path) -> None:
    """The seeds' command: brokers, assignment and moves are that cluster's, and the running sandbox is left alone."""
    topic = "behind-zookeeper"
    here = make(running, topic)
    with open_cluster(bootstrap_server=None, zookeeper=other.zookeeper) as there:
        assert there.bootstrap_server.split(",")[0] == other.bootstrap_server.split(",")[0]
        name = make(there, topic)
        zookeeper = ("--zookeeper", str(other.zookeeper))
        told = ballast(
            "reassign", "--execute", *zookeeper, "--reassignment-json-file", str(moves_file(tmp_path, topic, RIGHT))
        )
        assert told.return_value == 0, told.output
        becomes(lambda: replicas(there, name), RIGHT)
        assert replicas(running, here) == LEFT
        back = ballast("apply", "--yes", *zookeeper, str(moves_file(tmp_path, topic, LEFT)))
        assert back.return_value == 0, (back.output, back.exception)
        becomes(lambda: replicas(there, name), LEFT)


def test_no_command_writes_where_two_clusters_are_named(running: OpenCluster, other: Sandbox, tmp_path: Path) -> None:
    """Brokers of one and ZooKeeper of the other: each command is refused, and neither cluster is touched."""
    topic = "of-two-clusters"
    mixed = ["--bootstrap-server", running.bootstrap_server, "--zookeeper", str(other.zookeeper)]
    file = str(moves_file(tmp_path, topic, RIGHT))
    given = ARGUMENTS | {
        "apply": ("--yes", file),
        "simulate": (file,),
        "verify": (file,),
        "snapshot": ("--save", str(tmp_path / "snapshot")),
        "sample": ("--store", str(tmp_path / "samples")),
    }
    commands = [(*command.split(), *given.get(command, ())) for command in commands_of_a_cluster() - {"reassign"}]
    assert given.keys() <= commands_of_a_cluster()
    stock = ("--execute", "--cancel", "--verify")
    with open_cluster(bootstrap_server=other.bootstrap_server, zookeeper=other.zookeeper) as there:
        names = [(opened, make(opened, topic)) for opened in (running, there)]
        ids = [opened.cluster.snapshot().cluster_id for opened, _ in names]
        before = [{t.name for t in opened.cluster.snapshot().topics} for opened, _ in names]
        for command in commands:
            told = ballast(*command, *mixed)
            assert isinstance(told.exception, WrongCluster), (command, told.output, told.exception)
        for action in stock:
            told = ballast("reassign", action, "--reassignment-json-file", file, *mixed)
            assert told.return_value == 1, (action, told.output)
            assert all(id_ in told.output for id_ in ids), (action, told.output)
        assert [{t.name for t in opened.cluster.snapshot().topics} for opened, _ in names] == before
        assert [replicas(opened, name) for opened, name in names] == [LEFT, LEFT]
        assert not there.cluster.reassignments()


def test_a_journal_in_another_cluster_is_refused(running: OpenCluster, other: Sandbox) -> None:
    """Nor does it get a topic there: a list of bootstrap servers may name two clusters by mistake."""
    with open_cluster(bootstrap_server=other.bootstrap_server, zookeeper=other.zookeeper) as there:
        make(there, "journal-elsewhere")
        known = {t.name for t in there.cluster.snapshot().topics} & {JOURNAL_TOPIC, REQUESTS_TOPIC}
        running.cluster.snapshot()
        mixed = OpenCluster(running.cluster, there.bootstrap_server, None, running.security, running.identity)
        journal = journal_of(mixed)
        try:
            with pytest.raises(WrongCluster):
                journal.holder()
        finally:
            journal.close()
        assert {t.name for t in there.cluster.snapshot().topics} & {JOURNAL_TOPIC, REQUESTS_TOPIC} == known


def test_a_daemon_with_two_clusters_in_its_settings_takes_no_lock(
    running: OpenCluster, zk39: Sandbox, tmp_path: Path
) -> None:
    """It goes on saying that they do not fit together, and holds neither's lock."""
    daemon = daemon_process.start(
        "mixed", tmp_path, running.bootstrap_server, {"mode": "auto"}, zookeeper=zk39.zookeeper
    )
    try:
        daemon_process.until("it has told", lambda: log_of(daemon).count("wrong-cluster") > 1, [daemon])
        assert not daemon.status.get("cluster")
        assert daemon.role != "active"
    finally:
        assert daemon.stop() == 0
    with open_cluster(bootstrap_server=zk39.bootstrap_server) as there:
        for opened in (running, there):
            journal = journal_of(opened)
            assert journal.holder() is None
            journal.close()


def log_of(daemon: daemon_process.Daemon) -> str:
    """All that it has said."""
    return daemon.log.read_text(encoding="utf-8")
