"""What is new in a table, told from its log alone: exactly, or everything where the log cannot tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.spark.series import START_MS, Log, World

from ballast.adapters.arrow_schema import arrow_schema
from ballast.adapters.samples_delta import SampleStore, describe, table_url
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.fleet_store import tidy_readings
from ballast.pipeline.jobs import Scope, _still_whole, maintain, touched_hours
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import DISK_HOUR, LOAD_HOUR, SAMPLES_MINUTE, TABLES, Table
from ballast.pipeline.table_log import NewMinutes, News, Note, Position, TableLog

EVERYTHING = News(("2026-11-21T13", "2026-11-21T14"), ("alpha", "beta"))


def disk(hour: str, cluster: str) -> dict[str, Any]:
    """A row of ``disk_hour``."""
    row = {"cluster": cluster, "hour": hour, "broker": 1, "path": "/d"}
    return {**row, "total_bytes": 10, "usable_bytes": 5, "cordoned": False}


def commit(log: TableLog, rows: list[dict[str, Any]], note: Note | None, *, mode: str = "append") -> Position:
    """Write rows as a job does, with its note."""
    log.ensure(DISK_HOUR)
    properties = CommitProperties(custom_metadata={"userMetadata": note.text()} if note else None)
    table = pa.Table.from_pylist(rows, schema=arrow_schema(DISK_HOUR.columns))
    write_deltalake(table_url(log.store, "disk_hour"), table, mode=mode, commit_properties=properties)
    found = log.position(DISK_HOUR)
    assert found is not None
    return found


def note(version: int, hour: str, cluster: str) -> Note:
    """What a job says of one hour."""
    return Note("disk_hour", "source", version, (hour,), (cluster,))


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """An empty store."""
    return TableLog(str(tmp_path))


def test_no_table_is_no_position_and_a_table_starts_empty(log: TableLog) -> None:
    """Nothing there, then made, then there: twice made is once made."""
    assert log.position(DISK_HOUR) is None
    log.ensure(DISK_HOUR)
    first = log.position(DISK_HOUR)
    log.ensure(DISK_HOUR)
    assert log.position(DISK_HOUR) == first
    assert first is not None
    assert (log.progress(DISK_HOUR), log.parts(DISK_HOUR), log.files(DISK_HOUR, first, ["x"])) == (None, (), ())


def test_news_are_what_the_notes_since_then_say(log: TableLog) -> None:
    """One hour's commit is news of that hour and of its clusters; what retention and compaction did is not."""
    one = commit(log, [disk("2026-11-21T13", "alpha")], note(3, "2026-11-21T13", "alpha"))
    two = commit(log, [disk("2026-11-21T14", "beta")], note(4, "2026-11-21T14", "beta"))
    assert log.news(DISK_HOUR, one, two) == News(("2026-11-21T14",), ("beta",))
    assert log.progress(DISK_HOUR) == Position("source", 4)
    table = DeltaTable(table_url(log.store, "disk_hour"))
    table.optimize.compact()
    table.delete("hour < '2026-11-21T14'")
    now = log.position(DISK_HOUR)
    assert now is not None
    assert now.version > two.version
    assert log.news(DISK_HOUR, two, now) == News((), ())
    assert log.progress(DISK_HOUR) == Position("source", 4), "tidying is nobody's progress"


@pytest.mark.parametrize("since", [None, Position("another table", 1)])
def test_without_a_place_to_start_everything_is_news(log: TableLog, since: Position | None) -> None:
    """The job never ran, or its source was deleted and made anew."""
    commit(log, [disk("2026-11-21T13", "alpha")], note(3, "2026-11-21T13", "alpha"))
    now = commit(log, [disk("2026-11-21T14", "beta")], note(4, "2026-11-21T14", "beta"))
    assert log.news(DISK_HOUR, since, now) == EVERYTHING


def test_a_commit_that_does_not_say_what_it_changed_makes_everything_news(log: TableLog) -> None:
    """Of an earlier Ballast, or of a stranger."""
    one = commit(log, [disk("2026-11-21T13", "alpha")], note(3, "2026-11-21T13", "alpha"))
    silent = Note("disk_hour", "source", 4)
    now = commit(log, [disk("2026-11-21T14", "beta")], silent)
    assert log.news(DISK_HOUR, one, now) == EVERYTHING
    assert log.progress(DISK_HOUR) == Position("source", 4), "its progress counts all the same"


def test_new_minutes_are_those_of_the_commits_since_then(tmp_path: Path) -> None:
    """Each once, whatever the number of chunks; retention is no news, and neither is compaction."""
    store, log = SampleStore(str(tmp_path)), TableLog(str(tmp_path))
    world = World({("t", 0): Log()})
    for minute in (5, 58):
        store.write(world.sample(minute))
    since = log.position(SAMPLES_MINUTE)
    assert since is not None
    assert log.new_minutes(SAMPLES_MINUTE, None, since) == NewMinutes(("2026-11-21T13",) * 2, (5, 58), ("alpha",))
    for minute in (59, 61):
        store.write(world.sample(minute))
    store.write(World({("t", 0): Log()}, cluster="beta").sample(61))
    table = DeltaTable(table_url(str(tmp_path), "samples_minute"))
    table.optimize.compact()
    until = log.position(SAMPLES_MINUTE)
    assert until is not None
    found = log.new_minutes(SAMPLES_MINUTE, since, until)
    assert sorted(zip(found.hour, found.minute, strict=True)) == [("2026-11-21T13", 59), ("2026-11-21T14", 1)]
    assert found.clusters == ("alpha", "beta")
    assert log.bytes_of(SAMPLES_MINUTE) > 0


