"""Cancels moves between the log dirs of a broker.

Kafka has no call for it: a replica that is ordered to the log dir where it lies drops the copy it was making elsewhere.
That is what the stock tool's ``--cancel`` does too.
"""

from __future__ import annotations

from dataclasses import replace

from ballast.core.cluster import TopicPartition
from ballast.executor.machine.notes import note
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.run import MoveRun, Now, Run
from ballast.executor.machine.stages import Failed, Relocating, RolledBack
from ballast.executor.machine.transitions import move_to
from ballast.ports.cluster import BrokerLogs

QUIET_S = 5.0
"""How long an order that was journaled and perhaps sent late has to show before its absence counts."""


def is_given_up(run: Run, stage: Relocating, now: Now) -> bool:
    """Has it made no progress, or progressed too slowly, for longer than the run waits?"""
    patience = run.policy.cancel_stalled_after_s
    return stage.given_up or (patience is not None and stage.cause != "" and now.s - stage.named_s >= patience)


def stop_copies(
    m: MoveRun, stage: Relocating, picture: Picture, now: Now, places: dict[tuple[TopicPartition, int], str]
) -> MoveRun:
    """A relocation that was cancelled or given up: its copies are stopped through ``places``; it ends when none is left.

    Replicas that have reached their log dir stay there, as moves that have arrived do.
    """
    wanted = m.move.named_dirs
    logs = picture.logs or {}
    m = replace(m, stage=stage)
    if stage.retry_at_s > now.s:
        return m
    orders = {
        b: home for b, path in wanted.items() if b in logs and (home := source_log_dir(logs[b], m.move.name, path))
    }
    if orders:
        places.update({(m.move.name, b): home for b, home in orders.items()})
        return replace(m, stage=replace(stage, retry_at_s=now.s + QUIET_S))
    silent = [b for b in wanted if b not in logs]
    if not picture.alive.isdisjoint(silent) or now.s - m.entered_s < QUIET_S:
        return m
    if silent:
        return move_to(m, Failed("log-dir"), now, note("copy-not-stopped", broker=silent[0], path=wanted[silent[0]]))
    why = m.note if stage.given_up else None
    if m.move.old == m.move.new:
        return move_to(m, RolledBack("timed-out" if stage.given_up else "rolled-back"), now, why)
    return move_to(m, Failed("log-dir"), now, why or note("log-dirs-cancelled"))


def source_log_dir(logs: BrokerLogs, name: TopicPartition, copied_to: str) -> str | None:
    """Where a replica lies that the broker is copying to this log dir; None where it is making no such copy."""
    places = logs.replicas.get(name, ())
    if not any(p.is_future and p.log_dir == copied_to for p in places):
        return None
    return next((p.log_dir for p in places if not p.is_future), None)


def count_log_dir_bytes(m: MoveRun, picture: Picture) -> tuple[int, int] | None:
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


def brokers_seen_with_copy(m: MoveRun, stage: Relocating, picture: Picture) -> frozenset[int]:
    """The brokers on which the replica, or a copy of it, was ever seen in the log dir asked for."""
    logs = picture.logs or {}
    return stage.seen_on | {b for b, path in m.move.named_dirs.items() if b in logs and _is_in(logs[b], m, path)}


def find_lost_copy(m: MoveRun, stage: Relocating, picture: Picture) -> int | None:
    """The broker on which a copy that had been seen is gone without having arrived: not ours to begin again.

    A copy that was never seen may have been ordered in vain, and is ordered again.
    """
    logs = picture.logs or {}
    for broker, path in m.move.named_dirs.items():
        if broker in stage.seen_on and broker in logs and not _is_in(logs[broker], m, path):
            return broker
    return None


def _is_in(logs: BrokerLogs, m: MoveRun, path: str) -> bool:
    return any(p.log_dir == path for p in logs.replicas.get(m.move.name, ()))
