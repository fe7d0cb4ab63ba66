"""A light reading gets the sizes, log dirs and configs of the full reading before, replica by replica."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ballast.core.cluster import (
    CONFIGS,
    LOG_DIRS,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Gap,
    LogDir,
    PartitionRow,
    Topic,
    build,
)
from ballast.core.cluster.slow_facts import with_slow_facts


def picture(rows: list[PartitionRow], *, ids: dict[str, str] | None = None) -> ClusterState:
    """Brokers 1 to 4 and the topics of these rows, in the order of their names as brokers tell them."""
    names = sorted({r.topic for r in rows})
    topics = tuple(Topic(n, topic_id=(ids or {}).get(n, f"id-{n}")) for n in names)
    return build("c", tuple(Broker(b, host=f"b{b}") for b in range(1, 5)), topics, rows)


def row(topic: str, number: int, replicas: tuple[int, ...], sizes: tuple[int, ...] = ()) -> PartitionRow:
    """With sizes as a full reading has them, or without."""
    return PartitionRow(topic, number, replicas[0], replicas, replicas, sizes=sizes or (UNKNOWN,) * len(replicas))


def sizes(state: ClusterState) -> dict[tuple[str, int, int], int]:
    """Topic, partition and broker to size."""
    p = state.partitions
    of = np.repeat(np.arange(len(p)), np.diff(p.start))
    return {
        (state.topics[p.topic[r]].name, int(p.number[r]), int(b)): int(s)
        for r, b, s in zip(of, p.replica, p.size_bytes, strict=True)
    }


KNOWN = [row("b", 0, (1, 2), (10, 11)), row("b", 1, (2, 3), (20, 21)), row("d", 0, (3, 1), (30, 31))]
FULL = picture(KNOWN)


def test_the_same_layout_keeps_every_size() -> None:
    """Also where only the order of a replica list has changed."""
    lean = picture([row("b", 0, (2, 1)), row("b", 1, (2, 3)), row("d", 0, (3, 1))])
    assert sizes(with_slow_facts(lean, FULL)) == sizes(FULL)


def test_new_topics_and_moves_make_only_their_own_sizes_unknown() -> None:
    """A topic is made before and after the known ones, one is expanded, a replica moves; the rest is as it was."""
    lean = picture(
        [row("a", 0, (1, 2)), row("b", 0, (1, 4)), row("b", 1, (2, 3)), row("b", 2, (1, 2)), row("d", 0, (3, 1)), row("e", 0, (4, 1))]
    )  # fmt: skip
    found = sizes(with_slow_facts(lean, FULL))
    assert {k: v for k, v in found.items() if v != UNKNOWN} == {
        ("b", 0, 1): 10, ("b", 1, 2): 20, ("b", 1, 3): 21, ("d", 0, 3): 30, ("d", 0, 1): 31,
    }  # fmt: skip
    assert len(found) == 12


def test_a_topic_that_was_made_again_is_another_one() -> None:
    """Its name is the same and its data is not."""
    lean = picture([row("b", 0, (1, 2)), row("b", 1, (2, 3)), row("d", 0, (3, 1))], ids={"d": "id-new"})
    found = sizes(with_slow_facts(lean, FULL))
    assert {k[0] for k, v in found.items() if v == UNKNOWN} == {"d"}


def test_nothing_before_and_nothing_now_are_no_trouble() -> None:
    """The first topics of a cluster, and the last ones gone."""
    empty = picture([])
    assert set(sizes(with_slow_facts(FULL, empty)).values()) == set(sizes(FULL).values())
    assert sizes(with_slow_facts(empty, FULL)) == {}


@pytest.mark.parametrize(
    ("before", "now", "min_isr"),
    [("id-1", "id-1", 2), ("id-1", "id-2", UNKNOWN), (None, "id-2", 2), ("id-1", None, 2), (None, None, 2)],
)
def test_a_topic_keeps_its_configs_unless_ids_tell_that_it_is_another(
    before: str | None, now: str | None, min_isr: int
) -> None:
    """What is set on a topic is not set on the next one of its name."""
    set_there = {"min.insync.replicas": ConfigValue("2", "DYNAMIC_TOPIC_CONFIG")}
    full = replace(FULL, topics=(Topic("b", before, min_isr=2, configs=set_there), FULL.topics[1]))
    light = replace(FULL, topics=(Topic("b", now, deleting=True), FULL.topics[1]))
    found = with_slow_facts(light, full).topics[0]
    assert (found.topic_id, found.deleting) == (now, True)
    assert (found.min_isr, found.configs) == (min_isr, {} if min_isr == UNKNOWN else set_there)


def test_gaps_of_metadata_end_with_the_next_reading() -> None:
    """Those of log dirs and configs stay, as no broker was asked for them again."""
    slow = (Gap.of_broker(3, LOG_DIRS, "the broker is down"), Gap("topic b", CONFIGS, "no answer"))
    quick = Gap("cluster", "the active controller", "there is none")
    now = Gap.of_broker(4, "rack", "no broker reports it")
    found = with_slow_facts(replace(FULL, gaps=(now,)), replace(FULL, gaps=(quick, *slow, now)))
    assert found.gaps == (now, *slow)


def test_a_broker_is_as_it_answered_last() -> None:
    """One that did not is unreachable until it answers; one that was asked for its log dirs since has answered."""
    read, since = (LogDir("/a", 100, 50),), (LogDir("/a", 100, 10),)
    told = {
        2: Broker(2, log_dirs=read, log_dirs_known=True),
        3: Broker(3, reachable=False),
        4: Broker(4, reachable=False),
    }
    full = replace(FULL, brokers=tuple(told.values()))
    light = replace(FULL, brokers=tuple(Broker(b, rack="r") for b in (1, 2, 3, 4)))
    found = with_slow_facts(light, full, {4: since}).brokers
    assert found == (
        Broker(1, rack="r"),
        Broker(2, rack="r", log_dirs=read, log_dirs_known=True),
        Broker(3, rack="r", reachable=False),
        Broker(4, rack="r", log_dirs=since, log_dirs_known=True),
    )


def test_a_log_dir_is_found_by_its_path() -> None:
    """A broker that lists its log dirs in another order since, and one less, moves no replica by it."""
    rows = [replace(row("b", n, (1, 2)), log_dirs=(n, n), future_dirs=(2 - n, UNKNOWN)) for n in range(3)]
    a, b, c = (LogDir(path) for path in ("/a", "/b", "/c"))
    full = picture(rows)
    full = replace(full, brokers=tuple(replace(x, log_dirs=(a, b, c)) for x in full.brokers))
    light = picture([row("b", n, (2, 1)) for n in range(3)])
    found = with_slow_facts(light, full, {1: (c, a), 4: (a,)})

    def paths(column: np.ndarray) -> list[str | None]:
        """Replica by replica, each on its broker."""
        places = zip(found.partitions.replica, column, strict=True)
        return [None if at == UNKNOWN else found.brokers[broker - 1].log_dirs[at].path for broker, at in places]

    assert paths(found.partitions.log_dir) == ["/a", "/a", "/b", None, "/c", "/c"]
    assert paths(found.partitions.future_log_dir) == [None, "/c", None, None, None, "/a"]


def test_configs_of_brokers_and_of_the_cluster_are_those_that_are_known() -> None:
    """A light reading asks for none."""
    rate = {"leader.replication.throttled.rate": ConfigValue("1000", "DYNAMIC_BROKER_CONFIG")}
    every = {"log.cleaner.threads": ConfigValue("2", "DYNAMIC_DEFAULT_BROKER_CONFIG")}
    found = with_slow_facts(FULL, replace(FULL, broker_configs={1: rate}, cluster_configs=every))
    assert (found.broker_configs, found.cluster_configs) == ({1: rate}, every)


def test_a_copy_between_log_dirs_keeps_its_size_and_new_replicas_have_none() -> None:
    """Every column has the type that it had: what is not known is ``UNKNOWN`` there and nothing else."""
    told = replace(row("b", 0, (1, 2), (10, 11)), log_dirs=(0, 1), future_sizes=(4, UNKNOWN), future_dirs=(1, UNKNOWN))
    light = picture([row("b", 0, (1, 3)), row("b", 1, (1, 2))])
    a, b = LogDir("/a"), LogDir("/b")
    full = picture([told])
    full = replace(full, brokers=tuple(replace(x, log_dirs=(a, b)) for x in full.brokers))
    p, before = with_slow_facts(light, full).partitions, light.partitions
    assert p.future_size_bytes.tolist() == [4, UNKNOWN, UNKNOWN, UNKNOWN]
    assert p.future_log_dir.tolist() == [1, UNKNOWN, UNKNOWN, UNKNOWN]
    assert p.log_dir.tolist() == [0, UNKNOWN, UNKNOWN, UNKNOWN]
    for column in ("size_bytes", "log_dir", "future_size_bytes", "future_log_dir"):
        assert getattr(p, column).dtype == getattr(before, column).dtype, column
    renumbered = with_slow_facts(light, full, {1: (b, a)}).partitions
    assert renumbered.log_dir.tolist() == [1, UNKNOWN, UNKNOWN, UNKNOWN]
    assert renumbered.log_dir.dtype == before.log_dir.dtype


def test_partitions_that_are_added_to_the_last_topic_have_no_sizes() -> None:
    """Nothing known stands behind them."""
    found = sizes(with_slow_facts(picture([*KNOWN, row("d", 1, (3, 4))]), FULL))
    assert found == {**sizes(FULL), ("d", 1, 3): UNKNOWN, ("d", 1, 4): UNKNOWN}


def test_sizes_are_not_taken_for_those_of_another_topics_partitions() -> None:
    """Topics have partitions of the same numbers on the same brokers."""
    rows = [row(f"t{t}", n, (1, 2), (100 * t + 10 * n + 1, 100 * t + 10 * n + 2)) for t in range(6) for n in range(4)]
    full = picture(rows)
    assert sizes(with_slow_facts(picture([replace(r, sizes=(UNKNOWN, UNKNOWN)) for r in rows]), full)) == sizes(full)


def test_a_broker_that_was_not_known_may_have_told_its_log_dirs_since() -> None:
    """It joined after the full reading."""
    full = replace(FULL, brokers=FULL.brokers[:3])
    since = (LogDir("/a", 100, 50),)
    found = with_slow_facts(FULL, full, {4: since})
    assert found.brokers[3].log_dirs == since
    assert sizes(found) == sizes(FULL)
