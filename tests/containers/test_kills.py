"""``kill -9`` in every state of the machine, on real brokers under load: the next process ends the run, and nothing is left."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka.admin import AdminClient
from tests.containers.cluster import SECOND_LOG_DIR, ContainerCluster
from tests.containers.proof import Lives, Proof, is_in, stages
from tests.real.execution_scene import Scene
from tests.waiting import becomes, until

from ballast.core.cluster import TopicPartition
from ballast.executor.machine.run import Run
from ballast.executor.machine.transitions import ELECTION_TRANSITIONS, TRANSITIONS
from ballast.ports.cluster import ConfigChange

pytestmark = pytest.mark.containers

FORWARD = (
    "journaled:planned",
    "journaled:throttled",
    "sent:alter_reassignments",
    "journaled:moving",
    "journaled:unthrottled",
    "journaled:verified",
    "journaled:election-requested",
    "journaled:election-completed",
)
"""A run that reaches its end, killed on the way each time it comes one state further."""
BACK = ("journaled:cancelling", "journaled:restoring", "journaled:rolled-back")
"""A run that is cancelled in mid-move."""
DIRS = ("journaled:election-waiting", "journaled:relocating", "entering:moved")
"""Replicas that belong in certain log dirs."""
ASTRAY = ("journaled:stalled", "journaled:failed", "journaled:election-failed")
"""A destination that freezes, and a topic that is deleted in mid-move."""
SHOWS = {"sent:alter_reassignments": "submitted"}
"""The stage that the journal shows after a death; otherwise the point says it."""


def shown(point: str) -> str:
    """The stage in which a point's death leaves a move or an election."""
    return SHOWS.get(point) or point.partition(":")[2]


def test_every_state_has_its_death() -> None:
    """A state that is added to the machine needs a death here."""
    states = {stage.code for pair in TRANSITIONS for stage in pair}
    states |= {f"election-{stage.value}" for pair in ELECTION_TRANSITIONS for stage in pair}
    assert {shown(p) for p in (*FORWARD, *BACK, *DIRS, *ASTRAY)} == states


RESUME = ("runs", "resume", "--lock-wait", "60")
ONE_BY_ONE = ("--yes", "--throttle", "1MB", "--moves-at-once", "1")
"""Each move comes to its states by itself, so that a later life meets the early ones again, however late it starts."""
SLOWLY = ("--yes", "--throttle", "100kB")
"""For moves that are not meant to end."""


def killed_at(lives: Lives, run: Run, points: tuple[str, ...]) -> None:
    """One life after another, each killed a state further."""
    for point in points:
        lives.killed(point, *RESUME)
        shows(lives.at, run, point)


def shows(at: Scene, run: Run, point: str) -> None:
    """The journal has a move or an election in the state of this death, or has not heard of it yet."""
    if not point.startswith("entering:"):
        # What was committed right before the death becomes readable a moment after it.
        until(lambda: is_in(at, run.id, shown(point)), point, story=lambda: str(dict(stages(at, run.id))))


def run_of(at: Scene, proof: Proof) -> Run:
    """The proof's run, which is in the journal."""
    until(lambda: at.run_of(proof.topic))
    run = at.run_of(proof.topic)
    assert run is not None
    return run


def test_killed_in_every_state_on_the_way_to_the_end(at: Scene, lives: Lives) -> None:
    """Eight processes die; the ninth finds the run and finishes it: moves, elections, throttles."""
    proof = Proof.of(at, "killed-forward", {0: (1, 2, 3), 1: (2, 3, 4), 2: (3, 4, 1)}, mib=3)
    after = {0: (4, 2, 3), 1: (1, 3, 4), 2: (2, 4, 1)}
    plan = at.plan(proof.topic, after, elections=(0, 1, 2))
    with proof.traffic().running():
        lives.killed(FORWARD[0], "apply", str(plan), *ONE_BY_ONE)
        run = run_of(at, proof)
        killed_at(lives, run, FORWARD[1:])
        lives.mortal("none", *RESUME).ends()
        proof.holds(after)
        until(lambda: all(at.cluster.partitions([proof.name(p)])[proof.name(p)].leader == after[p][0] for p in after))
    proof.forget()


