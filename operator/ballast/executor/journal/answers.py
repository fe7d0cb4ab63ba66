"""What a process that holds the lock answers to requests: codes with figures, rendered as the journal and the page have them.

A daemon and a command answer in the same words.  What only a daemon can do (plans, drains) is answered there.
"""

from __future__ import annotations

from typing import ClassVar

from ballast.core.catalogue import Message, Table
from ballast.ports.journal import EXPIRES_S, Request, is_ahead, is_expired, is_forgotten


class RequestAnswer(Message):
    """What came of a request."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        # The pause.
        "paused": "Paused by {by}: nothing new starts, moves in progress go on.",
        "resumed": "Resumed by {by}.",
        "not-paused": "It was not paused.",
        # One run.
        ("done", "cancel"): "{by} cancelled run {run}.",
        ("done", "rollback"): "{by} cancelled run {run} and requested a rollback of its completed moves.",
        ("requested", "cancel"): "{by} requested to cancel run {run}. If the run ends first, nothing is cancelled.",
        ("requested", "rollback"): (
            "{by} requested to cancel run {run} and to roll back its completed moves. If the run ends first, nothing is rolled back."
        ),
        ("done", "pause"): "{by} paused run {run}.",
        ("done", "resume"): "{by} resumed run {run}.",
        # The lock.
        "run-left": "the lock is released; ballast runs show {run} tells whether that run is still open",
        "lock-free": "the lock was free already",
        "too-late": "too late: the process that requested the lock no longer waits for it",
        # What is not obeyed.
        "busy": "{holder} holds the lock and executes run {run}. Ask again when it has ended.",
        "expired": (
            "Request expired: {by} asked to {kind} more than {limit_s:time} ago. Send it again if it is still wanted."
        ),
        "clock-ahead": (
            "Request refused: it was sent by a clock that is {ahead_s:time} ahead. Correct that clock and send it again."
        ),
        "names-no-run": "A {kind} names its run. Another one may have begun since it was asked for.",
        "unknown": "Request refused: this version of Ballast does not know {kind}.",
    }


def answer_done(request: Request, run_id: str) -> RequestAnswer:
    """The answer to who asked something of a run."""
    return RequestAnswer("done", {"by": request.by, "run": run_id}, request.kind)


def answer_asked(request: Request, run_id: str) -> RequestAnswer:
    """The answer to who asked to cancel a run whose next look takes that up."""
    return RequestAnswer("requested", {"by": request.by, "run": run_id}, request.kind)


def answer_stale(request: Request, now_ms: int) -> RequestAnswer | None:
    """The refusal of what was sent too long ago, or by a clock too far ahead; None where it is to be executed."""
    if is_ahead(request, now_ms):
        return RequestAnswer("clock-ahead", {"ahead_s": (request.at_ms - now_ms) / 1000})
    if request.kind == "take-over":
        return RequestAnswer("too-late") if is_forgotten(request, now_ms) else None
    return answer_expired(request) if is_expired(request, now_ms) else None


def answer_expired(request: Request) -> RequestAnswer:
    """The answer to who asked so long ago that it may not be meant any more."""
    return RequestAnswer("expired", {"by": request.by, "kind": request.kind, "limit_s": EXPIRES_S})
