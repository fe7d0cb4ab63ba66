"""Days and the model are folded from files, share by share: each row in one share, whatever the files say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.spark.pure import load_rows, model_rows
from tests.spark.series import HOUR_MS, START_MS, Log, World, run

from ballast.adapters.arrow_schema import arrow_schema
from ballast.core.samples import chunk_of
from ballast.pipeline.chunks import Chunks
from ballast.pipeline.commits import replace_parts
from ballast.pipeline.disk_fold import fold_outlooks
from ballast.pipeline.model_fold import fold_days, fold_models
from ballast.pipeline.part_files import PartFile, Target, written
from ballast.pipeline.row_reader import DAY_OF, Rows, RowShare, read_days, read_hours, read_log_dirs, shares_of
from ballast.pipeline.schemas import DISK_HOUR, LOAD_DAY, LOAD_HOUR, Table
from ballast.pipeline.table_log import Note, TableLog
from ballast.pipeline.workers import Fold, Read

HOURS = ("2026-11-21T13", "2026-11-21T14")
Cut = Callable[[Any], Iterator[tuple[str, Any]]]
"""How rows are cut into files: labels and rows."""


def hours_of(cluster: str) -> list[Any]:
    """``load_hour`` of two hours of 24 partitions, some of which change their leader."""
    world = World(
        {(f"t{n % 8}", n // 8 * 512): Log(replicas=(n % 3 + 1, (n + 1) % 3 + 1)) for n in range(24)}, cluster=cluster
    )

    def each(minute: int) -> None:
        for n, log in enumerate(world.logs.values()):
            log.append(10 + n)
            log.leader = log.replicas[minute // 20 % 2]

    samples = run(world, range(40, 80), each)
    return [load_rows(samples, START_MS + n * HOUR_MS) for n in range(2)]


def made(store: Path, table: Table) -> Target:
    """The table, as the jobs make it before anything is written."""
    TableLog(str(store)).ensure(table)
    return Target(table, str(store / table.name))


def commit(store: Path, table: Table, files: list[PartFile], version: int) -> None:
    """Files as a job commits them."""
    parts = tuple(sorted({file.part or "" for file in files}))
    replace_parts(Target(table, str(store / table.name)), files, Note(table.name, "s", version, parts, ("alpha",)))


def folded(
    store: Path, table: Table, parts: tuple[str, ...], read: Read, fold: Fold
) -> tuple[list[RowShare], list[Any]]:
    """The shares of a table's parts, and what the fold makes of each."""
    log = TableLog(str(store))
    at = log.position(table)
    assert at is not None
    shares = shares_of(log.files(table, at, parts), ["alpha", "beta"], parts)
    source = Rows(str(store / table.name), at, shares)
    return list(shares), [list(fold(read(source, share))) for share in shares]


def whole(table: Any) -> Iterator[tuple[str, Any]]:
    """One file, of all clusters."""
    yield "", table


