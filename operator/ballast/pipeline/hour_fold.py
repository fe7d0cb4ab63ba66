"""Minutes to hours: the samples of one chunk and hour become a row for each replica, with arrays over the minutes.

A fold sees the hour's samples and those of the last minutes before it (the lead-in), so that the first rate of an hour has
a sample to start from.  What it returns depends on these samples alone: folding again gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ballast.core.cluster import UNKNOWN, Flags, Ints
from ballast.core.rates import Rates, append_rates, previous, timeline_s
from ballast.pipeline import arrow
from ballast.pipeline.schemas import SAMPLES_HOUR

MINUTES: Final = 60
GROUP: Final = ["cluster", "fold_hour", "fold_chunk"]
"""What one fold is made of; batches arrive sorted by it and by hour, minute and chunk."""
_BITS: Final = np.int64(1) << np.arange(MINUTES, dtype=np.int64)


def fold_hours(batches: Iterable[Any]) -> Iterator[Any]:
    """Fold sorted minute rows into ``samples_hour`` rows; for ``mapInArrow``."""
    for table in arrow.whole_groups(batches, GROUP):
        cuts = arrow.boundaries(table, GROUP)
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            yield from _fold(table.slice(begin, end - begin).combine_chunks())


def unpack(masks: Ints) -> Flags:
    """Bit masks as rows of 60 flags."""
    return np.asarray((masks[:, None] & _BITS) != 0, np.bool_)


def pack(flags: Flags) -> Ints:
    """Rows of 60 flags as bit masks."""
    return flags.astype(np.int64) @ _BITS


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The samples of one chunk as arrays: T samples x P partitions and T x R replicas, sorted by time."""

    minute: Ints
    """Per sample: minutes since the hour began; negative in the lead-in."""
    seconds: npt.NDArray[np.float64]
    topic: list[str]
    topic_id: list[str]
    compacted: Flags
    partition: Ints
    partition_topic: Ints
    owner: Ints
    """Per replica: its partition's row."""
    broker: Ints
    by_partition: dict[str, npt.NDArray[Any]]
    by_replica: dict[str, npt.NDArray[Any]]


_PARTITION_FILL: Final[dict[str, Any]] = {
    "leader": np.int32(-2),
    "earliest": -1,
    "high_watermark": -1,
    "bytes_out": -1.0,
}
_REPLICA_FILL: Final[dict[str, Any]] = {"in_sync": False, "size_bytes": -1, "lag": -1, "log_dir": np.int32(-1)}


class _Names:
    """Numbers for the topics, partitions and replicas of a block; equal layouts are numbered once."""

    def __init__(self) -> None:
        self.topics: dict[tuple[str, str], int] = {}
        self.compacted: list[bool] = []
        self._layouts: dict[tuple[bytes, ...], tuple[Ints, Ints]] = {}

    def keys(self, row: dict[str, Any]) -> tuple[Ints, Ints]:
        """Per partition and per replica of a row, an integer that names it in every minute."""
        numbers = (row["partition_topic"], row["partition"], row["replica_count"], row["replica"])
        names = (repr(row["topic"]).encode(), repr(row["topic_id"]).encode())
        layout = (*names, *(n.tobytes() for n in numbers))
        if layout not in self._layouts:
            self._layouts[layout] = self._number(row)
        return self._layouts[layout]

    def _number(self, row: dict[str, Any]) -> tuple[Ints, Ints]:
        at = []
        for name, topic_id, compacted in zip(row["topic"], row["topic_id"], row["compacted"], strict=True):
            number = self.topics.setdefault((name, topic_id), len(self.topics))
            if number == len(self.compacted):
                self.compacted.append(compacted)
            at.append(number)
        topics = np.array(at, np.int64)
        partitions = (topics[row["partition_topic"]] << 32) | row["partition"].astype(np.int64)
        owner = np.repeat(np.arange(len(partitions)), row["replica_count"])
        return partitions, np.stack([partitions[owner], row["replica"].astype(np.int64)])


def _rows(table: Any) -> list[dict[str, Any]]:
    """Each row of a group as arrays."""
    layout = ("partition_topic", "partition", "replica_count", "replica")
    out = []
    for i in range(len(table)):
        row: dict[str, Any] = {name: table.column(name)[i].as_py() for name in ("topic", "topic_id", "compacted")}
        for name in (*layout, *_PARTITION_FILL, *_REPLICA_FILL):
            row[name] = arrow.unpacked(name, table.column(name)[i])
        out.append(row)
    return out


