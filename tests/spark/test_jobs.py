"""From samples in a Delta table to a load model in another, through Spark."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.spark.series import RECORD_BYTES, START_MS, Log, World, run, sample_rows

from ballast.adapters.samples.rows import rows_of
from ballast.adapters.samples.store import SampleStore, table_url
from ballast.core.samples import SAMPLES, MinuteSample
from ballast.core.samples.rates import measure
from ballast.errors import UsageError
from ballast.pipeline.jobs import JobReport, run_all
from ballast.pipeline.maintenance import forget, maintain
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import TABLES
from ballast.pipeline.table_log import TableLog
from ballast.pipeline.tables import SparkTables, name_of
from ballast.wiring.loads import HistoryPolicy, loads_from_history

pytestmark = pytest.mark.spark

RATE = 120 * RECORD_BYTES / 60
POLICY = PipelinePolicy()
NOW = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=3)


def write(store: str, samples: list[MinuteSample]) -> None:
    """Put samples into the store: the first as the daemon does, the others in one commit, whatever their order.

    Each is measured from the one before it in time.
    """
    SampleStore(store).write(samples[0])
    rows = sample_rows(samples)
    others = rows.filter(pc.greater(rows["time"], pc.min(rows["time"])))
    write_deltalake(table_url(store, "samples"), others, mode="append")
    for table in ("brokers", "log_dirs"):
        tables = [rows_of(sample, measure(sample, None))[table] for sample in samples[1:]]
        if tables:
            write_deltalake(table_url(store, table), pa.concat_tables(tables), mode="append")


def table(store: str, name: str) -> list[dict[str, Any]]:
    """A table's rows, read without Spark, in a fixed order."""
    rows = DeltaTable(table_url(store, name)).to_pyarrow_table().to_pylist()
    return sorted(
        rows, key=lambda r: tuple(str(r.get(k)) for k in ("cluster", "hour", "date", "topic", "partition", "broker"))
    )


def touched(reports: list[JobReport]) -> dict[str, tuple[str, ...]]:
    """What each job replaced."""
    return {r.job: tuple(name_of(part) for part in r.touched) for r in reports}


def world() -> World:
    """Two topics, one of them ten times as busy."""
    return World({("busy", 0): Log(), ("calm", 0): Log(replicas=(2, 3, 1)), ("calm", 1): Log(replicas=(3, 1, 2))})


def grow(w: World) -> Any:
    """120 records a minute, ten times as many for the busy topic."""

    def each(_: int) -> bool:
        for (topic, _number), log in w.logs.items():
            log.append(1200 if topic == "busy" else 120)
        return True

    return each


def test_samples_become_a_model_and_late_ones_change_only_what_they_touch(spark: Any, store: str) -> None:
    """The whole road: hours, nothing to do the second time, late samples of one hour make that hour again, exactly."""
    w = world()
    samples = run(w, range(50, 130), grow(w))
    late = [s for s in samples if (s.epoch_minute - samples[0].epoch_minute) in (40, 41)]
    write(store, [s for s in samples if s not in late])
    tables = SparkTables(lambda: spark, store)
    reports = run_all(tables, POLICY, now=NOW)
    first = touched(reports)
    assert {r.job: r.rows for r in reports} == {name: len(table(store, name)) for name in first}
    hours = ("2026-11-21T13", "2026-11-21T14", "2026-11-21T15")
    assert first == {
        "load_hour": hours,
        "load_day": ("2026-11-21",),
        "load_model": ("alpha",),
        "leadership_history": hours,
        "broker_imbalance": hours,
        "disk_hour": hours,
        "disk_outlook": ("alpha",),
    }
    assert [r["broker"] for r in table(store, "disk_outlook")] == [1, 2, 3]
    assert {r["ratio_max"] for r in table(store, "broker_imbalance")} == {0.0}
    assert table(store, "leadership_history") == [], "no leader changed"
    (busy,) = [r for r in table(store, "load_model") if r["topic"] == "busy"]
    assert busy["bytes_in_mean"] == pytest.approx(10 * RATE)
    assert busy["seconds"] == 79 * 60
    versions = {name: DeltaTable(table_url(store, name)).version() for name in first}

    assert touched(run_all(tables, POLICY, now=NOW)) == dict.fromkeys(first, ())
    assert {name: DeltaTable(table_url(store, name)).version() for name in first} == versions

    before = {name: table(store, name) for name in first}
    # A sampler that was not heard of until now: what it adds is that these minutes were seen.
    added = sample_rows(late)
    write_deltalake(table_url(store, "samples"), added, mode="append")
    again = touched(run_all(tables, POLICY, now=NOW))
    assert again == {
        **dict.fromkeys(first, ()),
        **dict.fromkeys(("load_hour", "leadership_history", "broker_imbalance"), ("2026-11-21T14",)),
        "load_day": ("2026-11-21",),
        "load_model": ("alpha",),
    }
    after = {name: table(store, name) for name in first}
    seen = [sum(r["samples"] for r in rows["load_hour"]) for rows in (before, after)]
    assert seen[1] - seen[0] == len(added)
    # The second of them was measured from the first, and so was the sample after the gap from the one before it.
    assert [r["seconds"] for r in after["load_model"]] == [r["seconds"] + 60 for r in before["load_model"]]


