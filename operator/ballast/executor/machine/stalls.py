"""Why a move stands still, as the sentence that a person needs at night; the likeliest cause that the picture proves.

Causes are judged on a reading of the destinations' log dirs, in the order of ``CAUSES``: what is plainly broken first, what
is left when nothing else explains it last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ballast.core.cluster import UNKNOWN
from ballast.core.cluster.log_ends import lag
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, Setting, mb, shortfall
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.patience import left_in_words
from ballast.executor.machine.run import MoveRun, Run
from ballast.executor.machine.stages import Relocating
from ballast.ports.cluster import PartitionState, ReplicaLog

CAUSES: Final[Mapping[str, str]] = {
    "destination-dead": "a destination is not alive",
    "no-leader": "the partition has no leader, so there is no replica to copy from",
    "destination-unreachable": "a destination is registered as alive and does not answer",
    "destination-cordoned": "a destination is cordoned",
    "log-dir-failed": "a log dir of a destination has failed",
    "disk-full": "what is still to come does not fit on a destination's disk",
    "throttle-too-low": "producers write faster than the throttle lets the copy follow",
    "not-created": "a destination answers and has not created the replica",
    "not-admitted": "every byte has arrived, and the leader does not take the copy into the ISR",
    "slow": "bytes arrive, far fewer than the rate in force would let through",
    "log-dir-copy": "a broker answers and does not copy its replica to the other log dir",
    "fetch-errors": "the destination is alive, has room and is not held back, and nothing arrives",
}
"""Every cause of a stall and what it means."""


class Cause(NamedTuple):
    """Why a move stands still: a stable code, and a sentence with what to do."""

    code: str
    detail: str


class _Case(NamedTuple):
    run: Run
    m: MoveRun
    picture: Picture
    crawling: str
    """The arithmetic of a move that does copy, and is over its time all the same."""

    @property
    def state(self) -> PartitionState:
        return self.picture.partitions.get(self.m.move.name) or PartitionState(UNKNOWN, (), ())

    def behind(self, broker: int) -> int:
        """Messages that its replica is behind the leader, or ``UNKNOWN``."""
        return lag(self.picture.ends or {}, self.state.leader, broker, self.m.move.name)

    def copies(self, broker: int) -> tuple[ReplicaLog, ...] | None:
        """The replica's logs on a destination; None when the broker did not say."""
        logs = (self.picture.logs or {}).get(broker)
        return None if logs is None else logs.replicas.get(self.m.move.name, ())


def is_broken(m: MoveRun, picture: Picture) -> bool:
    """Is a destination plainly unable to take the copy: dead, or without a replica while one of its log dirs has failed?"""
    for broker in m.move.adding:
        logs = (picture.logs or {}).get(broker)
        failed = logs is not None and any(d.error for d in logs.dirs) and not logs.replicas.get(m.move.name)
        if failed or broker not in picture.alive:
            return True
    return False


def stall_cause(run: Run, m: MoveRun, picture: Picture, *, crawling: str = "") -> Cause:
    """The first cause that the picture proves."""
    case = _Case(run, m, picture, crawling)
    return next(cause for judge in _JUDGES if (cause := judge(case)) is not None)


def _between_dirs(case: _Case) -> Cause | None:
    """A replica that is to change its log dir needs nothing but its own broker."""
    m, picture = case.m, case.picture
    if not isinstance(m.stage, Relocating):
        return None
    for broker, path in m.move.named_dirs.items():
        if broker not in picture.alive:
            said = f"Broker {broker}, which is to copy it to {path}, is not alive; the copy goes on when it returns."
            return Cause("destination-dead", said)
        logs = (picture.logs or {}).get(broker)
        if logs is None:
            return Cause(
                "destination-unreachable",
                f"Broker {broker}, which is to copy it to {path}, counts as alive and does not answer: it may be frozen or cut "
                "off. Restart the broker if it does not come back.",
            )
        failed = next((d for d in logs.dirs if d.error and d.path == path), None)
        if failed is not None:
            return Cause(
                "log-dir-failed",
                f"Log dir {path} of broker {broker} has failed ({failed.error}), as a disk does that is full or broken: "
                "make room or replace it and restart the broker, or cancel.",
            )
    where = ", ".join(f"{path} of broker {broker}" for broker, path in m.move.named_dirs.items())
    return _slow(case) or Cause(
        "log-dir-copy",
        f"Nothing arrives in {where}, although it answers; {left_in_words(m)} left. Look for errors of {m.move.name} in the "
        "broker's log (ReplicaAlterLogDirsThread), and whether somebody has set replica.alter.log.dirs.io.max.bytes.per.second.",
    )


