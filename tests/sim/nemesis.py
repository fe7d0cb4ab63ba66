"""What befalls a simulated cluster, the journal, and Ballast itself: every kind of fault, drawn from a seed, each of which ends.

A fault that comes at a moment is a function of the proof and its generator that answers whether anything befell; those of a
process (``Mortality``) come at the calls it makes.  ``Proof.faults`` counts what has happened, not what was planned.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from tests.sim.proof import Proof, place_of

from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, LISTS
from ballast.errors import BallastError, JournalLost, LockHeld, Refused, Unavailable
from ballast.executor.driver.driver import Driver
from ballast.executor.driver.events import Listener
from ballast.executor.machine.step import Command
from ballast.ports.journal import Holder, Request
from ballast.sim import MemoryJournal
from ballast.sim.crash import Point, Reaper

QUIET_AFTER_S = 400.0
"""Faults end by then, so that every run can end."""


class Fault(StrEnum):
    """Every kind of fault."""

    BROKER_KILLED = "broker killed"
    BROKER_PAUSED = "broker paused"
    BROKER_CUT_OFF = "broker cut off from other brokers"
    BROKER_RESTARTED = "broker restarted"
    CONTROLLER_CHANGED = "controller changed"
    DISK_FULL = "disk full"
    TOPIC_DELETED = "topic deleted"
    TOPIC_RECREATED = "topic deleted and recreated"
    CONFIG_CHANGED = "config changed by a person"
    FOREIGN_MOVE = "foreign reassignment"
    FOREIGN_CANCEL = "reassignment cancelled by another user"
    JOURNAL_SILENT = "journal not writable"
    JOURNAL_DELETED = "journal deleted"
    JOURNAL_REMADE = "journal made again by another process"
    JOURNAL_TRUNCATED = "journal truncated"
    BROKER_ERROR = "non-retryable answer of a broker"
    ANSWER_LOST = "answer lost"
    BALLAST_KILLED = "Ballast killed"
    BALLAST_PAUSED = "Ballast paused"
    BALLAST_DOUBLED = "Ballast doubled"
    CLOCK_STEPPED = "clock stepped"


Harm = Callable[[Proof, Random], bool]
"""Does its harm, and arranges for its end; False where there was nothing to harm."""


def unleash(proof: Proof, random: Random, among: Collection[Fault] = tuple(Fault)) -> None:
    """Put up to six of these faults into the proof's agenda, and the end of all of them."""
    # Most runs take a minute.
    within_s = random.choice([20, 60, QUIET_AFTER_S / 2])
    for _ in range(random.choice([0, 1, 2, 3, 4, 6])):
        fault = random.choice([f for f in HARMS if f in among])
        proof.clock.at(random.uniform(0.5, within_s), lambda fault=fault: _strike(proof, random, fault))  # type: ignore[misc]
    proof.clock.at(QUIET_AFTER_S, lambda: _calm(proof))


def _strike(proof: Proof, random: Random, fault: Fault) -> None:
    if proof.sending and fault in UNSEEN:
        proof.clock.after(0.5, lambda: _strike(proof, random, fault))
    elif HARMS[fault](proof, random):
        proof.faults[fault] += 1


def _calm(proof: Proof) -> None:
    """Everything that is down comes back, and stays."""
    world = proof.world
    world.cut.clear()
    world.controller_up = proof.store.available = True
    for broker in world.brokers.values():
        if broker.failed:
            world.repair_dirs(broker.id)
        world.start(broker.id)


# Brokers


def _kill(proof: Proof, random: Random) -> bool:
    proof.world.kill(random.choice(list(proof.world.brokers)))
    return True


def _pause(proof: Proof, random: Random) -> bool:
    broker, world = random.choice(list(proof.world.brokers)), proof.world
    world.freeze(broker)
    proof.clock.after(random.choice([3, 12, 60, 300]), lambda: world.start(broker))
    return True


def _restart(proof: Proof, random: Random) -> bool:
    broker, world = random.choice(list(proof.world.brokers)), proof.world
    world.stop(broker)
    proof.clock.after(random.uniform(3, 40), lambda: world.start(broker))
    return True


def _cut_off(proof: Proof, random: Random) -> bool:
    """It reaches no other broker, or not one of them, while clients and the controller reach all."""
    world = proof.world
    broker, *others = random.sample(list(world.brokers), len(world.brokers))
    pairs = {p for other in others[: random.choice([1, len(others)])] for p in ((broker, other), (other, broker))}
    world.cut |= pairs
    proof.clock.after(random.choice([10, 60, 200]), lambda: world.cut.difference_update(pairs))
    return True


def _change_controller(proof: Proof, random: Random) -> bool:
    world = proof.world
    world.controller_up = False
    proof.clock.after(random.uniform(2, 60), lambda: setattr(world, "controller_up", True))
    return True


def _fill_disk(proof: Proof, random: Random) -> bool:
    broker = random.choice(list(proof.world.brokers.values()))
    proof.world.fail_dir(broker.id, random.randrange(len(broker.dir_bytes)))
    return True


