"""``/metrics``: every metric is declared once in ``CATALOG``; the page of documentation is generated from it.

Gauges are computed from the board's view when Prometheus asks, so that a broker that is gone leaves no stale series; what
is counted is declared here and counted where it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ballast.daemon.context.view import Board, CheckResult
from ballast.daemon.metrics.gauges import GAUGES, Spec

COUNTED: Final[tuple[Spec, ...]] = (
    Spec(
        name="ballast_checks_total",
        help="Checks by name and result: ok, failed (refused by the cluster or a guard) or bug.",
        labels=("check", "result"),
        kind="counter",
    ),
    Spec(
        name="ballast_check_duration_seconds",
        help="How long checks took.",
        labels=("check",),
        kind="histogram",
    ),
    Spec(
        name="ballast_runs_total",
        help="Runs that ended while this process watched them, by outcome.",
        labels=("outcome",),
        kind="counter",
    ),
    Spec(
        name="ballast_attempts_failed_total",
        help="Attempts outside the checks that failed and are retried, by work (`run`: executing a run, `charts`: reading or keeping the charts of the web page) and result: failed or bug.",
        labels=("work", "result"),
        kind="counter",
    ),
    Spec(
        name="ballast_cluster_retries_total",
        help="Requests to the cluster that failed and were retried, by operation.",
        labels=("operation",),
        kind="counter",
    ),
    Spec(
        name="ballast_refusals_total",
        help="Times a guard kept a plan from being started, or (action `run`) held moves of a run back, by guard.",
        labels=("action", "reason"),
        kind="counter",
    ),
)

WORK: Final = ("run", "charts")
"""What is done on threads beside the checks, and made again where it fails."""

CATALOG: Final = (*GAUGES, *COUNTED)
_HEAD: Final = """\
# Metrics

This page is generated (`ballast config reference --page metrics`) from the catalog in `daemon/metrics/catalog.py`.

`GET /metrics` on the daemon's port. Gauges are computed at each scrape, from one consistent view, so that a broker that
no longer exists leaves no stale series. There is no series per partition; per topic only with `web.topic_metrics`. Besides these there
are the usual `process_*` and `python_gc_*`.

Two Ballast instances report the same cluster. Join with the active instance: `… and on (instance) ballast_active_or_observing == 1`; the recording
rules in `deploy/prometheus/` do it for the figures that dashboards need.

| metric | kind | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """``docs/metrics.md``."""
    rows = [
        f"| `{spec.name}` | {spec.kind} | {', '.join(f'`{label}`' for label in spec.labels) or '—'} | {spec.help} |\n"
        for spec in CATALOG
    ]
    return _HEAD + "".join(rows)


class _ViewCollector(Collector):
    """Computes every gauge from one view, so that a scrape is consistent in itself."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[GaugeMetricFamily]:
        view = self._board.view
        for spec in GAUGES:
            samples = list(spec.samples(view))
            if samples:
                family = GaugeMetricFamily(spec.name, spec.help, labels=spec.labels)
                for labels, value in samples:
                    family.add_metric(labels, value)
                yield family


class Metrics:
    """The registry of one daemon; several may live in one process (tests do that)."""

    def __init__(self, board: Board) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(_ViewCollector(board))
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        help_of = {spec.name: spec for spec in COUNTED}
        checks, durations = help_of["ballast_checks_total"], help_of["ballast_check_duration_seconds"]
        runs, refusals = help_of["ballast_runs_total"], help_of["ballast_refusals_total"]
        self.checks = Counter(checks.name, checks.help, checks.labels, registry=self.registry)
        self.durations = Histogram(
            durations.name,
            durations.help,
            durations.labels,
            registry=self.registry,
            buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
        )
        self.runs = Counter(runs.name, runs.help, runs.labels, registry=self.registry)
        attempts = help_of["ballast_attempts_failed_total"]
        self.attempts = Counter(attempts.name, attempts.help, attempts.labels, registry=self.registry)
        for work in WORK:
            for result in (CheckResult.FAILED, CheckResult.BUG):
                self.attempts.labels(work, result.value)
        retries = help_of["ballast_cluster_retries_total"]
        self.retries = Counter(retries.name, retries.help, retries.labels, registry=self.registry)
        self.refusals = Counter(refusals.name, refusals.help, refusals.labels, registry=self.registry)

    def expect_checks(self, names: Iterable[str]) -> None:
        """Begin their counts of bugs at 0: a series whose first value is 1 has no increase, and the first bug raises no alert."""
        for name in names:
            self.checks.labels(name, CheckResult.BUG.value)

    def count_failure(self, work: str, result: CheckResult) -> None:
        """Count an attempt of ``WORK`` that failed."""
        self.attempts.labels(work, result.value).inc()
