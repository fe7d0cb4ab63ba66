"""The page's charts across restarts: what a process kept in the store the next one shows, and what fails is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.daemon.conftest import make_world
from tests.daemon.rig import Rig, a_rig, observe

from ballast.adapters.samples.series import SeriesStore
from ballast.adapters.samples.store import describe, ensure_table, table_url
from ballast.core.samples import CLUSTERS, SAMPLES, Point
from ballast.daemon.context.view import Board, CheckResult, Role, View
from ballast.daemon.observing.stored_series import AT_ONCE, StoredSeries
from ballast.daemon.policy import DaemonPolicy
from ballast.errors import Unavailable, UsageError
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster

MINUTE_MS = 60_000
NOON_MS = 1_795_262_400_000


def points(first: int, count: int) -> list[Point]:
    """One a minute; every other one without a disk."""
    return [
        Point(
            at_ms=NOON_MS + n * MINUTE_MS + 17,
            imbalance=n / 1000,
            disk_skew=None if n % 2 else 0.25,
            bytes_in_per_s=None if n == first else 1e6 + n,
            moving=n,
            under_replicated=n % 3,
        )
        for n in range(first, first + count)
    ]


def versions(store: Path) -> int:
    """The table's newest version."""
    return int(DeltaTable(table_url(str(store), CLUSTERS.name)).version())


def test_points_come_back_as_they_were_written(tmp_path: Path) -> None:
    """Across midnight, each cluster's own, from the moment that is asked for; what is not known stays unknown."""
    store, written = SeriesStore(str(tmp_path)), points(700, 60)
    store.write("alpha", written)
    store.write("beta", points(0, 3))
    assert store.read("alpha", NOON_MS) == tuple(written)
    assert store.read("alpha", written[10].at_ms) == tuple(written[10:])
    assert store.read("gamma", NOON_MS) == ()


def test_a_minute_is_written_once_whichever_replica_writes_it(tmp_path: Path) -> None:
    """A replica that takes over offers what the one before has written already; only what is new is added."""
    SeriesStore(str(tmp_path)).write("alpha", points(0, 10))
    before = versions(tmp_path)
    SeriesStore(str(tmp_path)).write("alpha", points(0, 10))
    assert versions(tmp_path) == before
    SeriesStore(str(tmp_path)).write("alpha", points(5, 10))
    assert SeriesStore(str(tmp_path)).read("alpha", NOON_MS) == (*points(0, 10), *points(5, 10)[5:])


def test_without_a_table_there_is_nothing_to_show_and_nothing_is_made(tmp_path: Path) -> None:
    """A store that has samples of another version alone."""
    ensure_table(str(tmp_path), SAMPLES)
    assert SeriesStore(str(tmp_path)).read("alpha", 0) == ()
    assert not (tmp_path / CLUSTERS.name).exists()


def test_a_store_that_cannot_be_read_is_a_failure_and_no_empty_chart(tmp_path: Path) -> None:
    """A table of a newer version, one that is not ours, and one whose files are gone."""
    store = SeriesStore(str(tmp_path))
    store.write("alpha", points(0, 10))
    table = DeltaTable(table_url(str(tmp_path), CLUSTERS.name))
    for file in table.file_uris():
        Path(file).unlink()
    with pytest.raises(Unavailable):
        store.read("alpha", NOON_MS)
    table.alter.set_table_description(describe(CLUSTERS.name, CLUSTERS.version + 1))
    for attempt in (lambda: store.read("alpha", NOON_MS), lambda: store.write("alpha", points(20, 10))):
        with pytest.raises(UsageError):
            attempt()