# People


def _delete_topic(proof: Proof, random: Random) -> bool:
    if not proof.world.topics:
        return False
    _forget_topic(proof, random.choice(list(proof.world.topics)))
    return True


def _forget_topic(proof: Proof, topic: str) -> None:
    proof.by_others.update(n for n in proof.before if n.topic == topic)
    proof.configs = {k: v for k, v in proof.configs.items() if k[:2] != ("topic", topic)}
    proof.world.delete_topic(topic)


def _recreate_topic(proof: Proof, random: Random) -> bool:
    """The new one has the old one's replicas, or others; where the run knew the old one's id, it must leave this one alone."""
    world = proof.world
    if not world.topics:
        return False
    old = world.topics[random.choice(list(world.topics))]
    ours = [m for r in proof.runs().values() for n, m in r.moves.items() if n.topic == old.name]
    known = bool(ours) and all(m.topic_id is not None for m in ours)
    ids = list(world.brokers)
    placed = {
        n: proof.before[p.name] if p.name in proof.before and random.random() < 0.5 else tuple(random.sample(ids, 2))
        for n, p in old.partitions.items()
    }
    _forget_topic(proof, old.name)
    made = world.add_topic(old.name, placed, size_bytes=random.choice([0, 10e6]), lag_s=world.physics.metadata_lag_s)
    if known:
        proof.another.add(made.name)
        proof.shown_at_s[made.name] = proof.clock.monotonic_s() + world.physics.metadata_lag_s
        proof.by_others.difference_update(p.name for p in made.partitions.values())
        proof.before |= {p.name: tuple(p.replicas) for p in made.partitions.values()}
    else:
        proof.another.discard(made.name)
        proof.mistaken.add(made.name)
    return True


def _change_config(proof: Proof, random: Random) -> bool:
    """A rate, a list or something that is none of Ballast's is set, added to or deleted."""
    world = proof.world
    places = [("broker", str(b)) for b in world.brokers] + [("topic", t) for t in world.topics] + [("broker", "")]
    kind, name = random.choice(places)
    configs = place_of(world, kind, name)
    key = random.choice([*LISTS, "retention.ms"] if kind == "topic" else [LEADER_RATE, FOLLOWER_RATE, "num.io.threads"])
    how = random.choice(["set", "set", "add", "delete"])
    if how == "delete":
        configs.pop(key, None)
        proof.configs.pop((kind, name, key), None)
        return True
    if key not in LISTS:
        value = str(random.randint(30_000_001, 39_999_999))
    elif how == "set":
        value = random.choice(["*", "91:1,92:2", "93:3"])
    elif "*" in configs.get(key, ""):
        return False
    else:
        added = f"9{random.randint(4, 9)}:1"
        configs[key] = _with(configs.get(key, ""), added)
        proof.configs[kind, name, key] = _with(proof.configs.get((kind, name, key), ""), added)
        return True
    configs[key] = proof.configs[kind, name, key] = value
    return True


def _with(entries: str, added: str) -> str:
    present = [e for e in entries.split(",") if e]
    return ",".join([*present, added] if added not in present else present)


def _move_by_others(proof: Proof, random: Random) -> bool:
    if not proof.world.topics:
        return False
    partition = random.choice(list(proof.world.partitions()))
    count = len(partition.replicas) - len(partition.adding)
    target = tuple(random.sample(list(proof.world.brokers), count))
    proof.by_others.add(partition.name)
    return proof.world.controller.alter(partition.name, target, allow_rf_change=False).ok


def _cancel_by_others(proof: Proof, random: Random) -> bool:
    moving = [p for p in proof.world.partitions() if p.reassigning]
    if not moving:
        return False
    partition = random.choice(moving)
    proof.by_others.add(partition.name)
    return proof.world.controller.alter(partition.name, None, allow_rf_change=False).ok


# The journal, Ballast and time


def _silence_journal(proof: Proof, random: Random) -> bool:
    store = proof.store
    store.available = False
    proof.clock.after(random.choice([5, 40, 100]), lambda: setattr(store, "available", True))
    return True


def _lose_journal(how: str) -> Harm:
    def harm(proof: Proof, random: Random) -> bool:
        if not proof.store.log:
            return False
        keep = max(len(proof.store.log) - random.randint(1, 8), 0) if how == "truncated" else 0
        proof.store.lose(how, keep=keep)
        proof.store.failing_remakes = random.choice([0, 0, 1, 2])
        return True

    return harm


def _double(proof: Proof, random: Random) -> bool:
    """A second Ballast starts: it is told that the lock is held, or asks for it and is given it."""
    second = MemoryJournal(proof.store, proof.clock)
    try:
        if random.random() < 0.5:
            asked = Request(uuid.UUID(int=random.getrandbits(128)).hex, "take-over", "second", proof.clock.now_ms(), {})
            second.request(asked)
            return True
        # At the moment of the look itself, which takes time.
        held = proof.store.view.lease()
        second.acquire(Holder("second", "the proof"))
        proof.require(held is None, "a second Ballast got a lock that is held")
        second.release()
    except (LockHeld, Unavailable, JournalLost):
        pass
    return True


