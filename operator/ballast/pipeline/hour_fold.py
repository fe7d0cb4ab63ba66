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
    """Fold sorted minute rows into ``samples_hour`` rows."""
    return map(_rows_of, hours_of(batches))


def hours_of(batches: Iterable[Any]) -> Iterator[Hour]:
    """The hours in sorted minute rows, a chunk at a time; those in which no replica was seen are left out."""
    for table in arrow.whole_groups(batches, GROUP):
        cuts = arrow.boundaries(table, GROUP)
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            found = _hour(table.slice(begin, end - begin).combine_chunks())
            if found is not None:
                yield found


def pack(flags: Flags) -> Ints:
    """60 rows of flags as a bit mask for each column."""
    return _BITS @ flags.astype(np.int64)


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


@dataclass(frozen=True, slots=True, eq=False)
class Hour:
    """The replicas of one chunk that were seen in an hour: arrays of 60 minutes x R replicas."""

    keys: dict[str, Any]
    """Per replica: cluster, hour, topic, topic_id, partition, broker, as columns of a table."""
    log_dir: Ints
    sampled: Flags
    rated: Flags
    led: Flags
    in_sync: Flags
    size_bytes: Ints
    bytes_in: npt.NDArray[np.float32]
    bytes_out: npt.NDArray[np.float32] | None
    """None where no sample carries it."""
    records_in: npt.NDArray[np.float64]
    lag_max: Ints


_PARTITION_FILL: Final[dict[str, Any]] = {
    "leader": np.int32(-2),
    "earliest": -1,
    "high_watermark": -1,
    "bytes_out": -1.0,
}
_REPLICA_FILL: Final[dict[str, Any]] = {"in_sync": False, "size_bytes": -1, "lag": -1, "log_dir": np.int32(-1)}


_LAYOUT: Final = ("partition_topic", "partition", "replica_count", "replica")


class _Names:
    """Numbers for the topics, partitions and replicas of a block; equal layouts are numbered once."""

    def __init__(self) -> None:
        self.topics: dict[tuple[str, str], int] = {}
        self.compacted: list[bool] = []
        self._layouts: dict[tuple[bytes, ...], tuple[Ints, Ints]] = {}

    def keys(self, row: dict[str, Any]) -> tuple[Ints, Ints]:
        """Per partition an integer that names it in every minute; per replica its partition's place in the row and its broker."""
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
        return partitions, np.stack([owner, row["replica"].astype(np.int64)])


def _rows(table: Any) -> list[dict[str, Any]]:
    """Each row of a group as arrays, of the columns that it has."""
    packed = [name for name in (*_LAYOUT, *_PARTITION_FILL, *_REPLICA_FILL) if name in table.column_names]
    out = []
    for i in range(len(table)):
        row: dict[str, Any] = {name: table.column(name)[i].as_py() for name in ("topic", "topic_id", "compacted")}
        for name in packed:
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
    distinct = {id(k): k for k in keys}
    partitions, at_partition = _union([p for p, _ in distinct.values()])
    pairs = [
        (p[replica[0]] << 32) | replica[1] for p, (_, replica) in zip(at_partition, distinct.values(), strict=True)
    ]
    replicas, at_replica = _union(pairs)
    place = {k: (_run(p), _run(r)) for k, p, r in zip(distinct, at_partition, at_replica, strict=True)}
    p_shape, r_shape = (len(at), len(partitions)), (len(at), len(replicas))
    by_partition = _filled(_PARTITION_FILL, rows[0], p_shape)
    by_replica = _filled(_REPLICA_FILL, rows[0], r_shape)
    for t, row, key in zip(sample.tolist(), rows, keys, strict=True):
        p, r = place[id(key)]
        for columns, column in ((by_partition, p), (by_replica, r)):
            for name, values in columns.items():
                found = True if name == "present" else row[name]
                if found is not None:
                    values[t, column] = found
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
        owner=replicas >> 32,
        broker=replicas & 0xFFFFFFFF,
        by_partition=by_partition,
        by_replica=by_replica,
    )


