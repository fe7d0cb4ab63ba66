"""``ballast reassign --execute --disallow-replication-factor-change``: what is refused before anything is sent."""

from __future__ import annotations

import pytest

from ballast.app.reassign.execute import policy_of, refusals
from ballast.app.reassign.session import ReassignOptions
from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, TopicPartition, build
from ballast.core.stock.files import ReassignmentEntry
from ballast.core.stock.plan import plan_of_entries


def cluster() -> ClusterState:
    """t-0 is at rest; t-1 gets a third replica; t-2 is on its way from brokers 1 and 2 to brokers 1 and 3."""
    rows = [
        PartitionRow("t", 0, 1, (1, 2), (1, 2), sizes=(9, 9)),
        PartitionRow("t", 1, 1, (1, 2, 3), (1, 2), adding=(3,), sizes=(9, 9, 0)),
        PartitionRow("t", 2, 1, (1, 3, 2), (1, 2), adding=(3,), removing=(2,), sizes=(9, 0, 9)),
    ]
    return build("c", tuple(Broker(b, host="h") for b in (1, 2, 3, 4)), (Topic("t"),), rows)


def refused(*entries: ReassignmentEntry, disallow: bool = True) -> dict[TopicPartition, str]:
    """What the option has against a file of these entries."""
    options = ReassignOptions(source="f", disallow_replication_factor_change=disallow)
    plan = plan_of_entries(entries, cluster())
    found = refusals(plan, cluster(), {}, policy_of(options))
    return {name: reason for name, reason in found.items() if "replication factor" in reason}


@pytest.mark.parametrize(
    ("partition", "replicas", "counts"),
    [
        pytest.param(0, (3, 1), None, id="same"),
        pytest.param(0, (2, 1), None, id="order"),
        pytest.param(0, (1, 2, 3), (2, 3), id="more"),
        pytest.param(0, (2,), (2, 1), id="fewer"),
        pytest.param(1, (1, 2, 3), None, id="the-change-in-progress"),
        pytest.param(1, (4, 2, 3), None, id="as-many-as-the-change-in-progress"),
        pytest.param(1, (1, 2), (3, 2), id="as-many-as-before-the-change-in-progress"),
        pytest.param(2, (1, 4), None, id="as-many-as-the-move-in-progress"),
        pytest.param(2, (1, 2, 3), (2, 3), id="the-union-of-the-move-in-progress"),
    ],
)
def test_a_count_is_held_against_that_of_the_move_in_progress(
    partition: int, replicas: tuple[int, ...], counts: tuple[int, int] | None
) -> None:
    """As ReplicationControlManager counts: replicas that are being removed do not, those that are being added do."""
    reason = {} if counts is None else {TopicPartition("t", partition): _sentence(*counts)}
    assert refused(ReassignmentEntry("t", partition, replicas)) == reason


def test_without_the_option_every_count_passes() -> None:
    """As in the stock tool."""
    assert refused(ReassignmentEntry("t", 0, (1, 2, 3)), disallow=False) == {}


def test_every_partition_is_named_with_its_counts() -> None:
    """And none that keeps its count."""
    entries = [ReassignmentEntry("t", n, r) for n, r in enumerate([(1,), (1, 2, 4), (3, 4, 1)])]
    assert refused(*entries) == {
        TopicPartition("t", 0): _sentence(2, 1),
        TopicPartition("t", 2): _sentence(2, 3),
    }


def _sentence(before: int, after: int) -> str:
    return f"The replication factor is changed from {before} to {after}"
