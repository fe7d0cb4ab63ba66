"""Tiered topics on real brokers: what a plan says, what its run copies, and what a sample makes of a log in two places."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import confluent_kafka as ck
import pytest
from tests.real.execution_scene import Scene, events, scene
from tests.tiered_storage import MEBIBYTE, TOPIC, tiered_spec
from tests.waiting import becomes, until

from ballast.adapters.clock import SystemClock
from ballast.adapters.samples.sampler import take
from ballast.core.cluster import TopicPartition
from ballast.core.cluster.tiered import LAST_TIERED_OFFSET
from ballast.core.plan.file import loads
from ballast.core.samples import MinuteSample
from ballast.core.samples.rates import measure
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka
MIB: Final = 24
RECORD_BYTES: Final = 100_000
RATE: Final = "1MB"
CLUSTER: Final = ConfigResource("broker", "")
SETTLED_BYTES: Final = 4 * MEBIBYTE
"""What local retention leaves, and the one segment more that is being written."""


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Four brokers with remote storage."""
    with Sandbox.up(tiered_spec("4.3.1", tmp_path_factory.mktemp("remote"), brokers=4, racks=0)) as sandbox:
        yield sandbox


@pytest.fixture
def at(four: Sandbox, tmp_path: Path) -> Iterator[Scene]:
    """The cluster with an open connection."""
    with scene(four, tmp_path) as opened:
        yield opened


def sizes(at: Scene, name: TopicPartition) -> dict[int, int]:
    """What lies on each broker's disk."""
    logs = at.cluster.log_dirs(at.sandbox.broker_ids)
    return {b: r.size_bytes for b, told in logs.items() for r in told.replicas.get(name, ())}


def settle(at: Scene, names: list[TopicPartition]) -> None:
    """Wait until what local retention deletes is gone from every disk."""

    def settled() -> bool:
        there = [sizes(at, n) for n in names]
        return all(len(set(s.values())) == 1 and max(s.values()) < SETTLED_BYTES for s in there)

    until(settled, "the older segments are in remote storage alone")


def topic(at: Scene, name: str, assignment: dict[int, tuple[int, ...]]) -> list[TopicPartition]:
    """A tiered topic, once what local retention deletes is gone from every disk."""
    names = [TopicPartition(name, p) for p in assignment]
    at.cluster.create_topic(name, assignment, TOPIC)
    until(lambda: all(at.in_sync(n) == set(assignment[n.partition]) for n in names))
    at.fill(name, assignment, mib=MIB)
    settle(at, names)
    return names


def drain(at: Scene, broker: int) -> tuple[Any, list[dict[str, Any]]]:
    """Plan that a broker is emptied, and execute it; the plan, and what the run told."""
    path = at.folder / "drain.json"
    made = loads(at.finish("plan", "decommission", str(broker), "--save", str(path), "--output", "json"))
    out = at.finish("apply", str(path), "--yes", "--throttle", RATE, "--output", "json")
    return made, events(out)


def read_all(at: Scene, name: TopicPartition, count: int) -> None:
    """Every record from the earliest offset on, in order, wherever it lies."""
    consumer = ck.Consumer(
        {"bootstrap.servers": at.sandbox.bootstrap_server, "group.id": f"g-{name.topic}", "enable.auto.commit": False}
    )
    consumer.assign([ck.TopicPartition(name.topic, name.partition, 0)])
    got: list[int] = []

    def done() -> bool:
        got.extend(m.offset() for m in consumer.consume(100, timeout=0.5) if m.error() is None)
        return len(got) >= count

    until(done, f"{count} records of {name} are read")
    consumer.close()
    assert got == list(range(count))


@pytest.mark.parametrize("last_tiered", [False, True])
def test_a_run_copies_what_its_plan_said_of_tiered_topics(at: Scene, last_tiered: bool) -> None:  # noqa: FBT001
    """The local part of each, or at most that; the run ends as planned, unhindered, and all that was ever written can be read."""
    name = f"drained-{last_tiered}".lower()
    leaving = 1 if last_tiered else 2
    names = topic(at, name, {0: (leaving, 3), 1: (3, leaving)})
    if last_tiered:
        at.change(ConfigChange(CLUSTER, LAST_TIERED_OFFSET, "set", "true"))
    before = {n: sizes(at, n) for n in names}
    made, told = drain(at, leaving)
    ended = [e for e in told if e["kind"] == "RunEnded"][-1]
    assert ended["status"] == "done", ended
    assert not [e for e in told if e.get("to") == "stalled"], told
    planned = {m.name: m for m in made.moves if m.name in before}
    assert set(planned) == set(names)
    assert made.summary["tiered"]["partitions"] == len([m for m in made.moves if m.topic.startswith("drained")])
    assert bool(made.summary["tiered"]["at_most_on"]) is last_tiered
    for n, move in planned.items():
        (added,) = move.adding
        assert move.size_bytes == max(before[n].values()) < MIB * MEBIBYTE / 3
        copied = sizes(at, n)[added]
        if last_tiered:
            assert copied < MEBIBYTE + RECORD_BYTES
        else:
            assert copied == move.size_bytes
    becomes(lambda: at.throttles(name), {})
    for n in names:
        read_all(at, n, MIB * 10)


class Kept:
    """A sink that keeps the newest minute."""

    sample: MinuteSample

    def write(self, sample: MinuteSample) -> bool:
        """Keep it."""
        self.sample = sample
        return True


def test_a_sample_tells_what_came_in_while_local_retention_deletes(at: Scene) -> None:
    """Its first offset is where the log on disk begins; by the earliest offset the rate would be a fraction, or nothing."""
    (name,) = topic(at, "sampled", {0: (3, 4)})

    def sample() -> tuple[MinuteSample, int]:
        kept, state = Kept(), at.cluster.snapshot()
        take(at.cluster, state, kept, SystemClock(), writer="w")
        return kept.sample, state.index[name]

    first, row = sample()
    assert at.cluster.offsets([name])[name].earliest == 0
    assert 0 < first.earliest[row] < first.high_watermark[row] == MIB * 10
    began = time.monotonic()
    at.fill("sampled", range(1), mib=MIB)
    # Not in the middle of it: a segment that goes between two questions of a sample makes records seem smaller.
    settle(at, [name])
    second, again = sample()
    assert second.earliest[again] > first.earliest[row]
    rates = measure(second, measure(first, None).readings).rates
    assert rates.seconds[again] <= time.monotonic() - began + 60
    came_in = rates.bytes_per_s[again] * rates.seconds[again]
    assert came_in == pytest.approx(MIB * 10 * RECORD_BYTES, rel=0.05)
    assert rates.records_per_s[again] * rates.seconds[again] == pytest.approx(MIB * 10)


def test_describe_shows_where_the_log_on_disk_begins(at: Scene) -> None:
    """Beside the earliest offset, which is in remote storage."""
    (name,) = topic(at, "described", {0: (3, 4)})
    (told,) = json.loads(at.finish("topics", "describe", name.topic, "--output", "json"))["partitions"]
    assert told["earliestOffset"] == 0
    assert 0 < told["localLogStartOffset"] < told["highWatermark"]
