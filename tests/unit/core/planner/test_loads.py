"""What partitions cost, told from readings of the cluster."""

from __future__ import annotations

from tests.unit.core.planner.clusters import cluster

from ballast.core.planner.loads import measure_growth


def test_growth_is_measured_at_the_leaders() -> None:
    """What the leader's log grew by; retention reads as zero, a partition that cannot be told as the median."""
    first = cluster((1, 2), (2, 1), (1, 2), (2, 1), brokers=2, sizes=(100, 100, 100, 100))
    second = cluster((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), brokers=2, sizes=(300, 500, 50, 500, 7))
    found = measure_growth(first, second, seconds=10.0)
    assert found.bytes_in_per_s.tolist() == [20, 40, 0, 40, 30]
    assert "bytes-in" in found.known
    assert any("1 partitions could not be measured" in s for s in found.assumptions)
