"""What a process that holds the lock answers to requests: codes with figures, rendered as the journal and the page have them.

A daemon and a command answer in the same words.  What only a daemon can do (plans, drains) is answered there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ballast.core.catalogue import Catalogue, Message
from ballast.core.wording import human_time
from ballast.ports.journal import EXPIRES_S, Request

SENTENCES: Final[Mapping[str, str]] = {
    # The pause.
    "paused": "Paused by {by}: nothing new starts, moves in progress go on.",
    "resumed": "Resumed by {by}.",
    "not-paused": "It was not paused.",
    # One run.
    "done/cancel": "{by} cancelled run {run}.",
    "done/rollback": "{by} cancelled run {run} and asked to undo what had arrived.",
    "done/pause": "{by} paused run {run}.",
    "done/resume": "{by} resumed run {run}.",
    # The lock.
    "run-left": "run {run} stays open for you to resume",
    "lock-free": "the lock was free already",
    "too-late": "too late: the process that requested the lock no longer waits for it",
    # What is not obeyed.
    "busy": "{holder} holds the lock and carries out run {run}. Ask again when it has ended.",
    "expired": (
        "Request expired: {by} asked to {kind} more than {limit_s:time} ago. Send it again if it is still wanted."
    ),
}
"""Every answer by its code."""


class RequestAnswer(Message):
    """What came of a request."""

    __slots__ = ()
    sentences = SENTENCES
    catalogue = Catalogue({"time": human_time})


def answer_done(request: Request, run_id: str) -> RequestAnswer:
    """The answer to who asked something of a run."""
    return RequestAnswer(f"done/{request.kind}", {"by": request.by, "run": run_id})


def answer_expired(request: Request) -> RequestAnswer:
    """The answer to who asked so long ago that it may not be meant any more."""
    return RequestAnswer("expired", {"by": request.by, "kind": request.kind, "limit_s": EXPIRES_S})
