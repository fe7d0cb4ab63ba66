"""What the proofs on hurt clusters share: a topic worth protecting, Ballast that can be killed, and what must hold afterwards."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.containers.traffic import Traffic
from tests.leash import leashed
from tests.real.execution_scene import LISTS, RATES, Scene, events
from tests.waiting import becomes, until, whole_lines

from ballast.core.cluster import TopicPartition
from ballast.core.throttles import Setting
from ballast.errors import BallastError, Unavailable
from ballast.executor.journal.ledger import load_ledger
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of

WHOLE_WITHIN_S = 180.0
MOST_TRIES = 5
ENDS_WITHIN_S = 240.0
"""For everything a process has to do, on a machine that does much else."""

Assignment = Mapping[int, tuple[int, ...]]


@dataclass
class Proof:
    """A topic under traffic, and how it stood before anything was done to it."""

    at: Scene
    topic: str
    before: Assignment
    throttles: dict[str, str]
    theirs: tuple[ConfigChange, ...]

    @classmethod
    def of(cls, at: Scene, topic: str, assignment: Assignment, *, mib: int) -> Proof:
        """Make the topic; two of its replicas must acknowledge.  A rate and a list of a person's own are there already."""
        # A name that no run of the journal has had, so that a run is found by it.
        topic = f"{topic}-{secrets.token_hex(2)}"
        at.topic(topic, assignment, mib=mib)
        named = ConfigResource("topic", topic)
        broker = ConfigResource("broker", str(assignment[0][0]))
        theirs = (
            # A list entry of a partition that does not move, and a rate that Ballast has to replace for the run.
            ConfigChange(named, LISTS[0], "set", "9:2"),
            ConfigChange(broker, RATES[1], "set", "77777777"),
        )
        for change in (ConfigChange(named, "min.insync.replicas", "set", "2"), *theirs):
            at.change(change)
        return cls(at, topic, dict(assignment), at.throttles(topic), theirs)

    def traffic(self, *, records_per_s: float = 60.0, most_s: float = 900.0) -> Traffic:
        """A producer and a consumer for all of its partitions."""
        server = self.at.sandbox.bootstrap_server
        return Traffic(server, self.topic, len(self.before), records_per_s=records_per_s, most_s=most_s)

    def name(self, partition: int) -> TopicPartition:
        """A partition of the topic."""
        return TopicPartition(self.topic, partition)

    def holds(self, after: Assignment) -> None:
        """Nothing is left: runs ended, replicas where they belong, all in sync, throttles as they were, none to restore, nothing moving."""
        until(self.is_whole, within_s=WHOLE_WITHIN_S)
        becomes(lambda: {p: self.at.replicas(self.name(p)) for p in self.before}, {**self.before, **after})
        becomes(lambda: self.at.throttles(self.topic), self.throttles)
        becomes(lambda: throttles_to_restore(self.at), {})
        becomes(lambda: [r.id for r in self.at.runs().values() if not r.ended], [])

    def leader(self, partition: int) -> int:
        """The leader of a partition; -1 where it has none, and while no broker answers."""
        try:
            return self.at.cluster.partitions([self.name(partition)])[self.name(partition)].leader
        except BallastError:
            return -1

    def is_in_sync(self) -> bool:
        """Whether the topic's replicas before the move are in sync."""
        try:
            states = self.at.cluster.partitions([self.name(p) for p in self.before])
        except BallastError:
            return False
        return all(set(self.before[n.partition]) <= set(s.isr) for n, s in states.items())

    def is_whole(self) -> bool:
        """Whether nothing moves and every replica of the topic is in sync."""
        try:
            states = self.at.cluster.partitions([self.name(p) for p in self.before])
            moving = self.at.cluster.reassignments()
        except BallastError:
            return False
        in_sync = all(set(s.isr) == set(s.replicas) and s.leader >= 0 for s in states.values())
        return len(states) == len(self.before) and in_sync and not moving

    def forget(self) -> None:
        """Remove what a person had set; every test leaves the cluster as it found it."""
        for change in self.theirs:
            self.at.change(ConfigChange(change.resource, change.key, "delete"))


