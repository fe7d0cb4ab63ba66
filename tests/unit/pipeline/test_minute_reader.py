"""Workers read their shares of the minute files: each sample in one share, in order, whatever shape the files have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.spark.pure import HOUR, minutes_of
from tests.spark.series import Log, World, run

from ballast.adapters.samples_delta import MINUTE_FILES, SampleStore, describe, minute_table, table_url
from ballast.core.samples import CHUNKS_PER_ROW_GROUP, PACKED, SAMPLES_VERSION, MinuteSample
from ballast.pipeline import minute_files
from ballast.pipeline.disk_fold import fold_disks
from ballast.pipeline.hour_fold import fold_hours
from ballast.pipeline.leadership_fold import fold_imbalances
from ballast.pipeline.minute_reader import (
    MEASURED,
    Minutes,
    Share,
    read_disks,
    read_measured,
    read_preferences,
    shares_of,
)
from ballast.pipeline.schemas import SAMPLES_MINUTE
from ballast.pipeline.table_log import TableLog


def some(
    monkeypatch: pytest.MonkeyPatch, minutes: range, per_chunk: int, clusters: tuple[str, ...] = ("alpha",)
) -> Any:
    """Samples of clusters of 40 topics, cut into chunks of so many partitions."""
    monkeypatch.setattr("ballast.core.samples.PARTITIONS_PER_CHUNK", per_chunk)
    found = []
    for cluster in clusters:
        w = World({(f"t{n}", 0): Log(replicas=(n % 3 + 1, (n + 1) % 3 + 1)) for n in range(40)}, cluster=cluster)

        def each(minute: int, w: World = w) -> None:
            for n, log in enumerate(w.logs.values()):
                log.append(10 + n)
                log.leader = log.replicas[minute // 20 % 2]

        found += run(w, minutes, each)
    return found


def record(store: Path, samples: list[MinuteSample]) -> None:
    """The first as the sampler does, the others ten to a file: a commit takes its time."""
    SampleStore(str(store)).write(samples[0])
    for begin in range(1, len(samples), 10):
        rows = pa.concat_tables(minute_table(s) for s in samples[begin : begin + 10])
        write_deltalake(table_url(str(store), "samples_minute"), rows, mode="append", writer_properties=MINUTE_FILES)


def held(store: str, hours: set[str]) -> list[tuple[Any, ...]]:
    """Clusters, hours and chunk counts, as the jobs ask for them."""
    log = TableLog(store)
    at = log.position(SAMPLES_MINUTE)
    assert at is not None
    return log.distinct(SAMPLES_MINUTE, at, hours, ("cluster", "hour", "chunks"))


def minutes(store: str, *, whole: bool = False) -> Minutes:
    """All shares of the hour."""
    at = TableLog(store).position(SAMPLES_MINUTE)
    assert at is not None
    shares = shares_of(held(store, {HOUR, "2026-11-21T12"}), [HOUR], whole=whole)
    return Minutes(table_url(store, "samples_minute"), at, shares)


def by_replica(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in one order."""
    return sorted(rows, key=lambda r: (r["cluster"], r["topic"], r["partition"], r["broker"]))


def folded(store: str) -> list[dict[str, Any]]:
    """``samples_hour`` of the hour, share by share."""
    asked = minutes(store)
    return by_replica(
        [row for s in asked.shares for part in fold_hours(read_measured(asked, s)) for row in part.to_pylist()]
    )


def expected(samples: list[MinuteSample]) -> list[dict[str, Any]]:
    """The same without files, from one table in memory."""
    rows = []
    for cluster in sorted({s.cluster for s in samples}):
        table = minutes_of([s for s in samples if s.cluster == cluster])
        rows += [row for part in fold_hours(table.to_batches()) for row in part.to_pylist()]
    return by_replica(rows)


def test_the_shares_of_an_hour_are_the_hour_and_the_end_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clusters, one file a minute: every replica's row is what the samples in memory give, and shares are several."""
    samples = some(monkeypatch, range(-12, 30), 3, ("alpha", "beta"))
    record(tmp_path, samples)
    asked = minutes(str(tmp_path))
    assert [(s.cluster, s.chunks, s.first, s.end) for s in asked.shares] == [
        (cluster, 16, first, first + CHUNKS_PER_ROW_GROUP) for cluster in ("alpha", "beta") for first in (0, 8)
    ]
    assert folded(str(tmp_path)) == expected(samples)


