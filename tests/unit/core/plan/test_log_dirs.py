"""Log dirs with an error: which a plan names, what it says can be done, and whose replicas are to be rebuilt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, build
from ballast.core.plan import LogDirError, Move, Plan, Reason
from ballast.core.plan.log_dirs import NAMED, brokers_to_rebuild, log_dir_errors, warnings, with_log_dir_errors

FAILED, OTHER = "KAFKA_STORAGE_ERROR", "UNKNOWN_SERVER_ERROR"
SAID = f"Broker 3: log dir /d has failed ({FAILED})."
EMPTY = Plan("balance", "c", "f", ())


def removing(code: str) -> Plan:
    """A plan that takes a replica off broker 3 for this reason, and one off broker 4 in a rebuild."""
    moves = (
        Move("t", 0, (3, 1), (2, 1), reason=Reason(code)),
        Move("t", 1, (4, 3), (2, 3), reason=Reason("evacuate")),
    )
    return replace(EMPTY, moves=moves)


@pytest.mark.parametrize(
    ("plan", "offline", "told", "remedy"),
    [
        pytest.param(EMPTY, 0, SAID, "Replace the disk and restart broker 3.", id="nothing-offline"),
        pytest.param(
            EMPTY,
            1,
            f"{SAID} 1 replica on this broker is offline.",
            "Replace the disk and restart broker 3, or rebuild its offline replicas on other brokers: "
            "ballast plan evacuate 3 --offline-only",
            id="offline",
        ),
        pytest.param(
            removing("evacuate"),
            2,
            f"{SAID} 2 replicas on this broker are offline.",
            "Replace the disk and restart broker 3.",
            id="rebuilt-by-this-plan",
        ),
        pytest.param(
            removing("balance"),
            1,
            f"{SAID} 1 replica on this broker is offline.",
            "Replace the disk and restart broker 3, or rebuild its offline replicas on other brokers: "
            "ballast plan evacuate 3 --offline-only",
            id="moved-for-another-reason",
        ),
        pytest.param(
            replace(EMPTY, summary={"empty_afterwards": [3]}),
            1,
            f"{SAID} 1 replica on this broker is offline.",
            "This plan leaves no replica on broker 3: then replace the disk, or stop the broker.",
            id="emptied",
        ),
        pytest.param(
            replace(EMPTY, summary={"empty_afterwards": [4]}),
            0,
            SAID,
            "Replace the disk and restart broker 3.",
            id="another-emptied",
        ),
    ],
)
def test_a_failed_log_dir_is_told_with_what_the_plan_leaves_to_do(
    plan: Plan, offline: int, told: str, remedy: str
) -> None:
    """A rebuild is offered where there is something to rebuild and the plan does not do it."""
    found = list(warnings(replace(plan, log_dir_errors=(LogDirError(3, "/d", FAILED, offline),))))
    assert [(w.detail, w.remedy) for w in found] == [(told, remedy)]
    assert [(w.code, w.parameters["log_dir"]["offline_replicas"]) for w in found] == [("failed", offline)]


def test_an_error_that_need_not_be_the_disks_sends_to_the_brokers_log() -> None:
    """No disk is replaced for it, and nothing is rebuilt."""
    (found,) = warnings(replace(EMPTY, log_dir_errors=(LogDirError(3, "/d", OTHER, 0),)))
    assert found.code == "error"
    assert (found.detail, found.remedy) == (
        f"Broker 3: log dir /d reports an error, which need not be the disk's ({OTHER}).",
        "See the log of broker 3.",
    )


@pytest.mark.parametrize(
    ("more", "last"),
    [(0, None), (1, "1 more log dir reported errors."), (2, "2 more log dirs reported errors.")],
)
def test_the_first_log_dirs_are_named_and_the_others_counted(more: int, last: str | None) -> None:
    """``ballast status`` names them all."""
    errors = tuple(LogDirError(b, "/d", FAILED, 0) for b in range(NAMED + more))
    found = list(warnings(replace(EMPTY, log_dir_errors=errors)))
    named = [f"Broker {b}: log dir /d has failed ({FAILED})." for b in range(NAMED)]
    assert [w.detail for w in found] == named + ([last] if last else [])
    if last:
        assert found[-1].remedy == "ballast status --all names them."


def cluster() -> ClusterState:
    """Failed disks on brokers 1 (with offline replicas), 2 (without) and 4 (down); another error and an offline replica on 3."""
    failed = (LogDir("/ok"), LogDir("/d", error=FAILED))
    brokers = (
        Broker(1, log_dirs=failed, log_dirs_known=True),
        Broker(2, log_dirs=failed, log_dirs_known=True),
        Broker(3, log_dirs=(LogDir("/d", error=OTHER),), log_dirs_known=True),
        Broker(4, alive=False, log_dirs=failed, log_dirs_known=True),
    )
    rows = [
        PartitionRow("t", 0, 2, (1, 2), (2,), offline=(1,)),
        PartitionRow("t", 1, 2, (2, 1), (2,), offline=(1,)),
        PartitionRow("t", 2, 2, (2, 3), (2,), offline=(3,)),
        PartitionRow("t", 3, 2, (2, 4), (2,), offline=(4,)),
    ]
    return build("c", brokers, (Topic("t"),), rows)


def test_every_log_dir_with_an_error_is_listed_with_the_offline_replicas_of_its_broker() -> None:
    """A plan has them from the state that it was made from."""
    expected = (
        LogDirError(1, "/d", FAILED, 2),
        LogDirError(2, "/d", FAILED, 0),
        LogDirError(3, "/d", OTHER, 1),
        LogDirError(4, "/d", FAILED, 1),
    )
    assert log_dir_errors(cluster()) == expected
    assert with_log_dir_errors(EMPTY, cluster()) == replace(EMPTY, log_dir_errors=expected)


def test_only_live_brokers_with_a_failed_disk_and_offline_replicas_are_rebuilt() -> None:
    """What a down broker held is another repair, and an error of another kind none."""
    assert brokers_to_rebuild(cluster()) == {1}
