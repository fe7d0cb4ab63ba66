"""What workers write is in the table once it is committed, once, and not before; what is never committed goes away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ballast.adapters.arrow_schema import arrow_schema
from ballast.errors import Refused, Unavailable
from ballast.pipeline import commits
from ballast.pipeline.chunks import Chunks
from ballast.pipeline.commits import replace_all, replace_parts
from ballast.pipeline.leftovers import KEPT_S
from ballast.pipeline.minute_reader import Minutes, Share
from ballast.pipeline.part_files import PartFile, Target, answered, written
from ballast.pipeline.schemas import DISK_HOUR, DISK_OUTLOOK, FLEET_PLAN
from ballast.pipeline.table_log import Note, Position, TableLog
from ballast.pipeline.workers import worked

HOUR, NEXT = "2026-11-21T13", "2026-11-21T14"
ODD = "a:b c+/=% é"
"""Whatever a cluster is called, its files must be found again."""


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """An empty ``disk_hour``."""
    TableLog(str(tmp_path)).ensure(DISK_HOUR)
    return Target(DISK_HOUR, str(tmp_path / "disk_hour"))


def log_dirs(hour: str, paths: str, cluster: str = "alpha") -> Any:
    """Rows of ``disk_hour``, a log dir for each letter."""
    rows = [{"cluster": cluster, "hour": hour, "broker": 1, "path": p, "total_bytes": 10} for p in paths]
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(DISK_HOUR.columns))


def note(version: int, *hours: str) -> Note:
    """A job that used up its source to this version."""
    return Note("disk_hour", "source", version, hours, ("alpha",))


def held(target: Target) -> list[tuple[str, str]]:
    """Hours and paths in the table, as delta-rs reads it."""
    rows = DeltaTable(target.url).to_pyarrow_table().to_pylist()
    return sorted((row["hour"], row["path"]) for row in rows)


def test_parts_are_replaced_in_one_commit_and_others_stay(target: Target) -> None:
    """Files come in and go by the hours that the note names, and the note with its transaction is in the same version."""
    files = list(written(target, [log_dirs(HOUR, "ab"), log_dirs(NEXT, "c"), log_dirs(HOUR, "d")]))
    assert [(file.part, file.rows, file.first_cluster) for file in files] == [(HOUR, 3, "alpha"), (NEXT, 1, "alpha")]
    assert all((Path(target.url) / file.path).stat().st_size == file.size_bytes for file in files)
    assert held(target) == [], "not before they are committed"
    assert replace_parts(target, files, note(1, HOUR, NEXT))
    assert held(target) == [(HOUR, "a"), (HOUR, "b"), (HOUR, "d"), (NEXT, "c")]

    assert replace_parts(target, list(written(target, [log_dirs(HOUR, "x")])), note(2, HOUR))
    assert held(target) == [(HOUR, "x"), (NEXT, "c")]
    table = DeltaTable(target.url)
    assert (table.version(), table.transaction_version("disk_hour/source")) == (2, 2)
    log = TableLog(str(Path(target.url).parent))
    assert log.progress(DISK_HOUR) == Position("source", 2)

    assert replace_parts(target, [], note(3, NEXT)), "hours in which nothing is left"
    assert held(target) == [(HOUR, "x")]
    assert log.progress(DISK_HOUR) == Position("source", 3)


def test_a_run_that_was_overtaken_commits_nothing(target: Target) -> None:
    """A newer state of the source is in the table already, or the same."""
    assert replace_parts(target, list(written(target, [log_dirs(HOUR, "n")])), note(5, HOUR))
    for version in (4, 5):
        assert not replace_parts(target, list(written(target, [log_dirs(HOUR, "o")])), note(version, HOUR))
    assert DeltaTable(target.url).version() == 1


@pytest.mark.parametrize("replaces", [False, True], ids=["a new part", "a part replaced"])
def test_of_two_commits_at_once_the_later_is_refused(
    target: Target, *, replaces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw the same table; whether they replace something or only add, one of them is in it."""
    if replaces:
        replace_parts(target, list(written(target, [log_dirs(HOUR, "b")])), note(1, HOUR))
    seen_before = DeltaTable(target.url)
    assert replace_parts(target, list(written(target, [log_dirs(HOUR, "o")])), note(2, HOUR))
    monkeypatch.setattr(commits, "DeltaTable", lambda _: seen_before)
    with pytest.raises(Refused, match="Another pipeline run changed the table disk_hour at the same time"):
        replace_parts(target, list(written(target, [log_dirs(HOUR, "t")])), note(3, HOUR))
    assert held(target) == [(HOUR, "o")]


