"""One minute of a cluster as rows, and the rates between two minutes."""

from __future__ import annotations

from ballast.core.samples.minute import (
    BROKERS,
    CLUSTER,
    CLUSTERS,
    HOUR,
    LOG_DIRS,
    SAMPLES,
    TOPIC_PARTITION,
    Column,
    MinuteSample,
    Point,
    Table,
    offset_columns,
)

__all__ = [
    "BROKERS",
    "CLUSTER",
    "CLUSTERS",
    "HOUR",
    "LOG_DIRS",
    "SAMPLES",
    "TOPIC_PARTITION",
    "Column",
    "MinuteSample",
    "Point",
    "Table",
    "offset_columns",
]
