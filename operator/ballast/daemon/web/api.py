"""The JSON form of a view, as ``/api/v1`` gives it; documented by ``openapi``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ballast.core.cluster import UNKNOWN
from ballast.core.planner.ranges import Range
from ballast.daemon.context.view import TickReport, View
from ballast.daemon.observing.figures import BrokerFigures, Figures


def status(view: View, *, now_ms: int, read_only: str) -> dict[str, Any]:
    """Everything that the page shows."""
    return {
        "version": view.version,
        "now_ms": now_ms,
        "name": view.name,
        "instance": view.instance,
        "started_at_ms": view.started_at_ms,
        "role": view.role.value,
        "mode": view.mode,
        "actions_enabled": not read_only,
        "read_only": read_only or None,
        "cluster": None if view.figures is None else cluster(view.figures),
        "outage": None if view.outage is None else asdict(view.outage),
        "absences": [asdict(a) for a in view.absences],
        "permissions": [asdict(s) for s in view.permissions],
        "others": [asdict(o) for o in view.others],
        "pause": None if view.pause is None else asdict(view.pause),
        "drains": [asdict(d) for d in view.drains],
        "lock": asdict(view.lock),
        "balance": asdict(view.balance),
        "run": None if view.run is None else asdict(view.run),
        "run_elsewhere": None if view.run_elsewhere is None else asdict(view.run_elsewhere),
        "plans": [asdict(replace(p, blocked=_blocked(view, p.kind))) for p in view.plans],
        "ticks": {name: asdict(replace(t, stale=_stale(view, t))) for name, t in view.ticks.items()},
        "answers": [asdict(a) for a in view.answers],
        "throttles_to_restore": view.throttles_to_restore,
        "settings_problem": view.settings_problem or None,
    }


def _stale(view: View, tick: TickReport) -> str:
    """Why what this tick said does not tell how things are now; empty where it does."""
    if view.outage is not None and tick.ok and tick.at_ms < view.outage.since_ms:
        return "outage"
    if tick.reading_ms is not None and view.changed_at_ms is not None and tick.reading_ms < view.changed_at_ms:
        return "earlier-reading"
    return ""


def _blocked(view: View, kind: str) -> str:
    """Why no plan of this kind may start now: as the allowed actions say it at this moment, however old the plan is."""
    return next((s.sentence for s in view.permissions if s.kind == kind and not s.allowed), "")


def cluster(figures: Figures) -> dict[str, Any]:
    """The cluster in figures; what a broker did not say is null, never zero."""
    return {
        "id": figures.cluster_id,
        "kafka_version": figures.kafka_version,
        "taken_at_ms": figures.taken_at_ms,
        "topics": figures.topics,
        "partitions": figures.partitions,
        "under_replicated": figures.under_replicated,
        "under_min_isr": figures.under_min_isr,
        "at_min_isr": figures.at_min_isr,
        "min_isr_unknown": figures.min_isr_unknown,
        "offline": figures.offline,
        "moving": figures.moving,
        "leader_imbalance_threshold": figures.threshold,
        "brokers": [_broker(b) for b in figures.brokers],
        "ranges": [_range(r) for r in figures.ranges],
        "throttles": {
            "topics": list(figures.throttles.topics),
            "brokers": list(figures.throttles.brokers),
            "bytes_per_s": None if figures.throttles.bytes_per_s == UNKNOWN else figures.throttles.bytes_per_s,
        },
        "gaps": list(figures.gaps),
    }


def history(view: View) -> dict[str, Any]:
    """Runs that ended, newest first; or why they are not known."""
    return {
        "runs": [asdict(run) for run in view.history],
        "skipped": [{"id": run_id, "why": why} for run_id, why in view.history_skipped],
        "problem": view.history_problem or None,
    }


def series(view: View) -> dict[str, Any]:
    """The last day, a point a minute; and what is missing of it."""
    return {"points": [asdict(p) for p in view.series], "problem": view.series_problem or None}


def settings(view: View) -> dict[str, Any]:
    """The settings in force; secrets are never among them."""
    changed = view.settings_changed
    return {"settings": [{"name": name, "value": value, "changed": name in changed} for name, value in view.settings]}


def _broker(broker: BrokerFigures) -> dict[str, Any]:
    return {
        key: None if value == UNKNOWN and key.endswith("_bytes") else value for key, value in asdict(broker).items()
    }


def _range(found: Range) -> dict[str, Any]:
    return {
        "resource": found.resource,
        "label": found.label,
        "unit": found.unit,
        "tolerance": found.tolerance,
        "skew": found.skew,
        "outside": list(found.outside),
        "shares": {str(broker): asdict(share) for broker, share in found.shares.items()},
    }
