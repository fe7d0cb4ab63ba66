"""Placements shown without a cluster: brokers from a file or a snapshot, start and shift as given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.core.planner.test_place import NAIVE, cluster

from ballast.cli.commands.plan.command import plan
from ballast.cli.commands.topics.command import topics
from ballast.core.plan.file import loads
from ballast.core.planner import Loads
from ballast.core.snapshot.file import Snapshot, dumps
from ballast.errors import UsageError

RACKS = "0 a\n1 b  # two racks\n2 a\n3 b\n4 a\n5 b\n"


@pytest.fixture
def brokers(tmp_path: Path) -> Path:
    """Five brokers without racks."""
    file = tmp_path / "brokers.txt"
    file.write_text("".join(f"{i}\n" for i in range(5)))
    return file


def shown(*arguments: object) -> dict[int, list[int]]:
    """The placement that the command shows as JSON."""
    result = CliRunner().invoke(topics, [*map(str, arguments), "--output", "json"], standalone_mode=False)
    assert result.exception is None, result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["dryRun"]
    return {p["partition"]: p["replicas"] for p in document["partitions"]}


def test_the_table_of_the_classic_algorithm_in_one_command(brokers: Path) -> None:
    """Ten partitions of three on five brokers, start 0, shift 0."""
    found = shown(
        "create", "t", "--partitions", 10, "--replication-factor", 3, "--start", 0, "--shift", 0, "--brokers-file", brokers
    )  # fmt: skip
    assert found == {
        0: [0, 1, 2], 1: [1, 2, 3], 2: [2, 3, 4], 3: [3, 4, 0], 4: [4, 0, 1],
        5: [0, 2, 3], 6: [1, 3, 4], 7: [2, 4, 0], 8: [3, 0, 1], 9: [4, 1, 2],
    }  # fmt: skip


def test_the_naive_layout_is_a_round_robin_that_an_expansion_goes_on_with(brokers: Path) -> None:
    """Nothing is drawn: the same lists every time."""
    words = ("--placement", "naive", "--brokers-file", brokers)
    made = shown("create", "t", "--partitions", 4, "--replication-factor", 2, *words)
    assert made == {0: [0, 1], 1: [1, 2], 2: [2, 3], 3: [3, 4]}
    added = shown("add-partitions", "t", "--partitions", 4, "--existing", "0:1,1:2", *words)
    assert added == {n: made[n] for n in (2, 3)}


def test_racks_and_an_expansion_from_a_file(tmp_path: Path) -> None:
    """The rack-alternated list is walked; the expansion starts where Kafka starts it, or where it is told to."""
    file = tmp_path / "racks.txt"
    file.write_text(RACKS.replace("2 a", "2 b").replace("1 b", "1 a"))
    asked = ("add-partitions", "t", "--partitions", 5, "--existing", "4:2,2:5", "--brokers-file", file)
    assert sorted(shown(*asked)) == [2, 3, 4]
    fixed = shown(*asked, "--start", 1, "--shift", 0)
    assert sorted(fixed) == [2, 3, 4]
    assert fixed != shown(*asked)


def test_a_snapshot_serves_as_the_cluster(tmp_path: Path) -> None:
    """``topics add-partitions`` and ``plan place`` from the file alone; the plan is the one that apply takes."""
    state = cluster(NAIVE)
    file = tmp_path / "cluster.json"
    file.write_text(dumps(Snapshot(state, Loads.from_state(state))))
    assert sorted(shown("add-partitions", "t", "--partitions", 12, "--snapshot", file)) == [10, 11]
    save = tmp_path / "plan.json"
    arguments = ["place", "t", "--start", "0", "--shift", "0", "--snapshot", str(file), "--save", str(save)]
    table = CliRunner().invoke(plan, arguments, standalone_mode=False)
    assert table.exception is None, table.exception
    assert "naive" in table.stdout
    made = loads(save.read_text(), source="plan.json")
    assert {m.partition for m in made.moves} == {5, 6, 7, 8, 9}
    some = CliRunner().invoke(plan, [*arguments, "--brokers", "0,1,2"], standalone_mode=False)
    assert some.exception is None, some.exception
    assert {b for m in loads(save.read_text(), source="plan.json").moves for b in m.new} == {0, 1, 2}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--shift", "1"),
        ("--start", "1", "--seed", "3"),
        ("--start", "1", "--placement", "kraft"),
    ],
)
def test_what_contradicts_itself_is_refused(brokers: Path, arguments: tuple[str, ...]) -> None:
    """A shift without a start, a start and a seed, a start for the placement that has none."""
    line = ["create", "t", "--partitions", "1", "--replication-factor", "1", "--brokers-file", str(brokers), *arguments]
    result = CliRunner().invoke(topics, line, standalone_mode=False)
    assert isinstance(result.exception, UsageError)


@pytest.mark.parametrize("text", ["", "one\n", "1 a b\n"])
def test_a_file_that_names_no_brokers_is_refused(tmp_path: Path, text: str) -> None:
    """With the line that is wrong."""
    file = tmp_path / "brokers.txt"
    file.write_text(text)
    line = ["create", "t", "--partitions", "1", "--replication-factor", "1", "--brokers-file", str(file)]
    result = CliRunner().invoke(topics, line, standalone_mode=False)
    assert isinstance(result.exception, UsageError)
