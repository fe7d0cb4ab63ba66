"""Log dirs that reported an error when a plan was made: no move repairs a disk, so every plan names them, and what to do.

They do not decide a plan's status: what was asked may be reached all the same.  No balancing takes replicas off a failed log dir,
since a disk that is replaced brings them back for less; that is a repair of its own (``Evacuate.offline_only``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

from ballast.core.catalogue import Catalogue, Message, Table, Template
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


def _tell(e: LogDirError) -> str:
    told = human_log_dir_error(e.broker, e.path, e.error, failed=e.error == STORAGE_ERROR)
    if not e.offline_replicas:
        return told
    are = "is" if e.offline_replicas == 1 else "are"
    return f"{told} {human_many(e.offline_replicas, 'replica')} on this broker {are} offline."


class LogDirWarning(Message):
    """A log dir that reports an error, and what can be done about it."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        "failed": Template("{log_dir:told}", "Replace the disk and restart broker {log_dir.broker}."),
        ("failed", "offline"): Template(
            "{log_dir:told}",
            "Replace the disk and restart broker {log_dir.broker}, or rebuild its offline replicas on other brokers: "
            "ballast plan evacuate {log_dir.broker} --offline-only",
        ),
        ("failed", "emptied"): Template(
            "{log_dir:told}",
            "This plan leaves no replica on broker {log_dir.broker}: then replace the disk, or stop the broker.",
        ),
        "error": Template("{log_dir:told}", "See the log of broker {log_dir.broker}."),
        "more": Template("{count:more} reported errors.", "ballast status --all names them."),
    }
    catalogue = Catalogue({"told": _tell, "more": lambda count: human_many(count, "more log dir")})


def warnings(plan: Plan) -> Iterator[LogDirWarning]:
    """What is wrong and what can be done about it, for each log dir."""
    emptied = set(plan.summary.get("empty_afterwards", ()))
    rebuilt = {b for m in plan.moves if m.reason.code == "evacuate" for b in m.removing}
    for e in plan.log_dir_errors[:NAMED]:
        if e.error != STORAGE_ERROR:
            yield LogDirWarning("error", {"log_dir": e})
        else:
            left = "offline" if e.offline_replicas and e.broker not in rebuilt else ""
            yield LogDirWarning("failed", {"log_dir": e}, "emptied" if e.broker in emptied else left)
    if (more := len(plan.log_dir_errors) - NAMED) > 0:
        yield LogDirWarning("more", {"count": more})
