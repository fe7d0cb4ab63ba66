"""Ballast's placement against Kafka's own Java classes: thousands of generated cases, equal to the last replica."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from tests.oracle.java import Classic, Jvm, Striped

from ballast.core.placement import (
    Assignment,
    BrokerMetadata,
    IncompleteRacks,
    InvalidPartitions,
    InvalidReplicationFactor,
    assign_replicas,
    expand_replicas,
    rack_alternated,
)
from ballast.core.placement.java_random import JavaRandom, hash_map_order, string_hash
from ballast.core.placement.kraft import place_kraft

pytestmark = pytest.mark.kafka

RACK_NAMES = (
    "a",
    "b",
    "c",
    "rack-1",
    "rack-10",
    "rack-2",
    "eu-west-1a",
    "\u00e9",
    "\uff5e",
    "\U0001f600",
    "",
    "Aa",
    "BB",
)


def topologies(rng: Random, count: int, *, mixed: bool) -> Iterator[list[BrokerMetadata]]:
    """Brokers with gaps in their ids, in no order, without racks or with uneven ones (or, if ``mixed``, both at once)."""
    for _ in range(count):
        ids = rng.sample(range(rng.choice((8, 40, 100_000))), rng.randint(1, 8))
        if rng.random() < 0.3:
            yield [BrokerMetadata(i) for i in ids]
            continue
        names: list[str | None] = list(rng.sample(RACK_NAMES, rng.randint(1, 5)))
        if mixed and rng.random() < 0.5:
            names.append(None)
        yield [BrokerMetadata(i, rng.choice(names)) for i in ids]


def test_the_classic_walk(classic: Classic) -> None:
    """3,000 placements with fixed starts, any numbering, racks or none."""
    rng = Random(1)
    for brokers in topologies(rng, 150, mixed=False):
        java = classic.brokers(brokers)
        for _ in range(20):
            partitions, factor = rng.randint(1, 40), rng.randint(1, len(brokers))
            start, first = rng.randint(0, 3 * len(brokers)), rng.choice((-1, 0, 0, rng.randint(1, 50)))
            expected = classic.assign(java, partitions, factor, start, first)
            found = assign_replicas(brokers, partitions, factor, start_index=start, start_partition=first)
            assert found == expected, (brokers, partitions, factor, start, first)


def test_drawn_starts_and_shifts(classic: Classic) -> None:
    """600 placements whose start and shift come from a generator with the same seed."""
    rng = Random(2)
    for brokers in topologies(rng, 60, mixed=False):
        java = classic.brokers(brokers)
        for _ in range(10):
            seed, partitions, factor = rng.getrandbits(47), rng.randint(1, 40), rng.randint(1, len(brokers))
            classic.seed(seed)
            expected = classic.assign(java, partitions, factor)
            assert assign_replicas(brokers, partitions, factor, rng=JavaRandom(seed)) == expected, (brokers, seed)


def test_expansions(classic: Classic) -> None:
    """600 expansions: Kafka's walk from the place that its ZooKeeper controller computes, spelled out here once more."""
    rng = Random(3)
    for brokers in topologies(rng, 60, mixed=False):
        by_id = sorted(brokers, key=lambda b: b.id)
        java = classic.brokers(by_id)
        for _ in range(10):
            old, total = rng.randint(1, 20), rng.randint(21, 40)
            factor = rng.randint(1, len(brokers))
            first = rng.choice((rng.choice(by_id).id, rng.randint(0, 100_000)))
            existing: Assignment = dict.fromkeys(range(old), (first, *range(200_000, 200_000 + factor - 1)))
            start = max(0, next((i for i, b in enumerate(by_id) if b.id >= first), -1))
            expected = classic.assign(java, total - old, factor, start, old)
            assert expand_replicas(brokers, existing, total) == expected, (brokers, existing, total)


def test_rack_alternation(classic: Classic) -> None:
    """The list that the rack-aware walk uses, also for rack names that sort differently in Java."""
    rng = Random(4)
    for _ in range(100):
        racks = {i: rng.choice(RACK_NAMES) for i in rng.sample(range(500), rng.randint(1, 20))}
        assert rack_alternated(racks) == classic.alternated(racks)


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "ours", "kafkas"),
    [
        ((None, None), 0, 1, InvalidPartitions, "InvalidPartitionsException"),
        ((None, None), -3, 9, InvalidPartitions, "InvalidPartitionsException"),
        ((None, None), 1, 0, InvalidReplicationFactor, "InvalidReplicationFactorException"),
        ((None, None), 1, 3, InvalidReplicationFactor, "InvalidReplicationFactorException"),
        ((), 1, 1, InvalidReplicationFactor, "InvalidReplicationFactorException"),
        (("a", None), 1, 3, InvalidReplicationFactor, "InvalidReplicationFactorException"),
        (("a", None), 1, 1, IncompleteRacks, "AdminOperationException"),
    ],
)
def test_refusals(
    *,
    classic: Classic,
    racks: tuple[str | None, ...],
    partitions: int,
    factor: int,
    ours: type[Exception],
    kafkas: str,
) -> None:
    """The same requests are refused for the same reason, the first one that applies."""
    brokers = [BrokerMetadata(i, rack) for i, rack in enumerate(racks)]
    with pytest.raises(Py4JJavaError) as caught:
        classic.assign(classic.brokers(brokers), partitions, factor, 0, 0)
    assert caught.value.java_exception.getClass().getSimpleName() == kafkas
    with pytest.raises(ours):
        assign_replicas(brokers, partitions, factor, start_index=0)


