"""The answers of ``/api/v1`` from a view."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Literal

from ballast.core.samples import Point
from ballast.daemon.context.view import CheckReport, PlanView, Status, View
from ballast.daemon.web.answers import ChartPoint, DaemonRuns, DaemonSeries, DaemonSettings, DaemonStatus, Setting


def status(view: View, *, now_ms: int, read_only: str) -> DaemonStatus:
    """Everything that the page shows."""
    shown = {f.name: getattr(view, f.name) for f in fields(Status)}
    shown["plans"] = tuple(replace(p, blocked=_why_blocked(view, p)) for p in view.plans)
    shown["checks"] = {name: replace(t, stale=_stale(view, t)) for name, t in view.checks.items()}
    return DaemonStatus(**shown, now_ms=now_ms, actions_enabled=not read_only, read_only=read_only)


def _stale(view: View, check: CheckReport) -> Literal["outage", "earlier-reading"] | None:
    """Why what this check said does not tell how things are now; None where it does."""
    if view.outage is not None and check.ok and check.at_ms < view.outage.since_ms:
        return "outage"
    if check.reading_ms is not None and view.changed_at_ms is not None and check.reading_ms < view.changed_at_ms:
        return "earlier-reading"
    return None


def _why_blocked(view: View, plan: PlanView) -> str:
    """Why this plan may not start now: as the allowed actions say it at this moment, however old the plan is."""
    approved = plan.pending_approval or bool(plan.approved_by)
    found = (s for s in view.permissions if s.action == plan.action and not s.may_start(approved=approved))
    return next((s.detail for s in found), "")


def history(view: View) -> DaemonRuns:
    """Runs that ended, newest first; or why they are not known."""
    return DaemonRuns(runs=view.history, skipped=view.history_skipped, problem=view.history_problem)


def series(view: View) -> DaemonSeries:
    """The last day, a point a minute; and what is missing of it."""
    return DaemonSeries(points=tuple(map(_chart_point, view.series)), problem=view.series_problem)


def _chart_point(point: Point) -> ChartPoint:
    """Bytes in as they were measured, else the growth of logs."""
    growth, measured = point.bytes_in_per_s, point.measured_bytes_in_per_s
    return ChartPoint(
        at_ms=point.at_ms,
        imbalance_ratio=point.imbalance,
        disk_skew=point.disk_skew,
        bytes_in_per_s=growth if measured is None else measured,
        bytes_in_source="measured" if measured is not None else None if growth is None else "growth",
        reassigning=point.moving,
        under_replicated=point.under_replicated,
    )


def settings(view: View) -> DaemonSettings:
    """The active settings; secrets are never among them."""
    changed = view.settings_changed
    return DaemonSettings(settings=tuple(Setting(name=n, value=v, changed=n in changed) for n, v in view.settings))