def test_an_attempt_that_is_repeated_leaves_no_doubles(target: Target) -> None:
    """Spark runs a share again when a worker is lost or slow, and takes one answer: the other's file is in no version."""
    once = Minutes("", Position("id", 0), (Share("alpha", HOUR, 16, 16, 0, 8),))

    def attempt() -> Any:
        (answer,) = worked([pa.record_batch({"id": [0]})], target, once, lambda *_: iter([log_dirs(HOUR, "a")]), iter)
        return answer

    lost, kept = attempt(), attempt()
    assert lost["path"] != kept["path"]
    replace_parts(target, [PartFile(**row) for row in kept.to_pylist()], note(1, HOUR))
    assert len(list(Path(target.url).rglob("*.parquet"))) == 2
    assert held(target) == [(HOUR, "a")]
    assert Chunks.of_file(kept["path"][0].as_py()) == Chunks(0, 8, 16)


def test_a_worker_that_fails_answers_nothing(target: Target) -> None:
    """Not even the files of the parts that it had finished."""

    def rows() -> Any:
        yield log_dirs(HOUR, "a")
        yield log_dirs(NEXT, "b")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        answered(written(target, rows()))
    assert answered(written(target, [log_dirs(HOUR, "")])).num_rows == 0, "no rows, no file"


def test_any_cluster_s_name_is_a_part(tmp_path: Path) -> None:
    """Folders and the log quote it, each in its own way; the value is what it was."""
    TableLog(str(tmp_path)).ensure(DISK_OUTLOOK)
    target = Target(DISK_OUTLOOK, str(tmp_path / "disk_outlook"))
    rows = [{"cluster": name, "broker": 1, "path": "/d"} for name in (ODD, "beta")]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(DISK_OUTLOOK.columns))
    replace_parts(target, list(written(target, [batch])), Note("disk_outlook", "s", 1, (ODD, "beta"), (ODD, "beta")))
    replace_parts(target, list(written(target, [batch.slice(0, 1)])), Note("disk_outlook", "s", 2, (ODD,), (ODD,)))
    assert sorted(DeltaTable(target.url).to_pyarrow_table()["cluster"].to_pylist()) == [ODD, "beta"]
    log = TableLog(str(tmp_path))
    at = log.position(DISK_OUTLOOK)
    assert at is not None
    (file,) = log.files(DISK_OUTLOOK, at, [ODD])
    assert (file.cluster, (Path(target.url) / file.path).exists()) == (ODD, True)


def test_a_whole_table_is_replaced_at_once(tmp_path: Path) -> None:
    """Such as a fleet's plan, which has no parts; its columns as well, where an earlier Ballast's has fewer."""
    earlier = replace(FLEET_PLAN, columns=FLEET_PLAN.columns[:-1])
    TableLog(str(tmp_path)).ensure(earlier)
    for layout, names in ((earlier, "ab"), (FLEET_PLAN, "c")):
        target = Target(layout, str(tmp_path / "fleet_plan"))
        rows = [{"cluster": name, "name": name} for name in names]
        batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(layout.columns))
        replace_all(target, list(written(target, [batch])))
    found = DeltaTable(str(tmp_path / "fleet_plan"))
    assert found.to_pyarrow_table()["name"].to_pylist() == ["c"]
    assert [field.name for field in found.schema().fields] == FLEET_PLAN.names


