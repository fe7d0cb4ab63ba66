"""Each cause of a stall, told from what a look at the cluster can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.executor.scenes import MB, T

from ballast.core.cluster import Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move
from ballast.core.throttles import FOLLOWER_RATE, Setting
from ballast.executor.machine.notes import Note, note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Run
from ballast.executor.machine.stages import Moving, Relocating
from ballast.executor.machine.stalls import CAUSES, stall_cause
from ballast.ports.cluster import BrokerLogs, PartitionState, ReplicaLog

NAME = TopicPartition(T, 0)
DIR = LogDir("/data/0", total_bytes=1000 * MB, usable_bytes=800 * MB)

CRAWLS = note(
    "slow", done=3 * MB, passed_s=400.0, leg=10 * MB, allowed_s=300.0, share=5.0 * MB, throttled=True, left=50 * MB
)


@dataclass(frozen=True)
class Night:
    """A move of 100 MB from broker 1 to broker 3, half of it copied, and everything else well."""

    alive: frozenset[int] = frozenset({1, 2, 3})
    leader: int = 1
    isr: tuple[int, ...] = (1, 2)
    cordoned: bool = False
    dirs: tuple[LogDir, ...] = (DIR,)
    silent: bool = False
    copied: int | None = 50 * MB
    inbound: float = 0.0
    rates_of_others: Mapping[int, int] = field(default_factory=dict)
    crawling: Note | None = None
    between_dirs: bool = False
    """Instead: its replica on broker 3 is to change its log dir there."""

    def state(self) -> ClusterState:
        """The whole cluster, for what only its brokers tell."""
        dirs = tuple(replace(d, cordoned=self.cordoned) for d in self.dirs)
        brokers = tuple(Broker(b, alive=b in self.alive, log_dirs=dirs, log_dirs_known=True) for b in (1, 2, 3))
        return build("c", brokers, (Topic(T),), [PartitionRow(T, 0, self.leader, (1, 2), self.isr)])

    def cause(self) -> tuple[str, str]:
        """What is said of it."""
        copies = {} if self.copied is None else {NAME: (ReplicaLog("/data/0", self.copied, 0),)}
        move = MoveRun(Move(T, 0, (1, 2), (3, 2), 100 * MB), stage=Moving(), total_bytes=100 * MB)
        move = replace(move, copied_bytes=self.copied or 0)
        if self.between_dirs:
            stays = Move(T, 0, (3, 2), (3, 2), 100 * MB, log_dirs=("/data/1", "any"))
            move = replace(move, move=stays, stage=Relocating())
        rate = Setting("broker", "3", FOLLOWER_RATE)
        run = Run("r", "test", "c", ExecutionPolicy(throttle=5 * MB), {NAME: move}, {})
        run = replace(run, applied={rate: frozenset({str(5 * MB)})}, inbound={NAME: self.inbound})
        picture = Picture(
            reassignments={},
            partitions={NAME: PartitionState(self.leader, (3, 2, 1), self.isr)},
            names=frozenset({NAME}),
            alive=self.alive,
            logs={} if self.silent else {3: BrokerLogs(self.dirs, copies)},
            state=self.state(),
            rates_of_others=self.rates_of_others,
        )
        found = stall_cause(run, move, picture, crawling=self.crawling)
        return found.code, str(found)


NIGHTS: Mapping[str, tuple[Night, str]] = {
    "destination-dead": (Night(alive=frozenset({1, 2})), "Broker 3, its destination, is not alive"),
    "no-leader": (Night(leader=-1), "bring one of the brokers [1, 2] back"),
    "destination-unreachable": (Night(silent=True), "counts as alive and does not answer"),
    "destination-cordoned": (Night(cordoned=True), "remove its log dirs from cordoned.log.dirs"),
    "log-dir-failed": (Night(dirs=(replace(DIR, error="KAFKA_STORAGE_ERROR"),)), "/data/0 of broker 3 has failed"),
    "disk-full": (Night(dirs=(replace(DIR, usable_bytes=20 * MB),)), "20.0 MB of disk left and 50.0 MB are still"),
    "throttle-too-low": (Night(inbound=6 * MB), "fall behind by 1.0 MB each second"),
    "not-created": (Night(copied=None), "has not created t-0"),
    "not-admitted": (Night(copied=100 * MB), "broker 1, the leader, does not take it into the ISR"),
    "slow": (Night(crawling=CRAWLS), "3.0 MB have arrived in 400 s"),
    "log-dir-copy": (Night(between_dirs=True), "Nothing arrives in /data/1 of broker 3, although it answers; 50.0 MB"),
    "fetch-errors": (Night(inbound=0.5 * MB), "falls behind by 0.5 MB more each second"),
}


@pytest.mark.parametrize("code", CAUSES)
def test_each_cause_is_told_from_the_others(code: str) -> None:
    """One thing is wrong, and that is what is said; a cause without a night of its own fails here."""
    night, words = NIGHTS[code]
    said = night.cause()
    assert said[0] == code
    assert words in said[1]


def test_somebody_elses_rate_is_called_theirs() -> None:
    """The rate in force is not ours: whoever reads the cause knows whom to ask."""
    code, detail = Night(inbound=1 * MB, rates_of_others={3: 500_000}).cause()
    assert code == "throttle-too-low"
    assert "its throttle is 0.5 MB/s" in detail
    assert "that Ballast did not set" in detail


def test_what_is_plainly_broken_comes_before_what_follows_from_it() -> None:
    """A dead destination explains the silence, the lag and the missing replica."""
    assert Night(alive=frozenset({1, 2}), silent=True, inbound=6 * MB).cause()[0] == "destination-dead"


@pytest.mark.parametrize(
    ("night", "code", "words"),
    [
        (Night(alive=frozenset({1, 2})), "destination-dead", "Broker 3, which is to copy it to /data/1, is not alive"),
        (Night(silent=True), "destination-unreachable", "Broker 3, which is to copy it to /data/1, counts as alive"),
        (
            Night(dirs=(LogDir("/data/1", error="KAFKA_STORAGE_ERROR"),)),
            "log-dir-failed",
            "/data/1 of broker 3 has failed",
        ),
        (Night(crawling=CRAWLS), "slow", "3.0 MB have arrived in 400 s"),
        (Night(leader=-1), "log-dir-copy", "ReplicaAlterLogDirsThread"),
    ],
)
def test_a_copy_between_log_dirs_has_causes_of_its_own_broker(night: Night, code: str, words: str) -> None:
    """It needs no leader and no other broker: what is said is about the broker that copies, and the dir that it copies to."""
    said = replace(night, between_dirs=True).cause()
    assert said[0] == code
    assert words in said[1]
