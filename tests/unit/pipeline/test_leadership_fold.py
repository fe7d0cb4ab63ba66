"""Leadership over time, counted by the live measure."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.pure import minutes_of
from tests.spark.series import HOUR_MS, START_MS, Log, World, run

from ballast.core.leadership import imbalance
from ballast.pipeline.leadership_fold import fold_imbalances, fold_leaderships
from ballast.pipeline.minute_reader import LEADERS, MEASURED


def world() -> World:
    """Six partitions, two preferred on each broker."""
    return World({("t", n): Log(replicas=((n % 3) + 1, ((n + 1) % 3) + 1)) for n in range(6)})


def imbalances(samples: list[Any]) -> dict[int, dict[str, Any]]:
    """Rows by broker; the minutes of the lead-in are another hour's."""
    table = minutes_of(samples)
    own = table.filter([h.as_py() == f.as_py() for h, f in zip(table["hour"], table["fold_hour"], strict=True)])
    return {row["broker"]: row for part in fold_imbalances(own.to_batches(4)) for row in part.to_pylist()}


def test_the_ratio_of_an_hour_is_the_live_ratio_of_its_samples() -> None:
    """Two partitions of broker 1 are led by broker 2 for the second half of the hour."""
    w = world()

    def each(minute: int) -> None:
        for n in (0, 3):
            w.logs["t", n].leader = 2 if minute >= 30 else None

    samples = run(w, range(60), each)
    live = imbalance(samples[-1].state)
    rows = imbalances(samples)
    assert sorted(rows) == [1, 2, 3]
    assert rows[1]["ratio_last"] == live[1].ratio == 1.0
    assert (rows[1]["preferred"], rows[1]["not_led"]) == (live[1].preferred, live[1].not_led) == (2, 2)
    assert rows[1]["ratio_mean"] == pytest.approx(0.5)
    assert rows[1]["minutes_over"] == 30
    assert rows[2]["minutes_over"] == 0
    assert rows[1]["led_mean"] == pytest.approx(1.0)
    assert rows[2]["leader_skew"] == pytest.approx((1 + 2) / 2)


def test_the_union_of_a_move_is_not_the_preferred_list() -> None:
    """A replica on its way out does not count as preferred, in history as in life."""
    w = world()
    samples = run(w, range(2), lambda _: None)
    assert imbalances(samples)[1]["preferred"] == imbalance(samples[-1].state)[1].preferred


def test_every_change_of_a_leader_is_one_row() -> None:
    """There and back are two changes; a change across a gap is seen at the sample after it, and none is seen twice."""
    w = world()

    def each(minute: int) -> bool:
        w.logs["t", 1].leader = {0: 2, 1: 3}.get((minute // 20) % 2, 2)
        return minute not in (20, 21)

    samples = run(w, range(-3, 60), each)
    rows = [r for part in fold_leaderships(minutes_of(samples).to_batches(5)) for r in part.to_pylist()]
    changes = [(r["minute"], r["partition"], r["leader_before"], r["leader"]) for r in rows]
    assert changes == [(0, 1, 3, 2), (22, 1, 2, 3), (40, 1, 3, 2)]
    later = minutes_of(run(w, range(50, 62), each), START_MS + HOUR_MS)
    (only,) = [r for part in fold_leaderships(later.to_batches()) for r in part.to_pylist()]
    assert (only["hour"], only["minute"], only["leader"]) == ("2026-11-21T14", 0, 3)


def test_changes_of_leaders_need_no_column_of_sizes_or_offsets() -> None:
    """The fold reads the columns that it was given: those of the leaders alone tell the same story."""
    w = world()

    def each(minute: int) -> None:
        w.logs["t", 0].leader = 2 if minute >= 30 else None

    table = minutes_of(run(w, range(60), each))
    whole, lean = (
        [row for part in fold_leaderships(t.to_batches()) for row in part.to_pylist()]
        for t in (table, table.drop_columns([name for name in MEASURED if name not in LEADERS]))
    )
    assert [(row["partition"], row["minute"], row["leader"]) for row in lean] == [(0, 30, 2)]
    assert lean == whole
