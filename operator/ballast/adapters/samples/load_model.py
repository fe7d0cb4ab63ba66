"""Reads the load model as columns, without Spark: one partition of one Delta table, straight into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from ballast.adapters.samples.failures import denial, store_failures
from ballast.adapters.samples.store import check_layout, table_url
from ballast.core.cluster import Ints
from ballast.errors import UsageError

LOAD_MODEL: Final = "load_model"
LOAD_MODEL_VERSION: Final = 1
_KEYS: Final = ("topic", "topic_id", "partition", "as_of", "since")
_FIGURES: Final = (
    "seconds",
    "coverage",
    "confidence",
    "bytes_in_mean",
    "bytes_in_p95",
    "bytes_in_peak",
    "bytes_out_mean",
    "bytes_out_p95",
    "size_bytes",
    "growth_bytes_per_day",
)
_NEVER: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, eq=False)
class ModelColumns:
    """The model of one cluster, a row for each partition; a recreated topic's old partitions are left out."""

    topic: Any
    """Arrow text column; ``topics`` and ``topic_at`` say the same in numbers."""
    topics: list[str]
    topic_at: Ints
    partition: Ints
    as_of: datetime
    """When the newest hour of the model began."""
    since: datetime
    """When the oldest hour behind it began."""
    figures: Mapping[str, npt.NDArray[np.float64]]
    """NaN where unknown."""

    def __len__(self) -> int:
        return len(self.partition)


def read_load_model(store: str, cluster_id: str, *, topic_ids: Mapping[str, str]) -> ModelColumns:
    """Read one cluster's model; ``topic_ids`` are the topics as they are now, with an empty id where there is none.

    Raises ``UsageError`` when the store has no model of this cluster, ``Unavailable`` when it does not answer.
    """
    table = _read(store, cluster_id)
    if not len(table):
        raise UsageError(
            f"The store has no load model of cluster {cluster_id}.",
            hint="Let the daemon sample it for a while, then run `ballast pipeline run`.",
        )
    coded = table.column("topic").combine_chunks().dictionary_encode()
    topics, topic_at = coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)
    ids = table.column("topic_id").combine_chunks().dictionary_encode()
    known_ids = ids.dictionary.to_pylist()
    number = {name: at for at, name in enumerate(known_ids)}
    # A topic that has an id now matches that id or a row of a time when the cluster gave none.
    wanted = np.array([number.get(topic_ids.get(t, ""), -1) for t in topics], np.int64)[topic_at]
    anonymous = number.get("", -1)
    has_now = np.array([bool(topic_ids.get(t)) for t in topics])[topic_at]
    at = ids.indices.to_numpy().astype(np.int64)
    keep = np.flatnonzero(~has_now | (at == wanted) | (at == anonymous))
    keep = _newest(table, topic_at, keep)
    kept = table.take(pa.array(keep))
    return ModelColumns(
        topic=kept.column("topic").combine_chunks(),
        topics=topics,
        topic_at=topic_at[keep],
        partition=kept.column("partition").to_numpy(),
        as_of=pc.max(kept.column("as_of")).as_py() or _NEVER,
        since=pc.min(kept.column("since")).as_py() or _NEVER,
        figures={name: _figures(kept.column(name)) for name in _FIGURES},
    )


def _figures(column: Any) -> npt.NDArray[np.float64]:
    """A column as numbers, NaN where it is null."""
    found = pc.fill_null(column.cast(pa.float64()), np.nan).combine_chunks()
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _newest(table: Any, topic_at: Ints, keep: Ints) -> Ints:
    """Of several rows of one partition, the one that was seen last."""
    as_of = pc.rank(table.column("as_of"), tiebreaker="dense").to_numpy().astype(np.int64)
    name = (topic_at << 32) | table.column("partition").to_numpy().astype(np.int64)
    order = keep[np.lexsort((as_of[keep], name[keep]))]
    last = np.append(name[order][1:] != name[order][:-1], True) if len(order) else np.zeros(0, np.bool_)
    return np.sort(order[last])


def _read(store: str, cluster_id: str) -> Any:
    url = table_url(store, LOAD_MODEL)
    with store_failures(url):
        try:
            table = DeltaTable(url)
        except TableNotFoundError:
            if denied := denial(url):
                raise PermissionError(denied.message) from None
            raise UsageError(
                "The store has no load model yet.", hint="Run `ballast pipeline run` once there are samples."
            ) from None
        check_layout(LOAD_MODEL, table.metadata().description, known=LOAD_MODEL_VERSION)
        return table.to_pyarrow_table(filters=[("cluster", "=", cluster_id)], columns=[*_KEYS, *_FIGURES])
