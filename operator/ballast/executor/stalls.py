"""Why a move stands still, as the sentence that a person needs at night; the likeliest cause that the picture proves."""

from __future__ import annotations

from ballast.core.cluster import UNKNOWN
from ballast.core.throttles import FOLLOWER_RATE, Setting, mb, shortfall
from ballast.executor.observation import Picture
from ballast.executor.run import MoveRun, Run


def stall_cause(run: Run, m: MoveRun, picture: Picture) -> str:
    """Dead or cordoned destination, no leader, full disk, a throttle under the intake, or what is left: fetch errors."""
    return _brokers(m, picture) or _disks(m, picture) or _throttle(run, m, picture) or _unknown(m)


def _brokers(m: MoveRun, picture: Picture) -> str:
    for broker in m.move.adding:
        if broker not in picture.alive:
            return f"Broker {broker}, its destination, is not alive; the move goes on when it returns."
    state = picture.partitions.get(m.move.name)
    if state is not None and state.leader < 0:
        return f"{m.move.name} has no leader to copy from; bring one of the brokers {list(m.move.old)} back."
    for broker in m.move.adding:
        known = picture.state.broker(broker) if picture.state is not None else None
        if known is not None and known.cordoned:
            return f"Broker {broker}, its destination, is cordoned; remove its log dirs from cordoned.log.dirs."
    return ""


def _disks(m: MoveRun, picture: Picture) -> str:
    for broker in m.move.adding:
        logs = (picture.logs or {}).get(broker)
        if logs is None:
            continue
        failed = next((d for d in logs.dirs if d.error), None)
        if failed is not None:
            return f"Log dir {failed.path} of broker {broker} has failed: {failed.error}."
        free = [d.usable_bytes for d in logs.dirs]
        if free and min(free) != UNKNOWN and max(free) < max(m.left_bytes // max(len(m.move.adding), 1), 1):
            return f"Broker {broker} has {mb(max(free))} of disk left and {mb(m.left_bytes)} are still to come."
    return ""


def _throttle(run: Run, m: MoveRun, picture: Picture) -> str:
    rates = {}
    for broker in (*m.move.old, *m.move.adding):
        values = (run.applied or {}).get(Setting("broker", str(broker), FOLLOWER_RATE))
        if values:
            rates[broker] = int(next(iter(values)))
    state = picture.partitions.get(m.move.name)
    leader = state.leader if state is not None else -1
    lack = shortfall(m.move, leader, run.inbound.get(m.move.name, 0.0), rates)
    return f"{lack}." if lack is not None else ""


def _unknown(m: MoveRun) -> str:
    where = ", ".join(str(b) for b in m.move.adding) or "its replicas"
    return (
        f"Nothing has arrived on broker {where} although it is alive, has room and no throttle holds it back: "
        f"look for fetch errors of {m.move.name} in its log (ReplicaFetcherThread)."
    )
