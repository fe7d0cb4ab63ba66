"""Kafka's placement: the worked cases, the refusals, and what must hold for any cluster."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.cluster import Broker
from ballast.core.placement import (
    BrokerMetadata,
    IncompleteRacks,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    assign_replicas,
    check_manual,
    check_manual_expansion,
    expand_replicas,
    expansion_start,
    format_manual,
    parse_manual,
    rack_alternated,
)
from ballast.core.placement.naive import naive_layout
from ballast.errors import UsageError


def plain(n: int) -> list[BrokerMetadata]:
    """Brokers 0 to n - 1 without racks."""
    return [BrokerMetadata(i) for i in range(n)]


def racked(*racks: tuple[int, ...]) -> list[BrokerMetadata]:
    """Brokers in racks a, b, c, …, sorted by id."""
    return sorted((BrokerMetadata(i, "abcdefgh"[r]) for r, ids in enumerate(racks) for i in ids), key=lambda b: b.id)


def test_five_brokers_ten_partitions() -> None:
    """The table in Kafka's own source: who leads what and who follows as what."""
    placed = assign_replicas(plain(5), 10, 3, start_index=0, replica_shift=0)
    by_role = [{b: sorted(p for p, r in placed.items() if r[role] == b) for b in range(5)} for role in range(3)]
    assert by_role[0] == {0: [0, 5], 1: [1, 6], 2: [2, 7], 3: [3, 8], 4: [4, 9]}
    assert by_role[1] == {0: [4, 8], 1: [0, 9], 2: [1, 5], 3: [2, 6], 4: [3, 7]}
    assert by_role[2] == {0: [3, 7], 1: [4, 8], 2: [0, 9], 3: [1, 5], 4: [2, 6]}


def test_three_brokers_start_two_shift_one() -> None:
    """Six partitions on three brokers, start 2, shift 1."""
    placed = assign_replicas(plain(3), 6, 3, start_index=2, replica_shift=1)
    assert list(placed.values()) == [(2, 1, 0), (0, 2, 1), (1, 0, 2), (2, 0, 1), (0, 1, 2), (1, 2, 0)]


@pytest.mark.parametrize(
    "rows",
    [
        [(3, 2, 0), (0, 3, 1), (1, 0, 2)],
        [(3, 1, 2), (0, 2, 3), (1, 3, 0), (2, 0, 1), (3, 2, 0)],
        [(1, 0, 2), (2, 1, 3), (3, 2, 0), (0, 3, 1), (1, 2, 3), (2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 3, 0)],
    ],
)
def test_rows_seen_in_the_wild_have_a_start_and_a_shift(rows: list[tuple[int, ...]]) -> None:
    """Placements of four brokers that were seen on real clusters come out for some start and shift."""
    found = [
        (start, shift)
        for start in range(4)
        for shift in range(4)
        if list(assign_replicas(plain(4), len(rows), 3, start_index=start, replica_shift=shift).values()) == rows
    ]
    assert found


def test_two_racks_of_three() -> None:
    """The alternated list, and two partitions on it."""
    brokers = racked((0, 1, 2), (3, 4, 5))
    assert rack_alternated({b.id: str(b.rack) for b in brokers}) == [0, 3, 1, 4, 2, 5]
    placed = assign_replicas(brokers, 2, 3, start_index=3, replica_shift=0)
    assert placed == {0: (4, 2, 5), 1: (2, 5, 0)}