def test_killed_in_every_state_on_the_way_back(at: Scene, lives: Lives) -> None:
    """A cancel in mid-move is carried on by the next process, the order of the replicas too."""
    proof = Proof.of(at, "killed-back", {0: (3, 1, 2)}, mib=20)
    plan = at.plan(proof.topic, {0: (1, 2, 4)})
    with proof.traffic().running():
        first = lives.mortal(BACK[0], "apply", str(plan), *SLOWLY)
        run = run_of(at, proof)
        until(lambda: is_in(at, run.id, "moving"))
        at.finish("cancel", run.id, "--yes")
        first.dies()
        shows(at, run, BACK[0])
        killed_at(lives, run, BACK[1:])
        assert "No run is open." in lives.mortal("none", *RESUME).ends(), "the last death came after the end"
        proof.holds({})
    proof.forget()


def dirs_of(at: Scene, places: Mapping[TopicPartition, int]) -> set[str]:
    """The log dirs in which partitions lie on these brokers."""
    logs = at.cluster.log_dirs(set(places.values()))
    return {r.log_dir for name, broker in places.items() for r in logs[broker].replicas.get(name, ())}


def test_killed_in_every_state_between_log_dirs(at: Scene, lives: Lives) -> None:
    """Replicas that belong in the second log dir get there, on their old brokers and on new ones."""
    proof = Proof.of(at, "killed-dirs", {0: (1, 2, 3), 1: (1, 2, 3)}, mib=2)
    after = {0: (1, 2, 3), 1: (4, 2, 3)}
    dirs = (SECOND_LOG_DIR, "any", "any")
    plan = at.plan(proof.topic, after, elections=(1,), log_dirs=dict.fromkeys(after, dirs))
    with proof.traffic().running():
        lives.killed(DIRS[0], "apply", str(plan), *ONE_BY_ONE)
        run = run_of(at, proof)
        killed_at(lives, run, DIRS[1:])
        lives.mortal("none", *RESUME).ends()
        proof.holds(after)
    becomes(lambda: dirs_of(at, {proof.name(p): after[p][0] for p in after}), {SECOND_LOG_DIR})
    proof.forget()


def test_killed_where_moves_go_astray(at: Scene, lives: Lives, containers_cluster: ContainerCluster) -> None:
    """A destination freezes, then the topic is deleted in mid-move: the run ends, says so, and owes nothing."""
    proof = Proof.of(at, "killed-astray", {0: (1, 2, 3)}, mib=20)
    bystander = Proof.of(at, "killed-beside", {0: (2, 3, 4)}, mib=1)
    plan = at.plan(proof.topic, {0: (4, 2, 3)}, elections=(0,))
    with bystander.traffic().running():
        first = lives.mortal(ASTRAY[0], "apply", str(plan), *SLOWLY)
        run = run_of(at, proof)
        until(lambda: is_in(at, run.id, "moving"))
        containers_cluster.pause(4)
        try:
            first.dies()
            shows(at, run, ASTRAY[0])
        finally:
            containers_cluster.unpause(4)
        second = lives.mortal(ASTRAY[1], *RESUME)
        until(lambda: is_in(at, run.id, "moving"))
        delete_topic(at, proof.topic)
        second.dies()
        shows(at, run, ASTRAY[1])
        killed_at(lives, run, ASTRAY[2:])
        lives.mortal("none", *RESUME).ends(7)
        bystander.holds({})
    bystander.forget()
    proof.at.change(ConfigChange(proof.theirs[1].resource, proof.theirs[1].key, "delete"))


def delete_topic(at: Scene, topic: str) -> None:
    """As a person would, in mid-move."""
    admin = AdminClient({"bootstrap.servers": at.sandbox.bootstrap_server})
    admin.delete_topics([topic])[topic].result(timeout=60)