def throttles_to_restore(at: Scene) -> dict[Setting, object]:
    """Throttle settings that the journal says are not yet removed."""
    with open_cluster(bootstrap_server=at.sandbox.bootstrap_server) as opened:
        journal = journal_of(opened)
        try:
            return dict(load_ledger(journal.read()))
        finally:
            journal.close()


@dataclass(frozen=True)
class Life:
    """One process of Ballast; what it prints, story and result alike, goes to a file that can be read meanwhile."""

    process: subprocess.Popen[bytes]
    path: Path

    @property
    def said(self) -> str:
        """Everything so far."""
        return "\n".join(whole_lines(self.path)) if self.process.poll() is None else self.path.read_text()

    def dies(self) -> None:
        """Wait for a death by ``kill -9``."""
        assert self.code() == -signal.SIGKILL, f"it was not killed but ended by itself:\n{self.said}"

    def ends(self, code: int = 0) -> str:
        """Wait until it has ended by itself, with this code; what it said."""
        found = self.code()
        assert found == code, f"exit {found}, not {code}:\n{self.said}"
        return self.said

    def tells(self, sign: Callable[[dict[str, Any]], object], *, after: int = 0) -> int:
        """Wait for an event with this sign after the first so many; how many there are up to it (``--output json``)."""

        def place() -> int:
            return next((i for i, event in enumerate(events(self.said), 1) if i > after and sign(event)), 0)

        until(lambda: place() or self.process.poll() is not None, within_s=ENDS_WITHIN_S)
        found = place()
        assert found, f"exit {self.process.poll()} before it was told:\n{self.said}"
        return found

    def code(self) -> int:
        """Wait until it has ended; how."""
        try:
            return self.process.wait(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"it has not ended:\n{self.said}") from late


@dataclass
class Lives:
    """Ballast's processes of one test; those that are still alive at its end are killed."""

    at: Scene
    _begun: list[Life] = field(default_factory=list)

    def begin(self, *arguments: str) -> Life:
        """Ballast as people start it."""
        return self._begin("ballast", *arguments)

    def mortal(self, point: str, *arguments: str) -> Life:
        """Ballast that dies by ``kill -9`` at a point (see ``mortal``)."""
        return self._begin("tests.containers.mortal", point, *arguments)

    def killed(self, point: str, *arguments: str) -> None:
        """Have Ballast die at a point; where it ends with "the cluster does not answer, try again", it is tried again."""
        for _ in range(MOST_TRIES):
            life = self.mortal(point, *arguments)
            if life.code() != Unavailable.exit_code:
                break
        life.dies()

    def _begin(self, module: str, *arguments: str) -> Life:
        path = self.at.folder / f"life-{len(self._begun)}.txt"
        with path.open("wb") as out:
            process = subprocess.Popen(
                leashed(
                    sys.executable, "-m", module, *arguments, "--bootstrap-server", self.at.sandbox.bootstrap_server
                ),
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self._begun.append(Life(process, path))
        return self._begun[-1]

    def close(self) -> None:
        """End everybody."""
        for life in self._begun:
            life.process.kill()
            life.process.wait()


def stages(at: Scene, run_id: str) -> Counter[str]:
    """How many moves and elections of a run the journal has in each stage, named as the points of ``mortal`` are."""
    run = at.runs()[run_id]
    found = Counter(m.stage.code for m in run.moves.values())
    return found + Counter(f"election-{e.stage.value}" for e in run.elections.values())


def is_in(at: Scene, run_id: str, stage: str) -> bool:
    """Whether the journal has a move or an election of the run in this stage; False while it cannot be read."""
    try:
        return stages(at, run_id)[stage] > 0
    except BallastError:
        return False
