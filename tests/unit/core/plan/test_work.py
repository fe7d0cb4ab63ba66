"""What is done to each partition, counted by kind."""

from __future__ import annotations

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.work import Work, outline, work_of

MOVE = Move("t", 0, (1, 2), (1, 3), 1024)
ORDER = Move("t", 1, (1, 2), (2, 1), 1024)
FEWER = Move("t", 2, (1, 2, 3), (1, 2), 1024)
BETWEEN = Move("t", 3, (1, 2), (1, 2), 1024, log_dirs=("/d", "any"))
MORE = Move("t", 4, (1,), (1, 2), 1024)


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ((), Work()),
        ((MOVE,), Work(moves=1)),
        ((MORE,), Work(moves=1)),
        ((ORDER,), Work(list_changes=1)),
        ((FEWER,), Work(shortened=1)),
        ((BETWEEN,), Work(between_dirs=1)),
        ((MOVE, MORE, *[ORDER] * 3, *[FEWER] * 4, *[BETWEEN] * 5), Work(2, 3, 4, 5)),
    ],
)
def test_each_change_is_of_one_kind(moves: tuple[Move, ...], expected: Work) -> None:
    """Whatever copies from broker to broker is a move; all kinds together are all partitions."""
    found = work_of(iter(moves))
    assert found == expected
    assert found.partitions == len(moves)


def test_each_kind_has_its_words() -> None:
    """With what it copies where that is asked for; a move between log dirs stays on its broker, so it has no figure."""
    assert Work().parts() == Work().costs("1 KiB") == []
    assert Work(1, 2, 1, 1).parts() == [
        "1 move",
        "2 replica list changes",
        "1 partition with fewer replicas",
        "1 move between log dirs",
    ]
    assert Work(1, 2, 1, 2).costs("1 KiB") == [
        "1 move (1 KiB)",
        "2 replica list changes (no data copied)",
        "1 partition with fewer replicas (no data copied)",
        "2 moves between log dirs",
    ]


def test_a_plan_is_outlined_with_its_bytes_and_elections() -> None:
    """Where a size is not known, so it says; without elections it has no word of them."""
    plan = Plan("balance", "c", "f", (MOVE, MORE))
    assert outline(plan) == ["2 moves (2.0 KiB)"]
    elected = Plan("balance", "c", "f", (), elections=(TopicPartition("t", 0),))
    assert outline(elected) == ["1 preferred leader election (no data copied)"]
    assert outline(Plan("balance", "c", "f", ())) == []
    (unknown,) = outline(Plan("balance", "c", "f", (MOVE, Move("t", 5, (1,), (2,)))))
    assert unknown == "2 moves (at least 1.0 KiB)"
