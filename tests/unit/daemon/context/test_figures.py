"""Figures of a reading that does not tell everything: what is not known is not counted as fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import STORAGE_ERROR, UNKNOWN, Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.daemon.context.figures import measure, sentence
from ballast.daemon.context.view import View
from ballast.daemon.metrics.gauges import GAUGES
from ballast.daemon.web.details import partitions

GOOD = LogDir("/good", 1000, 500)


def cluster(min_isr: int, isr: tuple[int, ...], *second: PartitionRow) -> ClusterState:
    """Three brokers and a topic with one partition of three replicas."""
    brokers = tuple(Broker(b, host="h", log_dirs=(GOOD,), log_dirs_known=True) for b in (1, 2, 3))
    rows = [PartitionRow("t", 0, 1, (1, 2, 3), isr), *second]
    return build("c", brokers, (Topic("t", min_isr=min_isr), Topic("u", min_isr=2)), rows)


def gauges(state: ClusterState, *names: str) -> list[float | None]:
    """The metrics of these names, None where one is absent."""
    view = View(figures=measure(state, threshold_percent=10.0))
    found = {s.name: list(s.samples(view)) for s in GAUGES if s.name in names}
    return [found[n][0][1] if found[n] else None for n in names]


UNDER = PartitionRow("u", 0, 1, (1, 2, 3), (1,))


@pytest.mark.parametrize(
    ("state", "under", "at", "unknown"),
    [
        pytest.param(cluster(2, (1, 2)), 0, 1, 0, id="known"),
        pytest.param(cluster(UNKNOWN, (1, 2)), None, None, 1, id="may-be-under"),
        pytest.param(cluster(UNKNOWN, (1, 2, 3)), 0, 0, 0, id="every-replica-in-sync"),
        pytest.param(cluster(UNKNOWN, (1, 2), UNDER), 1, None, 1, id="one-is-and-one-may-be"),
    ],
)
def test_partitions_of_unknown_min_isr_are_not_counted_as_fine(
    state: ClusterState, under: int | None, at: int | None, unknown: int
) -> None:
    """Where one may be under its minimum, no figure says that none is."""
    names = ("under_min_isr", "at_min_isr", "min_isr_unknown")
    assert gauges(state, *(f"ballast_{n}_partitions" for n in names)) == [under, at, unknown]
    shown = partitions(state, "min-isr-unknown")
    assert shown is not None
    assert shown.total == unknown
    assert ("unknown min ISR" in sentence(measure(state, threshold_percent=10.0))) is bool(unknown)


def test_failed_log_dirs_are_counted_by_broker() -> None:
    """Those of a broker that lives on; other errors are none of the disk, and a broker that did not answer told nothing."""
    state = cluster(2, (1, 2, 3))
    dirs = [(GOOD, LogDir("/bad", error=STORAGE_ERROR)), (GOOD, LogDir("/odd", error="UNKNOWN_SERVER_ERROR")), ()]
    brokers = tuple(replace(b, log_dirs=d, log_dirs_known=bool(d)) for b, d in zip(state.brokers, dirs, strict=True))
    view = View(figures=measure(replace(state, brokers=brokers), threshold_percent=10.0))
    (spec,) = (s for s in GAUGES if s.name == "ballast_broker_failed_log_dirs")
    assert list(spec.samples(view)) == [(("1",), 1.0), (("2",), 0.0)]


def test_a_topic_of_which_a_replica_told_no_size_has_no_size() -> None:
    """The sum of the others would say that it shrank when a broker stopped answering."""
    brokers = tuple(Broker(b, host="h") for b in (1, 2))
    rows = [
        PartitionRow("t", 0, 1, (1, 2), (1, 2), sizes=(50, UNKNOWN)),
        PartitionRow("u", 0, 1, (1, 2), (1, 2), sizes=(50, 50)),
    ]
    figures = measure(build("c", brokers, (Topic("t"), Topic("u")), rows), threshold_percent=10.0, per_topic=True)
    assert [t.size_bytes for t in figures.per_topic] == [UNKNOWN, 100]
    (spec,) = (s for s in GAUGES if s.name == "ballast_topic_size_bytes")
    assert list(spec.samples(View(figures=figures))) == [(("u",), 100.0)]