def read_block(table: Any) -> Block:
    """Align the rows of one group; a partition or replica that a sample lacks is unknown in it."""
    rows = _rows(table)
    hours = table.column("hour").to_pylist()
    hour = table.column("fold_hour")[0].as_py()
    minutes = arrow.numbers(table.column("minute")).astype(np.int64)
    minutes = minutes - np.where(np.array([h == hour for h in hours]), 0, MINUTES)
    at, first, sample = np.unique(minutes, return_index=True, return_inverse=True)
    names = _Names()
    keys = [names.keys(row) for row in rows]
    distinct = {id(k): k for k in keys}.values()
    partitions = np.unique(np.concatenate([p for p, _ in distinct]))
    pairs = np.unique(
        np.concatenate([np.stack([np.searchsorted(partitions, r[0]), r[1]]) for _, r in distinct], axis=1), axis=1
    )
    packed = (pairs[0] << 32) | pairs[1]
    place = {
        id(k): (
            np.searchsorted(partitions, k[0]),
            np.searchsorted(packed, (np.searchsorted(partitions, k[1][0]) << 32) | k[1][1]),
        )
        for k in distinct
    }
    p_shape, r_shape = (len(at), len(partitions)), (len(at), len(packed))
    by_partition = {n: np.full(p_shape, fill, _dtype(fill)) for n, fill in _PARTITION_FILL.items()}
    by_partition["present"] = np.zeros(p_shape, np.bool_)
    by_replica = {n: np.full(r_shape, fill, _dtype(fill)) for n, fill in _REPLICA_FILL.items()}
    by_replica["present"] = np.zeros(r_shape, np.bool_)
    for t, row, key in zip(sample.tolist(), rows, keys, strict=True):
        p, r = place[id(key)]
        for n in _PARTITION_FILL:
            if row[n] is not None:
                by_partition[n][t, p] = row[n]
        for n in _REPLICA_FILL:
            by_replica[n][t, r] = row[n]
        by_partition["present"][t, p] = True
        by_replica["present"][t, r] = True
    writers: dict[str, int] = {}
    numbered = [writers.setdefault(w, len(writers)) for w in table.column("writer").to_pylist()]
    return Block(
        minute=at,
        seconds=timeline_s(
            arrow.numbers(table.column("taken_at_ms"))[first],
            arrow.numbers(table.column("monotonic_ms"))[first],
            np.array(numbered, np.int64)[first],
        ),
        topic=[name for name, _ in names.topics],
        topic_id=[topic_id for _, topic_id in names.topics],
        compacted=np.array(names.compacted, np.bool_),
        partition=partitions & 0xFFFFFFFF,
        partition_topic=partitions >> 32,
        owner=pairs[0],
        broker=pairs[1],
        by_partition=by_partition,
        by_replica=by_replica,
    )


def _dtype(fill: Any) -> Any:
    if isinstance(fill, float):
        return np.float32
    return np.asarray(fill).dtype


def rates_of(block: Block) -> Rates:
    """Append rates of a block's partitions, measured on the log of whoever leads at each sample."""
    leader, size = block.by_partition["leader"], block.by_replica["size_bytes"]
    leads = (block.broker == leader[:, block.owner]) & block.by_replica["present"]
    sample, replica = np.nonzero(leads)
    log = np.full(leader.shape, -1, np.int64)
    log[sample, block.owner[replica]] = replica
    when = np.arange(len(leader))[:, None]
    led_size = np.where(log >= 0, size[when, np.maximum(log, 0)], UNKNOWN)
    since = previous(block.by_partition["present"] & ((block.by_partition["high_watermark"] >= 0) | (led_size >= 0)))
    before = np.where((log >= 0) & (since >= 0), size[np.maximum(since, 0), np.maximum(log, 0)], UNKNOWN)
    return append_rates(
        seconds=block.seconds,
        earliest=block.by_partition["earliest"],
        high_watermark=block.by_partition["high_watermark"],
        led_size=led_size,
        led_size_before=before,
        since=np.where(block.by_partition["present"], since, -1),
        compacted=block.compacted[block.partition_topic],
    )