class Kept:
    """A store in memory that may be away."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.commits = 0
        self.away = False

    def read(self, cluster: str, since_ms: int) -> tuple[Point, ...]:
        """What was kept."""
        self._reach(cluster)
        return tuple(p for p in self.points if p.at_ms >= since_ms)

    def write(self, cluster: str, points: Sequence[Point]) -> None:
        """Keep them."""
        self._reach(cluster)
        self.commits += 1
        self.points += points

    def _reach(self, cluster: str) -> None:
        assert cluster
        if self.away:
            raise Unavailable("The store is away.")


def a_scene(clock: SimClock) -> Rig:
    """A daemon that has just begun."""
    board = Board(View(name="shop", instance="pod-0", started_at_ms=clock.now_ms(), role=Role.OBSERVING))
    return a_rig(SimCluster(make_world(clock)), clock, board, DaemonPolicy())


def charts_of(rig: Rig, store: Kept, failed: Callable[[CheckResult], None] = lambda _: None) -> StoredSeries:
    """Between this daemon's ring and the store."""
    return StoredSeries(rig.board, rig.clock, rig.parts.observer.series, store, failed)


def minutes(context: Rig, charts: StoredSeries, count: int) -> None:
    """Read the cluster each minute, and keep what is new."""
    for _ in range(count):
        context.clock.sleep(60)
        observe(context)
        charts.keep()


def test_the_next_process_goes_on_where_the_last_one_stopped() -> None:
    """Its charts begin with the kept points; what was not worth a commit yet is lost with the process, and only that."""
    clock, store = SimClock(start_ms=NOON_MS), Kept()
    first = a_scene(clock)
    charts = charts_of(first, store)
    assert not charts.bring_back(), "no cluster has been read yet"
    minutes(first, charts, 3 * AT_ONCE + 2)
    assert (len(store.points), store.commits) == (3 * AT_ONCE, 3)
    kept = first.board.view.series[: 3 * AT_ONCE]
    second = a_scene(clock)
    charts = charts_of(second, store)
    minutes(second, charts, 1)
    assert len(second.board.view.series) == 1
    assert charts.bring_back()
    minutes(second, charts, 1)
    shown = second.board.view.series
    assert shown[: len(kept)] == kept
    assert len(shown) == len(kept) + 2
    clock.sleep(86_400)
    minutes(second, charts, 1)
    assert len(second.board.view.series) == 1, "the last day, and no more"


def test_a_store_that_is_away_is_told_until_it_is_back() -> None:
    """Beside the charts, which go on with what this process has seen, and counted; nothing that was not written is lost."""
    clock, store = SimClock(start_ms=NOON_MS), Kept()
    context = a_scene(clock)
    failures: list[CheckResult] = []
    charts = charts_of(context, store, failures.append)
    store.away = True
    minutes(context, charts, AT_ONCE + 1)
    assert not charts.bring_back()
    assert context.board.view.series_problem
    assert failures == [CheckResult.FAILED] * 3, "two attempts to write and one to read"
    assert len(context.board.view.series) == AT_ONCE + 1
    store.away = False
    assert charts.bring_back()
    assert context.board.view.series_problem, "it was not written yet"
    minutes(context, charts, 1)
    assert context.board.view.series_problem == ""
    assert tuple(store.points) == context.board.view.series


def test_a_clock_that_was_ahead_costs_no_minute_of_now() -> None:
    """What was noted while it was ahead is not shown as the newest for as long, and what comes afterwards is kept."""
    clock, store = SimClock(start_ms=NOON_MS), Kept()
    context = a_scene(clock)
    charts = charts_of(context, store)
    minutes(context, charts, AT_ONCE)
    clock.step(7200)
    minutes(context, charts, AT_ONCE)
    clock.step(-7200)
    minutes(context, charts, AT_ONCE)
    shown = context.board.view.series
    assert len(shown) == 2 * AT_ONCE
    assert shown[-1].at_ms <= clock.now_ms()
    assert set(shown) <= set(store.points)


def test_a_bug_beside_the_charts_hurts_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    """It is told, counted, and logged with its traceback."""
    clock, store = SimClock(start_ms=NOON_MS), Kept()
    context = a_scene(clock)
    failures: list[CheckResult] = []
    charts = charts_of(context, store, failures.append)
    minutes(context, charts, 1)
    context.board.publish(figures=replace(context.board.view.figures, cluster_id=""))  # type: ignore[type-var]
    assert not charts.bring_back()
    assert failures == [CheckResult.BUG]
    assert context.board.view.series_problem
    assert any(r.exc_info for r in caplog.records)
