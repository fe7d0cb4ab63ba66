"""One count of partitions under and at their min ISR, wherever it is told."""

from __future__ import annotations

import pytest

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.min_isr import min_isr_of, min_isrs, replicas_below_min_isr, under_replicated
from ballast.core.guards import unhealthy_partitions as judged
from ballast.core.status import unhealthy_partitions
from ballast.core.what_if import under_min_isr as foreseen
from ballast.core.what_if.loss import health_of
from ballast.daemon.context.figures import measure
from ballast.daemon.web.details import partitions

NAME = TopicPartition("t", 0)
WHOLE, SHORT = ((1,), (1,)), ((1, 2), (1,))


def state_of(min_isr: int, shape: tuple[tuple[int, ...], tuple[int, ...]], version: str | None) -> ClusterState:
    """One partition with these replicas and this ISR."""
    replicas, isr = shape
    rows = [PartitionRow("t", 0, 1, replicas, isr)]
    brokers = tuple(Broker(b, host="h") for b in (1, 2))
    return build("c", brokers, (Topic("t", min_isr=min_isr),), rows, kafka_version=version)


@pytest.mark.parametrize(
    ("min_isr", "shape", "version", "under", "at"),
    [
        pytest.param(2, WHOLE, "4.3", False, True, id="bounded"),
        pytest.param(2, WHOLE, "3.7", False, True, id="first-bounded"),
        pytest.param(2, WHOLE, None, False, True, id="version-unknown"),
        pytest.param(2, WHOLE, "3.6", True, False, id="not-bounded-yet"),
        pytest.param(2, WHOLE, "2.3.1", True, False, id="before-KIP-455"),
        pytest.param(3, SHORT, "4.3", True, False, id="bounded-and-short"),
        pytest.param(1, SHORT, "4.3", False, True, id="at"),
        pytest.param(1, SHORT, "3.6", False, True, id="at-before"),
        pytest.param(UNKNOWN, SHORT, "4.3", False, False, id="unknown"),
        pytest.param(UNKNOWN, SHORT, "3.6", False, False, id="unknown-before"),
    ],
)
def test_status_metrics_page_and_what_if_count_alike(
    min_isr: int,
    shape: tuple[tuple[int, ...], tuple[int, ...]],
    version: str | None,
    *,
    under: bool,
    at: bool,
) -> None:
    """As brokers do: since Kafka 3.7 no broker asks for more replicas in sync than there are."""
    state = state_of(min_isr, shape, version)
    figures = measure(state, threshold_percent=10.0)
    assert (figures.under_min_isr, figures.at_min_isr) == (under, at)
    for kind, held in (("under-min-isr", under), ("at-min-isr", at)):
        shown = partitions(state, kind)
        assert shown is not None
        assert shown.total == held
    told = unhealthy_partitions(state)
    assert (NAME in told.under_min_isr) is under
    assert len(health_of(state).under_min_isr) == under
    unknown = min_isr == UNKNOWN
    assert foreseen(state) == (None if unknown else under)
    assert figures.min_isr_unknown == len(told.min_isr_unknown) == len(health_of(state).min_isr_unknown) == unknown
    found = judged(state, {})
    if shape == SHORT:
        assert (found.at_min_isr, found.min_isr_unknown) == ((None, NAME) if unknown else (NAME, None))


def test_replicas_being_added_count_among_those_that_there_are() -> None:
    """The leader counts every replica that it feeds: a topic that asks for two has none but itself in sync until the copy is."""
    rows = [PartitionRow("t", 0, 1, (1, 2), (1,), adding=(2,), removing=(1,))]
    state = build("c", (Broker(1), Broker(2)), (Topic("t", min_isr=2),), rows, kafka_version="4.3")
    assert min_isrs(state).tolist() == [2]


def test_a_cluster_without_partitions_has_none_under_min_isr() -> None:
    """Nothing to count."""
    assert min_isrs(build("c", (), (), [])).tolist() == []


@pytest.mark.parametrize(
    ("version", "replicas", "least"),
    [("4.3", 1, 1), ("4.3", 2, 2), ("4.3", 3, 2), (None, 1, 1), ("3.7", 1, 1), ("3.6", 1, 2), ("2.3.1", 1, 2)],
)
def test_a_partition_that_is_to_have_fewer_replicas_needs_no_more_in_sync_than_those(
    version: str | None, replicas: int, least: int
) -> None:
    """From Kafka 3.7 on; before it brokers ask for ``min.insync.replicas``, however many replicas there are."""
    state = state_of(2, SHORT, version)
    assert min_isr_of(state, NAME, replicas) == least


def test_the_min_isr_of_a_partition_that_is_not_there_is_unknown() -> None:
    """As where its topic's minimum was not told."""
    assert min_isr_of(state_of(2, SHORT, "4.3"), TopicPartition("t", 9), 2) == UNKNOWN
    assert min_isr_of(state_of(UNKNOWN, SHORT, "4.3"), NAME, 2) == UNKNOWN


def test_a_copy_to_a_partition_of_few_replicas_takes_it_under_its_min_isr() -> None:
    """It has fewer replicas than its topic asks for, all in sync; what lacks one already refuses writes before."""
    shapes = [((1, 2), (1, 2)), ((1, 2, 3), (1, 2, 3)), ((1, 2, 3), (1, 2)), ((1, 2), (1,)), ((1,), (1,))]
    rows = [PartitionRow("t", n, 1, replicas, isr) for n, (replicas, isr) in enumerate(shapes)]
    state = build("c", tuple(Broker(b) for b in (1, 2, 3)), (Topic("t", min_isr=3),), rows, kafka_version="4.3")
    assert replicas_below_min_isr(state).tolist() == [True, False, False, False, True]
    assert under_replicated(state).tolist() == [False, False, True, True, False]
    assert min_isrs(state, more=1).tolist() == [3, 3, 3, 3, 2]
