"""``ballast reassign --generate`` and ``--list`` next to the real stock tool, on the same cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.placement import BrokerMetadata
from ballast.core.placement.java_random import JavaRandom
from ballast.core.placement.placer import place
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import ensure_java
from ballast.wiring.cluster import OpenCluster, open_cluster

pytestmark = pytest.mark.kafka

STOCK = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Pair:
    """Both tools, pointed at one cluster."""

    sandbox: Sandbox
    opened: OpenCluster
    folder: Path

    def ours(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``ballast reassign`` as a person runs it."""
        return self._run(sys.executable, "-m", "ballast", "reassign", *arguments)

    def stock(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``kafka-reassign-partitions`` as its script runs it."""
        path = ":".join(map(str, ensure_jars("kafka-tools-4.3.1")))
        return self._run(ensure_java().executable, "-Xmx128m", "-cp", path, STOCK, *arguments)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        line = [*command, "--bootstrap-server", self.sandbox.bootstrap_server]
        return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, cwd=self.folder)

    def file(self, name: str, document: Any) -> str:
        """A file in the folder that both tools run in."""
        (self.folder / name).write_text(document if isinstance(document, str) else json.dumps(document))
        return name


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Three brokers in three racks, two topics."""
    with Sandbox.up(SandboxSpec()) as sandbox, open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        opened.cluster.create_topic("narrow", {0: (1,), 1: (3,)})
        opened.cluster.create_topic("wide", {i: ((1, 2, 3), (2, 3, 1))[i % 2] for i in range(3)})
        yield Pair(sandbox, opened, tmp_path_factory.mktemp("reassign"))


def sections(text: str) -> tuple[list[str], dict[str, Any]]:
    """Every line but the proposal, and the proposal."""
    lines = text.splitlines()
    assert lines[3] == "Proposed partition reassignment configuration"
    return lines[:4] + lines[5:], json.loads(lines[4])


def lists(proposal: dict[str, Any], topic: str) -> tuple[tuple[int, ...], ...]:
    """A topic's replica lists in a proposal, by number."""
    return tuple(tuple(p["replicas"]) for p in proposal["partitions"] if p["topic"] == topic)


@pytest.mark.parametrize("more", [(), ("--disable-rack-aware",)])
@pytest.mark.parametrize("brokers", ["1,2,3", "3,1"])
def test_generate_says_what_the_stock_tool_says(pair: Pair, brokers: str, more: tuple[str, ...]) -> None:
    """Both sections, byte for byte but for what is drawn; and what the stock tool drew, some seed of ours draws too."""
    topics = ["narrow"] if brokers == "3,1" else ["wide", "narrow"]
    file = pair.file("topics.json", {"topics": [{"topic": t} for t in topics], "version": 1})
    asked = ("--generate", "--topics-to-move-json-file", file, "--broker-list", brokers, *more)
    ours, stock = pair.ours(*asked), pair.stock(*asked)
    assert (ours.returncode, stock.returncode) == (0, 0), ours.stderr + stock.stdout
    our_lines, our_proposal = sections(ours.stdout)
    stock_lines, stock_proposal = sections(stock.stdout)
    assert our_lines == stock_lines
    assert [(p["topic"], p["partition"], p["log_dirs"]) for p in our_proposal["partitions"]] == [
        (p["topic"], p["partition"], p["log_dirs"]) for p in stock_proposal["partitions"]
    ]
    usable = [BrokerMetadata(b, None if more else f"rack-{b}") for b in (1, 2, 3) if str(b) in brokers]
    for topic in topics:
        drawn = lists(stock_proposal, topic)
        # Small seeds begin with nearly the same numbers, so these are spread.
        rngs = (JavaRandom(seed * 0x9E3779B97F4A) for seed in range(300))
        samples = {tuple(place("kraft", usable, len(drawn), len(drawn[0]), rng).values()) for rng in rngs}
        assert drawn in samples
        assert lists(our_proposal, topic) in samples


def test_a_seed_repeats_a_proposal(pair: Pair) -> None:
    """The same seed, the same proposal; the older algorithm on request."""
    file = pair.file("topics.json", {"topics": [{"topic": "wide"}]})
    asked = ("--generate", "--topics-to-move-json-file", file, "--broker-list", "1,2,3", "--seed", "7")
    assert pair.ours(*asked).stdout == pair.ours(*asked).stdout
    classic = pair.ours(*asked, "--placement", "classic")
    assert "classic algorithm" in classic.stderr
    assert sections(classic.stdout)[0] == sections(pair.ours(*asked).stdout)[0]


def test_list_shows_moves_in_flight_like_the_stock_tool(pair: Pair) -> None:
    """Nothing in flight, then a move onto a stopped broker, which waits for it."""
    assert pair.ours("--list").stdout == pair.stock("--list").stdout == "No partition reassignments found.\n"
    pair.sandbox.stop_broker(3)
    name = TopicPartition("narrow", 0)
    try:
        outcome = pair.opened.cluster.alter_reassignments({name: (3,)})
        assert outcome[name].ok
        ours, stock = pair.ours("--list"), pair.stock("--list")
        assert (
            ours.stdout
            == stock.stdout
            == ("Current partition reassignments:\nnarrow-0: replicas: 3,1. adding: 3. removing: 1.\n")
        )
        file = pair.file("topics.json", {"topics": [{"topic": "narrow"}]})
        proposal = pair.ours("--generate", "--topics-to-move-json-file", file, "--broker-list", "1,2,3")
        assert json.loads(proposal.stdout.splitlines()[1])["partitions"][0]["replicas"] == [3]
        assert "In mid-move and shown as they will be: narrow-0." in proposal.stderr
        assert "excluded, as kafka-reassign-partitions does: broker 3." in proposal.stderr
    finally:
        pair.opened.cluster.alter_reassignments({name: None})
        pair.sandbox.start_broker(3)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--generate", "--list"),
        ("--generate", "--broker-list", "1,2"),
        ("--generate", "--topics-to-move-json-file", "good.json"),
        ("--generate", "--topics-to-move-json-file", "missing.json", "--broker-list", "1"),
        ("--generate", "--topics-to-move-json-file", "bad.json", "--broker-list", "1"),
        ("--generate", "--topics-to-move-json-file", "unknown.json", "--broker-list", "1"),
        ("--generate", "--topics-to-move-json-file", "twice.json", "--broker-list", "1"),
        ("--generate", "--topics-to-move-json-file", "good.json", "--broker-list", "1,1"),
        ("--generate", "--topics-to-move-json-file", "good.json", "--broker-list", "1,x"),
        ("--generate", "--topics-to-move-json-file", "good.json", "--broker-list", "1,2"),
        ("--generate", "--topics-to-move-json-file", "good.json", "--broker-list", "1,77"),
        ("--list", "--throttle", "100"),
        ("--nonsense",),
    ],
)
def test_what_the_stock_tool_refuses_is_refused_with_its_exit_code(pair: Pair, arguments: tuple[str, ...]) -> None:
    """1, nothing on stdout that could pass for an answer, and a sentence."""
    pair.file("good.json", {"topics": [{"topic": "wide"}]})
    pair.file("bad.json", '{"topics": [')
    pair.file("unknown.json", {"topics": [{"topic": "nowhere"}]})
    pair.file("twice.json", {"topics": [{"topic": "wide"}, {"topic": "wide"}]})
    ours, stock = pair.ours(*arguments), pair.stock(*arguments)
    assert ours.returncode == stock.returncode == 1, (ours, stock)
    assert not ours.stdout
    assert "rror" in ours.stderr
    assert "Traceback" not in ours.stderr