def _step_clock(proof: Proof, random: Random) -> bool:
    proof.clock.step(random.choice([-86_400, -3_600, -5, 5, 3_600, 86_400]))
    return True


HARMS: Final[Mapping[Fault, Harm]] = {
    Fault.BROKER_KILLED: _kill,
    Fault.BROKER_PAUSED: _pause,
    Fault.BROKER_CUT_OFF: _cut_off,
    Fault.BROKER_RESTARTED: _restart,
    Fault.CONTROLLER_CHANGED: _change_controller,
    Fault.DISK_FULL: _fill_disk,
    Fault.TOPIC_DELETED: _delete_topic,
    Fault.TOPIC_RECREATED: _recreate_topic,
    Fault.CONFIG_CHANGED: _change_config,
    Fault.FOREIGN_MOVE: _move_by_others,
    Fault.FOREIGN_CANCEL: _cancel_by_others,
    Fault.JOURNAL_SILENT: _silence_journal,
    Fault.JOURNAL_DELETED: _lose_journal("deleted"),
    Fault.JOURNAL_REMADE: _lose_journal("recreated"),
    Fault.JOURNAL_TRUNCATED: _lose_journal("truncated"),
    Fault.BALLAST_DOUBLED: _double,
    Fault.CLOCK_STEPPED: _step_clock,
}
"""The faults that come at a moment; the others come at the calls of a process."""

UNSEEN: Final = frozenset({Fault.CONFIG_CHANGED, Fault.TOPIC_RECREATED})
"""What no client can see that has read and is about to send: requests name neither the value they change nor a topic's id."""

ERRORS: Final = ("UNKNOWN_SERVER_ERROR", "STALE_BROKER_EPOCH", "REQUEST_TIMED_OUT", "NOT_CONTROLLER")


@dataclass
class Mortality:
    """What befalls the processes of one proof; later ones die less."""

    random: Random

    def __post_init__(self) -> None:
        random = self.random
        self.deaths = random.choice([1, 1, 2, 4])
        self.command_at_s = random.uniform(1, 120) if random.random() < 0.3 else None
        self.lossy = random.choice([0.0, 0.0, 0.1])
        self.erring = random.choice([0.0, 0.0, 0.05])
        self.pauses = random.choice([0, 0, 0, 1, 2])
        self.nested = False

    def arm(self, proof: Proof, driver: Driver, reaper: Reaper) -> Listener | None:
        """Each life may die or stand still at any point it passes, lose answers, and be asked for something."""
        random = self.random
        points = [random.randint(0, 40) if proof.lives <= self.deaths else -1]

        def strikes(at: Point) -> bool:
            proof.sending = False
            if at.call == "append" and self.pauses and random.random() < 0.1:
                self._stand_still(proof)
            proof.sending = at.call == "append" or not at.done
            points[0] -= 1
            proof.faults[Fault.BALLAST_KILLED] += points[0] == 0
            return points[0] == 0

        def loses(_: str) -> bool | None:
            if self._is_quiet(proof) or random.random() >= self.lossy:
                return None
            proof.faults[Fault.ANSWER_LOST] += 1
            return random.random() < 0.5

        def fails(call: str) -> BallastError | None:
            proof.sending &= call.startswith(("alter", "elect"))
            if self._is_quiet(proof) or random.random() >= self.erring:
                return None
            proof.faults[Fault.BROKER_ERROR] += 1
            return Refused(f"{call}: {random.choice(ERRORS)}")

        def errs(_: str) -> tuple[str, bool] | None:
            if self._is_quiet(proof) or random.random() >= self.erring:
                return None
            proof.faults[Fault.BROKER_ERROR] += 1
            return random.choice(ERRORS), random.random() < 0.5

        reaper.strikes, reaper.loses_answer, reaper.fails, reaper.errs = strikes, loses, fails, errs
        if self.command_at_s is not None and proof.clock.monotonic_s() < self.command_at_s:
            command = random.choice([Command.CANCEL, Command.PAUSE, Command.RESUME])
            proof.clock.at(self.command_at_s, lambda: driver.ask(command))
            proof.clock.at(self.command_at_s + 50, lambda: driver.ask(Command.RESUME))
        return None

    def _stand_still(self, proof: Proof) -> None:
        """The process stops for a while; longer than its lease, and another may have taken over when it wakes."""
        self.pauses -= 1
        proof.faults[Fault.BALLAST_PAUSED] += 1
        if self.random.random() < 0.5 or self.nested:
            proof.clock.sleep(self.random.choice([20, 60]))
            return
        proof.faults[Fault.BALLAST_DOUBLED] += 1
        self.nested = True
        proof.live()
        self.nested = False

    @staticmethod
    def _is_quiet(proof: Proof) -> bool:
        return proof.clock.monotonic_s() > QUIET_AFTER_S
