"""Whatever happens to a log, a rate is the truth or unknown; whatever way windows are merged, the answer is one."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.pure import hour_rows
from tests.spark.series import RECORD_BYTES, Log, World

from ballast.core.rates import LONGEST_INTERVAL_MIN
from ballast.core.samples import MinuteSample
from ballast.pipeline import histograms
from ballast.pipeline.histograms import ERROR
from ballast.pipeline.load_fold import nearest_rank

BEFORE: Final = 10
"""Minutes of the hour before in which samples may be taken: the lead-in."""


class Minute(NamedTuple):
    """What happens before the sample of a minute."""

    records: int
    deleted: float
    """Share of the records that retention removes."""
    leader: int | None
    """A new leader, if it changes."""
    sampled: bool
    restarted: bool
    """The sampler was started anew."""


MINUTE = st.builds(
    Minute,
    records=st.one_of(st.just(0), st.integers(1, 5000)),
    deleted=st.one_of(st.just(0.0), st.just(0.0), st.floats(0, 1)),
    leader=st.one_of(st.none(), st.none(), st.sampled_from((1, 2, 3))),
    sampled=st.sampled_from((True, True, True, False)),
    restarted=st.sampled_from((False, False, False, False, True)),
)


def play(history: list[Minute]) -> tuple[list[MinuteSample], dict[int, int]]:
    """Samples of a partition with this history, and the records that had come in by each minute that was sampled."""
    log, samples, came_in, total = Log(start_bytes=0), [], {}, 0
    world = World({("t", 0): log})
    for minute, event in enumerate(history, start=-BEFORE):
        log.append(event.records)
        total += event.records
        gone = int((log.high - log.earliest) * event.deleted)
        log.earliest += gone
        log.deleted += gone * RECORD_BYTES
        log.leader = event.leader or log.leader
        if event.restarted:
            world.writer += "+"
        if event.sampled:
            samples.append(world.sample(minute))
            came_in[minute] = total
    return samples, came_in


@settings(max_examples=60)
@given(st.lists(MINUTE, min_size=BEFORE + 60, max_size=BEFORE + 60))
def test_a_rate_is_what_came_in_or_unknown(history: list[Minute]) -> None:
    """Gaps, retention, changes of the leader and restarts: each known minute holds its interval's true mean, and only gaps are unknown."""
    samples, came_in = play(history)
    if not any(minute >= 0 for minute in came_in):
        return
    rows = hour_rows(samples)
    assert {r["broker"] for r in rows} == {1, 2, 3}
    sampled = sorted(came_in)
    for row in rows:
        assert [bool(row["sampled"] >> m & 1) for m in range(60)] == [m in came_in for m in range(60)]
        for minute in range(60):
            after = next((m for m in sampled if m >= minute), None)
            earlier = [m for m in sampled if m < minute]
            known = after is not None and bool(earlier) and after - earlier[-1] <= LONGEST_INTERVAL_MIN
            assert bool(row["rated"] >> minute & 1) == known, minute
            if known and after is not None:
                mean = (came_in[after] - came_in[earlier[-1]]) * RECORD_BYTES / ((after - earlier[-1]) * 60)
                assert row["bytes_in"][minute] == pytest.approx(mean, rel=1e-5), minute
            else:
                assert row["bytes_in"][minute] == -1
    led = [[bool(r["led"] >> m & 1) for r in rows] for m in range(60)]
    assert all(sum(flags) == 1 for m, flags in enumerate(led) if m in came_in), "one leader in each sampled minute"


RATES = st.lists(st.floats(0, 1e10, width=32), min_size=1, max_size=60)


def padded(rows: list[list[float]]) -> tuple[Any, Any]:
    """Rows of different lengths as a matrix and what is known of it."""
    width = max(map(len, rows))
    values = np.array([r + [-1.0] * (width - len(r)) for r in rows], np.float32)
    return values, values >= 0


@given(st.lists(RATES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_histograms_merge_to_the_same_answer_in_any_order(rows: list[list[float]], dice: Any) -> None:
    """The sum of the parts is the whole, and its percentile is within the stated error of the exact one."""
    values, known = padded(rows)
    whole = histograms.merge(histograms.count_rows(values, known), np.zeros(len(rows), np.int64), 1)
    shuffled = list(rows)
    dice.shuffle(shuffled)
    other_values, other_known = padded(shuffled)
    groups = np.array([i % 2 for i in range(len(rows))], np.int64)
    halves = histograms.merge(histograms.count_rows(other_values, other_known), groups, 2)
    again = histograms.merge(halves, np.zeros(2, np.int64), 1)
    assert [a.tolist() for a in again] == [a.tolist() for a in whole]
    exact = sorted(np.float32(x) for row in rows for x in row)[int(np.ceil(0.95 * sum(map(len, rows)) - 1e-9)) - 1]
    found = float(histograms.quantile(whole, 0.95)[0])
    assert found == pytest.approx(float(exact), rel=ERROR * 1.001, abs=1.0), "everything up to 1 byte/s is one bucket"


@given(st.lists(st.lists(st.floats(0, 1e10, width=32), max_size=60), min_size=1, max_size=5).filter(any))
def test_the_percentile_of_an_hour_is_exact(rows: list[list[float]]) -> None:
    """Nearest rank: the smallest minute that 95 % of the known ones do not exceed."""
    values, known = padded(rows)
    for row, found in zip(rows, nearest_rank(values, known, 0.95).tolist(), strict=True):
        within = [x for x in row if sum(y <= x for y in row) >= 0.95 * len(row) - 1e-9]
        assert found == (min(within) if row else -1)