def _union(layouts: list[Ints]) -> tuple[Ints, list[Ints]]:
    """Every name once, in the order in which they come, and each layout's places among them."""
    names, first, inverse = np.unique(np.concatenate(layouts), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    cuts = np.cumsum([len(layout) for layout in layouts])[:-1]
    return names[order], np.split(rank[inverse], cuts)


def _run(places: Ints) -> Ints | slice:
    """Places that are a run from the first as a slice, which is copied at once; most samples have one layout."""
    return slice(0, len(places)) if (places == np.arange(len(places))).all() else places


def _filled(fills: dict[str, Any], row: dict[str, Any], shape: tuple[int, int]) -> dict[str, npt.NDArray[Any]]:
    """A matrix of unknowns for each column that the rows have, and one of who is there at all."""
    columns = {name: np.full(shape, fill, _dtype(fill)) for name, fill in fills.items() if name in row}
    return columns | {"present": np.zeros(shape, np.bool_)}


def _dtype(fill: Any) -> Any:
    if isinstance(fill, float):
        return np.float32
    return np.asarray(fill).dtype


def rates_of(block: Block) -> Rates:
    """Append rates of a block's partitions, measured on the log of whoever leads at each sample."""
    leader, size, present = block.by_partition["leader"], block.by_replica["size_bytes"], block.by_replica["present"]
    log = np.full(leader.shape, -1, np.int64)
    for t in range(len(leader)):
        # Leaders and replicas are mostly those of the sample before.
        if t and (leader[t] == leader[t - 1]).all() and (present[t] == present[t - 1]).all():
            log[t] = log[t - 1]
        else:
            replica = np.flatnonzero((block.broker == leader[t][block.owner]) & present[t])
            log[t, block.owner[replica]] = replica
    led_size = np.where(log >= 0, np.take_along_axis(size, np.maximum(log, 0), axis=1), UNKNOWN)
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


def at_samples(of: npt.NDArray[Any], samples: Ints) -> npt.NDArray[Any]:
    """``of[samples[m, c], c]`` for every minute and column; most minutes are one sample throughout, which is far cheaper."""
    out = np.empty(samples.shape, of.dtype)
    columns = np.arange(samples.shape[1])
    for row, sample in zip(out, samples, strict=True):
        row[:] = of[sample[0]] if (sample == sample[0]).all() else of[sample, columns]
    return out


def _hour(table: Any) -> Hour | None:
    block = read_block(table)
    rates = rates_of(block)
    taken, spans = cover(block, rates)
    keep = np.flatnonzero(block.by_replica["present"][taken[taken >= 0]].any(axis=0))
    if not len(keep):
        return None
    whole = len(keep) == len(block.broker)
    present = block.by_replica if whole else {name: column[:, keep] for name, column in block.by_replica.items()}
    owner, broker = block.owner[keep], block.broker[keep]

    here = (taken >= 0)[:, None]
    sampled = here & present["present"][taken]
    rated = _rated(present["present"], spans, owner)
    # The interval's own sample says who led; a minute without a rate is judged by its sample, if there was one.
    leader = block.by_partition["leader"]
    led = rated & (at_samples(leader, spans)[:, owner] == broker)
    if not rated.all():
        led |= ~rated & sampled & (leader[taken][:, owner] == broker)
    rate = at_samples(rates.bytes_per_s, spans).astype(np.float32)[:, owner]
    np.copyto(rate, np.float32(UNKNOWN), where=~rated)
    records = np.nan_to_num(at_samples(rates.records_per_s, spans))[:, owner]
    np.copyto(records, 0.0, where=~(rated & led))
    last = np.where(sampled, np.arange(MINUTES)[:, None], -1).max(axis=0)
    topic = pa.array(block.partition_topic[owner])
    return Hour(
        keys={
            "cluster": pa.repeat(table.column("cluster")[0], len(keep)),
            "hour": pa.repeat(table.column("fold_hour")[0], len(keep)),
            "topic": pa.array(block.topic).take(topic),
            "topic_id": pa.array(block.topic_id).take(topic),
            "partition": block.partition[owner],
            "broker": broker,
        },
        log_dir=present["log_dir"][taken[last], np.arange(len(keep))],
        sampled=sampled,
        rated=rated,
        led=led,
        in_sync=sampled & present["in_sync"][taken],
        size_bytes=_sampled(present["size_bytes"], taken, sampled),
        bytes_in=rate,
        bytes_out=_bytes_out(block, taken, sampled & led, owner),
        records_in=records.sum(axis=0) * 60.0,
        lag_max=_sampled(present["lag"], taken, sampled).max(axis=0),
    )


def _rated(present: Flags, spans: Ints, owner: Ints) -> Flags:
    """Per minute and replica: its partition's rate is known, and it was there in the sample that the rate comes from."""
    out = np.empty((len(spans), len(owner)), np.bool_)
    columns = np.arange(len(owner))
    for row, span in zip(out, spans, strict=True):
        if (span == span[0]).all():
            row[:] = present[span[0]] & (span[0] >= 0)
        else:
            row[:] = present[span[owner], columns] & (span >= 0)[owner]
    return out


def _sampled(of: Ints, taken: Ints, sampled: Flags) -> Ints:
    """``of`` in each minute, unknown where there was no sample; a run of samples that everyone is in is not copied."""
    # A hole in the first minute alone is -1 followed by 0, 1, …: no run of samples.
    is_run = taken[0] >= 0 and (np.diff(taken) == 1).all()
    run = of[taken[0] : taken[0] + len(taken)] if is_run else of[taken]
    return run if sampled.all() else np.where(sampled, run, UNKNOWN)


def _bytes_out(block: Block, taken: Ints, known: Flags, owner: Ints) -> npt.NDArray[np.float32] | None:
    """Rates to consumers as the samples carry them, for the leader."""
    given = block.by_partition["bytes_out"]
    if not (given >= 0).any():
        return None
    return np.where(known, given[taken][:, owner], np.float32(UNKNOWN))


def _rows_of(hour: Hour) -> Any:
    none = pa.nulls(len(hour.log_dir), pa.list_(pa.float32()))
    return arrow.batch(
        SAMPLES_HOUR,
        {
            **hour.keys,
            "log_dir": hour.log_dir,
            "sampled": pack(hour.sampled),
            "rated": pack(hour.rated),
            "led": pack(hour.led),
            "in_sync": pack(hour.in_sync),
            "size_bytes": arrow.rows(hour.size_bytes.T),
            "bytes_in": arrow.rows(hour.bytes_in.T),
            "bytes_out": none if hour.bytes_out is None else arrow.rows(hour.bytes_out.T),
            "records_in": hour.records_in,
            "lag_max": hour.lag_max,
        },
    )
