"""The whole service in observe mode, over HTTP, on a simulated cluster."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.daemon.conftest import Running

from ballast.daemon.context.view import CheckResult, Role
from ballast.daemon.policy import DaemonPolicy, Intervals, SettingsChange
from ballast.errors import BallastError, UsageError

Serve = Callable[..., Running]


def test_it_reads_serves_and_stops(serve: Serve) -> None:
    """Within seconds of its start the probes are well and the figures are those of the cluster."""
    daemon = serve()
    daemon.until(lambda v: v.figures is not None and v.role is Role.OBSERVING)
    assert daemon.get("/livez")[0] == 200
    assert daemon.get("/readyz")[0] == 200
    status = json.loads(daemon.get("/api/v1/status")[1])
    assert status["cluster"]["partitions"] == 12
    assert status["role"] == "observing"
    assert not status["actionsEnabled"]
    metrics = daemon.get("/metrics")[1]
    assert "ballast_partitions 12.0" in metrics
    assert 'ballast_leader_imbalance_ratio{broker="1"} 0.0' in metrics
    assert "ballast_active_or_observing 1.0" in metrics


def test_counts_of_bugs_begin_at_zero_and_count_each_one(serve: Serve) -> None:
    """Prometheus sees no increase in a series that begins with 1: the first bug would raise no alert."""
    daemon = serve()
    daemon.until(lambda v: {"observe", "requests", "lock"} <= set(v.checks))
    lines = daemon.get("/metrics")[1].splitlines()
    for check in daemon.board.view.checks:
        assert f'ballast_checks_total{{check="{check}",result="bug"}} 0.0' in lines
    counts = [line for line in lines if line.startswith("ballast_attempts_failed_total{")]
    assert counts == [
        f'ballast_attempts_failed_total{{result="{result}",work="{work}"}} 0.0'
        for work in ("run", "charts")
        for result in ("failed", "bug")
    ]
    daemon.service.metrics.count_failure("run", CheckResult.BUG)
    assert 'ballast_attempts_failed_total{result="bug",work="run"} 1.0' in daemon.get("/metrics")[1]


def test_a_mistake_in_the_settings_is_shown_until_it_is_mended(serve: Serve) -> None:
    """On the page and as a metric; the policy before stays in force meanwhile."""
    news: list[SettingsChange | BallastError] = [UsageError("leaders.imbalance_percentag is not known.")]

    def changed() -> SettingsChange | None:
        if not news:
            return None
        item = news.pop()
        if isinstance(item, BallastError):
            raise item
        return item

    daemon = serve(DaemonPolicy(intervals=Intervals(settings_s=0.1)), settings_changed=changed)
    daemon.until(lambda v: "imbalance_percentag" in v.settings_problem)
    assert "ballast_settings_valid 0.0" in daemon.get("/metrics")[1]
    news.append((daemon.service.policy.now, (("mode", "observe"),), "The settings file is without a mistake again."))
    view = daemon.until(lambda v: not v.settings_problem)
    assert view.settings == (("mode", "observe"),)
    assert "ballast_settings_valid 1.0" in daemon.get("/metrics")[1]


def test_it_writes_nothing_in_observe_mode(serve: Serve) -> None:
    """Observe mode calls no changing method of the cluster, and reading is all it does."""
    daemon = serve()
    before = {p.name: (tuple(p.replicas), p.leader) for p in daemon.world.partitions()}
    daemon.until(lambda v: {"observe", "leaders", "requests"} <= set(v.checks))
    assert {p.name: (tuple(p.replicas), p.leader) for p in daemon.world.partitions()} == before
    assert [s.code for s in daemon.board.view.permissions] == ["observe-only"] * 4
