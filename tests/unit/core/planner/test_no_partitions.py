"""A cluster without any topic."""

from __future__ import annotations

from ballast.core.cluster import Broker, build
from ballast.core.planner import Loads


def test_a_cluster_without_partitions_lacks_no_size() -> None:
    """Nothing that a plan could move is unknown."""
    state = build("c", (Broker(1), Broker(2)), (), [])
    assert not [note for note in Loads.from_state(state).assumptions if "size" in note]
