"""The brokers' rows of an hour to the last state of each log dir in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ballast.pipeline import arrow
from ballast.pipeline.leadership_fold import HOUR
from ballast.pipeline.schemas import DISK_HOUR


def fold_disks(batches: Iterable[Any]) -> Iterator[Any]:
    """Brokers' rows sorted by cluster, hour and minute to a row for each log dir and hour; for ``mapInArrow``."""
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
