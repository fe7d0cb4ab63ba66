"""Which waiting moves start next: every cap holds at every moment, and the most urgent goes first."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.core.plan import Move, Place
from ballast.executor.machine.scheduling.batches import Caps, Load, choose, json_bytes

WIDE = Caps(moves_in_per_broker=100, moves_out_per_broker=100, moves_at_once=100)
CAPS = Caps(moves_in_per_broker=2, moves_out_per_broker=2, moves_at_once=4)
HEAD = 60
"""Bytes that the JSON of a batch has besides its moves."""


def load(
    partition: int, leader: int, *to: int, size: int = 10, inbound: float = 0.0, size_unknown: bool = False
) -> Load:
    """A move from its leader to other brokers, with this many bytes to be copied altogether."""
    return Load(Move("t", partition, (max(leader, 0),), to), leader, size, inbound, size_unknown)


def between_dirs(partition: int, path: str, size: int = 10) -> Load:
    """A move to another log dir of broker 1."""
    return Load(Move("t", partition, (1, 2), (1, 2), log_dirs=(path, "any")), 2, size)


def picked(
    waiting: Sequence[Load],
    active: Sequence[Load] = (),
    caps: Caps = WIDE,
    *,
    rates: Mapping[int, int] | None = None,
    room: Mapping[Place, int] | None = None,
    full: Collection[int] = (),
) -> list[int]:
    """The partitions that start, in order."""
    return [m.partition for m in choose(waiting, active, caps, rates=rates or {}, room=room or {}, full=full)]


@pytest.mark.parametrize(
    ("caps", "waiting", "expected"),
    [
        pytest.param(replace(WIDE, moves_at_once=3), [load(1, 1, 5), load(2, 2, 6), load(3, 3, 7)], [1, 2], id="all"),
        pytest.param(
            replace(WIDE, moves_in_per_broker=2),
            [load(1, 1, 9), load(2, 2, 9), load(3, 3, 7, 9)],
            [1],
            id="destination",
        ),
        pytest.param(
            replace(WIDE, moves_out_per_broker=2), [load(1, 8, 5), load(2, 8, 6), load(3, 1, 7)], [3, 1], id="leader"
        ),
        pytest.param(replace(WIDE, moves_out_per_broker=1), [load(1, 0, 5), load(2, 0, 6)], [1], id="leader-0"),
        pytest.param(replace(WIDE, moves_out_per_broker=1), [load(1, -1, 5), load(2, -1, 6)], [1, 2], id="no-leader"),
        pytest.param(replace(WIDE, bytes_at_once=30), [load(1, 1, 5, size=20), load(2, 2, 6, size=1)], [1], id="bytes"),
        pytest.param(replace(WIDE, bytes_at_once=29), [load(1, 1, 5, size=20), load(2, 2, 6, size=1)], [2], id="more"),
    ],
)
def test_what_is_on_its_way_counts_in_every_cap(caps: Caps, waiting: list[Load], expected: list[int]) -> None:
    """One move from broker 8 to broker 9 is in flight, with 10 bytes left; a partition without a leader has no sender."""
    assert picked(waiting, [load(0, 8, 9)], caps) == expected


def test_a_move_larger_than_the_cap_of_bytes_goes_alone() -> None:
    """Else it would wait for ever."""
    caps = replace(WIDE, bytes_at_once=5)
    assert picked([load(1, 1, 5), load(2, 2, 6, size=1)], caps=caps) == [1]
    assert picked([load(1, 1, 5)], [load(0, 8, 9, size=1)], caps) == []


def test_what_may_be_any_number_of_bytes_goes_alone_where_bytes_are_capped() -> None:
    """Neither beside other moves, nor they beside it; without that cap its size is no matter."""
    caps = replace(WIDE, bytes_at_once=1000)
    unknown, known = load(1, 1, 5, size=0, size_unknown=True), load(2, 2, 6)
    assert picked([unknown], [known], caps) == []
    assert picked([known], [unknown], caps) == []
    assert picked([known], [unknown, load(3, 3, 7)], caps) == []
    assert picked([unknown, load(3, 3, 7, size=0)], [], caps) == [1]
    assert picked([unknown], [known]) == [1]
    assert picked([known, load(3, 3, 7)], [load(0, 8, 9)], caps) == [2, 3]


@pytest.mark.parametrize(("less", "expected"), [(0, [1, 2]), (1, [1])])
def test_a_batch_is_no_longer_than_its_json_may_be(less: int, expected: list[int]) -> None:
    """What is in flight is in the same znode."""
    loads = [load(n, 1, 5) for n in range(4)]
    longest = HEAD + sum(json_bytes(x.move) for x in loads[:3])
    assert picked(loads[1:], loads[:1], replace(WIDE, json_bytes=longest - less)) == expected


def test_the_json_of_a_move_is_never_under_estimated() -> None:
    """Whatever the numbers in it; a batch of ordinary moves is not thought much longer than it is."""
    moves = [Move("topic", n, (1,), (n, 2147483647)) for n in (0, 99, 2147483647)]
    entries = [{"topic": m.topic, "partition": m.partition, "replicas": list(m.new)} for m in moves]
    for some in (1, 2, 3):
        text = json.dumps({"version": 1, "partitions": entries[:some]}, separators=(",", ":"))
        assert len(text) <= HEAD + sum(map(json_bytes, moves[:some]))
    assert json_bytes(Move("abc", 0, (1,), (10, 2))) == 60


@pytest.mark.parametrize(
    ("waiting", "room", "expected"),
    [
        pytest.param([load(1, 1, 5)], {5: 10}, [1], id="fits"),
        pytest.param([load(1, 1, 5)], {5: 9}, [], id="too-large"),
        pytest.param([load(1, 1, 5)], {6: 0}, [1], id="not-known"),
        pytest.param([load(1, 1, 5), load(2, 2, 5), load(3, 3, 5)], {5: 20}, [1, 2], id="first-takes-room"),
        pytest.param([load(1, 1, 5, 6, size=20)], {5: 10, 6: 10}, [1], id="half-each"),
        pytest.param([load(1, 1, 5, 6, size=20)], {5: 10, 6: 9}, [], id="one-of-two-lacks-room"),
        pytest.param([load(1, 1, 5, 6, size=20), load(2, 2, 6)], {5: 10, 6: 20}, [1, 2], id="takes-half-each"),
        pytest.param([load(1, 1, 5, 6, size=20), load(2, 2, 6)], {5: 10, 6: 19}, [1], id="takes-no-less"),
        pytest.param([between_dirs(1, "/d")], {1: 99, (1, "/d"): 10}, [1], id="dir"),
        pytest.param([between_dirs(1, "/d")], {1: 99, (1, "/d"): 9}, [], id="dir-too-small"),
        pytest.param([between_dirs(1, "/d")], {1: 9, (1, "/d"): 99}, [], id="broker-too-small"),
        pytest.param([between_dirs(1, "/d"), between_dirs(2, "/d")], {(1, "/d"): 19}, [1], id="dir-taken"),
        pytest.param([between_dirs(1, "/d"), between_dirs(2, "/e")], {(1, "/d"): 10, (1, "/e"): 10}, [1, 2], id="dirs"),
    ],
)
def test_a_move_starts_where_there_is_room_for_it(
    waiting: list[Load], room: dict[Place, int], expected: list[int]
) -> None:
    """On each broker and in each log dir that it fills, beside those that have just been chosen."""
    assert picked(waiting, room=room) == expected


def test_a_move_without_room_holds_up_no_other_of_its_sender() -> None:
    """The next in its queue has its turn."""
    assert picked([load(1, 1, 5, size=30), load(2, 1, 6), load(3, 1, 7)], room={5: 29}) == [2, 3]


@pytest.mark.parametrize(
    ("waiting", "active", "rates", "expected"),
    [
        pytest.param([load(1, 1, 5, inbound=90)], [], {1: 100, 5: 100}, [1], id="alone"),
        pytest.param([load(1, 1, 5, inbound=40)], [load(0, 2, 5, inbound=40)], {5: 100}, [1], id="received"),
        pytest.param([load(1, 1, 5, inbound=41)], [load(0, 2, 5, inbound=40)], {5: 100}, [], id="received-too-much"),
        pytest.param([load(1, 1, 6, 5, inbound=41)], [load(0, 2, 5, inbound=40)], {5: 100}, [], id="one-of-two"),
        pytest.param([load(1, 1, 5, inbound=40)], [load(0, 1, 6, inbound=40)], {1: 100}, [1], id="sent"),
        pytest.param([load(1, 1, 5, inbound=41)], [load(0, 1, 6, inbound=40)], {1: 100}, [], id="sent-too-much"),
        pytest.param([load(1, 1, 5, 7, inbound=20)], [load(0, 1, 6, inbound=40)], {1: 100}, [1], id="sent-twice"),
        pytest.param([load(1, 1, 5, 7, inbound=21)], [load(0, 1, 6, inbound=40)], {1: 100}, [], id="too-much-twice"),
        pytest.param([load(1, 1, 5, inbound=21)], [load(0, 1, 6, 7, inbound=30)], {1: 100}, [], id="twice-before"),
        pytest.param(
            [load(1, 1, 5, inbound=40)],
            [load(0, 1, 6, inbound=40), load(2, 1, 7, inbound=1)],
            {1: 100},
            [],
            id="all-sent",
        ),
        pytest.param(
            [load(1, 1, 5, inbound=40)],
            [load(0, 2, 5, inbound=40), load(2, 3, 5, inbound=1)],
            {5: 100},
            [],
            id="all-received",
        ),
        pytest.param([load(1, 1, 5, inbound=9)], [load(0, 2, 5, inbound=1)], {5: 10}, [], id="little-before"),
        pytest.param([load(1, -1, 5, inbound=9)], [load(0, -1, 6, inbound=9)], {-1: 1}, [1], id="no-leader"),
    ],
)
def test_moves_run_together_only_where_the_throttle_keeps_ahead_of_producers(
    waiting: list[Load], active: list[Load], rates: dict[int, int], expected: list[int]
) -> None:
    """On both sides of each link, up to the safe share of its rate; the first alone is judged elsewhere."""
    assert picked(waiting, active, rates=rates) == expected


@pytest.mark.parametrize(
    ("waiting", "active", "rates", "expected"),
    [
        pytest.param([load(1, 1, 5), load(2, 2, 5)], [], {5: 10}, [1, 2], id="two-seconds"),
        pytest.param([load(1, 1, 5), load(2, 2, 5, size=11)], [], {5: 10}, [2], id="longer"),
        pytest.param([load(n, n, 5) for n in (1, 2, 3)], [], {5: 10}, [1, 2], id="adds-up"),
        pytest.param([load(1, 1, 5, 6, size=20), load(2, 2, 5)], [], {5: 10, 6: 10}, [1, 2], id="half-each"),
        pytest.param([load(1, 1, 5, 6, size=22), load(2, 2, 5)], [], {5: 10, 6: 10}, [1], id="half-is-too-much"),
        pytest.param([load(1, 1, 5, 6, size=99), load(2, 2, 6)], [], {6: 10}, [1], id="second-destination"),
        pytest.param([load(1, 1, 5, size=99), load(2, 2, 6, size=99)], [], {5: 10, 6: 10}, [1, 2], id="own-links"),
        pytest.param([load(1, 1, 5, size=99), load(2, 2, 5, size=99)], [], {1: 10}, [1, 2], id="no-rate"),
        pytest.param([load(1, 1, 5, size=99)], [load(0, 2, 5, size=99)], {5: 10}, [1], id="begun-before"),
    ],
)
def test_moves_that_start_together_fill_a_link_for_two_seconds(
    waiting: list[Load], active: list[Load], rates: dict[int, int], expected: list[int]
) -> None:
    """The first of a choice always starts; what began earlier does not end together with it."""
    assert picked(waiting, active, rates=rates) == expected


@pytest.mark.parametrize(
    ("waiting", "rates", "expected"),
    [
        pytest.param([load(1, 1, 5), load(2, 1, 6)], {}, [1, 2], id="alike"),
        pytest.param([load(1, 1, 5, size=20), load(2, 1, 9, size=15)], {}, [2, 1], id="busiest-destination"),
        pytest.param([load(1, 1, 5), load(2, 1, 5, size=30), load(3, 1, 5, size=20)], {}, [2, 3, 1], id="larger"),
        pytest.param([load(1, 2, 5, size=80), load(2, 1, 6, 7, size=100)], {}, [2, 1], id="busiest-sender"),
        pytest.param([load(1, 3, 5, size=80), load(2, 8, 6, size=10)], {}, [1, 2], id="least-busy-sender"),
        pytest.param(
            [load(1, 1, 5, size=100), load(2, 1, 6, size=50)], {1: 1000, 5: 100, 6: 10}, [2, 1], id="slower-destination"
        ),
        pytest.param([load(1, 1, 5, size=90), load(2, 2, 6, size=50)], {1: 100, 2: 10}, [2, 1], id="slower-sender"),
        pytest.param([load(1, 1, 5, size=50), load(2, 1, 6, size=40)], {1: 100, 6: 40}, [2, 1], id="rate-not-known"),
        pytest.param([load(1, 2, 5, size=50), load(2, 3, 6, size=40)], {3: 40, 7: 100}, [2, 1], id="nor-the-sender's"),
        pytest.param(
            [load(1, 1, 5, 6, size=100), load(2, 1, 7, size=60)], {1: 9999, 5: 1, 6: 1, 7: 1}, [2, 1], id="half-each"
        ),
        pytest.param(
            [load(1, 1, 5, size=20), load(2, 1, 6, size=15), load(3, 8, 6, size=10)],
            {1: 10_000, 5: 100, 6: 100},
            [2, 3, 1],
            id="all-that-a-destination-receives",
        ),
        pytest.param(
            [load(1, 3, 5, size=50), load(2, 2, 6, size=30), load(3, 2, 7, size=30)],
            {},
            [2, 1, 3],
            id="all-that-it-sends",
        ),
    ],
)
def test_the_move_with_the_longest_road_goes_first(
    waiting: list[Load], rates: dict[int, int], expected: list[int]
) -> None:
    """By the work left on the busiest link that it uses, then by its size, then in the order of the plan."""
    assert picked(waiting, [load(0, 8, 9, size=500)], rates=rates) == expected


def test_full_disks_are_relieved_first_and_filled_last() -> None:
    """Also where the replica that is removed does not lead, and however much work the others have."""
    waiting = [load(1, 1, 6, size=999), load(2, 2, 7, size=99), Load(Move("t", 3, (3, 6), (3, 5)), 3, 1)]
    assert picked(waiting, full={6}) == [3, 2, 1]
    assert picked(waiting) == [1, 2, 3]


loads = st.builds(
    lambda p, old, new, size: Load(Move("t", p, (old,), (new, old), size), old, size),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(5, 8),
    st.integers(0, 1000),
)


@given(waiting=st.lists(loads, max_size=30, unique_by=lambda x: x.move.name), active=st.lists(loads, max_size=2))
def test_choice_never_breaks_a_cap_and_never_idles(waiting: list[Load], active: list[Load]) -> None:
    """After any choice every cap holds, and nothing that was left would still have fitted."""
    chosen = choose(waiting, active, CAPS, rates={}, room={})
    names = {m.name for m in chosen}
    flight = [*(x.move for x in active), *chosen]
    into = [b for m in flight for b in m.adding]
    out = [x.leader for x in active] + [x.leader for x in waiting if x.move.name in names]
    over = [x for x in (*set(into),) if into.count(x) > 2 and into.count(x) > sum(x in a.move.adding for a in active)]
    assert not over
    assert len(flight) <= max(4, len(active))
    if len(flight) < 4:
        for x in waiting:
            if x.move.name not in names:
                assert into.count(x.move.adding[0]) >= 2 or out.count(x.leader) >= 2


def test_full_disks_first_then_the_busiest_link() -> None:
    """A move off a full disk goes before all others; then the moves of the link with the most work left."""
    waiting = [
        Load(Move("t", 0, (1,), (5,), 10), 1, 10),
        Load(Move("t", 1, (2,), (6,), 900), 2, 900),
        Load(Move("t", 2, (3,), (7,), 1), 3, 1),
    ]
    order = [m.partition for m in choose(waiting, [], CAPS, rates={}, room={}, full={3})]
    assert order == [2, 1, 0]


def test_large_moves_start_one_after_another_under_a_throttle() -> None:
    """Large moves that began together would end together; small ones that fit into two seconds may begin at once."""
    large = [Load(Move("t", i, (i + 1,), (5,), 100), i + 1, 100) for i in range(2)]
    small = [Load(Move("t", i, (i + 1,), (5,), 5), i + 1, 5) for i in range(2)]
    assert len(choose(large, [], CAPS, rates={5: 10}, room={})) == 1
    assert len(choose(small, [], CAPS, rates={5: 10}, room={})) == 2
    assert len(choose(large[1:], large[:1], CAPS, rates={5: 10}, room={})) == 1


def test_producers_share_of_the_throttle_bounds_what_runs_together() -> None:
    """Two moves whose inbound rates together exceed the throttle run one after the other."""
    waiting = [Load(Move("t", i, (i + 1,), (5,), 10), i + 1, 10, inbound_bytes_per_s=5) for i in range(2)]
    assert len(choose(waiting, [], CAPS, rates={5: 10}, room={})) == 1
    assert len(choose(waiting, [], CAPS, rates={5: 20}, room={})) == 2
