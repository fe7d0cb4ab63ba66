"""Each cause of a stall, told from what a look at the cluster can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.executor.scenes import MB, T

from ballast.core.cluster import UNKNOWN, Broker, ClusterState, LogDir, PartitionRow, Topic, TopicPartition, build
from ballast.core.plan import Move
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, RateShortfall, Setting
from ballast.executor.machine.notes import MoveNote, Value, note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import MoveRun, Run
from ballast.executor.machine.stages import Moving, Relocating
from ballast.executor.machine.stalls import CAUSES, stall_cause
from ballast.ports.cluster import BrokerLogs, PartitionState, ReplicaLog

NAME = TopicPartition(T, 0)
UNTOLD = LogDir("/data/1")
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
    read: bool = True
    """Were log dirs read at all?"""
    behind: int | None = None
    """Records that the copy is behind its leader; None where no log end was told."""
    leader_rate: int | None = None
    copied: int | None = 50 * MB
    inbound: float = 0.0
    rates_of_others: Mapping[int, int] = field(default_factory=dict)
    too_slow: MoveNote | None = None
    between_dirs: bool = False
    """Instead: its replica on broker 3 is to change its log dir there."""

    def state(self) -> ClusterState:
        """The whole cluster, for what only its brokers tell."""
        dirs = tuple(replace(d, cordoned=self.cordoned) for d in self.dirs)
        brokers = tuple(Broker(b, alive=b in self.alive, log_dirs=dirs, log_dirs_known=True) for b in (1, 2, 3))
        return build("c", brokers, (Topic(T),), [PartitionRow(T, 0, self.leader, (1, 2), self.isr)])

    def cause(self) -> tuple[str, str]:
        """What is said of it."""
        found = self.note()
        return found.code, str(found)

    def note(self) -> MoveNote:
        """The same, as a value."""
        copies = {} if self.copied is None else {NAME: (ReplicaLog("/data/0", self.copied, 0),)}
        move = MoveRun(Move(T, 0, (1, 2), (3, 2), 100 * MB), stage=Moving(), total_bytes=100 * MB)
        move = replace(move, copied_bytes=self.copied or 0)
        if self.between_dirs:
            stays = Move(T, 0, (3, 2), (3, 2), 100 * MB, log_dirs=("/data/1", "any"))
            move = replace(move, move=stays, stage=Relocating())
        rates = {Setting("broker", "3", FOLLOWER_RATE): frozenset({str(5 * MB)})}
        if self.leader_rate is not None:
            rates[Setting("broker", str(self.leader), LEADER_RATE)] = frozenset({str(self.leader_rate)})
        run = Run("r", "test", "c", ExecutionPolicy(throttle=5 * MB), {NAME: move}, {})
        run = replace(run, applied=rates, inbound={NAME: self.inbound} if self.inbound else {})
        picture = Picture(
            reassignments={},
            partitions={NAME: PartitionState(self.leader, (3, 2, 1), self.isr)},
            names=frozenset({NAME}),
            alive=self.alive,
            logs=None if not self.read else {} if self.silent else {3: BrokerLogs(self.dirs, copies)},
            ends=None if self.behind is None else {self.leader: {NAME: 10}, 3: {NAME: 10 - self.behind}},
            state=self.state(),
            rates_of_others=self.rates_of_others,
        )
        return stall_cause(run, move, picture, too_slow=self.too_slow)


NIGHTS: Mapping[str, tuple[Night, str]] = {
    "destination-down": (Night(alive=frozenset({1, 2})), "Broker 3, its destination, is not alive"),
    "no-leader": (Night(leader=-1), "bring one of the brokers 1,2 back"),
    "destination-unreachable": (Night(silent=True), "counts as alive and does not answer"),
    "destination-cordoned": (Night(cordoned=True), "remove its log dirs from cordoned.log.dirs"),
    "log-dir-failed": (Night(dirs=(replace(DIR, error="KAFKA_STORAGE_ERROR"),)), "/data/0 of broker 3 is offline"),
    "disk-full": (Night(dirs=(replace(DIR, usable_bytes=20 * MB),)), "19.1 MiB of disk space free, and 47.7 MiB still"),
    "throttle-too-low": (Night(inbound=6 * MB), "fall behind by 976.6 KiB each second"),
    "not-created": (Night(copied=None), "has not created t-0"),
    "not-added-to-isr": (Night(copied=100 * MB), "broker 1, the leader, does not add it to the ISR"),
    "slow": (Night(too_slow=CRAWLS), "2.9 MiB have arrived in 400 s"),
    "log-dir-copy": (Night(between_dirs=True), "Nothing arrives in /data/1 of broker 3, although it answers; 47.7 MiB"),
    "fetch-errors": (Night(inbound=0.5 * MB), "falls behind by 488.3 KiB more each second"),
}


@pytest.mark.parametrize("code", CAUSES)
def test_each_cause_is_told_from_the_others(code: str) -> None:
    """One thing is wrong, and that is what is said; a cause without a night of its own fails here."""
    night, words = NIGHTS[code]
    said = night.cause()
    assert said[0] == code
    assert words in said[1]


def test_a_copy_that_is_whole_and_smaller_than_the_others_is_not_called_unfetched() -> None:
    """Of a tiered topic it may begin at the last tiered offset: its log end says that nothing is missing."""
    assert Night(behind=0).cause()[0] == "not-added-to-isr"
    assert Night(behind=1).cause()[0] == "fetch-errors"
    assert Night(behind=None).cause()[0] == "fetch-errors"


def test_another_users_rate_is_called_theirs() -> None:
    """The rate in force is not ours: a user who reads the cause knows whom to ask."""
    code, detail = Night(inbound=1 * MB, rates_of_others={3: 500_000}).cause()
    assert code == "throttle-too-low"
    assert "its throttle is 488.3 KiB/s" in detail
    assert "that Ballast did not set" in detail


def test_what_is_plainly_broken_comes_before_what_follows_from_it() -> None:
    """A down destination explains the silence, the lag and the missing replica."""
    assert Night(alive=frozenset({1, 2}), silent=True, inbound=6 * MB).cause()[0] == "destination-down"


@pytest.mark.parametrize(
    ("night", "code", "words"),
    [
        (Night(alive=frozenset({1, 2})), "destination-down", "Broker 3, which is to copy it to /data/1, is not alive"),
        (Night(silent=True), "destination-unreachable", "Broker 3, which is to copy it to /data/1, counts as alive"),
        (
            Night(dirs=(LogDir("/data/1", error="KAFKA_STORAGE_ERROR"),)),
            "log-dir-failed",
            "/data/1 of broker 3 is offline",
        ),
        (Night(too_slow=CRAWLS), "slow", "2.9 MiB have arrived in 400 s"),
        (Night(leader=-1), "log-dir-copy", "ReplicaAlterLogDirsThread"),
    ],
)
def test_a_copy_between_log_dirs_has_causes_of_its_own_broker(night: Night, code: str, words: str) -> None:
    """It needs no leader and no other broker: what is said is about the broker that copies, and the dir that it copies to."""
    said = replace(night, between_dirs=True).cause()
    assert said[0] == code
    assert words in said[1]


ARRIVED = Night(copied=100 * MB)
FAILED = replace(DIR, error="KAFKA_STORAGE_ERROR")
FETCHES: dict[str, Value] = {
    "partition": "t-0",
    "brokers": (3,),
    "leader": 1,
    "left": 50 * MB,
    "records": -1,
    "inbound": 0.0,
}


@pytest.mark.parametrize(
    ("night", "said"),
    [
        (Night(leader=-1), note("no-leader", partition="t-0", replicas=(1, 2))),
        (Night(silent=True), note("destination-unreachable", broker=3)),
        (Night(cordoned=True), note("destination-cordoned", broker=3)),
        (Night(dirs=(FAILED,)), note("log-dir-failed", broker=3, path="/data/0", error=FAILED.error)),
        (
            Night(dirs=(replace(FAILED, path="/data/1"),), between_dirs=True),
            note("log-dir-failed", broker=3, path="/data/1", error=FAILED.error),
        ),
        (
            Night(dirs=(replace(DIR, usable_bytes=50 * MB - 1),)),
            note("disk-full", broker=3, free=50 * MB - 1, left=50 * MB),
        ),
        (
            Night(dirs=(replace(DIR, usable_bytes=20 * MB), UNTOLD)),
            note("disk-full", broker=3, free=20 * MB, left=50 * MB),
        ),
        (
            Night(dirs=(replace(DIR, usable_bytes=UNKNOWN), replace(UNTOLD, usable_bytes=20 * MB))),
            note("fetch-errors", **FETCHES),
        ),
        (Night(dirs=(replace(DIR, usable_bytes=UNKNOWN),)), note("fetch-errors", **FETCHES)),
        (
            Night(between_dirs=True),
            note("log-dir-copy", partition="t-0", dirs={3: "/data/1"}, left=50 * MB),
        ),
        (Night(copied=None), note("not-created", broker=3, partition="t-0")),
        (ARRIVED, note("not-added-to-isr", broker=3, leader=1, partition="t-0")),
        (replace(ARRIVED, behind=0), note("not-added-to-isr", broker=3, leader=1, partition="t-0")),
        (replace(ARRIVED, behind=1), note("fetch-errors", **FETCHES | {"left": 0, "records": 1})),
        (replace(ARRIVED, isr=(1, 2, 3)), note("fetch-errors", **FETCHES | {"left": 0})),
        (
            Night(dirs=(replace(DIR, usable_bytes=50 * MB),), inbound=2.0),
            note("fetch-errors", **FETCHES | {"inbound": 2.0}),
        ),
        (Night(leader=0), note("fetch-errors", **FETCHES | {"leader": 0})),
        (Night(read=False), note("fetch-errors", **FETCHES)),
    ],
)
def test_a_cause_has_its_figures(night: Night, said: MoveNote) -> None:
    """Just enough room is room, broker 0 is a leader, one record too few is no copy, and what was not read says nothing.

    A log dir whose room is unknown says nothing of the others; where it holds the copy, nothing is said.
    """
    assert night.note() == said


def test_the_leaders_rate_may_be_what_holds_a_copy_back() -> None:
    """The destination's is high enough."""
    lack = Night(inbound=1 * MB, leader_rate=MB).note().values["lack"]
    assert isinstance(lack, RateShortfall)
    assert (lack.broker, lack.side, lack.rate_bytes_per_s) == (1, "leader", MB)
