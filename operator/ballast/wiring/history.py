"""What a daemon has besides where there is a store: a sample each minute, charts across restarts, loads from the load model."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from ballast.adapters.extras import require
from ballast.adapters.samples.sampler import Sampler, SampleReport
from ballast.core.cluster import ClusterState
from ballast.core.planner import Loads
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Board
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.observing.series import Series
from ballast.daemon.observing.stored_series import StoredSeries
from ballast.daemon.process.parts import Outside
from ballast.errors import Unavailable, UsageError
from ballast.ports.time import Clock
from ballast.settings.model import Settings
from ballast.wiring.external import external_load
from ballast.wiring.loads import HistoryPolicy, loads_from_history

log = logging.getLogger("ballast.daemon")


def with_history(outside: Outside, settings: Settings, store: str, metrics: Metrics) -> Outside:
    """Record a sample each minute, and plan by the load model once there is one."""
    require("history", "samples.store")
    from ballast.adapters.samples.series import SeriesStore  # noqa: PLC0415 — so does this
    from ballast.adapters.samples.store import SampleStore  # noqa: PLC0415 — it needs the extra

    board, clock, series = outside.board, outside.clock, outside.series
    charts = StoredSeries(board, clock, series, SeriesStore(store), partial(metrics.count_failure, "charts"))
    charts.begin()
    news = SampleNews(board, clock, series, charts)
    sampler = Sampler(
        outside.cluster,
        SampleStore(store),
        clock,
        external=external_load(settings.load.prometheus),
        on_sample=news.on_sample,
        on_failure=news.on_failure,
    )
    history = HistoryPolicy(store=store, measure=settings.samples.statistic, growth_days=settings.samples.growth_days)
    return replace(outside, on_state=sampler, loads=LoadHistory(history).loads)


class SampleNews:
    """Shows what came of each sample."""

    def __init__(self, board: Board, clock: Clock, series: Series, charts: StoredSeries) -> None:
        self._board, self._clock, self._series, self._charts = board, clock, series, charts
        self._gaps: tuple[str, ...] = ()
        board.publish(sample_failures=0)

    def on_sample(self, report: SampleReport) -> None:
        """It is stored; what it lacks is said when it changes and not each minute: a Prometheus may be away for a night."""
        self._board.publish(sampled_at_ms=self._clock.now_ms(), sample_failures=0)
        if report.bytes_in_per_s is not None:
            self._series.note_measured(self._clock.now_ms(), report.bytes_in_per_s)
        self._charts.keep()
        if report.missing != self._gaps:
            self._gaps = report.missing
            for gap in self._gaps:
                log_event(log, f"Sample: {gap}", level=logging.WARNING)
            if not self._gaps:
                log_event(log, "Samples are whole again: every figure that was asked for is there.")

    def on_failure(self) -> None:
        """One more in a row that could not be stored."""
        self._board.publish(sample_failures=(self._board.view.sample_failures or 0) + 1)


class LoadHistory:
    """The load model, and why there is none."""

    def __init__(self, policy: HistoryPolicy) -> None:
        self._policy = policy
        self._without = ""

    def loads(self, state: ClusterState) -> Loads | None:
        """Loads by the model; None while there is none, which is said once, and so is its end."""
        before, self._without = self._without, ""
        try:
            return loads_from_history(state, self._policy, now=datetime.now(UTC))
        except (UsageError, Unavailable) as none_yet:
            self._without = none_yet.message
            # A store that holds no model yet is how each begins; one that does not answer is trouble.
            level = logging.WARNING if isinstance(none_yet, Unavailable) else logging.INFO
            if self._without != before:
                log_event(log, f"Planning without history: {self._without}", level=level)
            return None
        finally:
            if before and not self._without:
                log_event(log, "Planning by history again.")
