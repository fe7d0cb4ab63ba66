"""Killing a process at a chosen point: wrappers around the ports that count what passes and stop the world for one process.

The same wrappers lose answers and give those of a broker that fails for a reason of its own.

A *point* is a place where a process can die.  Every call that writes (to the journal or to the cluster) has two: before it
takes effect, and after it took effect but before its caller hears of it.  The point before a write to the cluster is thus
"after the journal, before the send", the one after it "after the send, before the reply".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ballast.core.cluster import ClusterState, ConfigValue, TopicPartition
from ballast.errors import BallastError, Unavailable
from ballast.ports.cluster import OK, ConfigChange, ConfigResource, Outcome, PartitionState, Reassignment
from ballast.ports.journal import Record
from ballast.ports.time import Clock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.world import SimWorld

Witness = Callable[[str, Mapping[Any, Any]], None]
"""Called with every write just before it is performed; a test compares it with the journal."""


class ProcessKilled(BaseException):
    """The simulated process is gone; nothing of it runs on, so nothing but the harness may catch this."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place at which a process can die."""

    call: str
    """The port's method."""
    done: bool
    """Whether the call has taken effect."""


@dataclass(slots=True)
class Reaper:
    """Sees every point that a process passes and decides whether it dies there."""

    strikes: Callable[[Point], bool] = lambda _: False
    passed: list[Point] = field(default_factory=list)
    loses_answer: Callable[[str], bool | None] = lambda _: None
    """For a cluster call: None lets it be; otherwise its answer is lost, True before and False after it took effect."""
    fails: Callable[[str], BallastError | None] = lambda _: None
    """The error that a broker answers a whole call with, reading ones included; nothing of it took effect."""
    errs: Callable[[str], tuple[str, bool] | None] = lambda _: None
    """For a writing call: the error code that every subject of it is answered with, and whether it took effect all the same."""

    def answers(self, call: str) -> None:
        """Let a call pass, or raise what a broker answers it with."""
        failure = self.fails(call)
        if failure is not None:
            raise failure

    def at(self, call: str, *, done: bool) -> None:
        """Pass a point, or die at it."""
        point = Point(call, done)
        self.passed.append(point)
        if self.strikes(point):
            raise ProcessKilled(f"{'after' if done else 'before'} {call}")


class CrashingJournal(MemoryJournal):
    """A journal handle of a process that can die at each append."""

    def __init__(self, store: JournalStore, clock: Clock, reaper: Reaper) -> None:
        super().__init__(store, clock)
        self.reaper = reaper

    def append(self, records: Sequence[Record]) -> None:
        """Write all of these or none."""
        self.reaper.at("append", done=False)
        super().append(records)
        self.reaper.at("append", done=True)


class CrashingCluster(SimCluster):
    """A cluster client of a process that can die at each write, and whose writes can lose their answers."""

    def __init__(self, world: SimWorld, reaper: Reaper, witness: Witness) -> None:
        super().__init__(world)
        self.reaper = reaper
        self.witness = witness

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        """The whole cluster."""
        self.reaper.answers("snapshot")
        return super().snapshot(log_dirs=log_dirs, configs=configs, patient=patient)

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Every move in progress."""
        self.reaper.answers("reassignments")
        return super().reassignments()

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """What metadata says."""
        self.reaper.answers("partitions")
        return super().partitions(names)

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """Entries that are set."""
        self.reaper.answers("configs")
        return super().configs(resources)

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Start moves, or cancel where the target is None."""
        alter = super().alter_reassignments
        return self._mortal(
            "alter_reassignments",
            dict(targets),
            lambda: alter(targets, allow_replication_factor_change=allow_replication_factor_change),
        )

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Hold elections."""
        elect = super().elect_leaders
        return self._mortal("elect_leaders", dict.fromkeys(names), lambda: elect(names, unclean=unclean))

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Apply incremental changes."""
        alter = super().alter_configs
        named = {(c.resource, c.key): c for c in changes}
        return self._mortal("alter_configs", named, lambda: alter(changes))

    def alter_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Outcome]:
        """Move replicas to another log dir of the same broker."""
        alter = super().alter_log_dirs
        return self._mortal("alter_log_dirs", dict(targets), lambda: alter(targets))

    def _mortal(
        self, call: str, what: Mapping[Any, Any], perform: Callable[[], Mapping[Any, Outcome]]
    ) -> Mapping[Any, Outcome]:
        self.reaper.at(call, done=False)
        self.reaper.answers(call)
        lost = self.reaper.loses_answer(call)
        if lost is True:
            raise Unavailable(f"{call} did not reach the cluster.")
        self.witness(call, what)
        error = self.reaper.errs(call)
        subjects = {key[0] for key in what} if call == "alter_configs" else what
        answer = perform() if error is None or error[1] else dict.fromkeys(subjects, OK)
        self.reaper.at(call, done=True)
        if lost is False:
            raise Unavailable(f"The answer to {call} was lost.")
        if error is not None:
            return {key: Outcome(False, error[0], "the broker failed") for key in answer}
        return answer
