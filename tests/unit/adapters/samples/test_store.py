"""The tables that the sampler writes: who remembers the sample before, and what stands in a row."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable
from tests.leash import leashed
from tests.spark.series import RECORD_BYTES, Log, World

from ballast.adapters.samples import failures
from ballast.adapters.samples.rows import rows_of
from ballast.adapters.samples.store import SampleStore, _append, ensure_table, table_url
from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES, MinuteSample, Table
from ballast.core.samples.rates import measure
from ballast.errors import UsageError

ROOT = Path(__file__).resolve().parents[4]
RATE = 120 * RECORD_BYTES / 60


def rows(store: Path, table: str = SAMPLES.name, **wanted: Any) -> list[dict[str, Any]]:
    """Rows in the order of time."""
    found = DeltaTable(table_url(str(store), table)).to_pyarrow_table().to_pylist()
    return sorted((r for r in found if all(r[k] == v for k, v in wanted.items())), key=lambda r: str(r["time"]))


def world() -> World:
    """Two topics of the same number of partitions, so that only names tell them apart."""
    return World({("a", 0): Log(), ("b", 0): Log(replicas=(2, 3))})


def write(w: World, store: SampleStore, minute: int) -> bool:
    """A minute of 120 records to each partition."""
    for log in w.logs.values():
        log.append(120)
    return store.write(w.sample(minute))


@pytest.mark.parametrize("restarts", [False, True])
def test_rates_go_on_whether_the_sampler_remembers_or_reads_back(tmp_path: Path, *, restarts: bool) -> None:
    """A pod that is restarted at every minute, as cron does it, records what one that runs on records, across the hour too."""
    w, store = world(), SampleStore(str(tmp_path))
    for minute in range(57, 63):
        w.writer = f"w{minute}" if restarts else "w"
        assert write(w, SampleStore(str(tmp_path)) if restarts else store, minute)
    for topic in ("a", "b"):
        found = rows(tmp_path, topic=topic)
        assert [r["bytes_in"] for r in found] == [None, *[pytest.approx(RATE)] * 5]
        assert [r["seconds"] for r in found] == [None, *[60.0] * 5]
        assert [r["leader_before"] for r in found] == [None, *[found[0]["leader"]] * 5]
    assert len({r["hour"] for r in rows(tmp_path)}) == 2


def test_an_interval_begins_at_the_newest_sample_whichever_process_recorded_it(tmp_path: Path) -> None:
    """Two samplers in turn: intervals follow each other without a gap and without an overlap."""
    w, first, second = world(), SampleStore(str(tmp_path)), SampleStore(str(tmp_path))
    for minute, store in enumerate((first, first, second, first, second)):
        assert write(w, store, minute)
    assert [r["seconds"] for r in rows(tmp_path, topic="a")] == [None, 60.0, 60.0, 60.0, 60.0]


def test_retention_after_a_restart_is_weighed_by_what_was_recorded(tmp_path: Path) -> None:
    """The rates of the sample before say what a record weighs."""
    w = World({("a", 0): Log(high=10_000, start_bytes=17)})
    for minute in range(3):
        if minute == 2:
            w.logs["a", 0].earliest += 100
            w.logs["a", 0].deleted += 100 * RECORD_BYTES
        write(w, SampleStore(str(tmp_path)), minute)
    assert [r["bytes_in"] for r in rows(tmp_path)] == [None, pytest.approx(RATE), pytest.approx(RATE, rel=1e-5)]


def test_what_a_replica_copied_before_a_restart_is_no_rate(tmp_path: Path) -> None:
    """That it was not in sync is read back with its size."""
    w = World({("a", 0): Log(high=10_000, start_bytes=10_000 * RECORD_BYTES, copied={3: 17})})
    write(w, SampleStore(str(tmp_path)), 0)
    w.logs["a", 0].replicas, w.logs["a", 0].copied = (3, 2), {}
    write(w, SampleStore(str(tmp_path)), 1)
    assert [r["bytes_in"] for r in rows(tmp_path)] == [None, pytest.approx(RATE)]


def test_a_sample_too_long_ago_is_not_read_back(tmp_path: Path) -> None:
    """An hour later nothing is known of the time between."""
    w = world()
    write(w, SampleStore(str(tmp_path)), 0)
    write(w, SampleStore(str(tmp_path)), 60)
    assert {r["seconds"] for r in rows(tmp_path)} == {None}


def test_a_minute_is_recorded_once_and_clusters_are_apart(tmp_path: Path) -> None:
    """In every table."""
    w, other, store = world(), World({("a", 0): Log()}, cluster="beta"), SampleStore(str(tmp_path))
    assert [write(w, store, 3), write(w, SampleStore(str(tmp_path)), 3), write(other, store, 3)] == [True, False, True]
    assert len(rows(tmp_path)) == 3
    for table in (BROKERS.name, LOG_DIRS.name):
        assert [(r["cluster"], r["broker"]) for r in rows(tmp_path, table)].count(("alpha", 2)) == 1
        assert len(rows(tmp_path, table, cluster="beta")) == 3
    assert {r["path"] for r in rows(tmp_path, LOG_DIRS.name)} == {"/data"}


def killed_after(store: Path, table: Table, sample: MinuteSample) -> None:
    """What a writer leaves that is killed after its commit to this table."""
    measured = rows_of(sample, measure(sample, None))
    for each in (LOG_DIRS, BROKERS, SAMPLES):
        _append(ensure_table(str(store), each), measured[each.name], sample)
        if each is table:
            return


def test_a_minute_that_another_writer_began_is_whole(tmp_path: Path) -> None:
    """Its tables then have two times, both within the minute."""
    w = world()
    killed_after(tmp_path, BROKERS, w.sample(3))
    w.clock_ms = 15_000
    assert write(w, SampleStore(str(tmp_path)), 3)
    tables = [rows(tmp_path, table.name) for table in (LOG_DIRS, BROKERS, SAMPLES)]
    assert [len(found) for found in tables] == [3, 3, 2]
    assert [{r["time"].second for r in found} for found in tables] == [{0}, {0}, {15}]


@pytest.mark.parametrize("table", [LOG_DIRS, BROKERS])
def test_a_minute_that_another_table_has_passed_is_not_in_the_samples(tmp_path: Path, table: Table) -> None:
    """A writer whose clock runs a minute ahead was killed: of the minute before, the other tables take no rows any more."""
    w = world()
    killed_after(tmp_path, table, w.sample(4))
    assert not write(w, SampleStore(str(tmp_path)), 3)
    assert not rows(tmp_path)
    assert write(w, SampleStore(str(tmp_path)), 4)


def test_the_preferred_leader_is_the_first_replica_that_stays(tmp_path: Path) -> None:
    """A reassignment lists replicas that are on their way out; where none stays, the preferred leader is not known."""
    sample = World({("a", 0): Log(), ("a", 1): Log(replicas=(2, 3, 1)), ("a", 2): Log(replicas=(3,))}).sample(0)
    leaving = np.array([True, False, False, False, True, False, True])
    partitions = replace(sample.state.partitions, removing=leaving)
    SampleStore(str(tmp_path)).write(replace(sample, state=replace(sample.state, partitions=partitions)))
    assert {r["partition"]: r["preferred_leader"] for r in rows(tmp_path)} == {0: 2, 1: 2, 2: None}


def test_a_table_of_another_tool_is_refused(tmp_path: Path) -> None:
    """Before anything is written into any table."""
    DeltaTable.create(table_url(str(tmp_path), SAMPLES.name), schema=rows_schema(), description="mine")
    with pytest.raises(UsageError, match="not one of Ballast"):
        SampleStore(str(tmp_path)).write(world().sample(0))
    assert not rows(tmp_path)


def rows_schema() -> Any:
    """Some columns."""
    import pyarrow as pa

    return pa.schema([("time", pa.timestamp("us", tz="UTC"))])


@pytest.mark.parametrize("restarts", [False, True])
def test_a_leader_is_remembered_while_its_record_is_lost(tmp_path: Path, *, restarts: bool) -> None:
    """By a sampler that runs on, and by one that is started anew within it."""
    w, store = World({("a", 0): Log()}), SampleStore(str(tmp_path))
    for minute, leader in enumerate((1, -2, -2, 3)):
        w.logs["a", 0].leader = leader
        assert write(w, SampleStore(str(tmp_path)) if restarts else store, minute)
    assert [(r["leader_before"], r["leader"]) for r in rows(tmp_path)] == [(None, 1), (1, None), (1, None), (1, 3)]


ORDINARY = """
import os, sys
from ballast.adapters.samples.load_model import read_load_model
from ballast.adapters.samples.store import SampleStore
from ballast.core.samples import SAMPLES
from ballast.errors import Unavailable
from ballast.pipeline.table_log import TableLog
from tests.spark.series import Log, World
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
for store in sys.argv[2:]:
    try:
        {
            "write": lambda: SampleStore(store).write(World({("t", 0): Log()}).sample(0)),
            "log": lambda: TableLog(store).exists(SAMPLES),
            "model": lambda: read_load_model(store, "alpha", topic_ids={}),
        }[sys.argv[1]]()
    except Unavailable as failure:
        print(failure)