def shuffled(table: Any) -> Iterator[tuple[str, Any]]:
    """As another program may leave it: no order, no names."""
    order = np.random.default_rng(3).permutation(len(table))
    yield "", table.take(pa.array(order[: len(order) // 3]))
    yield "", table.take(pa.array(order[len(order) // 3 :]))


def by_chunks(*cuts: Chunks) -> Cut:
    """A file for each cut and cluster, as the jobs write them."""

    def cut(table: Any) -> Iterator[tuple[str, Any]]:
        for cluster in ("alpha", "beta"):
            own = table.filter(pa.compute.equal(table["cluster"], cluster))
            topics = own["topic"].combine_chunks().dictionary_encode()
            for chunks in cuts:
                yield chunks.label, own.filter(pa.array(chunks.holds(topics, own["partition"])))

    return cut


SIXTEENTHS = by_chunks(Chunks(0, 8, 16), Chunks(8, 16, 16))


@pytest.mark.parametrize(
    ("first", "second", "shares"),
    [
        (whole, whole, 1),
        (SIXTEENTHS, SIXTEENTHS, 2),
        (SIXTEENTHS, by_chunks(*(Chunks(n, n + 8, 32) for n in range(0, 32, 8))), 4),
        (by_chunks(*(Chunks(n, n + 8, 32) for n in range(0, 32, 8))), by_chunks(Chunks(0, 8, 8)), 4),
        (SIXTEENTHS, shuffled, 2),
    ],
    ids=["one file", "a file for each share", "it grew", "it shrank", "another program's"],
)
def test_each_row_is_in_one_share_whatever_the_files_are(tmp_path: Path, first: Cut, second: Cut, shares: int) -> None:
    """The model of two clusters, by way of files of hours and of days, is that of the same rows in memory."""
    hours = [pa.concat_tables(pair) for pair in zip(hours_of("alpha"), hours_of("beta"), strict=True)]
    target = made(tmp_path, LOAD_HOUR)
    files = [
        file
        for table, cut in zip(hours, (first, second), strict=True)
        for label, rows in cut(table)
        for file in written(target, rows.combine_chunks().to_batches(), label)
    ]
    commit(tmp_path, LOAD_HOUR, files, 1)
    found, days = folded(tmp_path, LOAD_HOUR, HOURS, read_hours, fold_days)
    assert [share.cluster for share in found] == ["alpha"] * shares + ["beta"] * shares

    target = made(tmp_path, LOAD_DAY)
    files = [file for share, rows in zip(found, days, strict=True) for file in written(target, rows, share.cut.label)]
    commit(tmp_path, LOAD_DAY, files, 1)
    assert DeltaTable(target.url).to_pyarrow_table().num_rows == 48
    _, models = folded(tmp_path, LOAD_DAY, ("2026-11-21",), read_days, fold_models)
    rows = [row for share in models for batch in share for row in batch.to_pylist()]
    assert ordered(rows) == ordered(model_rows(hours))


def test_files_whose_columns_stand_otherwise_and_are_never_null_are_read_beside_ours(tmp_path: Path) -> None:
    """Another program may write them so when it compacts; a share has rows of both."""
    target = made(tmp_path, LOAD_HOUR)
    files = [file for hour in hours_of("alpha") for file in written(target, hour.combine_chunks().to_batches())]
    path = Path(target.url) / files[1].path
    rows = pq.ParquetFile(path).read()
    fields = [field.with_nullable(False) for field in reversed(rows.schema)]
    pq.write_table(rows.select([field.name for field in fields]).cast(pa.schema(fields)), path)
    commit(tmp_path, LOAD_HOUR, [files[0], files[1]._replace(size_bytes=path.stat().st_size)], 1)
    _, days = folded(tmp_path, LOAD_HOUR, HOURS, read_hours, fold_days)
    minutes = [row["minutes"] for share in days for batch in share for row in batch.to_pylist()]
    assert len(minutes) == 24
    assert all(of_the_day[13] and of_the_day[14] for of_the_day in minutes)


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by their keys."""
    return sorted(rows, key=lambda r: (r["cluster"], r["topic"], r["partition"]))


def test_a_partition_has_the_chunk_that_samples_gave_it() -> None:
    """What cuts samples and what chooses rows is one function: with another, rows would be in no share."""
    state = World({(f"t{n % 3}", n * 300): Log() for n in range(12)}).state(0)
    topics = pa.array([state.topics[t].name for t in state.partitions.topic]).dictionary_encode()
    for chunk, held in zip(chunk_of(state, 16).tolist(), range(12), strict=True):
        cut = Chunks(chunk, chunk + 1, 16)
        assert cut.holds(topics, pa.array(state.partitions.number))[held]


def test_names_of_files_tell_chunks_and_nothing_else_does() -> None:
    """Only a name that was written so; a share of everything is not in a name, since such files have many clusters."""
    cut = Chunks(8, 16, 64)
    assert Chunks.of_file(f"hour=x/part-{cut.label}0a1b.parquet") == cut
    for path in ("part-0a1b.parquet", "part-c1-2of4-/x.parquet", "part-00000-1f-c000.snappy.parquet"):
        assert Chunks.of_file(path) is None
    assert Chunks(0, 8, 8).label == ""
    assert cut.meets(Chunks(0, 1, 8))
    assert not cut.meets(Chunks(0, 8, 16))
    assert cut.has_all_of(Chunks(8, 12, 64))
    assert not cut.has_all_of(Chunks(8, 12, 32))
    assert not cut.has_all_of(None)
    assert Chunks(0, 1, 1).has_all_of(None)


def test_a_disk_is_full_when_its_slope_says_so(tmp_path: Path) -> None:
    """50 bytes an hour gone of 1,000; a disk that frees itself, one of unknown room and one seen once are never full."""
    hours = [f"2026-11-21T{hour:02d}" for hour in range(4)]
    rooms: dict[str, list[int | None]] = {
        "/fills": [1150, 1100, 1050, 1000],
        "/frees": [1000, 1050, 1100, 1150],
        "/gone": [1100, 1050, 1000, -1],
        "/once": [None] * 3 + [7],
    }
    target = made(tmp_path, DISK_HOUR)
    rows = [
        {"cluster": cluster, "hour": hour, "broker": 1, "path": path, "total_bytes": 9999, "usable_bytes": room[at]}
        for cluster in ("alpha", "beta")
        for at, hour in enumerate(hours)
        for path, room in rooms.items()
        if room[at] is not None
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(DISK_HOUR.columns))
    commit(tmp_path, DISK_HOUR, list(written(target, [batch])), 1)
    _, found = folded(tmp_path, DISK_HOUR, tuple(hours), read_log_dirs, fold_outlooks)
    assert len(found) == 2, "a share for each cluster"
    told = {r["path"]: r for share in found for b in share for r in b.to_pylist() if r["cluster"] == "beta"}
    assert {p: (r["as_of"], r["usable_bytes"]) for p, r in told.items()} == {
        p: (hours[3], room[3]) for p, room in rooms.items()
    }
    growth = {p: r["growth_bytes_per_day"] for p, r in told.items()}
    assert growth == pytest.approx({"/fills": 1200, "/frees": -1200, "/gone": 1200, "/once": 0})
    assert told["/fills"]["days_to_full"] == pytest.approx(1000 / 1200)
    assert [told[p]["days_to_full"] for p in ("/frees", "/gone", "/once")] == [None] * 3


def test_what_is_read_is_in_the_table() -> None:
    """A column that no layout has would be found missing only on a cluster's workers."""
    assert set(DAY_OF) <= set(LOAD_HOUR.names)