def cover(block: Block, rates: Rates) -> tuple[Ints, Ints]:
    """Per minute of the hour: the sample taken in it (or -1), and per partition the sample whose interval covers it.

    A rate is the mean over its interval, so it holds for every minute between its two samples.
    """
    taken = np.full(MINUTES, -1, np.int64)
    inside = block.minute >= 0
    taken[block.minute[inside]] = np.flatnonzero(inside)
    spans = np.full((MINUTES, rates.since.shape[1]), -1, np.int64)
    arrival = np.full(rates.since.shape[1], -1, np.int64)
    from_minute = np.zeros(rates.since.shape[1], np.int64)
    for m in range(MINUTES - 1, -1, -1):
        t = taken[m]
        if t >= 0:
            known = (rates.since[t] >= 0) & ~np.isnan(rates.bytes_per_s[t])
            arrival = np.where(known, t, -1)
            from_minute = block.minute[np.maximum(rates.since[t], 0)]
        spans[m] = np.where((arrival >= 0) & (m > from_minute), arrival, -1)
    return taken, spans


def _fold(table: Any) -> Iterator[Any]:
    block = read_block(table)
    rates = rates_of(block)
    taken, spans = cover(block, rates)
    seen = block.by_replica["present"][taken[taken >= 0]].any(axis=0) if (taken >= 0).any() else None
    if seen is None or not seen.any():
        return
    keep = np.flatnonzero(seen)
    owner = block.owner[keep]
    present = {name: column[:, keep] for name, column in block.by_replica.items()}

    here = taken >= 0
    sampled = np.zeros((MINUTES, len(keep)), np.bool_)
    sampled[here] = present["present"][taken[here]]
    span = spans[:, owner]
    column = np.arange(len(keep))[None, :]
    rated = (span >= 0) & present["present"][span, column]
    # The interval's own sample says who led; a minute without a rate is judged by its sample, if there was one.
    witness = np.where(rated, span, np.where(sampled, taken[:, None], -1))
    led = (witness >= 0) & (block.by_partition["leader"][witness, owner[None, :]] == block.broker[keep])
    in_sync = sampled & present["in_sync"][taken[:, None], column]
    size = np.where(sampled, present["size_bytes"][taken[:, None], column], UNKNOWN)
    rate = np.where(rated, rates.bytes_per_s[span, owner[None, :]], UNKNOWN)
    records = np.where(rated & led, np.nan_to_num(rates.records_per_s[span, owner[None, :]]), 0).sum(axis=0) * 60.0
    last = np.where(sampled, np.arange(MINUTES)[:, None], -1).max(axis=0)
    topic = block.partition_topic[owner]
    yield arrow.batch(
        SAMPLES_HOUR,
        {
            "cluster": pa.repeat(table.column("cluster")[0], len(keep)),
            "hour": pa.repeat(table.column("fold_hour")[0], len(keep)),
            "topic": pa.array(block.topic).take(pa.array(topic)),
            "topic_id": pa.array(block.topic_id).take(pa.array(topic)),
            "partition": block.partition[owner],
            "broker": block.broker[keep],
            "log_dir": present["log_dir"][taken[np.maximum(last, 0)], column[0]],
            "sampled": pack(sampled.T),
            "rated": pack(rated.T),
            "led": pack(led.T),
            "in_sync": pack(in_sync.T),
            "size_bytes": arrow.rows(size.T),
            "bytes_in": arrow.rows(rate.T.astype(np.float32)),
            "bytes_out": _bytes_out(block, taken, sampled, led, owner),
            "records_in": records,
            "lag_max": np.where(sampled, present["lag"][taken[:, None], column], UNKNOWN).max(axis=0),
        },
    )


def _bytes_out(block: Block, taken: Ints, sampled: Flags, led: Flags, owner: Ints) -> Any:
    """Rates to consumers as the samples carry them, for the leader; null where none does."""
    given = block.by_partition["bytes_out"]
    if not (given >= 0).any():
        return pa.nulls(len(owner), pa.list_(pa.float32()))
    return arrow.rows(np.where(sampled & led, given[taken[:, None], owner[None, :]], UNKNOWN).T.astype(np.float32))