"""
"""Root may write anywhere, so that a process of its own gives its rights up first."""


def told_an_ordinary_user(doing: str, *stores: Path) -> list[str]:
    """What it says of each store, a line each."""
    for folder in stores[0].parents:
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            folder.chmod(folder.stat().st_mode | 0o055)
        if folder.name.startswith("pytest-of"):
            break
    done = subprocess.run(
        leashed(sys.executable, "-c", ORDINARY, doing, *map(str, stores)),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout.splitlines()


def test_a_folder_that_may_not_be_written_is_named_with_the_system_s_reason(tmp_path: Path) -> None:
    """The sentence names neither a table that is not there, nor credentials that a folder does not take."""
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o555)
    places = (store, store / "deeper")
    told = told_an_ordinary_user("write", *places)
    assert len(told) == len(places)
    for place, line in zip(places, told, strict=True):
        assert f"Cannot write {place}/" in line
        assert os.strerror(errno.EACCES).lower() in line
        assert "credentials" not in line
        user = 65534 if os.geteuid() == 0 else os.geteuid()
        assert f"chown -R {user}:" in line
        assert ("mkdir -p" in line) is not place.exists()


@pytest.mark.parametrize(
    ("code", "remedy"), [(errno.EROFS, "Mount a volume"), (errno.ENOSPC, "Make room"), (errno.EACCES, "chown -R")]
)
def test_each_reason_has_a_remedy_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, remedy: str
) -> None:
    """A pod whose root is read-only lacks a volume; rights would not help it, nor a full claim."""

    def refuse(dir: Path) -> None:  # noqa: A002 - the system's own word.
        assert dir.is_dir()
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    denied = failures.denial(table_url(str(tmp_path), "samples"), write=True)
    assert denied is not None
    assert remedy in denied.hint
    assert str(tmp_path) in denied.hint


@pytest.mark.parametrize("doing", ["log", "model"])
def test_a_store_that_may_not_be_read_is_not_an_empty_one(tmp_path: Path, doing: str) -> None:
    """A user who asks for its tables is told that they may not be read."""
    store = tmp_path / "store"
    (store / "samples").mkdir(parents=True)
    store.chmod(0o000)
    (told,) = told_an_ordinary_user(doing, store)
    store.chmod(0o755)
    assert f"Cannot read {store}/" in told
    assert os.strerror(errno.EACCES).lower() in told
