"""Others at work on the same cluster: a second operator, and a user who starts moves in the middle of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from tests.containers.proof import Lives, Proof
from tests.containers.signs import moves_to, refuses
from tests.real.execution_scene import LISTS, Scene
from tests.real.stock_tool import stock_reassign
from tests.waiting import until

from ballast.ports.cluster import ConfigChange, ConfigResource

pytestmark = pytest.mark.containers


def by_stock_tool(at: Scene, topic: str, wanted: Mapping[int, tuple[int, ...]]) -> None:
    """Start moves as a user would, beside those in flight."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(r)} for p, r in wanted.items()]
    path = at.folder / "user.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    arguments = ("--execute", "--additional", "--reassignment-json-file", str(path))
    answer = stock_reassign(at.sandbox.bootstrap_server, *arguments)
    assert answer.code == 0, answer.out


def test_a_second_operator_and_a_user_in_the_middle_of_a_run(at: Scene, lives: Lives) -> None:
    """The second operator is told who holds the lock, since when, doing what, and nothing of theirs happens (5).

    A user moves a partition that the run does not know, one that waits in it, and then the one that it is moving.  The run
    gives the last one up, names the user's move of the waiting one until that is gone, and touches none of them.
    """
    proof = Proof.of(at, "others", dict.fromkeys(range(3), (1, 2, 3)), mib=12)
    at.fill(proof.topic, range(1), mib=6)
    # The user's own throttle lists slow the user's moves down, at the rates that the run sets on the brokers.
    for key, value in ((LISTS[0], "1:1,2:1"), (LISTS[1], "1:4,2:4")):
        at.change(ConfigChange(ConfigResource("topic", proof.topic), key, "set", value))
    proof.throttles = at.throttles(proof.topic)
    other = at.plan(proof.topic, {2: (4, 2, 3)}).rename(at.folder / "other.plan.json")
    plan = at.plan(proof.topic, {0: (4, 2, 3), 1: (4, 2, 3)})
    with proof.traffic().running():
        arguments = ("--yes", "--throttle", "100kB", "--moves-at-once", "1", "--output", "json")
        run = lives.begin("apply", str(plan), *arguments)
        run.tells(moves_to("moving"))
        # What was committed becomes readable a moment later.
        mine = until(lambda: at.run_of(proof.topic), "the run is in the journal")
        refused = lives.begin("apply", str(other), "--yes", "--lock-wait", "1").ends(5)
        for part in (
            "(ballast apply) has held this cluster's lock since 2",
            f"doing: run {mine.id}: {mine.intent}, 0 of 2",
        ):
            assert part in refused
        by_stock_tool(at, proof.topic, {1: (4, 3, 1), 2: (4, 2, 3)})
        outcomes = at.cluster.alter_reassignments({proof.name(0): (4, 3, 1)})
        assert all(o.ok for o in outcomes.values()), outcomes
        run.tells(moves_to("failed"))
        assert "overridden" in run.said
        named = run.tells(refuses("foreign-reassignment", partition=str(proof.name(1)), replicas=[4, 3, 1]))
        assert set(at.cluster.reassignments()) >= {proof.name(1), proof.name(2)}
        at.cluster.alter_reassignments({proof.name(1): None})
        run.tells(moves_to("moving", 1), after=named)
        at.finish("cancel", mine.id, "--yes")
        run.ends(8)
        until(lambda: proof.name(0) not in at.cluster.reassignments())
        proof.holds({0: (4, 3, 1), 2: (4, 2, 3)})
    proof.forget()
    at.change(ConfigChange(ConfigResource("topic", proof.topic), LISTS[1], "delete"))
