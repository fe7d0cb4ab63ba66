"""The brokers' rows of an hour to the last state of each log dir in it, and its hours to when it is full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ballast.pipeline import arrow
from ballast.pipeline.leadership_fold import HOUR
from ballast.pipeline.model_fold import HOURS, hour_number, slope
from ballast.pipeline.schemas import DISK_HOUR, DISK_OUTLOOK


def fold_disks(batches: Iterable[Any]) -> Iterator[Any]:
    """Brokers' rows sorted by cluster, hour and minute to a row for each log dir and hour."""
    for table in arrow.whole_groups(batches, HOUR):
        cuts = arrow.boundaries(table, HOUR)
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield _last(table.slice(begin, end - begin))


def _last(table: Any) -> Any:
    """A broker that was away at the end of the hour keeps what was last known of it."""
    last: dict[tuple[int, str], dict[str, Any]] = {}
    for brokers in table.column("brokers").to_pylist():
        last |= {(broker["id"], found["path"]): found for broker in brokers or () for found in broker["dirs"] or ()}
    return arrow.batch(
        DISK_HOUR,
        {
            "cluster": pa.repeat(table.column("cluster")[0], len(last)),
            "hour": pa.repeat(table.column("hour")[0], len(last)),
            "broker": [broker for broker, _ in last],
            "path": pa.array([path for _, path in last], pa.string()),
            **{name: [found[name] for found in last.values()] for name in ("total_bytes", "usable_bytes", "cordoned")},
        },
    )


def fold_outlooks(batches: Iterable[Any]) -> Iterator[Any]:
    """``disk_hour`` rows sorted by cluster and hour to a row of ``disk_outlook`` for each log dir."""
    for table in arrow.whole_groups(batches, ["cluster"]):
        cuts = arrow.boundaries(table, ["cluster"])
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield _outlook(table.slice(begin, end - begin).combine_chunks())


def _outlook(table: Any) -> Any:
    dirs: dict[tuple[int, str], int] = {}
    names = zip(table.column("broker").to_pylist(), table.column("path").to_pylist(), strict=True)
    group = np.array([dirs.setdefault(name, len(dirs)) for name in names], np.int64)
    usable = arrow.numbers(table.column("usable_bytes"))
    last = np.zeros(len(dirs), np.int64)
    last[group] = np.arange(len(group))
    # What is used grows as what is usable shrinks; the size of the disk may change in between and says nothing.
    growth = 0.0 - slope(group, len(dirs), hour_number(table.column("hour"))[:, None], usable[:, None]) * HOURS
    now = usable[last]
    fills = (now >= 0) & (growth > 0)
    return arrow.batch(
        DISK_OUTLOOK,
        {
            "cluster": pa.repeat(table.column("cluster")[0], len(dirs)),
            "broker": [broker for broker, _ in dirs],
            "path": pa.array([path for _, path in dirs], pa.string()),
            "as_of": table.column("hour").combine_chunks().take(pa.array(last)),
            "total_bytes": arrow.numbers(table.column("total_bytes"))[last],
            "usable_bytes": now,
            "growth_bytes_per_day": growth,
            "days_to_full": pa.array(now / np.where(fills, growth, 1.0), mask=~fills),
        },
    )
