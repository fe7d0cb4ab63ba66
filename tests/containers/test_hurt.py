"""Brokers that are killed, frozen and cut off while a throttled move goes on under load, and what Ballast makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from tests.containers.cluster import CONTROLLER, ContainerCluster
from tests.containers.proof import Life, Lives, Proof
from tests.containers.signs import copies_more_than, ends, moves_to, notes, stalls
from tests.real.execution_scene import Scene, events
from tests.waiting import until

pytestmark = pytest.mark.containers

DESTINATION: Final = 4
Change = Callable[[ContainerCluster, int], None]
WAYS: Final[Mapping[str, tuple[Change, Change]]] = {
    "killed": (ContainerCluster.kill, ContainerCluster.start),
    "frozen": (ContainerCluster.pause, ContainerCluster.unpause),
    "cut off": (ContainerCluster.disconnect, ContainerCluster.reconnect),
}


def copied(run: Life) -> int:
    """Bytes at the destination as last told."""
    return max((int(str(e["bytesDone"])) for e in events(run.said) if e["kind"] == "RunProgress"), default=0)


def told(run: Life) -> int:
    """How many events there are."""
    return len(events(run.said))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.timeout(1200)
def test_a_run_outlives_controller_source_and_destination(
    at: Scene, lives: Lives, containers_cluster: ContainerCluster, way: str
) -> None:
    """Each of them is killed, frozen or cut off in mid-move, and comes back.

    Without its controller the run waits and says so.  Without its destination the move is stalled, and the down broker
    named.  Without its source it is copied from another replica.  Each time the same process goes on by itself, and in the
    end it can still restore everything.
    """
    proof = Proof.of(at, "hurt", {0: (1, 2, 3)}, mib=24)
    plan = at.plan(proof.topic, {0: (DESTINATION, 2, 3)})
    # Little of it: a leader's throttle slows any replica of the partition that has fallen behind, a source that returns as well.
    with proof.traffic(records_per_s=10).running():
        arguments = ("--yes", "--throttle", "40kB", "--output", "json", "--timeout", "10")
        run = lives.begin("apply", str(plan), *arguments)
        run.tells(moves_to("moving"))
        lose_controller(containers_cluster, run, way)
        lose_source(at, proof, containers_cluster, run, way)
        # A move is called stalled some time after it began to move; by now that has passed.
        lose_destination(containers_cluster, run, way)
        until(proof.is_in_sync, within_s=120)
        mine = at.run_of(proof.topic)
        assert mine is not None
        at.finish("cancel", mine.id, "--yes")
        run.ends(8)
        proof.holds({})
    proof.forget()


def lose_controller(cluster: ContainerCluster, run: Life, way: str) -> None:
    """It is named as what does not answer; the run waits, and goes on when it is back."""
    hurt, heal = WAYS[way]
    before = told(run)
    hurt(cluster, CONTROLLER)
    try:
        run.tells(notes, after=before)
    finally:
        heal(cluster, CONTROLLER)
    run.tells(copies_more_than(copied(run)), after=told(run))


def lose_destination(cluster: ContainerCluster, run: Life, way: str) -> None:
    """The move is stalled because of it, and goes on when it is back."""
    hurt, heal = WAYS[way]
    before = told(run)
    hurt(cluster, DESTINATION)
    try:
        # A broker that freezes counts as alive for a while, and is named as one that does not answer until then.
        found = run.tells(stalls("destination-down", "destination-unreachable", broker=DESTINATION), after=before)
    finally:
        heal(cluster, DESTINATION)
    run.tells(moves_to("moving"), after=found)


def lose_source(at: Scene, proof: Proof, cluster: ContainerCluster, run: Life, way: str) -> None:
    """Another replica leads, and the copy goes on from there."""
    hurt, heal = WAYS[way]
    source = proof.leader(0)
    hurt(cluster, source)
    try:
        until(lambda: proof.leader(0) not in {-1, source})
        run.tells(copies_more_than(copied(run)), after=told(run))
    finally:
        heal(cluster, source)
    until(lambda: source in at.in_sync(proof.name(0)), within_s=120)


def test_a_run_that_ends_while_its_source_is_down_pays_later(
    at: Scene, lives: Lives, containers_cluster: ContainerCluster
) -> None:
    """The move finishes without it; the journal keeps its throttle to restore, which the next start does once it is back."""
    proof = Proof.of(at, "hurt-throttle", {0: (1, 2, 3)}, mib=10)
    after = {0: (DESTINATION, 2, 3)}
    plan = at.plan(proof.topic, after)
    with proof.traffic().running():
        run = lives.begin("apply", str(plan), "--yes", "--throttle", "500kB", "--output", "json", "--timeout", "10")
        run.tells(moves_to("moving"))
        containers_cluster.kill(1)
        try:
            run.ends()
            (ended,) = filter(ends, events(run.said))
            to_restore = ended["throttlesToRestore"]
            assert isinstance(to_restore, list)
            assert {str(setting).startswith("broker 1 ") for setting in to_restore} == {True}
        finally:
            containers_cluster.start(1)
        until(lambda: 1 in at.cluster.snapshot(log_dirs=False, configs=False).alive, within_s=120)
        lives.begin("runs", "resume").ends()
        proof.holds(after)
    proof.forget()
