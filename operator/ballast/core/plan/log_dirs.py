"""Log dirs that reported an error when a plan was made: no move repairs a disk, so every plan names them, and what to do.

They do not decide a plan's status: what was asked may be reached all the same.  No balancing takes replicas off a failed log dir,
since a disk that is replaced brings them back for less; that is a repair of its own (``Evacuate.offline_only``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ballast.core.cluster import STORAGE_ERROR, ClusterState
from ballast.core.plan.model import LogDirError, Plan
from ballast.core.wording import human_log_dir_error, human_many

NAMED: Final = 20
"""Log dirs that are named one by one; the rest are counted."""


def log_dir_errors(state: ClusterState) -> tuple[LogDirError, ...]:
    """Every log dir that reports an error, with the offline replicas of its broker."""
    p = state.partitions
    return tuple(
        LogDirError(b.id, d.path, d.error or "", int((p.offline & (p.replica == b.id)).sum()))
        for b in state.brokers
        for d in b.bad_log_dirs
    )


def brokers_to_rebuild(state: ClusterState) -> frozenset[int]:
    """Live brokers with a failed log dir and offline replicas."""
    errors = log_dir_errors(state)
    return frozenset(e.broker for e in errors if e.error == STORAGE_ERROR and e.offline_replicas) & state.alive


def with_log_dir_errors(plan: Plan, state: ClusterState) -> Plan:
    """The plan, with every log dir that reports an error in the state that it was made from."""
    return replace(plan, log_dir_errors=log_dir_errors(state))


def warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    """What is wrong and what can be done about it, for each log dir."""
    emptied = set(plan.summary.get("empty_afterwards", ()))
    rebuilt = {b for m in plan.moves if m.reason.code == "evacuate" for b in m.removing}
    for e in plan.log_dir_errors[:NAMED]:
        failed = e.error == STORAGE_ERROR
        told = human_log_dir_error(e.broker, e.path, e.error, failed=failed)
        if e.offline_replicas:
            told += f" {human_many(e.offline_replicas, 'replica')} on this broker {'is' if e.offline_replicas == 1 else 'are'} offline."
        if not failed:
            remedy = f"See the log of broker {e.broker}."
        elif e.broker in emptied:
            remedy = f"This plan leaves no replica on broker {e.broker}: then replace the disk, or stop the broker."
        else:
            rebuild = "." if e.broker in rebuilt else _or_rebuild(e)
            remedy = f"Replace the disk and restart broker {e.broker}{rebuild}"
        yield told, remedy
    if (more := len(plan.log_dir_errors) - NAMED) > 0:
        yield f"{human_many(more, 'more log dir')} reported errors.", "ballast status --all names them."


def _or_rebuild(e: LogDirError) -> str:
    """The other way: the disk stays as it is, and what was on it is rebuilt on other brokers."""
    if not e.offline_replicas:
        return "."
    return f", or rebuild its offline replicas on other brokers: ballast plan evacuate {e.broker} --offline-only"
