"""A destination without room: refused beforehand with the arithmetic, and in mid-move named and cancelled."""

from __future__ import annotations

import pytest
from tests.containers.cluster import SMALL_LOG_DIR, SMALL_MIB, ContainerCluster
from tests.containers.proof import Lives, Proof
from tests.containers.signs import moves_to, stalls
from tests.real.execution_scene import Scene

from ballast.wiring.cluster import open_cluster
from ballast.wiring.runs import open_writer

pytestmark = pytest.mark.containers


@pytest.fixture
def small(at: Scene, containers_cluster: ContainerCluster) -> int:
    """A fifth broker, one of whose log dirs is a small memory disk; it stays in the cluster."""
    # The topics of the journal's transactions are made on the others: what lay on the disk that fails would stay unhealthy.
    with open_cluster(bootstrap_server=at.sandbox.bootstrap_server) as opened, open_writer(opened, command="a test"):
        pass
    return containers_cluster.add_cramped_broker()


def test_a_full_disk_is_refused_beforehand_and_named_in_mid_move(at: Scene, lives: Lives, small: int) -> None:
    """A plan from before the partition grew is refused with both figures (5).

    A partition that grows while it moves fills the disk; the broker gives the log dir up, the move is stalled with that
    cause, and a cancel brings everything back.
    """
    grown = Proof.of(at, "full-before", {0: (1, 2, 3)}, mib=2)
    dirs = (SMALL_LOG_DIR, "any", "any")
    plan = at.plan(grown.topic, {0: (small, 2, 3)}, log_dirs={0: dirs})
    at.fill(grown.topic, range(1), mib=20)
    refused = lives.begin("apply", str(plan), "--yes", "--guard-timeout", "3", "--on-drift", "valid-only").ends(5)
    assert f"Log dir {SMALL_LOG_DIR} of broker {small} has 1" in refused
    assert "MiB free and" in refused
    grown.holds({})
    growing = Proof.of(at, "full-meanwhile", {0: (2, 3, 4)}, mib=5)
    plan = at.plan(growing.topic, {0: (small, 3, 4)}, log_dirs={0: dirs})
    with grown.traffic().running():
        run = lives.begin("apply", str(plan), "--yes", "--throttle", "300kB", "--output", "json")
        run.tells(moves_to("moving"))
        at.fill(growing.topic, range(1), mib=SMALL_MIB)
        run.tells(stalls("log-dir-failed", broker=small, path=SMALL_LOG_DIR))
        mine = at.run_of(growing.topic)
        assert mine is not None
        at.finish("cancel", mine.id, "--yes")
        run.ends(8)
        growing.holds({})
    growing.forget()
    grown.forget()
