"""Why a move stands still: the likeliest cause that the picture proves, as a note with what a person needs at night.

Causes are judged on a reading of the destinations' log dirs, in the order of ``CAUSES``: what is plainly broken first, what
is left when nothing else explains it last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ballast.core.cluster import UNKNOWN
from ballast.core.cluster.log_ends import lag
from ballast.core.throttles import FOLLOWER_RATE, LEADER_RATE, Setting, shortfall
from ballast.executor.machine.notes import MoveNote, note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.run import MoveRun, Run
from ballast.executor.machine.stages import Relocating
from ballast.ports.cluster import PartitionState, ReplicaLog

CAUSES: Final[Mapping[str, str]] = {
    "destination-down": "a destination is not alive",
    "no-leader": "the partition has no leader, so there is no replica to copy from",
    "destination-unreachable": "a destination is registered as alive and does not answer",
    "destination-cordoned": "a destination is cordoned",
    "log-dir-failed": "a log dir of a destination has failed",
    "disk-full": "what is still to be copied does not fit on a destination's disk",
    "throttle-too-low": "producers write faster than the throttle lets the copy follow",
    "not-created": "a destination answers and has not created the replica",
    "not-added-to-isr": "every byte has arrived, and the leader does not take the copy into the ISR",
    "slow": "bytes arrive, far fewer than the rate in force would let through",
    "log-dir-copy": "a broker answers and does not copy its replica to the other log dir",
    "fetch-errors": "the destination is alive, has room and is not held back, and nothing arrives",
}
"""Every cause of a stall and what it means."""


class _Case(NamedTuple):
    run: Run
    m: MoveRun
    picture: Picture
    too_slow: MoveNote | None
    """The arithmetic of a move that does copy, and is over its time all the same."""

    @property
    def name(self) -> str:
        return str(self.m.move.name)

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
    """Is a destination plainly unable to take the copy: down, or without a replica while one of its log dirs has failed?"""
    for broker in m.move.adding:
        logs = (picture.logs or {}).get(broker)
        failed = logs is not None and any(d.error for d in logs.dirs) and not logs.replicas.get(m.move.name)
        if failed or broker not in picture.alive:
            return True
    return False


def stall_cause(run: Run, m: MoveRun, picture: Picture, *, too_slow: MoveNote | None) -> MoveNote:
    """The first cause that the picture proves."""
    case = _Case(run, m, picture, too_slow)
    return next(cause for judge in _JUDGES if (cause := judge(case)) is not None)


def _log_dir_copy(case: _Case) -> MoveNote | None:
    """Causes of a copy between log dirs, which needs nothing but its own broker."""
    m, picture = case.m, case.picture
    if not isinstance(m.stage, Relocating):
        return None
    for broker, path in m.move.named_dirs.items():
        if broker not in picture.alive:
            return note("destination-down", "log-dir", broker=broker, path=path)
        logs = (picture.logs or {}).get(broker)
        if logs is None:
            return note("destination-unreachable", "log-dir", broker=broker, path=path)
        failed = next((d for d in logs.dirs if d.error and d.path == path), None)
        if failed is not None:
            return note("log-dir-failed", broker=broker, path=path, error=failed.error)
    return case.too_slow or note(
        "log-dir-copy", partition=case.name, dirs=dict(m.move.named_dirs), left=m.known_left_bytes
    )


def _brokers(case: _Case) -> MoveNote | None:
    m, picture = case.m, case.picture
    for broker in m.move.adding:
        if broker not in picture.alive:
            return note("destination-down", broker=broker)
    if m.move.name in picture.partitions and case.state.leader < 0:
        return note("no-leader", partition=case.name, replicas=m.move.old)
    for broker in m.move.adding:
        if picture.logs is not None and broker not in picture.logs:
            return note("destination-unreachable", broker=broker)
        known = picture.state.broker(broker) if picture.state is not None else None
        if known is not None and known.cordoned:
            return note("destination-cordoned", broker=broker)
    return None


def _disks(case: _Case) -> MoveNote | None:
    m = case.m
    for broker in m.move.adding:
        logs = (case.picture.logs or {}).get(broker)
        if logs is None:
            continue
        failed = next((d for d in logs.dirs if d.error), None)
        if failed is not None:
            return note("log-dir-failed", broker=broker, path=failed.path, error=failed.error)
        free = {d.path: d.usable_bytes for d in logs.dirs if d.usable_bytes != UNKNOWN}
        if not free or any(copy.log_dir not in free for copy in logs.replicas.get(m.move.name, ())):
            continue
        if max(free.values()) < max(m.left_bytes // max(len(m.move.adding), 1), 1):
            return note("disk-full", broker=broker, free=max(free.values()), left=m.known_left_bytes)
    return None


def _throttle(case: _Case) -> MoveNote | None:
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
    return note("throttle-too-low", lack=lack, theirs=lack.broker in case.picture.rates_of_others)


def _not_created(case: _Case) -> MoveNote | None:
    for broker in case.m.move.adding:
        if case.copies(broker) == ():
            return note("not-created", broker=broker, partition=case.name)
    return None


def _not_admitted(case: _Case) -> MoveNote | None:
    m = case.m
    outside = [b for b in m.move.adding if b not in case.state.isr]
    if not outside or not all(case.copies(b) for b in m.move.adding):
        return None
    behind = [case.behind(b) for b in outside]
    # A copy may be whole and smaller than the others: of a tiered topic it may begin at the last tiered offset (KIP-1023).
    whole = all(b == 0 for b in behind)
    # As large as the others, it may lack records still.
    if not whole and (m.size_unknown or m.left_bytes or any(b > 0 for b in behind)):
        return None
    return note("not-added-to-isr", broker=outside[0], leader=case.state.leader, partition=case.name)


def _slow(case: _Case) -> MoveNote | None:
    return case.too_slow


def _fetch_errors(case: _Case) -> MoveNote:
    m = case.m
    return note(
        "fetch-errors",
        partition=case.name,
        brokers=m.move.adding,
        leader=case.state.leader,
        left=m.known_left_bytes,
        records=max((case.behind(b) for b in m.move.adding), default=UNKNOWN),
        inbound=case.run.inbound.get(m.move.name, 0.0),
    )


_JUDGES: Final[tuple[Callable[[_Case], MoveNote | None], ...]] = (
    _log_dir_copy,
    _brokers,
    _disks,
    _throttle,
    _not_created,
    _not_admitted,
    _slow,
    _fetch_errors,
)