def test_the_striped_placer(striped: Striped) -> None:
    """2,000 placements from seeds: uneven racks, brokers without rack, fenced brokers, rounds beyond the first shuffle."""
    rng = Random(5)
    for brokers in topologies(rng, 125, mixed=True):
        fenced = frozenset(b.id for b in rng.sample(brokers, rng.randint(0, len(brokers) - 1)) if rng.random() < 0.5)
        java = striped.cluster(brokers, fenced)
        for _ in range(16):
            seed, partitions, factor = rng.getrandbits(47), rng.randint(1, 40), rng.randint(1, len(brokers))
            found = place_kraft(brokers, partitions, factor, JavaRandom(seed), fenced=fenced)
            assert found == striped.place(java, partitions, factor, seed), (brokers, fenced, partitions, factor, seed)


def test_the_striped_placer_on_many_racks(striped: Striped) -> None:
    """The order in which a Java hash map hands out thirty or a hundred racks decides what each of them draws."""
    rng = Random(6)
    for count in (12, 13, 25, 49, 100):
        brokers = [BrokerMetadata(i, f"zone-{rng.randint(0, 9999)}-{i % count}") for i in range(2 * count)]
        java = striped.cluster(brokers, frozenset())
        for seed in range(4):
            assert place_kraft(brokers, 150, 3, JavaRandom(seed)) == striped.place(java, 150, 3, seed)


def test_the_striped_refusals(striped: Striped) -> None:
    """No broker that serves, or fewer brokers than replicas."""
    brokers = [BrokerMetadata(0), BrokerMetadata(1)]
    for fenced, factor in ((frozenset({0, 1}), 1), (frozenset[int](), 3), (frozenset[int](), 0)):
        with pytest.raises(Py4JJavaError, match="InvalidReplicationFactorException"):
            striped.place(striped.cluster(brokers, fenced), 1, factor, 0)
        with pytest.raises(InvalidReplicationFactor):
            place_kraft(brokers, 1, factor, JavaRandom(0), fenced=fenced)


def test_java_random(tools_jvm: Jvm) -> None:
    """Draws and shuffles of ``java.util.Random``, with bounds that make it draw again."""
    bounds = (1, 2, 3, 7, 64, 1000, (1 << 30) + 1, (1 << 31) - 1)
    for seed in (0, 1, -1, 42, (1 << 47) + 5, -(1 << 62)):
        ours, javas = JavaRandom(seed), tools_jvm.java.util.Random(seed)
        assert [ours.next_int(b) for b in bounds * 20] == [javas.nextInt(b) for b in bounds * 20]
        items, java_items = list(range(25)), tools_jvm.list(range(25))
        ours.shuffle(items)
        tools_jvm.java.util.Collections.shuffle(java_items, javas)
        assert items == list(java_items)
    for bound in (0, -1, 1 << 31):
        with pytest.raises(ValueError, match="bound"):
            JavaRandom(0).next_int(bound)


def test_hash_map_order(tools_jvm: Jvm) -> None:
    """Hashes and iteration order of real hash maps, growth and crowded bins included."""
    rng = Random(7)
    same_hash = ["".join(pair) for pair in product(("Aa", "BB"), repeat=4)]
    assert len({string_hash(text) for text in same_hash}) == 1
    cases: list[list[str | None]] = [
        [*rng.sample(same_hash, n), *(f"r{rng.randint(0, 999)}-{i}" for i in range(m))]
        for n in (0, 1, 8, 9, 10)
        for m in (0, 3, 12, 40)
        if n < 8 or m < 40  # an eleventh key in one bin would make it a tree, whose order is out of reach
    ]
    cases += [[None, *RACK_NAMES], [*RACK_NAMES, None], []]
    for keys in cases:
        java: Any = tools_jvm.java.util.HashMap()
        for key in keys:
            java.put(tools_jvm.optional(key), True)
        assert hash_map_order(keys) == [o.orElse(None) for o in java.keySet().toArray()], keys
