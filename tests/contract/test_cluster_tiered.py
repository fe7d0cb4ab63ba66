"""Tiered topics (KIP-405): what lies on brokers' disks, and what a new replica copies of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.contract.cluster_forms import ClusterForm, SandboxHands
from tests.contract.sim_form import simulated
from tests.tiered_storage import MEBIBYTE, TOPIC, tiered_spec

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import TopicPartition
from ballast.core.cluster.tiered import LAST_TIERED_OFFSET
from ballast.ports.cluster import OK, ConfigChange, ConfigResource
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster

TOTAL: Final = 16 * MEBIBYTE
KEPT: Final = int(TOPIC["local.retention.bytes"])
LASTS_S: Final = 2.0
"""Some times as long as from one upload or deletion of segments to the next."""
KNOWS_LAST_TIERED: Final = frozenset({"sim", "4.3.1"})
"""The forms that have KIP-1023."""


@contextmanager
def _real(version: str, remote: Path) -> Iterator[ClusterForm]:
    with (
        Sandbox.up(tiered_spec(version, remote, log_dirs=2)) as sandbox,
        open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened,
    ):
        yield ClusterForm(version, opened.cluster, SystemClock(), SandboxHands(sandbox))


OPENERS: Final[dict[str, Callable[[Path], AbstractContextManager[ClusterForm]]]] = {
    "sim": lambda _: simulated(),
    "4.3.1": lambda remote: _real("4.3.1", remote),
    "3.9.2": lambda remote: _real("3.9.2", remote),
}


@pytest.fixture(
    scope="module",
    params=["sim", pytest.param("4.3.1", marks=pytest.mark.kafka), pytest.param("3.9.2", marks=pytest.mark.kafka)],
)
def tiered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterForm]:
    """A cluster with remote storage."""
    with OPENERS[request.param](tmp_path_factory.mktemp("remote")) as form:
        yield form


def sizes(form: ClusterForm, name: TopicPartition) -> dict[int, int]:
    """What lies on each broker's disk, copies in other log dirs left out."""
    logs = form.cluster.log_dirs(form.brokers)
    return {b: r.size_bytes for b, told in logs.items() for r in told.replicas.get(name, ()) if not r.is_future}


def starts(form: ClusterForm, name: TopicPartition, *brokers: int) -> list[int | None]:
    """Where the log begins on these brokers' disks."""
    told = form.cluster.local_starts({b: [name] for b in brokers})
    return [told.get(b, {}).get(name) for b in brokers]


def filled(form: ClusterForm, topic: str) -> TopicPartition:
    """A tiered partition on brokers 1 and 2, once local retention has deleted what it deletes on both, and nothing changes any more."""
    name = TopicPartition(form.topic({0: (1, 2)}, TOPIC, topic), 0)
    form.hands.produce(name, TOTAL)
    before: object = None
    since_s = form.clock.monotonic_s()

    def settled() -> bool:
        nonlocal before, since_s
        there, begins = sizes(form, name), starts(form, name, 1, 2)
        if (there, begins) != before:
            before, since_s = (there, begins), form.clock.monotonic_s()
        same = len(set(there.values())) == len(set(begins)) == 1 and None not in begins
        small = all(size < KEPT + 2 * MEBIBYTE for size in there.values())
        return same and small and form.clock.monotonic_s() - since_s >= LASTS_S

    form.until(settled, "the older segments are in remote storage alone")
    return name


def move(form: ClusterForm, name: TopicPartition) -> None:
    """From brokers 1 and 2 to 1 and 3, to the end."""
    assert form.cluster.alter_reassignments({name: (1, 3)}) == {name: OK}

    def done() -> bool:
        state = form.cluster.partitions([name])[name]
        return name not in form.cluster.reassignments() and state.replicas == (1, 3) and set(state.isr) == {1, 3}

    form.until(done, f"{name} is on brokers 1 and 3")


def test_sizes_and_the_local_log_start_are_those_of_the_disk(tiered: ClusterForm) -> None:
    """The earliest offset stays where it was, in remote storage, while the log on disk begins later and is smaller."""
    name = filled(tiered, "disk")
    offsets = tiered.cluster.offsets([name])[name]
    (start,) = set(starts(tiered, name, 1, 2))
    assert start is not None
    assert (offsets.earliest, 0 < start < offsets.high_watermark) == (0, True)
    assert all(KEPT <= size < TOTAL / 2 for size in sizes(tiered, name).values())
    state = tiered.cluster.snapshot()
    assert state.topics[state.topic_index[name.topic]].tiered
    assert starts(tiered, name, 3) == [None]


def test_the_local_log_start_of_a_plain_topic_is_its_earliest_offset(tiered: ClusterForm) -> None:
    """It is told for every topic."""
    name = TopicPartition(tiered.topic({0: (1, 2)}, name="plain"), 0)
    tiered.hands.produce(name, MEBIBYTE)
    assert starts(tiered, name, 1, 2) == [0, 0]
    state = tiered.cluster.snapshot()
    assert not state.topics[state.topic_index[name.topic]].tiered


def test_a_new_replica_copies_what_its_leader_has_on_disk(tiered: ClusterForm) -> None:
    """It is as large as the leader's and begins where the leader's does; nothing of what is in remote storage is copied."""
    name = filled(tiered, "copied")
    move(tiered, name)
    assert starts(tiered, name, 3) == starts(tiered, name, 1)
    there = sizes(tiered, name)
    assert there[3] == there[1] < TOTAL / 2
    ends = tiered.cluster.log_ends({1: [name], 3: [name]})
    assert ends[1] == ends[3] == {name: tiered.cluster.offsets([name])[name].high_watermark}


def test_a_replica_that_begins_at_the_last_tiered_offset_is_smaller(tiered: ClusterForm) -> None:
    """KIP-1023: what is in remote storage already is not copied, though the leader has it on disk; Kafka before 4.3 copies it."""
    name = filled(tiered, "last")
    broker = ConfigResource("broker", "3")
    changed = tiered.cluster.alter_configs([ConfigChange(broker, LAST_TIERED_OFFSET, "set", "true")])
    assert changed == {broker: OK}
    # Without a value on Kafka that does not know it: whatever it does not know may be a secret.
    tiered.until(lambda: LAST_TIERED_OFFSET in tiered.cluster.configs([broker])[broker], "the broker has the config")
    move(tiered, name)
    there = sizes(tiered, name)
    if tiered.name in KNOWS_LAST_TIERED:
        assert there[3] < MEBIBYTE < there[1]
    else:
        assert there[3] == there[1]
    assert tiered.cluster.alter_configs([ConfigChange(broker, LAST_TIERED_OFFSET, "delete")]) == {broker: OK}


def test_a_tiered_replica_moves_to_the_brokers_other_log_dir(tiered: ClusterForm) -> None:
    """Since Kafka 3.8; before that brokers with several log dirs do not start with remote storage."""
    name = filled(tiered, "dirs")
    (here,) = (r.log_dir for r in tiered.cluster.log_dirs([1])[1].replicas[name])
    (away,) = (d.path for d in tiered.cluster.log_dirs([1])[1].dirs if d.path != here)
    before = sizes(tiered, name)[1]
    assert tiered.cluster.alter_log_dirs({(name, 1): away}) == {(name, 1): OK}

    def moved() -> bool:
        return [r.log_dir for r in tiered.cluster.log_dirs([1])[1].replicas[name]] == [away]

    tiered.until(moved, "the replica lies in the other log dir")
    assert sizes(tiered, name)[1] == before