def test_rack_alternation_lets_exhausted_racks_drop_out() -> None:
    """Racks by name, brokers by id, one of each in turn; the names sort as Java sorts them."""
    nine = {i: "abc"[i // 3] for i in range(9)}
    assert rack_alternated(nine) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert rack_alternated({7: "b", 3: "a", 9: "b", 1: "b"}) == [3, 1, 7, 9]
    # U+FF5E sorts behind U+1F600 in UTF-16 (a surrogate pair) and before it by code point.
    assert rack_alternated({1: "\uff5e", 2: "\U0001f600"}) == [2, 1]


def test_shift_grows_at_positive_multiples_of_n_also_when_numbering_starts_above_zero() -> None:
    """Partition 5 of five brokers has the next shift wherever the numbering began."""
    late = assign_replicas(plain(5), 6, 3, start_index=0, replica_shift=0, start_partition=5)
    assert list(late) == [5, 6, 7, 8, 9, 10]
    whole = assign_replicas(plain(5), 11, 3, start_index=0, replica_shift=0)
    assert late == {p: r for p, r in whole.items() if p >= 5}


@pytest.mark.parametrize("brokers", [plain(6), racked((0, 3), (1, 4), (2, 5))], ids=["plain", "racks"])
def test_each_further_round_over_the_brokers_is_the_first_with_the_next_shift(brokers: list[BrokerMetadata]) -> None:
    """So that the followers of a broker's partitions are spread over all others, with racks and without."""
    rounds = assign_replicas(brokers, 18, 2, start_index=1, replica_shift=0)
    for shift in range(3):
        first = assign_replicas(brokers, 6, 2, start_index=1, replica_shift=shift)
        assert [rounds[p + 6 * shift] for p in range(6)] == list(first.values())
    assert [rounds[p] for p in range(6)] != [rounds[p + 6] for p in range(6)]


def test_start_alone_fixes_the_shift_and_a_generator_draws_the_start_first() -> None:
    """``start_index`` means Kafka's fixedStartIndex; what is not given is drawn, in Kafka's order."""
    brokers = plain(7)
    assert assign_replicas(brokers, 20, 3, start_index=4) == assign_replicas(
        brokers, 20, 3, start_index=4, replica_shift=4
    )
    twin = Random(11)
    start, shift = twin.randrange(7), twin.randrange(7)
    drawn = assign_replicas(brokers, 20, 3, rng=Random(11))
    assert drawn == assign_replicas(brokers, 20, 3, start_index=start, replica_shift=shift)
    assert assign_replicas(brokers, 20, 3, replica_shift=2, rng=Random(11)) == assign_replicas(
        brokers, 20, 3, start_index=start, replica_shift=2
    )
    assert len({tuple(assign_replicas(brokers, 3, 2).values()) for _ in range(200)}) > 1


def test_refusals_have_kafkas_meaning() -> None:
    """Each impossible request is refused as what it is."""
    with pytest.raises(InvalidPartitions, match="larger than 0"):
        assign_replicas(plain(3), 0, 1)
    with pytest.raises(InvalidReplicationFactor, match="larger than 0"):
        assign_replicas(plain(3), 1, 0)
    with pytest.raises(InvalidReplicationFactor, match="available brokers, 3"):
        assign_replicas(plain(3), 1, 4)
    with pytest.raises(InvalidReplicationFactor):
        assign_replicas([], 1, 1)
    with pytest.raises(UsageError, match="more than once"):
        assign_replicas([BrokerMetadata(1), BrokerMetadata(1)], 1, 1)
    with pytest.raises(UsageError, match="start_index must not be negative"):
        assign_replicas(plain(3), 1, 1, start_index=-1)
    with pytest.raises(UsageError, match="enforced, safe, disabled"):
        assign_replicas(plain(3), 1, 1, rack_aware="maybe")  # type: ignore[arg-type]


def test_rack_modes() -> None:
    """Enforced refuses a cluster with racks on some brokers only, safe drops them, disabled never looks."""
    mixed = [BrokerMetadata(0, "a"), BrokerMetadata(1), BrokerMetadata(2, "b")]
    with pytest.raises(IncompleteRacks, match=r"Not all brokers have rack information.*broker 1 has none"):
        assign_replicas(mixed, 3, 2, start_index=0)
    without = assign_replicas(plain(3), 3, 2, start_index=0)
    assert assign_replicas(mixed, 3, 2, start_index=0, rack_aware="safe") == without
    assert assign_replicas(mixed, 3, 2, start_index=0, rack_aware="disabled") == without
    whole = racked((0, 1), (2, 3))
    assert assign_replicas(whole, 4, 2, start_index=0, rack_aware="safe") == assign_replicas(whole, 4, 2, start_index=0)
    assert assign_replicas(whole, 4, 2, start_index=0, rack_aware="disabled") == assign_replicas(
        plain(4), 4, 2, start_index=0
    )


def test_the_clusters_own_brokers_can_be_placed_on() -> None:
    """Any value with an id and a rack will do."""
    assert assign_replicas([Broker(0, "a"), Broker(1, "b")], 1, 2, start_index=1) == {0: (1, 0)}


def test_expansion_starts_at_the_first_broker_not_below_partition_zeros() -> None:
    """The position is found by id and used in the rack-alternated list; beyond the last id it is 0."""
    assert expansion_start(plain(5), 3) == 3
    assert expansion_start([BrokerMetadata(10), BrokerMetadata(4)], 5) == 1
    assert expansion_start(plain(3), 9) == 0
    brokers = racked((0, 1, 2), (3, 4, 5))
    grown = expand_replicas(brokers, {0: (4, 2), 1: (2, 5)}, 4)
    assert grown == assign_replicas(brokers, 2, 2, start_index=4, start_partition=2)
    # Position 4 by id is broker 4; in the walk's list 0 3 1 4 2 5 it is broker 2, and partition 2 is two further on.
    assert grown[2][0] == 0


def test_expansion_only_ever_adds() -> None:
    """As many or fewer partitions are no expansion."""
    for total in (0, 1, 2):
        with pytest.raises(InvalidPartitions, match="only be increased"):
            expand_replicas(plain(3), {0: (0,), 1: (1,)}, total)
    with pytest.raises(InvalidPartitions, match="no partition 0"):
        expand_replicas(plain(3), {1: (1,)}, 5)


def test_manual_expansion_skips_the_existing_and_checks_the_rest() -> None:
    """All partitions are listed; those that exist are not even looked at."""
    existing = {0: (0, 1), 1: (1, 2)}
    manual = {0: (9, 9, 9), 1: (), 2: (2, 0), 3: (0, 1)}
    assert check_manual_expansion(existing, 4, manual, {0, 1, 2}) == {2: (2, 0), 3: (0, 1)}
    for bad, reason in (
        ({**manual, 3: (0, 0)}, "more than once"),
        ({**manual, 3: (0, 7)}, "broker 7, which is not available"),
        ({**manual, 3: (8, 7)}, "brokers 7, 8, which are not available"),
        ({**manual, 3: (0,)}, "where 2 are expected"),
        ({**manual, 2: (2,), 3: (0,)}, "where 2 are expected"),
        ({**manual, 3: ()}, "empty"),
        ({0: (), 1: (), 2: (2, 0), 5: (0, 1)}, "consecutive"),
        ({2: (2, 0), 3: (0, 1)}, "lists 2 partitions, and the topic is to have 4. List every partition"),
    ):
        with pytest.raises(InvalidReplicaAssignment) as caught:
            check_manual_expansion(existing, 4, bad, {0, 1, 2})
        assert reason in str(caught.value)


def test_manual_form_in_and_out() -> None:
    """``0:1:2,0:1:2`` with space around ids and trailing separators, as the stock tool takes it."""
    assert parse_manual("0:1:2,1:2:0") == {0: (0, 1, 2), 1: (1, 2, 0)}
    assert parse_manual(" 0 : 1,+1:0:,,") == {0: (0, 1), 1: (1, 0)}
    assert parse_manual("0:1,") == parse_manual("0:1:") == {0: (0, 1)}
    assert format_manual({1: (1, 0), 0: (0, 1)}) == "0:1,1:0"
    for text, reason in (
        ("0:1,1", "different replication factor: 1 after 0:1"),
        ("0:0", "duplicate entries"),
        ("0:1,0:x", "Partition 1 names 'x', which is not a broker id. Write brokers as numbers"),
        ("", "'', which is not a broker id"),
        ("0:1,,1:0", "''"),
        ("-1:0", "broker -1"),
        ("0:99999999999", "broker 99999999999; ids run"),
        ("0:" + "9" * 20, "broker 99999999999999999999; ids run"),
        ("0:" + "9" * 5000, "broker 99999999999999999999…; ids run"),
    ):
        with pytest.raises(InvalidReplicaAssignment) as caught:
            parse_manual(text)
        assert reason in str(caught.value), text
    with pytest.raises(InvalidReplicaAssignment, match="without gaps"):
        format_manual({1: (1,)})


def test_the_naive_layout_is_the_true_one_only_at_start_zero_shift_zero() -> None:
    """Equal for the first n partitions at start 0 and shift 0, and at no other start or shift."""
    n = 5
    naive = naive_layout(plain(n), n, 3)
    equal = [
        (start, shift)
        for start in range(n)
        for shift in range(n - 1)
        if assign_replicas(plain(n), n, 3, start_index=start, replica_shift=shift) == naive
    ]
    assert equal == [(0, 0)]
    assert assign_replicas(plain(n), n + 1, 3, start_index=0, replica_shift=0) != naive_layout(plain(n), n + 1, 3)


clusters = st.lists(
    st.tuples(st.integers(0, 5000), st.sampled_from("abcd")), min_size=1, max_size=14, unique_by=lambda b: b[0]
)


@given(
    rows=clusters,
    partitions=st.integers(1, 60),
    factor=st.integers(1, 14),
    start=st.integers(0, 30),
    shift=st.integers(0, 30),
    with_racks=st.booleans(),
)
def test_invariants(
    *, rows: list[tuple[int, str]], partitions: int, factor: int, start: int, shift: int, with_racks: bool
) -> None:
    """No broker twice, racks as spread as can be, first replicas within one of each other."""
    brokers = [BrokerMetadata(i, rack if with_racks else None) for i, rack in rows]
    factor = min(factor, len(brokers))
    placed = assign_replicas(brokers, partitions, factor, start_index=start, replica_shift=shift)
    assert list(placed) == list(range(partitions))
    racks = dict(rows)
    for replicas in placed.values():
        assert len(set(replicas)) == len(replicas) == factor
        if with_racks:
            assert len({racks[b] for b in replicas}) == min(factor, len(set(racks.values())))
    leaders = Counter({b.id: 0 for b in brokers})
    leaders.update(r[0] for r in placed.values())
    assert max(leaders.values()) - min(leaders.values()) <= 1


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 5), st.integers(0, 20), st.integers(0, 20))
def test_whole_rounds_without_racks_are_perfectly_even(
    n: int, factor: int, rounds: int, start: int, shift: int
) -> None:
    """After a multiple of n partitions every broker has the same number of replicas in every role."""
    factor = min(factor, n)
    placed = assign_replicas(plain(n), n * rounds, factor, start_index=start, replica_shift=shift)
    for role in range(factor):
        assert set(Counter(r[role] for r in placed.values()).values()) == {rounds}


