"""Loads for a plan: from history where there is a load model, from the state now where there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt

from ballast.adapters.extras import require
from ballast.core.cluster import ClusterState, Ints
from ballast.core.planner import Loads
from ballast.core.wording import human_percent

if TYPE_CHECKING:
    from ballast.adapters.samples.load_model import ModelColumns

Figures = npt.NDArray[np.float64]
Measure = Literal["mean", "p95", "peak"]
OLD_MODEL_H: Final = 6
"""A model older than this is still used, and said to be old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPolicy:
    """How history enters a plan."""

    store: str
    """Folder or URL of the pipeline's tables."""
    measure: Measure = "p95"
    """Which rate of a partition counts: its mean, its 95th percentile or its peak, over the intervals between samples."""
    growth_days: float = 0.0
    """Balance the disks for so many days ahead, by each partition's growth; 0 balances them for now."""


def loads_from_history(state: ClusterState, policy: HistoryPolicy, *, now: datetime) -> Loads:
    """Join the load model to the state; what the model lacks keeps its value of now, and the plan says how much that is.

    Raises ``UsageError`` when the store has no model of this cluster.
    """
    require("history", "Planning by history")
    from ballast.adapters.samples.load_model import read_load_model  # noqa: PLC0415 — it needs the extra

    model = read_load_model(policy.store, state.cluster_id, topic_ids={t.name: t.topic_id or "" for t in state.topics})
    rows = model_rows(state, model)
    rates = _measured_rates(model, policy.measure)
    columns = {
        "topic": np.asarray(model.topic.to_numpy(zero_copy_only=False)),
        "partition": model.partition,
        "bytes_in_per_s": np.nan_to_num(rates),
        "bytes_out_per_s": _sent_rates(state, model, rows, rates, policy.measure),
        "bytes_read_per_s": _read(model, "mean"),
        "bytes_written_per_s": np.nan_to_num(_measured_rates(model, "mean")),
    }
    loads = Loads.from_model(state, columns, assumptions=_sentences(state, model, rows, policy, now))
    if policy.growth_days > 0:
        loads = replace(loads, size_bytes=_grow(loads.size_bytes, model, rows, policy.growth_days))
    return loads


def model_rows(state: ClusterState, model: ModelColumns) -> Ints:
    """Per partition of the state: its row in the model, or -1."""
    at = np.array([state.topic_index.get(t, -1) for t in model.topics], np.int64)[model.topic_at]
    theirs = (at << 32) | model.partition
    mine = (state.partitions.topic.astype(np.int64) << 32) | state.partitions.number
    order = np.argsort(theirs, kind="stable")
    place = np.minimum(np.searchsorted(theirs[order], mine), max(len(order) - 1, 0))
    if not len(order):
        return np.full(len(mine), -1, np.int64)
    return np.where(theirs[order][place] == mine, order[place], -1)


def _measured_rates(model: ModelColumns, measure: Measure) -> Figures:
    return np.asarray(model.figures[f"bytes_in_{measure}"], np.float64)


def _sent_rates(
    state: ClusterState,
    model: ModelColumns,
    rows: Ints,
    rates: Figures,
    measure: Measure,
) -> Figures:
    """What the leader sends: to its followers, and to consumers where the samples carry it."""
    consumers = _read(model, measure)
    followers = np.zeros(len(model))
    found = rows >= 0
    followers[rows[found]] = np.maximum(np.diff(state.partitions.start)[found] - 1, 0)
    return np.asarray(np.nan_to_num(rates) * followers + np.nan_to_num(consumers))


def _read(model: ModelColumns, measure: Measure) -> Figures:
    """What consumers read from the leader, NaN where the samples do not carry it."""
    return np.asarray(model.figures["bytes_out_mean" if measure == "mean" else "bytes_out_p95"], np.float64)


def _grow(size: Ints, model: ModelColumns, rows: Ints, days: float) -> Ints:
    """Sizes so many days ahead; a log that shrinks is not planned smaller than it is."""
    growth = np.asarray(model.figures["growth_bytes_per_day"], np.float64)
    ahead = np.where(rows >= 0, np.maximum(np.nan_to_num(growth[np.maximum(rows, 0)]), 0.0) * days, 0.0)
    return size + np.rint(ahead).astype(np.int64)


def _sentences(
    state: ClusterState, model: ModelColumns, rows: Ints, policy: HistoryPolicy, now: datetime
) -> tuple[str, ...]:
    found = rows >= 0
    age_h = _age_h(model.as_of, now)
    covered = float(np.mean(model.figures["coverage"][rows[found]])) if found.any() else 0.0
    basis = (
        f"Traffic is the {_WORDS[policy.measure]} from {model.since:%Y-%m-%dT%H} to {model.as_of:%Y-%m-%dT%H} UTC; "
        f"the model is {age_h:.0f} h old and covers {human_percent(covered, 0)} of the time of "
        f"{int(found.sum())} of {len(state.partitions)} partitions."
    )
    said = [basis]
    if age_h > OLD_MODEL_H:
        said.append(f"The load model is older than {OLD_MODEL_H} h: run `ballast pipeline run`.")
    read = found & ~np.isnan(model.figures["bytes_out_mean"][np.maximum(rows, 0)]) if len(model) else found
    if not read.any():
        said.append("What consumers read is not in the samples: bytes out count replication alone.")
    elif (unread := int(found.sum() - read.sum())) > 0:
        said.append(
            f"What consumers read of {unread} partitions is not known: their bytes out count replication alone."
        )
    if silent := unknown_figures(model, rows, f"bytes_in_{policy.measure}"):
        said.append(f"What producers write to {silent} partitions is not known: it counts as nothing.")
    if policy.growth_days > 0:
        said.append(f"Disks are balanced for {policy.growth_days:g} days ahead, by each partition's growth.")
        if still := unknown_growth(model, rows):
            said.append(f"The growth of {still} partitions is not known: they count as not growing.")
    return tuple(said)


def unknown_growth(model: ModelColumns, rows: Ints) -> int:
    """How many partitions of a state have no growth in the model, or no row; ``rows`` as of ``model_rows``."""
    return unknown_figures(model, rows, "growth_bytes_per_day") + int((rows < 0).sum())


def unknown_figures(model: ModelColumns, rows: Ints, name: str) -> int:
    """How many partitions have a row in the model, and this figure is missing in it."""
    return int(np.isnan(np.asarray(model.figures[name], np.float64)[rows[rows >= 0]]).sum())


_WORDS: Final[dict[Measure, str]] = {"mean": "mean", "p95": "95th percentile", "peak": "peak"}


def _age_h(begun: datetime, now: datetime) -> float:
    """Hours since the end of the newest hour; a running hour is not old."""
    return max((now - begun).total_seconds() / 3600 - 1, 0.0)
