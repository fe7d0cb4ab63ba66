"""The answers of ``/api/v1`` from a view."""

from __future__ import annotations

from dataclasses import replace

from ballast.daemon.context.view import CheckReport, PlanView, View
from ballast.daemon.web.answers.cluster import DaemonSeries
from ballast.daemon.web.answers.runs import DaemonRuns
from ballast.daemon.web.answers.status import DaemonSettings, DaemonStatus, Setting


def status(view: View, *, now_ms: int, read_only: str) -> DaemonStatus:
    """Everything that the page shows."""
    shown = {name: getattr(view, name) for name in DaemonStatus.model_fields if hasattr(view, name)}
    shown["plans"] = [replace(p, blocked=_why_blocked(view, p)) for p in view.plans]
    shown["checks"] = {name: replace(t, stale=_stale(view, t)) for name, t in view.checks.items()}
    shown |= {"now_ms": now_ms, "actions_enabled": not read_only, "read_only": read_only, "cluster": view.figures}
    return DaemonStatus.model_validate(shown)


def _stale(view: View, check: CheckReport) -> str:
    """Why what this check said does not tell how things are now; empty where it does."""
    if view.outage is not None and check.ok and check.at_ms < view.outage.since_ms:
        return "outage"
    if check.reading_ms is not None and view.changed_at_ms is not None and check.reading_ms < view.changed_at_ms:
        return "earlier-reading"
    return ""


def _why_blocked(view: View, plan: PlanView) -> str:
    """Why this plan may not start now: as the allowed actions say it at this moment, however old the plan is."""
    approved = plan.pending_approval or bool(plan.approved_by)
    found = (s for s in view.permissions if s.action == plan.action and not s.may_start(approved=approved))
    return next((s.detail for s in found), "")


def history(view: View) -> DaemonRuns:
    """Runs that ended, newest first; or why they are not known."""
    found = {"runs": view.history, "skipped": view.history_skipped, "problem": view.history_problem}
    return DaemonRuns.model_validate(found)


def series(view: View) -> DaemonSeries:
    """The last day, a point a minute; and what is missing of it."""
    return DaemonSeries.model_validate({"points": view.series, "problem": view.series_problem})


def settings(view: View) -> DaemonSettings:
    """The active settings; secrets are never among them."""
    changed = view.settings_changed
    return DaemonSettings(settings=[Setting(name=n, value=v, changed=n in changed) for n, v in view.settings])