def test_of_two_first_fleet_plans_at_once_the_later_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both saw an empty table, so that neither takes out a file that the other one does; no cluster is there twice."""
    TableLog(str(tmp_path)).ensure(FLEET_PLAN)
    target = Target(FLEET_PLAN, str(tmp_path / "fleet_plan"))
    seen_before = DeltaTable(target.url)

    def planned(digest: str) -> list[PartFile]:
        rows = [{"cluster": "alpha", "name": "a", "digest": digest}]
        return list(written(target, [pa.RecordBatch.from_pylist(rows, schema=arrow_schema(FLEET_PLAN.columns))]))

    replace_all(target, planned("first"))
    with monkeypatch.context() as at_once:
        at_once.setattr(commits, "DeltaTable", lambda _: seen_before)
        with pytest.raises(Refused, match="Another pipeline run changed the table fleet_plan at the same time"):
            replace_all(target, planned("second"))
    assert DeltaTable(target.url).to_pyarrow_table()["digest"].to_pylist() == ["first"]
    for again in ("third", "fourth"):
        replace_all(target, planned(again))
    assert DeltaTable(target.url).to_pyarrow_table()["digest"].to_pylist() == ["fourth"]


def test_a_store_that_fails_is_one_sentence(tmp_path: Path) -> None:
    """The table may be gone, or its log broken."""
    with pytest.raises(Unavailable, match=r"The table disk_hour could not be committed \(TableNotFoundError\)"):
        replace_parts(Target(DISK_HOUR, str(tmp_path / "nowhere")), [], note(1, HOUR))


DIES: str = """
import os, signal, sys
import numpy as np, pyarrow as pa
from ballast.adapters.arrow_schema import arrow_schema
from ballast.pipeline.part_files import Target, written
from ballast.pipeline.schemas import DISK_HOUR
def rows():
    schema = arrow_schema(DISK_HOUR.columns)
    yield pa.RecordBatch.from_pylist([{"cluster": "alpha", "hour": "2026-11-21T13", "path": "/d"}], schema=schema)
    os.kill(os.getpid(), signal.SIGKILL)
list(written(Target(DISK_HOUR, sys.argv[1]), rows()))
"""


def test_what_killed_workers_leave_is_removed_once_it_is_old(target: Target) -> None:
    """A file that was finished and never committed, and one that was not even finished; young ones may yet be committed."""
    replace_parts(target, list(written(target, [log_dirs(HOUR, "a")])), note(1, HOUR))
    (kept,) = Path(target.url).rglob("*.parquet")
    assert subprocess.run([sys.executable, "-c", DIES, target.url], check=False).returncode == -9
    (unfinished,) = (path for path in Path(target.url).rglob("part-*") if path != kept)
    (finished,) = (Path(target.url) / file.path for file in written(target, [log_dirs(HOUR, "b")]))
    log = TableLog(str(Path(target.url).parent))
    log.vacuum(DISK_HOUR)
    assert unfinished.exists()
    assert finished.exists()
    long_ago = time.time() - KEPT_S - 3600
    for path in (kept, unfinished, finished):
        os.utime(path, (long_ago, long_ago))
    log.vacuum(DISK_HOUR)
    assert list(Path(target.url).rglob("part-*")) == [kept], "what a version names stays, however old"
    assert held(target) == [(HOUR, "a")]


def test_a_file_that_is_finished_while_leftovers_are_looked_for_hinders_nobody(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder was listed when it still had its unfinished name."""
    gone = Path(target.url) / f"hour={HOUR}" / "part-0.parquet#1"
    monkeypatch.setattr(Path, "rglob", lambda *_: iter([gone]))
    TableLog(str(Path(target.url).parent)).vacuum(DISK_HOUR)


def test_a_file_that_was_just_replaced_stays_however_old_it_is(target: Target) -> None:
    """A job that reads the version before, or the planner, may have it open: what counts is when it went."""
    replace_parts(target, list(written(target, [log_dirs(HOUR, "a")])), note(1, HOUR))
    (replaced,) = Path(target.url).rglob("*.parquet")
    long_ago = time.time() - 2 * KEPT_S
    os.utime(replaced, (long_ago, long_ago))
    replace_parts(target, list(written(target, [log_dirs(HOUR, "b")])), note(2, HOUR))
    TableLog(str(Path(target.url).parent)).vacuum(DISK_HOUR)
    assert replaced.exists()
