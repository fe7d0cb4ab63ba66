"""Moves between the log dirs of a broker beside the stock tool: the same words, and each stops or follows the other's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.execution_scene import Scene, shared_scene
from tests.real.stock_tool import ours, stock
from tests.waiting import becomes, until

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Place
from ballast.core.throttles import LOG_DIR_RATE
from ballast.executor.driver.look import partition_sizes
from ballast.executor.machine.observation import Disks
from ballast.executor.machine.scheduling.room import bytes_to_arrive_of_others
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sandbox import Sandbox, SandboxSpec

pytestmark = pytest.mark.kafka
SLOW = ("--replica-alter-log-dirs-throttle", "20000")


@pytest.fixture(scope="module")
def two_dirs() -> Iterator[Sandbox]:
    """Two brokers with two log dirs each."""
    with Sandbox.up(SandboxSpec(brokers=2, racks=0, log_dirs=2)) as sandbox:
        yield sandbox


@pytest.fixture
def at(two_dirs: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The cluster with an open connection; a rate between log dirs that a test leaves is taken away."""
    with shared_scene(two_dirs, tmp_path) as opened:
        yield opened


def places(at: Scene, topic: str) -> dict[str, bool]:
    """Log dirs of the replica on broker 1, and whether it is only a copy on its way there."""
    found = at.cluster.log_dirs([1])[1].replicas.get(TopicPartition(topic, 0), ())
    return {r.log_dir: r.is_future for r in found}


def rate(at: Scene) -> str | None:
    """The broker's own rate between log dirs."""
    broker = ConfigResource("broker", "1")
    entry = at.cluster.configs([broker])[broker].get(LOG_DIR_RATE)
    return entry.value if entry is not None and entry.source == "DYNAMIC_BROKER_CONFIG" else None


def file_to_other_dir(at: Scene, topic: str) -> tuple[str, str, str]:
    """A topic with data, a file that moves its replica on broker 1, where it lies and where it is to go."""
    at.topic(topic, {0: (1, 2)}, mib=8)
    (home,) = places(at, topic)
    (away,) = (d.path for d in at.cluster.log_dirs([1])[1].dirs if d.path != home)
    entry = {"topic": topic, "partition": 0, "replicas": [1, 2], "log_dirs": [away, "any"]}
    path = at.folder / f"{topic}.json"
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return str(path), home, away


def test_a_copy_of_the_stock_tool_is_told_and_cancelled_as_by_itself(at: Scene) -> None:
    """The same copy, once cancelled by each: the same lines, the same end; then nothing is active any more.

    The rate that no copy can be shown to need is not taken silently, but when a person names its broker.
    """
    path, home, away = file_to_other_dir(at, "stockdirs")
    file = ("--reassignment-json-file", path, "--preserve-throttles")
    answers = []
    for tool in (stock, ours):
        assert stock(at, "--execute", "--reassignment-json-file", path, *SLOW).code == 0
        until(lambda: places(at, "stockdirs") == {home: False, away: True})
        if tool is ours:
            theirs = stock(at, "--verify", *file)
            assert "Reassignment of replica stockdirs-0-1 is still in progress." in theirs.out
            assert ours(at, "--verify", *file) == theirs
        answer = tool(at, "--cancel", *file)
        assert answer.code == 0
        until(lambda: places(at, "stockdirs") == {home: False})
        answers.append([line.strip() for line in answer.out.splitlines() if line.strip()])
    assert answers[0] == answers[1]
    assert f"Successfully started moving log directory to {home} for replica stockdirs-0 with broker 1" in answers[1]
    again = ours(at, "--cancel", "--reassignment-json-file", path)
    assert "None of the specified partition moves are active." in again.out
    assert rate(at) == "20000"
    at.finish("throttles", "--clean", "--brokers", "1", "--yes")
    becomes(lambda: rate(at), None)


def test_a_copy_of_the_stock_tool_takes_room_in_the_log_dir_that_it_goes_to(at: Scene) -> None:
    """What it has yet to write, by what the brokers show of it; nothing once it has ended."""
    path, home, away = file_to_other_dir(at, "roomdirs")
    name = TopicPartition("roomdirs", 0)

    def coming() -> dict[Place, int]:
        state = at.cluster.snapshot()
        return dict(bytes_to_arrive_of_others(at.cluster.reassignments(), partition_sizes(state), Disks(state)).bytes)

    assert coming() == {}
    assert stock(at, "--execute", "--reassignment-json-file", path, *SLOW).code == 0
    until(lambda: places(at, "roomdirs") == {home: False, away: True})
    size = partition_sizes(at.cluster.snapshot())[name]
    left = coming()
    assert left.keys() == {1, (1, away)}
    assert 0 < left[1] == left[1, away] <= size
    at.change(ConfigChange(ConfigResource("broker", "1"), LOG_DIR_RATE, "set", "100000000"))
    until(lambda: places(at, "roomdirs") == {away: False})
    assert coming() == {}


def test_our_own_copy_is_followed_to_its_end_and_read_by_the_stock_tool(at: Scene) -> None:
    """--execute with a rate sets it, prints the stock tool's lines, and removes it when the copy is whole."""
    path, home, away = file_to_other_dir(at, "owndirs")
    answer = ours(at, "--execute", "--reassignment-json-file", path, "--replica-alter-log-dirs-throttle", "1000000")
    assert answer.code == 0
    assert "The replica-alter-dir throttle limit was set to 1000000 B/s" in answer.out
    assert f"Successfully started moving log directory to {away} for replica owndirs-0 with broker 1" in answer.out
    until(lambda: places(at, "owndirs") == {away: False})
    until(lambda: rate(at) is None)
    done = stock(at, "--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert "Reassignment of replica owndirs-0-1 completed successfully." in done.out
    assert ours(at, "--verify", "--reassignment-json-file", path, "--preserve-throttles") == done
    assert home not in places(at, "owndirs")


def test_our_own_copy_is_cancelled_while_its_follower_follows_it(at: Scene) -> None:
    """The follower ends, the copy stops, the rate that stood before is back, and the run tells what became of it."""
    before = ConfigChange(ConfigResource("broker", "1"), LOG_DIR_RATE, "set", "77777777")
    at.change(before)
    path, home, away = file_to_other_dir(at, "keptdirs")
    assert ours(at, "--execute", "--reassignment-json-file", path, *SLOW).code == 0
    until(lambda: places(at, "keptdirs") == {home: False, away: True})
    becomes(lambda: rate(at), "20000")
    answer = ours(at, "--cancel", "--reassignment-json-file", path)
    assert answer.code == 0, answer.out
    assert f"Successfully started moving log directory to {home} for replica keptdirs-0 with broker 1" in answer.out
    until(lambda: places(at, "keptdirs") == {home: False})
    becomes(lambda: rate(at), "77777777")
    newest = list(at.runs().values())[-1]
    assert newest.status.value == "cancelled"