def _brokers(case: _Case) -> Cause | None:
    m, picture = case.m, case.picture
    for broker in m.move.adding:
        if broker not in picture.alive:
            said = f"Broker {broker}, its destination, is not alive; the move goes on when it returns."
            return Cause("destination-dead", said)
    if m.move.name in picture.partitions and case.state.leader < 0:
        said = f"{m.move.name} has no leader to copy from; bring one of the brokers {list(m.move.old)} back."
        return Cause("no-leader", said)
    for broker in m.move.adding:
        if picture.logs is not None and broker not in picture.logs:
            return Cause(
                "destination-unreachable",
                f"Broker {broker}, its destination, counts as alive and does not answer: it may be frozen or cut off. "
                "The move goes on when it answers; restart the broker if it does not.",
            )
        known = picture.state.broker(broker) if picture.state is not None else None
        if known is not None and known.cordoned:
            said = f"Broker {broker}, its destination, is cordoned; remove its log dirs from cordoned.log.dirs."
            return Cause("destination-cordoned", said)
    return None


def _disks(case: _Case) -> Cause | None:
    m = case.m
    for broker in m.move.adding:
        logs = (case.picture.logs or {}).get(broker)
        if logs is None:
            continue
        failed = next((d for d in logs.dirs if d.error), None)
        if failed is not None:
            return Cause(
                "log-dir-failed",
                f"Log dir {failed.path} of broker {broker} has failed ({failed.error}), as a disk does that is full or "
                "broken: make room or replace it and restart the broker, or cancel.",
            )
        free = [d.usable_bytes for d in logs.dirs]
        if free and min(free) != UNKNOWN and max(free) < max(m.left_bytes // max(len(m.move.adding), 1), 1):
            said = f"Broker {broker} has {mb(max(free))} of disk left and {left_in_words(m)} still to come."
            return Cause("disk-full", said)
    return None


def _throttle(case: _Case) -> Cause | None:
    applied = case.run.applied or {}
    rates = {}
    for broker in (*case.m.move.old, *case.m.move.adding):
        key = FOLLOWER_RATE if broker in case.m.move.adding else LEADER_RATE
        if values := applied.get(Setting("broker", str(broker), key)):
            rates[broker] = int(next(iter(values)))
    rates |= case.picture.rates_of_others
    inbound = case.run.inbound.get(case.m.move.name, 0.0)
    lack = shortfall(case.m.move, case.state.leader, inbound, rates)
    if lack is None:
        return None
    whose = " (a rate that Ballast did not set)" if lack.broker in case.picture.rates_of_others else ""
    return Cause("throttle-too-low", f"{lack}{whose}.")


def _not_created(case: _Case) -> Cause | None:
    for broker in case.m.move.adding:
        if case.copies(broker) == ():
            return Cause(
                "not-created",
                f"Broker {broker}, its destination, answers and has not created {case.m.move.name}: "
                "look for errors of that partition in its log (state.change.logger, ReplicaManager).",
            )
    return None


def _not_admitted(case: _Case) -> Cause | None:
    m = case.m
    outside = [b for b in m.move.adding if b not in case.state.isr]
    if m.size_unknown or m.left_bytes or not outside or not all(case.copies(b) for b in m.move.adding):
        return None
    if any(case.behind(b) > 0 for b in outside):
        return None  # As large as the others, and records are still missing.
    return Cause(
        "not-admitted",
        f"Every byte has arrived on broker {outside[0]}, and broker {case.state.leader}, the leader, does not take it into "
        f"the ISR: look for AlterPartition and errors of {m.move.name} in the leader's log.",
    )


def _slow(case: _Case) -> Cause | None:
    return Cause("slow", case.crawling) if case.crawling else None


def _fetch_errors(case: _Case) -> Cause:
    m, leader = case.m, case.state.leader
    where = ", ".join(str(b) for b in m.move.adding) or "its replicas"
    inbound = case.run.inbound.get(m.move.name, 0.0)
    records = max((case.behind(b) for b in m.move.adding), default=UNKNOWN)
    behind = f" ({records:,} records)" if records > 0 else ""
    behind += f", and falls behind by {mb(inbound)} more each second" if inbound >= 1 else ""
    return Cause(
        "fetch-errors",
        f"Nothing arrives on broker {where} from broker {leader}, the leader, although it is alive, has room and no throttle "
        f"holds it back; {left_in_words(m)} left{behind}. Look for fetch errors of {m.move.name} in its log "
        f"(ReplicaFetcherThread), and whether it reaches broker {leader} on the brokers' own listener.",
    )


_JUDGES: Final[tuple[Callable[[_Case], Cause | None], ...]] = (
    _between_dirs,
    _brokers,
    _disks,
    _throttle,
    _not_created,
    _not_admitted,
    _slow,
    _fetch_errors,
)
