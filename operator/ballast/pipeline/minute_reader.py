"""Samples straight from their files into the folds: Spark says who folds what, and each worker reads its share itself.

The samples of an hour are gigabytes in packed cells, of which the JVM understands nothing.  Decoding, shuffling, sorting and
handing them over there costs several times what the folds cost; and it is needless, since whose samples lie where is known
beforehand: a minute's file holds its chunks in order, in row groups of ``CHUNKS_PER_ROW_GROUP``.  A share is as many chunks
of one cluster's hour, read by their column statistics; files of any other shape are read correctly, if not as cheaply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ballast.core.rates import LONGEST_INTERVAL_MIN
from ballast.core.samples import BROKER_CHUNK, CHUNKS_PER_ROW_GROUP
from ballast.pipeline.chunks import Chunks
from ballast.pipeline.hours import shifted
from ballast.pipeline.minute_files import Range, Row, Wanted, rows_of
from ballast.pipeline.table_log import Position

LEAD_IN_FROM_MINUTE: Final = 60 - LONGEST_INTERVAL_MIN
"""Samples from this minute on may begin a rate of the next hour."""
LEADERS: Final = (
    *("cluster", "hour", "minute", "chunk", "taken_at_ms", "monotonic_ms", "writer"),
    *("topic", "topic_id", "compacted", "partition_topic", "partition", "replica_count", "replica", "leader"),
)
"""When a row was taken, which replicas it is about, and who led."""
MEASURED: Final = (*LEADERS, "earliest", "high_watermark", "bytes_out", "in_sync", "size_bytes", "lag", "log_dir")
"""What rates and sizes come from."""
PREFERENCES: Final = (
    *("cluster", "hour", "minute", "chunk", "taken_at_ms", "topic", "deleting", "partition_topic", "leader"),
    *("replica_count", "replica", "removing"),
)
"""Who leads, and who should."""
DISKS: Final = ("cluster", "hour", "minute", "chunk", "taken_at_ms", "brokers")
_MINUTES_AT_ONCE: Final = 10
_WHOLE_HOUR: Final = (0, 60)


class Share(NamedTuple):
    """Some chunks of one cluster's hour; a fold of another share needs no row of this one."""

    cluster: str
    hour: str
    chunks: int
    """Chunks are numbered modulo this: the smallest count in the hour or before it, so that a cluster that grew is whole."""
    most: int
    """The largest count there; counts are powers of two."""
    first: int
    end: int

    @property
    def cut(self) -> Chunks:
        """Which partitions its rows are about."""
        return Chunks(self.first, self.end, self.chunks)


@dataclass(frozen=True, slots=True)
class Minutes:
    """The minute table at a version, and the shares of it that are to be folded."""

    url: str
    at: Position
    shares: tuple[Share, ...]


def shares_of(
    held: Iterable[tuple[str, str, int]], hours: Collection[str], *, whole: bool = False
) -> tuple[Share, ...]:
    """The shares of these hours: ``held`` is every (cluster, hour, chunk count) of them and of the hours before them.

    ``whole`` makes one share of each cluster's hour.
    """
    counts: dict[tuple[str, str], set[int]] = {}
    for cluster, hour, chunks in held:
        counts.setdefault((hour, cluster), set()).add(chunks)
    shares = []
    for hour, cluster in sorted(counts):
        if hour not in hours:
            continue
        seen = counts[hour, cluster] | counts.get((shifted(hour, -1), cluster), set())
        chunks = 1 if whole else min(seen)
        cuts = [*range(0, chunks, CHUNKS_PER_ROW_GROUP), chunks]
        shares += [Share(cluster, hour, chunks, max(seen), first, end) for first, end in pairwise(cuts)]
    return tuple(shares)


def read_measured(minutes: Minutes, share: Share) -> Iterator[Any]:
    """Everything that rates and sizes come from, a chunk at a time, the end of the hour before first."""
    return _chunks(minutes, share, MEASURED)


def read_leaders(minutes: Minutes, share: Share) -> Iterator[Any]:
    """Likewise, without sizes and offsets."""
    return _chunks(minutes, share, LEADERS)


def read_preferences(minutes: Minutes, share: Share) -> Iterator[Any]:
    """The rows of the hour itself, minute by minute, some minutes in memory at a time."""
    for begin in range(0, 60, _MINUTES_AT_ONCE):
        wanted = Wanted(share.cluster, {share.hour: (begin, begin + _MINUTES_AT_ONCE)}, _numbers(share))
        yield from _joined(rows_of(minutes.url, minutes.at, wanted, PREFERENCES))


def read_disks(minutes: Minutes, share: Share) -> Iterator[Any]:
    """The rows of the brokers in the hour itself."""
    wanted = Wanted(share.cluster, {share.hour: _WHOLE_HOUR}, ((BROKER_CHUNK, BROKER_CHUNK + 1),))
    yield from _joined(rows_of(minutes.url, minutes.at, wanted, DISKS))


def _chunks(minutes: Minutes, share: Share, columns: Sequence[str]) -> Iterator[Any]:
    spans = {share.hour: _WHOLE_HOUR, shifted(share.hour, -1): (LEAD_IN_FROM_MINUTE, 60)}
    by_number: dict[int, list[Row]] = {number: [] for number in range(share.first, share.end)}
    for row in rows_of(minutes.url, minutes.at, Wanted(share.cluster, spans, _numbers(share)), columns):
        by_number[row.chunk % share.chunks].append(row)
    while by_number:
        number = min(by_number)
        for batch in _joined(by_number.pop(number)):
            whole = batch.append_column("fold_hour", pa.repeat(share.hour, len(batch)))
            yield whole.append_column("fold_chunk", pa.repeat(pa.scalar(number, pa.int32()), len(batch)))


def _joined(rows: Sequence[Row]) -> Iterator[Any]:
    """One batch of some rows: the only time that their cells are copied."""
    if rows:
        yield from pa.concat_tables([row.cells for row in rows]).combine_chunks().to_batches()


def _numbers(share: Share) -> tuple[Range, ...]:
    """The chunks of a share, under whichever count a row was cut: the lower bits of a number are its number in a smaller one."""
    return tuple((share.first + lower, share.end + lower) for lower in range(0, share.most, share.chunks))