def test_touched_are_the_hours_themselves_and_the_next_where_it_has_samples() -> None:
    """A sample of the last minutes is the lead-in of the hour after it, once that hour has begun."""
    there = ("2026-11-21T13", "2026-11-21T14")
    assert touched_hours(["2026-11-21T13"], [49], there) == ("2026-11-21T13",)
    assert touched_hours(["2026-11-21T13"], [50], there) == there
    assert touched_hours(["2026-11-21T14"], [59], there) == ("2026-11-21T14",)


def test_hours_whose_samples_are_partly_forgotten_are_not_folded_again() -> None:
    """Late samples of an hour behind the newest by more than is kept would replace its rows by fewer."""
    scope = Scope(PipelinePolicy(keep_minutes_hours=2), datetime(2026, 11, 21, 14, 30, tzinfo=UTC))
    assert _still_whole(("2026-11-21T11", "2026-11-21T13"), ("2026-11-21T14",), scope) == ("2026-11-21T13",)
    assert _still_whole(("2026-11-21T11",), ("2026-11-21T14",), scope) == ()


def test_a_sample_from_the_future_does_not_end_the_folding_of_the_present() -> None:
    """A sampler's clock ran a year ahead once: windows are counted back from the last hour that can have been."""
    scope = Scope(PipelinePolicy(keep_minutes_hours=2), datetime(2026, 11, 21, 14, 30, tzinfo=UTC))
    there = ("2026-11-21T13", "2026-11-21T14", "2027-11-21T14")
    assert scope.newest(there) == "2026-11-21T14"
    assert scope.newest(("2026-11-20", "2026-11-21", "2027-11-21")) == "2026-11-21"
    assert _still_whole(("2026-11-21T14",), there, scope) == ("2026-11-21T14",)
    # Where everything lies ahead, it is our own clock that is behind.
    assert scope.newest(("2027-11-21T13", "2027-11-21T14")) == "2027-11-21T14"


def test_tidying_forgets_and_compacts_and_is_no_news(tmp_path: Path) -> None:
    """Small files of closed hours become one, what is older than is kept goes, and no job has anything to do by it."""
    store, log = SampleStore(str(tmp_path)), TableLog(str(tmp_path))
    world, policy = World({("t", 0): Log()}), PipelinePolicy()
    for minute in (57, 58, 59, 60, 61):
        store.write(world.sample(minute))
    derived = commit(log, [disk("2026-11-21T13", "alpha")], note(3, "2026-11-21T13", "alpha"))
    since = log.position(SAMPLES_MINUTE)
    begun = datetime.fromtimestamp(START_MS / 1000, UTC)
    minutes = sorted(TableLog(str(tmp_path)).column(SAMPLES_MINUTE, "minute").to_pylist())

    maintain(log, policy, now=begun + timedelta(hours=1))
    files = DeltaTable(table_url(str(tmp_path), "samples_minute")).file_uris()
    assert sorted(f.split("hour=")[1][:13] for f in files) == ["2026-11-21T13"] + ["2026-11-21T14"] * 2, (
        "the open hour stays"
    )
    assert sorted(log.column(SAMPLES_MINUTE, "minute").to_pylist()) == minutes

    maintain(log, policy, now=begun + timedelta(hours=policy.keep_minutes_hours + 1))
    assert log.parts(SAMPLES_MINUTE) == ("2026-11-21T14",)
    assert log.parts(DISK_HOUR) == ("2026-11-21T13",), "figures are kept longer than samples"
    until, now = log.position(SAMPLES_MINUTE), log.position(DISK_HOUR)
    assert since is not None
    assert until is not None
    assert now is not None
    assert until.version > since.version
    assert log.new_minutes(SAMPLES_MINUTE, since, until) == NewMinutes((), (), ())
    assert log.news(DISK_HOUR, derived, now) == News((), ())


def test_tidying_frees_the_files_of_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tables that are replaced whole at each run too, which would fill a disk the soonest."""
    log = TableLog(str(tmp_path))
    for table in TABLES.values():
        log.ensure(table)
    freed: list[Table] = []
    monkeypatch.setattr(TableLog, "vacuum", lambda _, table: freed.append(table))
    maintain(log, PipelinePolicy(), now=datetime(2026, 11, 21, tzinfo=UTC))
    tidy_readings(log, PipelinePolicy(), now=datetime(2026, 11, 21, tzinfo=UTC))
    assert sorted(t.name for t in freed) == sorted(TABLES)


def test_a_newer_layout_and_a_foreign_table_are_refused(log: TableLog) -> None:
    """Every question begins with the layout, so no job reads or replaces what it does not know."""
    for name, description, sentence in (
        ("disk_hour", describe("disk_hour", 2), "layout 2"),
        ("load_hour", "somebody's", "not one of Ballast's"),
    ):
        table = DISK_HOUR if name == "disk_hour" else LOAD_HOUR
        DeltaTable.create(table_url(log.store, name), schema=arrow_schema(table.columns), description=description)
        for question in (log.position, log.ensure, log.progress):
            with pytest.raises(UsageError, match=sentence):
                question(table)


def test_a_broken_log_is_one_sentence(log: TableLog) -> None:
    """And not a traceback of delta-rs."""
    log.ensure(DISK_HOUR)
    (Path(log.store) / "disk_hour" / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(Unavailable, match="log of the table disk_hour"):
        log.position(DISK_HOUR)