def test_a_share_decodes_no_row_group_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute's file holds its chunks in order, some to a row group, the brokers' row last."""
    (sample,) = some(monkeypatch, range(1), 3)
    SampleStore(str(tmp_path)).write(sample)
    (file,) = Path(table_url(str(tmp_path), "samples_minute")).rglob("*.parquet")
    groups = [pq.ParquetFile(file).read_row_group(g, columns=["chunk"])["chunk"].to_pylist() for g in range(3)]
    assert groups == [[*range(8)], [*range(8, 16)], [-1]]
    first = pq.ParquetFile(file).metadata.row_group(0)
    told = {c.path_in_schema for c in map(first.column, range(first.num_columns)) if c.statistics is not None}
    assert {"cluster", "minute", "chunk"} <= told, "by which row groups are chosen"
    assert not told & set(PACKED), "a packed cell as its own minimum and maximum would be stored three times"


def test_hours_in_turn_open_each_file_once_and_few_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares come hour by hour: an hour's files serve its shares and the next hour's lead-in, and then they go."""
    record(tmp_path, some(monkeypatch, range(50, 370, 10), 3))
    asked = minutes(str(tmp_path))
    hours = [f"2026-11-21T{hour}" for hour in range(13, 20)]
    shares = shares_of(held(str(tmp_path), set(hours)), hours)
    assert len({share.hour for share in shares}) == 7
    opened: list[str] = []

    def counted(path: str, **more: Any) -> Any:
        opened.append(path)
        return pq_file(path, **more)

    pq_file = pq.ParquetFile
    monkeypatch.setattr("ballast.pipeline.minute_files.pq.ParquetFile", counted)
    for share in shares:
        assert list(read_measured(asked, share))
    assert len(opened) == len(set(opened)) == len(list(Path(asked.url).rglob("*.parquet")))
    assert minute_files._files.cache_info().currsize == minute_files.HOURS_HELD < len(hours)


def test_a_cluster_that_grew_within_the_hour_is_folded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples cut into 8 and into 32 chunks meet in 8: no partition is told in two rows."""
    samples = some(monkeypatch, range(-5, 20), 5)
    grown = some(monkeypatch, range(20, 40), 2)
    record(tmp_path, [*samples, *grown])
    assert minutes(str(tmp_path)).shares == (Share("alpha", HOUR, 8, 32, 0, 8),)
    assert folded(str(tmp_path)) == expected([*samples, *grown])


def test_files_of_another_shape_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file with rows in any order, as another writer or a compaction may leave them, and a minute recorded twice."""
    samples = some(monkeypatch, range(-12, 30), 3)
    SampleStore(str(tmp_path)).write(samples[0])
    rows = pa.concat_tables(minute_table(s) for s in (*samples[1:], samples[20]))
    shuffled = rows.take(pc.sort_indices(rows, sort_keys=[("chunk", "descending"), ("minute", "descending")]))
    write_deltalake(table_url(str(tmp_path), "samples_minute"), shuffled, mode="append")
    assert folded(str(tmp_path)) == expected(samples)


def test_whole_hours_are_read_in_the_order_of_their_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the imbalance: the hour's own minutes only, once each, and every partition in each of them."""
    samples = some(monkeypatch, range(-12, 30), 3)
    record(tmp_path, samples)
    asked = minutes(str(tmp_path), whole=True)
    (share,) = asked.shares
    seen = pa.Table.from_batches(read_preferences(asked, share))
    assert seen["minute"].to_pylist() == [m for m in range(30) for _ in range(16)]
    rows = [row for part in fold_imbalances(read_preferences(asked, share)) for row in part.to_pylist()]
    assert [(r["broker"], r["minutes"]) for r in rows] == [(1, 30), (2, 30), (3, 30)]
    assert sum(r["preferred"] for r in rows) == 40


def test_a_log_dir_is_as_it_was_last_seen(tmp_path: Path) -> None:
    """The last minute of the hour counts, whatever order the minutes were recorded in; a log dir of before does not."""
    w = World({("t", 0): Log()})

    def each(minute: int) -> None:
        w.usable_bytes = 1000 - minute

    samples = run(w, range(-2, 4), each)
    for sample in (*samples[:3], *reversed(samples[3:])):
        write_deltalake(
            table_url(str(tmp_path), "samples_minute"),
            minute_table(sample),
            partition_by=["hour"],
            mode="append",
            description=describe("samples_minute", SAMPLES_VERSION),
        )
    asked = minutes(str(tmp_path), whole=True)
    rows = [row for part in fold_disks(read_disks(asked, asked.shares[0])) for row in part.to_pylist()]
    assert [(r["broker"], r["hour"], r["usable_bytes"]) for r in rows] == [(b, HOUR, 997) for b in (1, 2, 3)]


def test_compacted_hours_keep_their_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late samples fold a compacted hour again: the same rows, from one file that is still cut as the minutes were."""
    samples = some(monkeypatch, range(3), 3)
    for sample in samples:
        SampleStore(str(tmp_path)).write(sample)
    TableLog(str(tmp_path)).compact(SAMPLES_MINUTE, "2026-11-21T14")
    (file,) = DeltaTable(table_url(str(tmp_path), "samples_minute")).file_uris()
    found = pq.ParquetFile(file)
    assert {found.metadata.row_group(g).num_rows for g in range(found.num_row_groups - 1)} == {CHUNKS_PER_ROW_GROUP}
    assert folded(str(tmp_path)) == expected(samples)


def test_what_folds_read_is_in_the_table() -> None:
    """A column that no layout has would be found missing only on a cluster's workers."""
    assert set(MEASURED) <= set(SAMPLES_MINUTE.names)
