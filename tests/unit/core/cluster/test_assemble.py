"""Columns packed from responses are the same picture that rows give, and moves are never mistaken for assignments."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster import (
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Gap,
    LogDir,
    PartitionRow,
    Partitions,
    Topic,
    TopicPartition,
    build,
)
from ballast.core.cluster.assemble import Change, Facts, LogColumns, PartitionColumns, assemble, reconcile

P = TopicPartition("t", 0)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Topic], list[PartitionRow], set[int]]:
    """Topics, partitions with replicas, ISR, sizes and moves, and the brokers that tell their log dirs."""
    ids = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True))
    silent = set(draw(st.lists(st.sampled_from(ids), unique=True)))
    topics = [Topic(name) for name in draw(st.lists(st.sampled_from("abcdefg"), max_size=5, unique=True))]
    rows: list[PartitionRow] = []
    for topic in topics:
        for number in range(draw(st.integers(0, 4))):
            replicas = tuple(draw(st.permutations(ids))[: draw(st.integers(1, len(ids)))])
            isr = tuple(b for b in replicas if draw(st.booleans()))
            adding = tuple(b for b in replicas if draw(st.integers(0, 5)) == 0)
            removing = tuple(b for b in replicas if b not in adding and draw(st.integers(0, 5)) == 0)
            told = [b not in silent and draw(st.integers(0, 4)) > 0 for b in replicas]
            copies = [draw(st.integers(0, 10**9)) if t and draw(st.booleans()) else UNKNOWN for t in told]
            rows.append(
                PartitionRow(
                    topic.name,
                    number,
                    leader=draw(st.sampled_from([*replicas, -1])),
                    replicas=replicas,
                    isr=isr,
                    adding=adding,
                    removing=removing,
                    sizes=tuple(draw(st.integers(0, 10**12)) if t else UNKNOWN for t in told),
                    log_dirs=tuple(draw(st.integers(0, 1)) if t else UNKNOWN for t in told),
                    future_sizes=tuple(copies),
                    future_dirs=tuple(UNKNOWN if size == UNKNOWN else 1 for size in copies),
                )
            )
    return topics, rows, set(ids) - silent


DIRS = (LogDir("/one", 100, 50), LogDir("/two", 100, 60))


def from_rows(topics: list[Topic], rows: list[PartitionRow], telling: set[int]) -> ClusterState:
    """The simple path."""
    ids = {b for r in rows for b in r.replicas} | telling
    brokers = tuple(Broker(i, log_dirs=DIRS if i in telling else (), log_dirs_known=i in telling) for i in ids)
    return build("c", brokers, tuple(topics), rows)


def from_columns(topics: list[Topic], rows: list[PartitionRow], telling: set[int], seed: int) -> ClusterState:
    """The columnar path, from responses in a shuffled order."""
    shuffled = random.Random(seed)
    topics, rows = topics[:], rows[:]
    shuffled.shuffle(topics)
    shuffled.shuffle(rows)
    at = {t.name: i for i, t in enumerate(topics)}
    ids = {b for r in rows for b in r.replicas} | telling
    return assemble(
        Facts("c", 0, [Broker(i) for i in ids]),
        PartitionColumns(
            topics=topics,
            topic=np.array([at[r.topic] for r in rows], np.int32),
            number=np.array([r.number for r in rows], np.int32),
            leader=np.array([r.leader for r in rows], np.int32),
            replicas=np.array([len(r.replicas) for r in rows], np.int32),
            replica=np.array([b for r in rows for b in r.replicas], np.int32),
            in_sync=np.array([b in r.isr for r in rows for b in r.replicas], np.bool_),
            offline=np.array([False for r in rows for _ in r.replicas], np.bool_),
        ),
        moves={
            TopicPartition(r.topic, r.number): Change(r.replicas, r.adding, r.removing)
            for r in rows
            if r.adding or r.removing
        },
        logs={b: logs_of(b, rows, shuffled) for b in telling},
    )


def logs_of(broker: int, rows: list[PartitionRow], shuffled: random.Random) -> LogColumns:
    """What a broker answers: its copies, copies in the making, and one that metadata does not know."""
    copies = [("zz-unknown", 0, 7, 0, False), ("a", 99, 7, 0, False)]
    for r in rows:
        assert r.sizes is not None
        assert r.log_dirs is not None
        assert r.future_sizes is not None
        for k, b in enumerate(r.replicas):
            if b == broker and r.sizes[k] >= 0:
                copies.append((r.topic, r.number, r.sizes[k], r.log_dirs[k], False))
            if b == broker and r.future_sizes[k] >= 0:
                copies.append((r.topic, r.number, r.future_sizes[k], 1, True))
    shuffled.shuffle(copies)
    names = sorted({c[0] for c in copies})
    return LogColumns(
        dirs=DIRS,
        names=names,
        topic=np.array([names.index(c[0]) for c in copies], np.int32),
        number=np.array([c[1] for c in copies], np.int32),
        size_bytes=np.array([c[2] for c in copies], np.int64),
        log_dir=np.array([c[3] for c in copies], np.int32),
        future=np.array([c[4] for c in copies], np.bool_),
    )


@given(clusters(), st.integers(0, 2**32))
def test_columns_and_rows_give_the_same_picture(
    cluster: tuple[list[Topic], list[PartitionRow], set[int]], seed: int
) -> None:
    """Whatever the order of the responses, the vectorised path equals the simple one in every column."""
    topics, rows, telling = cluster
    simple, packed = from_rows(topics, rows, telling), from_columns(topics, rows, telling, seed)
    assert packed.topics == simple.topics
    assert packed.brokers == simple.brokers
    for column in fields(Partitions):
        mine, theirs = getattr(packed.partitions, column.name), getattr(simple.partitions, column.name)
        assert mine.dtype == theirs.dtype, column.name
        assert np.array_equal(mine, theirs), column.name


def test_what_is_not_per_partition_is_told_as_it_was_read() -> None:
    """A broker that only a replica list names is added as down; a replica on a failed log dir stays marked offline."""
    value = ConfigValue("2", "DYNAMIC_BROKER_CONFIG")
    facts = Facts(
        cluster_id="c",
        taken_at_ms=5,
        brokers=[Broker(1, "r", host="h")],
        broker_configs={1: {"a": value}},
        cluster_configs={"b": value},
        gaps=(Gap.of_broker(7, "log dirs", "no answer"),),
        api=frozenset({"kraft"}),
        kafka_version="4.3",
        controller_id=1,
    )
    one = np.array([0], np.int32)
    columns = PartitionColumns(
        topics=[Topic("t")],
        topic=one,
        number=one,
        leader=np.array([1], np.int32),
        replicas=np.array([2], np.int32),
        replica=np.array([1, 7], np.int32),
        in_sync=np.array([True, False]),
        offline=np.array([False, True]),
    )
    found = assemble(facts, columns)
    assert found.brokers == (Broker(1, "r", host="h"), Broker(7, alive=False))
    assert found.partitions.offline.tolist() == [False, True]
    for name in ("cluster_id", "taken_at_ms", "broker_configs", "cluster_configs", "gaps", "api", "kafka_version"):
        assert getattr(found, name) == getattr(facts, name), name
    assert found.controller_id == 1


def test_a_move_of_what_metadata_does_not_list_colours_nothing_and_hides_no_other() -> None:
    """Its topic is deleted, or its partition is not there yet."""
    topics, none = [Topic("a"), Topic("b")], np.zeros(6, np.bool_)
    columns = PartitionColumns(
        topics=topics,
        topic=np.array([0, 0, 1], np.int32),
        number=np.array([0, 2, 0], np.int32),
        leader=np.array([1, 1, 1], np.int32),
        replicas=np.array([2, 2, 2], np.int32),
        replica=np.array([1, 2] * 3, np.int32),
        in_sync=~none,
        offline=none,
    )
    change = Change(union=(1, 2), adding=(2,), removing=(1,))
    unlisted = [TopicPartition("gone", 0), TopicPartition("a", 1), TopicPartition("b", 7)]
    listed = TopicPartition("a", 2)
    for names in ([*unlisted, listed], [unlisted[1], listed], unlisted[2:]):
        found = assemble(Facts("c", 0, []), columns, moves=dict.fromkeys(names, change)).partitions
        assert found.adding.tolist() == [False, False, False, listed in names, False, False]
        assert found.removing.tolist() == [False, False, listed in names, False, False, False]


MOVE = Change(union=(3, 1, 2), adding=(3,), removing=(2,))


def test_a_list_equal_to_the_union_is_coloured() -> None:
    """Listed before, after or both: the union is no assignment."""
    for before, after in (({P: MOVE}, {P: MOVE}), ({P: MOVE}, {}), ({}, {P: MOVE})):
        assert reconcile(before, after, {P: (1, 2, 3)}) == ({P: MOVE}, frozenset())


def test_a_move_that_ended_or_had_not_begun_colours_nothing() -> None:
    """The target after the end, and the old list before the beginning, are settled assignments."""
    assert reconcile({P: MOVE}, {}, {P: (3, 1)}) == ({}, frozenset())
    assert reconcile({P: MOVE}, {}, {P: (1, 2)}) == ({}, frozenset())
    assert reconcile({}, {P: MOVE}, {P: (1, 2)}) == ({}, frozenset())


def test_metadata_that_misses_a_move_is_read_again() -> None:
    """Both listings know a move that the replica list does not show: the metadata lags behind."""
    assert reconcile({P: MOVE}, {P: MOVE}, {P: (1, 2)}) == ({}, frozenset({P}))


def test_a_list_that_fits_nothing_is_read_again() -> None:
    """Half of one move and half of another."""
    assert reconcile({P: MOVE}, {}, {P: (3, 2, 4)}) == ({}, frozenset({P}))


def test_a_replaced_move_colours_with_the_one_that_shows() -> None:
    """When the move changed between the listings, the replica list decides."""
    other = Change(union=(4, 1, 2), adding=(4,), removing=(2,))
    assert reconcile({P: MOVE}, {P: other}, {P: (1, 2, 4)}) == ({P: other}, frozenset())
    assert reconcile({P: MOVE}, {P: other}, {P: (1, 2, 3)}) == ({P: MOVE}, frozenset())


def test_an_empty_listing_does_not_mean_that_metadata_caught_up() -> None:
    """A move listed a moment ago still explains its union; any other list is taken as it is."""
    assert reconcile({}, {}, {P: (1, 2, 3)}, ended={P: MOVE}) == ({P: MOVE}, frozenset())
    assert reconcile({}, {}, {P: (3, 1)}, ended={P: MOVE}) == ({}, frozenset())
    assert reconcile({}, {}, {P: (1, 4)}, ended={P: MOVE}) == ({}, frozenset())


def test_a_partition_that_is_gone_has_no_move() -> None:
    """A move of a deleted topic is neither listed nor a reason to read again."""
    assert reconcile({P: MOVE}, {P: MOVE}, {}) == ({}, frozenset())


def test_a_partition_that_is_gone_does_not_hide_the_others() -> None:
    """Every other move that is listed is judged as if the deleted topics had never been."""
    gone = {TopicPartition("gone", n): MOVE for n in range(20)}
    kept = {TopicPartition("kept", n): MOVE for n in range(20)}
    replicas = dict.fromkeys(kept, (1, 2, 3))
    assert reconcile(gone | kept, kept | gone, replicas) == (kept, frozenset())
    assert reconcile({}, {}, {}, ended=gone) == ({}, frozenset())


def test_a_move_that_replaced_every_replica_may_have_ended() -> None:
    """The list then holds what was added and nothing else."""
    whole = Change(union=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))
    assert reconcile({P: whole}, {}, {P: (3, 4)}) == ({}, frozenset())
    assert reconcile({P: whole}, {}, {P: (3, 4, 1)}) == ({}, frozenset({P}))
