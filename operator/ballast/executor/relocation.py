"""Taking back moves between the log dirs of a broker.

Kafka has no call for it: a replica that is ordered to the log dir where it lies drops the copy it was making elsewhere.
That is what the stock tool's ``--cancel`` does too.
"""

from __future__ import annotations

from dataclasses import replace

from ballast.core.cluster import TopicPartition
from ballast.executor.observation import Picture
from ballast.executor.run import MoveRun, Now, Stage
from ballast.executor.transitions import move_to
from ballast.ports.cluster import BrokerLogs

QUIET_S = 5.0
"""How long an order that was journaled and perhaps sent late has to show before its absence counts."""

STAYS = "The run was cancelled before its replicas were in the log dirs asked for."


def taken_back(m: MoveRun, picture: Picture, now: Now, places: dict[tuple[TopicPartition, int], str]) -> MoveRun:
    """A relocation of a cancelled run: its copies are stopped through ``places``; it ends when none is left.

    Replicas that have reached their log dir stay there, as moves that have arrived do.
    """
    if picture.logs is None or m.retry_at_s > now.s:
        return m
    unread = False
    copies: dict[int, str] = {}
    for broker, path in zip(m.move.new, m.move.log_dirs or (), strict=False):
        logs = picture.logs.get(broker)
        if logs is None:
            unread |= path != "any" and broker in picture.alive
        elif (home := home_of(logs, m.move.name, copied_to=path)) is not None:
            copies[broker] = home
    if copies:
        places.update({(m.move.name, b): home for b, home in copies.items()})
        return replace(m, retry_at_s=now.s + QUIET_S)
    if unread or now.s - m.entered_s < QUIET_S:
        return m
    if m.move.old == m.move.new:
        return move_to(m, Stage.ROLLED_BACK, now, outcome="rolled-back")
    return move_to(m, Stage.FAILED, now, outcome="log-dir", detail=STAYS)


def home_of(logs: BrokerLogs, name: TopicPartition, *, copied_to: str) -> str | None:
    """Where a replica lies that the broker is copying to this log dir; None where it is making no such copy."""
    places = logs.replicas.get(name, ())
    if not any(p.is_future and p.log_dir == copied_to for p in places):
        return None
    return next((p.log_dir for p in places if not p.is_future), None)


def between_dirs(m: MoveRun, picture: Picture) -> tuple[int, int] | None:
    """Bytes in the log dirs asked for, and bytes that belong there; None where a broker concerned was not read."""
    done = total = 0
    for broker, path in zip(m.move.new, m.move.log_dirs or (), strict=False):
        if path == "any":
            continue
        logs = (picture.logs or {}).get(broker)
        if logs is None:
            return None
        places = logs.replicas.get(m.move.name, ())
        there = sum(p.size_bytes for p in places if p.log_dir == path)
        done += there
        total += max([there, *(p.size_bytes for p in places if not p.is_future)])
    return done, total


def stopped_on(m: MoveRun, picture: Picture) -> int | None:
    """The broker on which a copy that had been seen is gone without having arrived: not ours to begin again.

    A copy that was never seen may have been ordered in vain, and is ordered again.
    """
    figures = None if m.move.adding else between_dirs(m, picture)
    if figures is None or figures[0] >= m.copied_bytes:
        return None
    for broker, path in zip(m.move.new, m.move.log_dirs or (), strict=False):
        places = (picture.logs or {})[broker].replicas.get(m.move.name, ()) if path != "any" else ()
        if path != "any" and not any(p.log_dir == path for p in places):
            return broker
    return None
