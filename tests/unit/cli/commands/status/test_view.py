"""What ``ballast status`` tells below its table: what is wrong, and the command that mends it."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from ballast.cli.commands.status.view import draw
from ballast.core.cluster import Broker, LogDir, PartitionRow, Topic, build
from ballast.core.status import cluster_status

FAILED = LogDir("/b", error="KAFKA_STORAGE_ERROR")


def told(*brokers: Broker, limit: int = 10) -> str:
    """The lines for a topic that lies on brokers 1, 2 and 3 and is led by broker 1 alone."""
    alive = {b.id for b in brokers if b.alive}
    rows = [
        PartitionRow("t", n, 1, replicas, tuple(r for r in replicas if r in alive))
        for n, replicas in enumerate([(1, 2, 3), (2, 3, 1), (3, 1, 2)])
    ]
    out = StringIO()
    draw(cluster_status(build("c", brokers, (Topic("t"),), rows)), Console(file=out, width=160), limit=limit)
    return out.getvalue()


def broker(number: int, *log_dirs: LogDir, alive: bool = True) -> Broker:
    """A broker that answers."""
    return Broker(
        number, host="h" if alive else "", alive=alive, log_dirs=log_dirs or (LogDir("/a"),), log_dirs_known=True
    )


def test_brokers_that_are_down_come_with_the_command_that_rebuilds_their_replicas() -> None:
    """One, several, and more than the table names."""
    one = told(broker(1), broker(2), broker(3, alive=False))
    assert "Broker 3 down. To rebuild its replicas elsewhere: ballast plan evacuate 3\n" in one
    down = broker(1), broker(2, alive=False), broker(3, alive=False)
    assert "Brokers 2, 3 down. To rebuild their replicas elsewhere: ballast plan evacuate 2 3\n" in told(*down)
    assert "elsewhere: ballast plan evacuate BROKER…\n" in told(*down, limit=1)


def test_a_failed_log_dir_comes_with_the_command_that_rebuilds_what_was_there() -> None:
    """Only what is offline: the broker's other log dirs go on."""
    said = told(broker(1), broker(2, LogDir("/a"), FAILED), broker(3))
    assert "ballast plan evacuate 2 --offline-only\n" in said


@pytest.mark.parametrize("balanced", [True, False])
def test_leader_imbalance_comes_with_the_command_that_elects(balanced: bool) -> None:  # noqa: FBT001
    """Where there is any."""
    brokers = (broker(1),) if balanced else (broker(1), broker(2), broker(3))
    rows = [PartitionRow("t", 0, 1, (1,), (1,))]
    rows += [] if balanced else [PartitionRow("t", 1, 1, (2, 1), (1, 2))]
    out = StringIO()
    draw(cluster_status(build("c", brokers, (Topic("t"),), rows)), Console(file=out, width=160), limit=10)
    assert ("To elect preferred leaders: ballast elect" in out.getvalue()) != balanced
