"""``docs/metrics.md``, generated from the catalog."""

from __future__ import annotations

from ballast.daemon.metrics.catalog import CATALOG

_HEAD = """\
# Metrics

This page is generated (`ballast config reference --page metrics`) from the catalog in `daemon/metrics/catalog.py`.

`GET /metrics` on the daemon's port. Gauges are computed when Prometheus asks, from one consistent view, so that a broker that
is gone leaves no stale series. There is no series per partition; per topic only with `web.topic_metrics`. Besides these there
are the usual `process_*` and `python_gc_*`.

Two replicas report the same cluster. Join with the lock's holder: `… and on (instance) ballast_lock_held == 1`; the recording
rules in `deploy/prometheus/` do it for the figures that dashboards need.

| metric | kind | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = [
        f"| `{spec.name}` | {spec.kind} | {', '.join(f'`{label}`' for label in spec.labels) or '—'} | {spec.help} |\n"
        for spec in CATALOG
    ]
    return _HEAD + "".join(rows)
