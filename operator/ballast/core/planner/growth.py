"""What producers write, where no history is at hand: how much the leaders' logs grew between two readings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, Ints
from ballast.core.planner.loads import BYTES_IN, Loads


def measure_growth(first: ClusterState, second: ClusterState, *, seconds: float) -> Loads:
    """Loads of the second reading, with bytes in by growth since the first.

    Retention that deletes a segment in between hides growth: such a partition counts as zero, never as less.  Partitions
    that one of the readings cannot tell count as the median of the others.
    """
    before, after = leader_sizes(first), leader_sizes(second)
    past = np.array([_at(first, before, name) for name in second.index], np.int64)
    told = (past >= 0) & (after >= 0)
    plain = Loads.from_state(second)
    notes = [f"Bytes in are what logs grew by in {seconds:g} s; bytes out and CPU are not known."]
    if not bool(told.any()):
        return plain
    rates = np.zeros(len(after), np.int64)
    rates[told] = np.rint(np.maximum(after - past, 0)[told] / seconds).astype(np.int64)
    if not bool(told.all()):
        rates[~told] = int(np.median(rates[told]))
        notes.append(f"{int((~told).sum())} partitions could not be measured: each counts as the median partition.")
    return replace(plain, bytes_in_per_s=rates, known=plain.known | {BYTES_IN}, assumptions=tuple(notes))


def leader_sizes(state: ClusterState) -> Ints:
    """Per partition the bytes that its leader holds, ``UNKNOWN`` without a leader or its word."""
    p = state.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    out = np.full(len(p), UNKNOWN, np.int64)
    leads = p.replica == p.leader[row]
    out[row[leads]] = p.size_bytes[leads]
    return out


def _at(state: ClusterState, sizes: Ints, name: object) -> int:
    row = state.index.get(name)  # type: ignore[call-overload]
    return UNKNOWN if row is None else int(sizes[row])