def test_the_planner_balances_by_the_model(spark: Any, store: str) -> None:
    """Known rates in, the loads of a plan out: the busy partition counts ten times a calm one, at its leader and followers."""
    w = world()
    write(store, run(w, range(30), grow(w)))
    run_all(SparkTables(lambda: spark, store), POLICY, now=NOW)
    state = w.state(START_MS)
    loads = loads_from_history(state, HistoryPolicy(store=store, measure="mean"), now=NOW)
    rates = dict(zip(state.index, loads.bytes_in_per_s.tolist(), strict=True))
    assert rates == pytest.approx({n: (10 if n.topic == "busy" else 1) * RATE for n in state.index}, rel=1e-3)
    assert loads.bytes_out_per_s.tolist() == pytest.approx([2 * rate for rate in rates.values()], rel=1e-3)


PAGE = (Path(__file__).resolve().parents[2] / "docs/pipeline.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
(LINES,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_queries_of_the_documentation_answer_the_same_in_duckdb_and_spark(spark: Any, store: str) -> None:
    """As they stand there; the tables are plain, so that any engine reads them."""
    import duckdb

    w = world()
    write(store, run(w, range(50, 70), grow(w)))
    run_all(SparkTables(lambda: spark, store), POLICY, now=NOW)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in TABLES:
        if DeltaTable.is_deltatable(table_url(store, name)):
            connection.register(name, DeltaTable(table_url(store, name)).to_pyarrow_dataset())
            spark.read.format("delta").load(table_url(store, name)).createOrReplaceTempView(name)
    assert len(QUERIES) >= 3
    for query in QUERIES:
        theirs = connection.execute(query).fetchall()
        ours = [tuple(row) for row in spark.sql(query).collect()]
        assert theirs, query
        assert len(ours) == len(theirs), query
        for mine, other in zip(ours, theirs, strict=True):
            for a, b in zip(mine, other, strict=True):
                assert a == (pytest.approx(b) if isinstance(b, float) else b), query


def test_the_lines_of_the_documentation_read_the_samples_as_they_are(store: str) -> None:
    """Each expression of them, in DuckDB and Polars: no function of ours, no unpacking."""
    w = world()
    write(store, run(w, range(10), grow(w)))
    names: dict[str, Any] = {}
    means = []
    for line in LINES.replace("/var/lib/ballast", store).splitlines():
        if line.startswith(("duckdb", "pl")):
            answer = eval(line, names)  # noqa: S307 — what a reader of the page types
            means.append(dict(answer.fetchall() if hasattr(answer, "fetchall") else answer.iter_rows()))
        else:
            exec(line, names)  # noqa: S102 — likewise
    assert means == [pytest.approx({"busy": 10 * RATE, "calm": RATE})] * 2


def test_no_samples_is_a_sentence(spark: Any, store: str) -> None:
    """An empty store says what to do."""
    with pytest.raises(UsageError, match="no samples"):
        run_all(SparkTables(lambda: spark, store), POLICY)


def test_maintenance_forgets_and_compacts_and_is_no_news(
    spark: Any, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files of closed hours become one, what is older than is kept goes, and no job has anything to do by it."""
    w, sink, log = world(), SampleStore(store), TableLog(store)
    for sample in run(w, range(57, 62), grow(w)):
        sink.write(sample)
    tables, begun = SparkTables(lambda: spark, store), NOW - timedelta(hours=3)
    run_all(tables, POLICY, now=NOW)
    before, figures = table(store, "samples"), table(store, "load_hour")
    told: list[str] = []

    maintain(tables, POLICY, now=begun + timedelta(hours=1, minutes=5), on_line=told.append)
    files = DeltaTable(table_url(store, "samples")).file_uris()
    assert len(files) == 1 + 2
    assert [part.files for part in log.parts(SAMPLES).values()] == [1, 2], "the open hour stays"
    assert sorted(table(store, "samples"), key=str) == sorted(before, key=str)
    assert any("compacted" in line for line in told)

    forget(tables, SAMPLES, begun + timedelta(hours=1), told.append)
    assert list(log.parts(SAMPLES)) == [begun + timedelta(hours=1)]
    assert told[-1] == "samples: kept from 2026-11-21T14"
    # A sample of an hour that was made and whose others may be gone would replace its rows by fewer.
    parts = tables.log.parts
    monkeypatch.setattr(
        tables.log, "parts", lambda *of: {at: part._replace(written=NOW) for at, part in parts(*of).items()}
    )
    write_deltalake(table_url(store, "samples"), sample_rows([w.sample(30), w.sample(181)]), mode="append")
    policy = PipelinePolicy(samples_retention_hours=2, load_hour_retention_days=2)
    assert touched(run_all(tables, policy, now=NOW))["load_hour"] == ("2026-11-21T16",)
    kept = [row for row in table(store, "load_hour") if row["hour"] < NOW]
    assert kept == figures, "figures are kept longer than samples, and nothing was made again"
