"""One process works on one cluster: a caller that names another is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.adapters.zookeeper.brokers import find_brokers
from ballast.cli.cluster_options import ClusterOptions
from ballast.cli.main import cli
from ballast.errors import Unavailable, UsageError, WrongCluster
from ballast.sandbox.current_sandbox import RunningSandbox


def test_the_first_answer_is_the_cluster_of_the_process() -> None:
    """The same id again is fine; another one is another cluster."""
    identity = ClusterIdentity()
    identity.confirm("a", "broker 1")
    identity.confirm("a", "the journal's broker")
    with pytest.raises(WrongCluster):
        identity.confirm("b", "broker 1")


def test_brokers_of_another_cluster_than_zookeeper_are_refused() -> None:
    """However often they are asked; ZooKeeper is asked for its id once it has answered no more."""
    asked: list[str] = []

    def told() -> str:
        asked.append("asked")
        return "z"

    identity = ClusterIdentity(zookeeper=told)
    for _ in range(2):
        with pytest.raises(WrongCluster):
            identity.confirm("k", "broker 1")
    identity.confirm("z", "broker 2")
    assert asked == ["asked"]


def test_while_zookeeper_is_silent_no_broker_is_believed() -> None:
    """It is asked again with the next connection."""
    answers: list[str | Exception] = [Unavailable("away"), "z"]

    def told() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    identity = ClusterIdentity(zookeeper=told)
    with pytest.raises(Unavailable):
        identity.confirm("z", "broker 1")
    identity.confirm("z", "broker 1")


def test_the_settings_name_the_cluster_for_zookeeper_as_well() -> None:
    """``cluster.id`` against ``/cluster/id``, before any broker counts."""
    identity = ClusterIdentity(expected="s", zookeeper=lambda: "z")
    with pytest.raises(WrongCluster):
        identity.confirm("s", "broker 1")


def test_a_broker_that_does_not_tell_its_cluster_is_not_taken_for_ours() -> None:
    """An unknown id is never the right one."""
    with pytest.raises(Unavailable):
        ClusterIdentity().confirm(None, "broker 1")


def registered(*endpoints: str, **protocols: str) -> dict[str, object]:
    """A broker's znode."""
    return {"endpoints": list(endpoints), "listener_security_protocol_map": protocols}


def test_brokers_are_found_by_the_protocol_that_we_speak() -> None:
    """The first listener of each broker that speaks it comes first, then its others."""
    found = {
        2: registered("IN://b:1", "OUT://b:2", "TLS://b:3", IN="PLAINTEXT", OUT="PLAINTEXT", TLS="SSL"),
        1: registered("IN://[::1]:1", "TLS://a.example:3", IN="PLAINTEXT", TLS="SSL"),
    }
    assert find_brokers(found, "PLAINTEXT") == "[::1]:1,b:1,b:2"
    assert find_brokers(found, "SSL") == "a.example:3,b:3"
    with pytest.raises(UsageError):
        find_brokers(found, "SASL_SSL")


def test_listeners_without_a_map_are_named_after_their_protocol() -> None:
    """As brokers before 0.10.2 wrote them."""
    assert find_brokers({1: {"endpoints": ["PLAINTEXT://a:1"]}}, "PLAINTEXT") == "a:1"


def test_no_registered_broker_is_a_cluster_that_is_away() -> None:
    """Not a mistake of the person's."""
    with pytest.raises(Unavailable):
        find_brokers({}, "PLAINTEXT")


def test_zookeeper_is_never_paired_with_the_running_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who names ZooKeeper alone means the cluster behind it."""
    sandbox = RunningSandbox("127.0.0.1:1", "127.0.0.1:2", {}, Path("unused"))
    monkeypatch.setattr("ballast.sandbox.running", lambda: sandbox)
    opened = ClusterOptions(None, None, None, None, 1.0).open()
    assert (opened.bootstrap_server, opened.zookeeper) == ("127.0.0.1:1", "127.0.0.1:2")
    opened.cluster.close()
    with pytest.raises(Unavailable):
        ClusterOptions(None, None, "127.0.0.1:3", None, 1.0).open()
    command = ["reassign", "--list", "--zookeeper", "127.0.0.1:3"]
    assert CliRunner().invoke(cli, command, standalone_mode=False).return_value == 1
