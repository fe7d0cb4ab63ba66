"""What a load model does not know is counted in the plan's sentences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from ballast.adapters.samples import load_model
from ballast.adapters.samples.load_model import ModelColumns
from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.what_if import Member, room
from ballast.pipeline.fleet_rows import from_row, to_batch
from ballast.wiring.fleet import traffic_of
from ballast.wiring.loads import HistoryPolicy, loads_from_history

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("bytes_in_mean", "bytes_in_p95", "bytes_in_peak", "bytes_out_mean", "bytes_out_p95", "growth_bytes_per_day")


@pytest.fixture
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    figures = {name: np.array([5.0, 5.0, np.nan]) for name in NAMES} | {"coverage": np.ones(3)}
    model = ModelColumns(
        topic=pa.array(["t"] * 3),
        topics=["t"],
        topic_at=np.zeros(3, np.int64),
        partition=np.arange(3),
        as_of=NOW,
        since=NOW,
        figures=figures,
    )

    def read(*_: Any, **__: Any) -> ModelColumns:
        return model

    monkeypatch.setattr(load_model, "read_load_model", read)
    monkeypatch.setattr("ballast.wiring.fleet.read_load_model", read)


@pytest.mark.usefixtures("_model")
def test_unknown_writes_and_growth_are_counted() -> None:
    """Of four partitions one has no row and one no figures."""
    rows = [PartitionRow("t", n, 1, (1,), (1,), sizes=(10,)) for n in range(4)]
    state = build("c", (Broker(1, host="h"),), (Topic("t"),), rows)
    loads = loads_from_history(state, HistoryPolicy(store="s", growth_days=1), now=NOW)
    said = " ".join(loads.assumptions)
    assert "write to 1 partitions is not known" in said
    assert "growth of 2 partitions is not known" in said
    traffic, lack = traffic_of(state, "s")
    assert traffic is not None
    assert np.array_equal(traffic.growth, [5, 5, np.nan, np.nan], equal_nan=True)
    assert "growth of 2 partitions is not known" in lack
    assert "write to 1 partition is not known" in lack
    known = from_row(to_batch(Member("c", state, traffic)), 0).traffic
    assert known is not None
    assert np.array_equal(known.growth, traffic.growth, equal_nan=True), "unknown growth stays unknown in the table"
    assert room(Member("c", state, known))["growth_bytes_per_day"] == 10
    assert room(Member("c", state, known))["growth_unknown"] == 2
