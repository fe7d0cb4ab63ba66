"""What ``--execute``, ``--verify`` and ``--cancel`` say: the stock tool's own lines, which scripts read."""

from __future__ import annotations

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.stock.report import (
    DirMove,
    cancel_failure_message,
    cancel_message,
    current_assignment,
    dir_move_start_message,
    dir_status,
    inter_broker_throttle_message,
    log_dir_throttle_message,
    start_failure_message,
    start_message,
    status,
    throttle_removal_message,
)

A2, A10, B0 = TopicPartition("a", 2), TopicPartition("a", 10), TopicPartition("b", 0)


def test_the_assignment_before_is_printed_for_a_rollback() -> None:
    """The file stands on a line of its own, so that it can be cut out."""
    assert current_assignment({B0: (3, 1)}, {(B0, 1): "/d"}).split("\n") == [
        "Current partition replica assignment",
        "",
        '{"version":1,"partitions":[{"topic":"b","partition":0,"replicas":[3,1],"log_dirs":["any","/d"]}]}',
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
    ]


def test_what_was_started_and_cancelled_is_listed_by_topic_and_number() -> None:
    """One partition has a reassignment, several have reassignments."""
    assert start_message([B0]) == "Successfully started partition reassignment for b-0"
    assert start_message([B0, A10, A2]) == "Successfully started partition reassignments for a-2,a-10,b-0"
    assert cancel_message([B0]) == "Successfully cancelled partition reassignment for: b-0"
    assert cancel_message([B0, A10, A2]) == "Successfully cancelled partition reassignments for: a-2,a-10,b-0"


def test_each_partition_that_was_refused_has_its_reason() -> None:
    """One line each, by topic and number."""
    reasons = {B0: "no", A10: "not now", A2: "never"}
    lines = ["a-2: never", "a-10: not now", "b-0: no"]
    assert start_failure_message(reasons).split("\n") == ["Error reassigning partition(s):", *lines]
    assert cancel_failure_message(reasons).split("\n") == ["Error cancelling partition reassignments for:", *lines]
    assert cancel_failure_message({B0: "no"}).split("\n") == ["Error cancelling partition reassignment for:", "b-0: no"]


def test_throttles_that_are_set_and_cleared_are_named() -> None:
    """Brokers by number and topics by name."""
    assert inter_broker_throttle_message(5) == "The inter-broker throttle limit was set to 5 B/s"
    assert log_dir_throttle_message(5) == "The replica-alter-dir throttle limit was set to 5 B/s"
    assert throttle_removal_message({10, 9}, {"b", "a"}).split("\n") == [
        "Clearing broker-level throttles on brokers 9,10",
        "Clearing topic-level throttles on topics a,b",
    ]
    assert throttle_removal_message({1}, {"a"}).split("\n") == [
        "Clearing broker-level throttles on broker 1",
        "Clearing topic-level throttles on topic a",
    ]


@pytest.mark.parametrize(
    ("current", "moving", "expected"),
    [
        ((1, 2), False, "Reassignment of partition b-0 is completed."),
        ((1, 2), True, "Reassignment of partition b-0 is still in progress."),
        ((1, 2, 3), True, "Reassignment of partition b-0 is still in progress."),
        ((3, 1), False, "There is no active reassignment of partition b-0, but replica set is 3,1 rather than 1,2."),
        ((2, 1), False, "There is no active reassignment of partition b-0, but replica set is 2,1 rather than 1,2."),
        (None, False, "There is no active reassignment of partition b-0, but replica set is  rather than 1,2."),
    ],
)
def test_verify_tells_how_each_partition_stands(
    current: tuple[int, ...] | None, expected: str, *, moving: bool
) -> None:
    """Completed is a partition at rest with the replicas of the file, in its order; one that is gone has none."""
    told = status({B0: (1, 2)}, {} if current is None else {B0: list(current)}, [B0] if moving else [A2])
    assert told.split("\n") == ["Status of partition reassignment:", expected]


def test_verify_lists_every_partition_of_the_file() -> None:
    """By topic and number, each with its own state."""
    told = status({B0: (1,), A10: (1,), A2: (1,)}, {B0: (1,), A10: (2,), A2: (1, 2)}, iter([A2]))
    assert told.split("\n")[1:] == [
        "Reassignment of partition a-2 is still in progress.",
        "There is no active reassignment of partition a-10, but replica set is 2 rather than 1.",
        "Reassignment of partition b-0 is completed.",
    ]


OFFLINE = "There is likely an offline log directory on the broker."


@pytest.mark.parametrize(
    ("current", "future", "known", "expected"),
    [
        ("/new", None, True, "Reassignment of replica b-0-7 completed successfully."),
        ("/old", "/new", True, "Reassignment of replica b-0-7 is still in progress."),
        ("/old", "/x", True, "Partition b-0 on broker 7 is being moved to log dir /x instead of /new."),
        ("/new", "/x", True, "Partition b-0 on broker 7 is being moved to log dir /x instead of /new."),
        ("/old", None, True, "Partition b-0 on broker 7 is not being moved from log dir /old to /new."),
        (None, None, True, f"Partition b-0 is not found in any live log dir on broker 7. {OFFLINE}"),
        (None, "/new", True, f"Partition b-0 is not found in any live log dir on broker 7. {OFFLINE}"),
        (None, None, False, "Partition b-0 cannot be found in any live log directory on broker 7."),
    ],
)
def test_verify_tells_how_each_replica_with_a_log_dir_stands(
    current: str | None, future: str | None, expected: str, *, known: bool
) -> None:
    """A replica in the log dir asked for that is leaving it again is not where it was to be."""
    assert dir_status([DirMove(B0, 7, "/new", current, future, known)]) == expected


def test_replicas_with_a_log_dir_are_listed_by_broker_topic_and_number() -> None:
    """In the report and where they are started; the stock tool ends these lines with a space."""
    moves = [DirMove(name, b, "/new", "/new", None) for b in (10, 9) for name in (B0, A10, A2)]
    order = [(name, b) for b in (9, 10) for name in (A2, A10, B0)]
    assert dir_status(moves).split("\n") == [
        f"Reassignment of replica {name}-{b} completed successfully." for name, b in order
    ]
    assert dir_move_start_message(moves).split("\n") == [
        f"Successfully started moving log directory to /new for replica {name} with broker {b} " for name, b in order
    ]
    assert dir_status([]) == dir_move_start_message([]) == ""


def test_a_copy_that_is_being_made_is_active() -> None:
    """Throttles stay while there is one."""
    assert DirMove(B0, 7, "/new", "/old", "/new").active
    assert not DirMove(B0, 7, "/new", "/old", None).active
