"""A reassignment file as a plan: a move for each entry that changes something, none for the others."""

from __future__ import annotations

import pytest

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move, Plan, Reason
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.stock.files import ReassignmentEntry, StockFormatError
from ballast.core.stock.plan import plan_of_entries

ASKED = Reason("file", "asked for by a reassignment file")
UNDER_WAY = Reason("file", "in progress already")


def cluster() -> ClusterState:
    """Brokers 1 to 4 with two log dirs each; a-1 is on its way from brokers 1 and 2 to brokers 1 and 3."""
    dirs = (LogDir("/d1"), LogDir("/d2"))
    brokers = tuple(Broker(b, log_dirs=dirs, log_dirs_known=True) for b in (1, 2, 3, 4))
    rows = [
        PartitionRow("a", 0, 1, (1, 2), (1, 2), sizes=(70, 50)),
        PartitionRow("a", 1, 1, (1, 2, 3), (1, 2), adding=(3,), removing=(2,), sizes=(30, 40, 5)),
        PartitionRow("a", 2, 1, (1, 2), (1, 2), sizes=(900, 900)),
        PartitionRow("b", 0, 1, (1, 2), (1, 2)),
    ]
    return build("c", brokers, (Topic("a", "id-a"), Topic("b", "id-b")), rows)


def planned(*entries: ReassignmentEntry) -> Plan:
    """The plan for a file of these entries."""
    return plan_of_entries(list(entries), cluster(), source="moves.json")


@pytest.mark.parametrize(
    ("entry", "move"),
    [
        pytest.param(ReassignmentEntry("a", 0, (3, 2)), Move("a", 0, (1, 2), (3, 2), 70, ASKED), id="copies"),
        pytest.param(ReassignmentEntry("a", 0, (2, 1)), Move("a", 0, (1, 2), (2, 1), 70, ASKED), id="order"),
        pytest.param(ReassignmentEntry("a", 0, (1,)), Move("a", 0, (1, 2), (1,), 70, ASKED), id="fewer"),
        pytest.param(ReassignmentEntry("b", 0, (3,)), Move("b", 0, (1, 2), (3,), UNKNOWN, ASKED), id="size-not-told"),
        pytest.param(
            ReassignmentEntry("a", 0, (3, 2), ("/d2", "any")),
            Move("a", 0, (1, 2), (3, 2), 70, ASKED, ("/d2", "any")),
            id="log-dir",
        ),
        pytest.param(
            ReassignmentEntry("a", 0, (3, 2), ("any", "any")), Move("a", 0, (1, 2), (3, 2), 70, ASKED), id="any-log-dir"
        ),
        pytest.param(
            ReassignmentEntry("a", 1, (1, 4)), Move("a", 1, (1, 2), (1, 4), 40, ASKED), id="elsewhere-in-mid-move"
        ),
        pytest.param(ReassignmentEntry("a", 1, (1, 3)), Move("a", 1, (1, 2), (1, 3), 40, UNDER_WAY), id="under-way"),
        pytest.param(
            ReassignmentEntry("a", 1, (1, 3), ("any", "/d2")),
            Move("a", 1, (1, 2), (1, 3), 40, ASKED, ("any", "/d2")),
            id="under-way-to-another-log-dir",
        ),
    ],
)
def test_an_entry_is_one_move_from_where_the_partition_was_at_rest(entry: ReassignmentEntry, move: Move) -> None:
    """With the size of its largest replica; a reassignment in flight to the same brokers is followed."""
    made = planned(entry)
    assert made.moves == (move,)
    assert made.status == "meets-all-goals"


@pytest.mark.parametrize("log_dirs", [None, ("any", "any")])
def test_an_entry_that_changes_nothing_is_no_move(log_dirs: tuple[str, ...] | None) -> None:
    """A file of such entries alone leaves nothing to do."""
    made = planned(ReassignmentEntry("a", 0, (1, 2), log_dirs))
    assert (made.moves, made.elections, made.topic_ids) == ((), (), {})
    assert made.status == "nothing-to-do"


def test_moves_stand_in_the_order_of_the_file_and_those_in_flight_last() -> None:
    """Of the entries in between that change nothing, none is left."""
    made = planned(
        ReassignmentEntry("b", 0, (3,)), ReassignmentEntry("a", 1, (1, 3)), ReassignmentEntry("a", 0, (3, 1))
    )
    assert [str(m.name) for m in made.moves] == ["b-0", "a-0", "a-1"]


def test_the_plan_is_for_this_assignment_of_this_cluster() -> None:
    """With the ids of the topics that it moves, and of no other."""
    made = plan_of_entries([ReassignmentEntry("a", 0, (3, 2))], cluster(), intent="reassign --execute")
    assert (made.intent, made.cluster_id, made.fingerprint) == ("reassign --execute", "c", fingerprint(cluster()))
    assert made.topic_ids == {"a": "id-a"}
    assert planned(ReassignmentEntry("a", 0, (3, 2))).intent == "reassign"


def test_a_new_order_needs_an_election_and_another_number_of_replicas_a_permission() -> None:
    """A move that copies has its election from the run; a file asks for the number of replicas that it lists."""
    made = planned(ReassignmentEntry("a", 0, (2, 1)), ReassignmentEntry("b", 0, (3, 2)))
    assert made.elections == (TopicPartition("a", 0),)
    assert not made.allow_replication_factor_change
    assert planned(ReassignmentEntry("a", 0, (1, 2, 3))).allow_replication_factor_change


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ((), "the list of partitions is empty"),
        ((ReassignmentEntry("a", 0, (3,)), ReassignmentEntry("a", 0, (4,))), "a-0 is listed 2 times"),
        ((ReassignmentEntry("a", 0, (9,)),), "broker 9 is unknown"),
    ],
)
def test_a_file_that_cannot_be_executed_is_refused(entries: tuple[ReassignmentEntry, ...], reason: str) -> None:
    """Whether the file says so or the cluster; the message names the file."""
    with pytest.raises(StockFormatError) as caught:
        planned(*entries)
    assert caught.value.message.startswith("moves.json: ")
    assert reason in caught.value.message
