"""The page's charts in the store: the table ``clusters``, written and read with delta-rs, so without Spark or a JVM.

A commit carries a Delta transaction for the cluster and the day, whose version is the newest minute in it: what a process wrote
that was killed afterwards, or another replica, is not written twice.  The day in the name is there so that a clock that once
jumped ahead blocks that day only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.failures import store_failures
from ballast.adapters.samples.store import ensure_table, hour_of, open_table, table_url
from ballast.core.samples import CLUSTERS, Point

_MINUTE_MS: Final = 60_000
_DAY_MIN: Final = 1440


class SeriesStore:
    """The points of any cluster in one store."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._url = table_url(store, CLUSTERS.name)

    def write(self, cluster: str, points: Sequence[Point]) -> None:
        """Add those of them that are newer than what the table has, in one commit for each day.

        Raises ``UsageError`` for a table that is not ours or newer, ``Unavailable`` when the store does not take them.
        """
        with store_failures(self._url, write=True):
            table = ensure_table(self._store, CLUSTERS)
            for day, of_day in groupby(points, lambda p: _minute(p) // _DAY_MIN):
                _append(table, cluster, day, list(of_day))

    def read(self, cluster: str, since_ms: int) -> tuple[Point, ...]:
        """The points since then, oldest first, one a minute; none where there is no table yet."""
        since = datetime.fromtimestamp(since_ms / 1000, UTC)
        wanted = (pc.field("hour") >= hour_of(since)) & (pc.field("cluster") == cluster) & (pc.field("time") >= since)
        with store_failures(self._url):
            table = open_table(self._store, CLUSTERS)
            rows = [] if table is None else table.to_pyarrow_dataset().to_table(filter=wanted).to_pylist()
        points = {_minute(p): p for p in map(_point, rows)}
        return tuple(points[minute] for minute in sorted(points))


def _append(table: Any, cluster: str, day: int, points: list[Point]) -> None:
    app = f"series/{cluster}/{day}"
    done = table.transaction_version(app)
    fresh = [p for p in points if done is None or _minute(p) % _DAY_MIN > done]
    if not fresh:
        return
    rows = pa.Table.from_pylist([_row(cluster, p) for p in fresh], arrow_schema(CLUSTERS.columns))
    mark = Transaction(app, _minute(fresh[-1]) % _DAY_MIN)
    try:
        write_deltalake(table, rows, mode="append", commit_properties=CommitProperties(app_transactions=[mark]))
    except CommitFailedError:
        # Another replica's points came first, if its transaction is there now; ours are offered again with the next ones.
        table.update_incremental()
        if table.transaction_version(app) == done:
            raise


def _minute(point: Point) -> int:
    return point.at_ms // _MINUTE_MS


def _row(cluster: str, point: Point) -> dict[str, Any]:
    time = datetime.fromtimestamp(point.at_ms / 1000, UTC)
    return {
        "cluster": cluster,
        "hour": hour_of(time),
        "time": time,
        "imbalance": point.imbalance,
        "disk_skew": point.disk_skew,
        "bytes_in": point.bytes_in_per_s,
        "moving": point.moving,
        "under_replicated": point.under_replicated,
    }


def _point(row: Mapping[str, Any]) -> Point:
    return Point(
        at_ms=round(row["time"].timestamp() * 1000),
        imbalance=row["imbalance"],
        disk_skew=row["disk_skew"],
        bytes_in_per_s=row["bytes_in"],
        moving=row["moving"],
        under_replicated=row["under_replicated"],
    )
