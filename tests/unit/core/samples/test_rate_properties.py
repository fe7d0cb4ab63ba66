"""Whatever happens to a log, a rate is the truth or unknown."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.series import RECORD_BYTES, START_MS, Log, World, sample_rows

from ballast.core.samples import MinuteSample
from ballast.core.samples.rates import LONGEST_INTERVAL_MIN


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
    for minute, event in enumerate(history, start=0):
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


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(MINUTE, min_size=40, max_size=40))
def test_a_rate_is_what_came_in_or_unknown(history: list[Minute]) -> None:
    """Gaps, retention, changes of the leader and restarts: each known interval holds its true mean, and only gaps are unknown.

    Before any of it a record's weight has been seen once.
    """
    quiet = Minute(records=0, deleted=0.0, leader=None, sampled=True, restarted=False)
    samples, came_in = play([quiet, quiet._replace(records=1), *history])
    rows = {int(r["time"].timestamp() * 1000 - START_MS) // 60_000: r for r in sample_rows(samples).to_pylist()}
    sampled = sorted(came_in)
    assert sorted(rows) == sampled
    for before, minute in zip([None, *sampled], sampled, strict=False):
        row = rows[minute]
        if before is None or minute - before > LONGEST_INTERVAL_MIN:
            assert (row["seconds"], row["bytes_in"], row["records_in"]) == (None, None, None), minute
            continue
        assert row["seconds"] == (minute - before) * 60
        appended = came_in[minute] - came_in[before]
        assert row["bytes_in"] * row["seconds"] == pytest.approx(appended * RECORD_BYTES, rel=1e-5), minute
        assert row["records_in"] * row["seconds"] == pytest.approx(appended, rel=1e-5), minute
