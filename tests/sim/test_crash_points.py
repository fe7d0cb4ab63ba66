"""The process is killed at three points of every effect, in each transition that has one; the next life ends the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from tests.sim.proof import Ears, Proof

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Listener, MoveChanged, Performing, RunEvent
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.stages import (
    Cancelling,
    Moved,
    Moving,
    Planned,
    Relocating,
    Restoring,
    Stage,
    Stalled,
    Submitted,
    Throttled,
    Unthrottled,
)
from ballast.executor.machine.step import Command
from ballast.executor.machine.transitions import ELECTION_TRANSITIONS, TRANSITIONS, EffectKind
from ballast.sim import Physics, SimBroker, SimClock, SimWorld
from ballast.sim.crash import Point, Reaper

MB = 1e6
POINTS = ("before-journal", "after-journal", "after-send")
CALLS = {
    EffectKind.THROTTLE: "alter_configs",
    EffectKind.UNTHROTTLE: "alter_configs",
    EffectKind.SUBMIT: "alter_reassignments",
    EffectKind.CANCEL: "alter_reassignments",
    EffectKind.RESTORE: "alter_reassignments",
    EffectKind.ALTER_LOG_DIRS: "alter_log_dirs",
    EffectKind.ELECT: "elect_leaders",
}


@dataclass
class Scene:
    """A plan that passes through a transition, and what has to be asked of the process so that it does."""

    proof: Proof
    cancel_at: type[Stage] | None = None
    """Ask for a cancel once a move has entered this stage."""
    command: Command = Command.CANCEL
    """What is asked then."""
    fired: int = 0
    asked: bool = False
    reached: set[object] = field(default_factory=set)


def world(*, dirs: int = 1, physics: Physics | None = None) -> SimWorld:
    """Five brokers with throttles that a user had set before, and a topic with data and load."""
    brokers = [
        SimBroker(id=i, rack=f"r{i % 3}", nic_bytes_per_s=20 * MB, dir_bytes=(1e10,) * dirs) for i in range(1, 6)
    ]
    made = SimWorld(SimClock(), brokers, physics=physics)
    made.add_topic(
        "t",
        {0: (3, 1), 1: (2, 3), 2: (1, 2)},
        size_bytes=40 * MB,
        inbound_bytes_per_s=0.1 * MB,
        configs={"leader.replication.throttled.replicas": "2:9", "min.insync.replicas": "1"},
    )
    made.add_topic("other", {0: (4, 5)}, size_bytes=1 * MB)
    made.brokers[1].configs["leader.replication.throttled.rate"] = "7777777"
    made.cluster_configs["follower.replication.throttled.rate"] = "9999999"
    return made


THROTTLED = ExecutionPolicy(throttle=int(4 * MB), poll_s=1.0, measure_s=1.0)
PLAIN = ExecutionPolicy(poll_s=1.0, measure_s=0.0)
HEAVY = (Move("t", 0, (3, 1), (1, 2)), Move("t", 1, (2, 3), (4, 5)), Move("t", 2, (1, 2), (2, 1)))


def moving_scene() -> Scene:
    """Three throttled moves, one of them a replica list change."""
    return Scene(Proof(world(), HEAVY, THROTTLED))


def plain_scene() -> Scene:
    """The same without throttles."""
    return Scene(Proof(world(), HEAVY, PLAIN))


def cancelled_scene() -> Scene:
    """A cancel in mid-move whose partition comes back in another order."""
    return Scene(Proof(world(), HEAVY, THROTTLED), cancel_at=Moving)


def rolled_back_scene() -> Scene:
    """Everything is to go back, when a first move has arrived and a second is on its way."""
    policy = replace(THROTTLED, moves_at_once=1)
    return Scene(Proof(world(), HEAVY, policy), cancel_at=Unthrottled, command=Command.ROLLBACK)


def stalled_scene() -> Scene:
    """The destination dies; a stalled move is given up after a while, and the broker comes back later."""
    made = world()
    policy = ExecutionPolicy(
        throttle=int(4 * MB), measure_s=0.0, submit_grace_s=5, stall_after_s=10, cancel_stalled_after_s=20
    )
    scene = Scene(Proof(made, (Move("t", 0, (3, 1), (1, 2)),), policy))
    made.clock.at(8, lambda: made.kill(2))
    made.clock.at(300, lambda: made.start(2))
    return scene


def log_dir_scene() -> Scene:
    """Replicas that only change their log dir, with a rate for it."""
    policy = ExecutionPolicy(throttle=int(4 * MB), log_dir_throttle_bytes_per_s=int(5 * MB), measure_s=0.0)
    dirs = Move("t", 0, (3, 1), (3, 1), log_dirs=("/data/1", "any"))
    return Scene(Proof(world(dirs=2), (dirs,), policy))


def direct_log_dir_scene() -> Scene:
    """Replicas that move to another broker and belong in a certain log dir there."""
    moved = Move("t", 0, (3, 1), (1, 2), log_dirs=("/data/1", "/data/1"))
    return Scene(Proof(world(dirs=2), (moved,), THROTTLED))


def relocation_cancelled_scene() -> Scene:
    """Replicas on their way between log dirs are told to stay where they are."""
    return Scene(log_dir_scene().proof, cancel_at=Relocating)


def election_scene() -> Scene:
    """An election after a replica list change."""
    return Scene(Proof(world(), (HEAVY[2],), PLAIN, elections=(TopicPartition("t", 2),)))


SCENES = {
    (Planned, Throttled): moving_scene,
    (Planned, Submitted): plain_scene,
    (Throttled, Submitted): moving_scene,
    (Throttled, Relocating): log_dir_scene,
    (Moving, Cancelling): cancelled_scene,
    (Stalled, Cancelling): stalled_scene,
    (Moved, Relocating): direct_log_dir_scene,
    (Moved, Unthrottled): moving_scene,
    (Cancelling, Restoring): cancelled_scene,
}

CASES = [
    pytest.param(transition, point, id=f"{transition[0].code}-{transition[1].code}-{point}")
    for transition, effect in TRANSITIONS.items()
    if effect is not None
    for point in POINTS
]


@pytest.mark.parametrize(("transition", "point"), CASES)
def test_a_kill_at_any_point_of_any_transition(transition: tuple[type[Stage], type[Stage]], point: str) -> None:
    """The next process ends the run with every invariant intact; a transition without a scene fails here."""
    kind = TRANSITIONS[transition]
    assert kind is not None
    scene = SCENES[transition]()
    scene.proof.on_life = lambda _, driver, reaper: _arm(
        scene, driver, reaper, transition=transition, kind=kind, point=point
    )
    scene.proof.run()
    assert scene.fired == 1, f"{transition} was never killed {point}"
    assert scene.proof.lives >= 2


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", sorted({k for k in ELECTION_TRANSITIONS.values() if k}))
def test_a_kill_at_any_point_of_an_election(kind: EffectKind, point: str) -> None:
    """The next process runs the election that may or may not have been completed."""
    scene = election_scene()
    scene.proof.on_life = lambda _, driver, reaper: _arm(scene, driver, reaper, transition=None, kind=kind, point=point)
    scene.proof.run()
    assert scene.fired == 1
    assert scene.proof.world.partition("t", 2).leader == 2


def test_every_kind_of_effect_has_a_call_to_die_in() -> None:
    """A new kind of effect must be killed, too."""
    assert set(CALLS) == set(EffectKind)


def _arm(
    scene: Scene,
    driver: Driver,
    reaper: Reaper,
    *,
    transition: tuple[type[Stage], type[Stage]] | None,
    kind: EffectKind,
    point: str,
) -> Listener:
    """Die once, at this point of the effect that carries this transition."""
    entered: set[tuple[type[Stage], type[Stage]]] = set()
    near = [False]

    def strikes(at: Point) -> bool:
        if not near[0] or scene.fired:
            return False
        wanted = {
            "before-journal": Point("append", done=False),
            "after-journal": Point(CALLS[kind], done=False),
            "after-send": Point(CALLS[kind], done=True),
        }[point]
        if at == wanted:
            scene.fired += 1
            return True
        return False

    def take(event: RunEvent) -> None:
        if isinstance(event, MoveChanged):
            entered.add((type(event.before), type(event.after)))
            # One look can carry a move over two transitions; it hears of them as one.
            entered.update(
                (mid, end)
                for mid, end in TRANSITIONS
                if end is type(event.after) and (type(event.before), mid) in TRANSITIONS
            )
            if type(event.after) is scene.cancel_at and not scene.asked:
                scene.asked = True
                driver.ask(scene.command)
        elif isinstance(event, Performing):
            near[0] = event.effect.kind is kind and (transition is None or transition in entered)

    reaper.strikes = strikes
    return Ears(take)


@pytest.mark.parametrize(
    "make",
    [
        moving_scene,
        plain_scene,
        cancelled_scene,
        log_dir_scene,
        direct_log_dir_scene,
        relocation_cancelled_scene,
    ],
)
def test_a_kill_at_every_single_write_of_a_run(make: Callable[[], Scene]) -> None:
    """Not only once per transition: the run dies at each write it makes, one write per world, before and after it."""
    whole = _die_at(make(), None)
    assert whole > 10
    for point in range(whole):
        scene = make()
        _die_at(scene, point)
        assert scene.fired == 1, f"point {point} of {whole} was not reached"


def test_a_rollback_that_stands_in_the_journal_is_executed_whenever_the_process_dies() -> None:
    """It is killed at each write of the run, of its cancel and of its rollback; once asked for, everything goes back."""
    whole = _die_at(rolled_back_scene(), None)
    asked = 0
    for point in range(whole):
        scene = rolled_back_scene()
        _die_at(scene, point)
        wanted = any(run.rollback_when_cancelled for run in scene.proof.runs().values())
        ends = {p.name: tuple(p.replicas) for p in scene.proof.world.partitions()}
        assert not wanted or ends == scene.proof.before, f"died at point {point} of {whole}"
        asked += wanted
    assert asked > whole / 2


def _die_at(scene: Scene, fatal: int | None) -> int:
    """Run a scene that dies at its n-th point; returns how many points it passed."""
    passed = [0]

    def strikes(_: Point) -> bool:
        passed[0] += 1
        if passed[0] - 1 == fatal:
            scene.fired += 1
            return True
        return False

    def life(_: Proof, driver: Driver, reaper: Reaper) -> Listener:
        def take(event: RunEvent) -> None:
            if isinstance(event, MoveChanged) and type(event.after) is scene.cancel_at and not scene.asked:
                scene.asked = True
                driver.ask(scene.command)

        reaper.strikes = strikes
        return Ears(take)

    scene.proof.on_life = life
    scene.proof.run()
    return passed[0]
