"""What is said of a run beside what becomes of its moves: a code with its figures, and its sentence.

Something went wrong that is being tried again, or was left as it is.
"""

from __future__ import annotations

from typing import ClassVar

from ballast.core.catalogue import Catalogue, Message, Table
from ballast.ports.cluster import Outcome


def why(outcome: Outcome) -> str:
    """Why a setting could not be changed, without its full stop."""
    return (outcome.message or outcome.code).rstrip(".")


class RunNote(Message):
    """Something that a person should know of the run."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        # The run.
        "not-begun": "Run {run} was not started: nothing was journaled or sent.",
        "take-over": "{by} takes over.",
        "requested": "{by} requests: {command}.",
        "paused": "Paused by {by}: nothing new starts until it is resumed on the page; moves in progress go on.",
        "resumed": "Resumed by {by}.",
        "requested-too-late": "{command}: run {run} had already finished.",
        "request-not-read": "Request {request} in the journal cannot be read and is not executed: {message}",
        "tried-again": "{message} It is tried again.",
        "unanswered": "No answer to {effect}: {message} The result is read with the next metadata.",
        # Throttles.
        "throttle-changed-externally": "{setting} was changed externally to {value}; it is left as it is.",
        "throttle-topic-recreated": "Topic {topic} was deleted and recreated; what was set on the old one went with it.",
        "throttle-not-removed": "Not removed: {setting}: {outcome:why}.",
        "throttle-not-removed-now": "Not removed now: {setting}: {outcome:why}. It is in the journal; the next start removes it.",
        "throttles-not-removed": "{message}",
        "restore-by-hand": "Throttle settings that this process has not yet restored, and the commands that restore them:",
        "restore-command": "{command}",
        # The journal.
        "journal-silent": (
            "The journal has not been writable for {silent_s:.0f} s: {message} Moves in progress are followed; nothing new "
            "starts and no throttle changes until it is."
        ),
        "journal-answers": "The journal is writable again.",
        "journal-not-read": "The run has ended and is in the journal, which cannot be read now: {message}",
        "old-runs-kept": "Old runs stay in the journal until the next run ends: {message}",
        "journal-lost": "The journal was {how}: {message}",
        "journal-not-recreated": "It cannot be recreated yet: {message} It is tried again.",
        "journal-recreated": "The journal was recreated with everything that this process knew of it; the run goes on.",
        "journal-recreated-empty": (
            "The journal was deleted and recreated empty: which throttles and moves were Ballast's is not known "
            "(ballast throttles; ballast throttles --clean)."
        ),
        "not-in-journal": "The state of run {run} is not in the journal: {message}",
        "journal-replicated": "{topic} gets replicas on {replicas:list}, so that it survives the loss of a broker.",
        "journal-not-replicated": "{topic} keeps its replicas for now: {outcome:words}",
        "journal-replicas-kept": "The journal's replicas stay as they are for now: {message}",
    }
    catalogue = Catalogue(
        {
            "why": why,
            "words": str,
        }
    )