@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 20))
def test_equal_racks_and_as_many_replicas_share_evenly(racks: int, per_rack: int, rounds: int, start: int) -> None:
    """As many replicas as racks, racks of one size, whole rounds: every broker the same count, each rack each partition."""
    brokers = racked(*(tuple(range(r * per_rack, (r + 1) * per_rack)) for r in range(racks)))
    placed = assign_replicas(brokers, len(brokers) * rounds, racks, start_index=start)
    counts = Counter(b for r in placed.values() for b in r)
    assert set(counts.values()) == {rounds * racks}


@given(clusters, st.integers(1, 20), st.integers(1, 20), st.integers(1, 4), st.integers(0, 9))
def test_expansion_leaves_the_old_alone(
    rows: list[tuple[int, str]], old: int, more: int, factor: int, start: int
) -> None:
    """Only new numbers are placed, with partition 0's replication factor."""
    brokers = [BrokerMetadata(i, rack) for i, rack in rows]
    factor = min(factor, len(brokers))
    existing = assign_replicas(brokers, old, factor, start_index=start)
    grown = expand_replicas(brokers, existing, old + more)
    assert list(grown) == list(range(old, old + more))
    assert all(len(set(r)) == factor for r in grown.values())


@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2, unique=True), min_size=1, max_size=9))
def test_manual_form_round_trips(rows: list[list[int]]) -> None:
    """What is written reads back the same."""
    assignment = {i: tuple(r) for i, r in enumerate(rows)}
    assert parse_manual(format_manual(assignment)) == assignment
    check_manual(assignment, range(10))


def test_naive_repeats_replica_sets_where_kafka_varies_them() -> None:
    """Three rounds on six brokers: the naive layout knows six replica sets, Kafka's ten of twenty at most."""
    sets = {frozenset(r) for r in naive_layout(plain(6), 18, 3).values()}
    kafkas = {frozenset(r) for r in assign_replicas(plain(6), 18, 3, start_index=0, replica_shift=0).values()}
    assert len(sets) == 6
    assert len(kafkas) > len(sets)
    assert kafkas <= {frozenset(c) for c in combinations(range(6), 3)}
