"""The stock formats against the stock tools' own readers: the same files are read, to the same values, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from tests.oracle.java import TOOL, Jvm

from ballast.cli.commands.reassign import reassign
from ballast.core.cluster import TopicPartition
from ballast.core.stock.checks import check_entries
from ballast.core.stock.files import (
    StockFormatError,
    format_reassignment,
    parse_broker_list,
    parse_election,
    parse_reassignment,
    parse_topics_to_move,
)

pytestmark = pytest.mark.kafka

ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
UTIL = "org.apache.kafka.server.util.Json"

ATOMS: tuple[Any, ...] = (
    None,
    True,
    0,
    1,
    -1,
    2,
    1.0,
    1e3,
    2147483647,
    2147483648,
    "1",
    "a",
    "",
    "any",
    "/d",
    [],
    {},
    [1],
    ["any"],
)


def documents(rng: Random, count: int, *, key: str, item: dict[str, Any]) -> list[str]:
    """Valid documents with something bent in most of them, and text that is hardly JSON."""
    out = [
        "",
        " ",
        "\n{}",
        "null",
        "3",
        "[]",
        "{",
        "{}{",
        "{} trailing",
        '{"version":1,}',
        "\ufeff{}",
        "{'a':1}",
        "{} //x",
    ]
    out += ['{"version":1,"version":2}', '{"version":NaN}', '{"version":01}', '{"version":+1}', '{"x":"\t"}', "/**/{}"]
    for _ in range(count):
        items = [dict(item, partition=i) if "partition" in item else dict(item) for i in range(rng.randint(0, 3))]
        document: dict[str, Any] = {"version": 1, key: items}
        for _ in range(rng.choice((0, 1, 1, 2))):
            bent = rng.choice([document, *items])
            name = rng.choice([*bent, "log_dirs", "extra"])
            if rng.random() < 0.3:
                bent.pop(name, None)
            else:
                bent[name] = (
                    rng.choice(ATOMS) if rng.random() < 0.6 else [rng.choice(ATOMS) for _ in range(rng.randint(0, 3))]
                )
        out.append(json.dumps(document))
    return out


def compare(texts: list[str], ours: Callable[[str], Any], kafkas: Callable[[str], Any]) -> None:
    """Text by text; and the generator must have made plenty that is taken and plenty that is not."""
    taken = 0
    for text in texts:
        mine, theirs = both(lambda: ours(text), lambda: kafkas(text))  # noqa: B023
        assert mine == theirs, text
        taken += mine is not None
    assert len(texts) // 10 < taken < len(texts) * 9 // 10


def both(ours: Callable[[], Any], kafkas: Callable[[], Any]) -> tuple[Any, Any]:
    """What each made of it; None stands for a refusal."""
    try:
        mine = ours()
    except StockFormatError:
        mine = None
    try:
        theirs = kafkas()
    except Py4JJavaError:
        theirs = None
    return mine, theirs


def test_every_option_of_the_stock_tool_is_known(tools_jvm: Jvm) -> None:
    """By its name, whether Ballast executes it or says that it cannot."""
    parsed = tools_jvm.new(f"{TOOL}Options", tools_jvm.array(tools_jvm.package.String, "--list"))
    field = tools_jvm.type("org.apache.kafka.server.util.CommandDefaultOptions").getDeclaredField("parser")
    theirs = {str(name) for name in field.get(parsed).recognizedOptions().keySet()} - {"[arguments]"}
    assert {"execute", "bootstrap-server", "throttle"} < theirs
    ours = {name.lstrip("-") for option in reassign.params for name in option.opts} | {"help", "version"}
    assert theirs - ours == set()


def test_reassignment_files(tools_jvm: Jvm) -> None:
    """600 files: partitions, replicas and log dirs as the stock tool reads them for ``--verify`` and ``--cancel``."""
    read = tools_jvm.method(TOOL, "parsePartitionReassignmentData", parameters=1)

    def kafkas(text: str) -> Any:
        parsed = tools_jvm.invoke(read, text)
        dirs = {(r.topic(), r.partition(), r.brokerId()): path for r, path in dict(parsed.getValue()).items()}
        return [(e.getKey().toString(), list(e.getValue())) for e in parsed.getKey()], dirs

    def ours(text: str) -> Any:
        entries = parse_reassignment(text)
        dirs = {
            (e.topic, e.partition, broker): path
            for e in entries
            for broker, path in zip(e.replicas, e.log_dirs or (), strict=False)
            if path != "any"
        }
        return [(str(e.name), list(e.replicas)) for e in entries], dirs

    entry = {"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}
    compare(documents(Random(1), 600, key="partitions", item=entry), ours, kafkas)


def test_reassignments_to_execute(tools_jvm: Jvm) -> None:
    """What ``--execute`` refuses before it asks the cluster, Ballast refuses; Ballast alone refuses what cannot be."""
    read = tools_jvm.method(TOOL, "parseExecuteAssignmentArgs")
    rng = Random(2)
    texts = []
    for _ in range(300):
        parts = [
            {
                "topic": "a",
                "partition": rng.randint(0, 5),
                "replicas": rng.choices(range(9), k=rng.choice((0, 1, 2, 2, 3))),
            }
            for _ in range(rng.choice((0, 1, 1, 2, 3)))
        ]
        texts.append(json.dumps({"partitions": parts}))

    def ours(text: str) -> bool:
        check_entries(parse_reassignment(text))
        return True

    compare(texts, ours, lambda text: tools_jvm.invoke(read, text) is not None)


def test_topics_to_move_files(tools_jvm: Jvm) -> None:
    """300 files, together with the broker list that they are read with."""
    read = tools_jvm.method(TOOL, "parseGenerateAssignmentArgs")
    compare(
        documents(Random(3), 300, key="topics", item={"topic": "a"}),
        lambda text: list(parse_topics_to_move(text)),
        lambda text: list(tools_jvm.invoke(read, text, "0").getValue()),
    )


@pytest.mark.parametrize(
    "text",
    ["0", "0,1", "1,0,", "", " ", "0 ,1", "0,,1", "+1,2", "0,x", "1,1", "2147483647", "2147483648", "٣,1", "0x1"],
)
def test_broker_lists(tools_jvm: Jvm, text: str) -> None:
    """The same lists are taken; Ballast alone refuses negative ids and a list that is only commas."""
    read = tools_jvm.method(TOOL, "parseGenerateAssignmentArgs")
    mine, theirs = both(
        lambda: list(parse_broker_list(text)), lambda: list(tools_jvm.invoke(read, "{}", text).getKey())
    )
    assert mine == theirs


def test_election_files(tools_jvm: Jvm) -> None:
    """300 files of the election tool."""
    read = tools_jvm.method(ELECTION, "topicPartitions")
    parse = tools_jvm.method(UTIL, "parseFull", parameters=1, text=True)

    def kafkas(text: str) -> Any:
        parsed = tools_jvm.invoke(parse, text)
        if parsed.isEmpty():
            return None
        return {tp.toString() for tp in tools_jvm.invoke(read, parsed.get())}

    texts = documents(Random(4), 300, key="partitions", item={"topic": "a", "partition": 0})
    compare(texts, lambda text: {str(name) for name in parse_election(text)}, kafkas)


def test_written_reassignments(tools_jvm: Jvm) -> None:
    """Byte for byte what the stock tool writes."""
    write = tools_jvm.method(TOOL, "formatAsReassignmentJson")
    kafka = tools_jvm.package.org.apache.kafka.common
    rng = Random(5)
    for _ in range(100):
        names = {TopicPartition(rng.choice(("a", "b", "a.b", "A")), rng.randint(0, 30)) for _ in range(6)}
        assignment = {name: tuple(rng.sample(range(9), rng.randint(1, 3))) for name in names}
        dirs = {
            (n, r[0]): rng.choice(("/d", '/"q"\\é\u2028', "/x y")) for n, r in assignment.items() if rng.random() < 0.5
        }
        java, java_dirs = tools_jvm.java.util.HashMap(), tools_jvm.java.util.HashMap()
        for name, replicas in assignment.items():
            java.put(kafka.TopicPartition(*name), tools_jvm.list(replicas))
        for (name, broker), path in dirs.items():
            java_dirs.put(kafka.TopicPartitionReplica(*name, broker), path)
        assert format_reassignment(assignment, dirs) == tools_jvm.invoke(write, java, java_dirs)
