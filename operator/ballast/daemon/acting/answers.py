"""What the daemon alone answers to requests: approvals, plans, drains, and cancels of runs that it does not have."""

from __future__ import annotations

from typing import Any, Final

from ballast.core.catalogue import Catalogue, Message, Table, Template
from ballast.core.wording import human_brokers
from ballast.errors import Refused

SENTENCES: Final[Table] = {
    # Plans.
    "approved": "{by} approved {plan}. {effect}",
    "rejected": "{by} rejected {plan}{reason:reason}.",
    "plan-requested": "A plan was asked for by {by}: {intent}.",
    "plan-ready": "The plan is ready: {outline}.",
    "no-plan": "No plan: {obstacles}.",
    "no-plan-needed": "No plan is needed: there is nothing to do.",
    "plan-gone": Template(
        "There is no plan {plan} any more.", "The cluster changed; look at the plans that are proposed now."
    ),
    "plan-unknown": Template("No plan is called {intent!r}.", "Ask for {known}."),
    # The run.
    "nothing-runs": Template("Nothing is being executed.", "Name the run, if one is about to begin."),
    "run-in-progress": Template("Run {run} is in progress.", "Ask again when it has ended."),
    "run-not-executed": Template("Run {run} is not being executed.", "ballast runs show {run} tells how it ended."),
    "another-run": "Run {run} is not being executed; run {current} is.",
    "removing-throttles": "No run is being executed: throttles of earlier runs are being removed, and that cannot be cancelled.",
    "run-elsewhere": "Run {run} is another process's, which does not hear of it: this one only observes.",
    # Drains.
    "drained-empty": "Broker {broker} holds no replica and takes none until its drain is ended.",
    "drain-ended": "{by} ended the drain of broker {broker}.",
    ("drain-ended", "kept"): "{by} ended the drain of broker {broker}. balance.draining still names it.",
    "broker-unknown": "There is no broker {broker}.",
    "not-draining": Template("Broker {broker} is not draining on request.", "{drained:drained}"),
    # The lock.
    "lock-released": "The lock is released for {by}; Ballast acquires it again once it is free.",
    "observes": "This process only observes: there is nothing to approve or to cancel.",
}
"""Every answer by its code."""


def _name_drained(brokers: list[int]) -> str:
    return f"Draining: {human_brokers(brokers)}." if brokers else "No broker is draining on request."


class DaemonAnswer(Message):
    """What came of a request, where only a daemon could do it."""

    __slots__ = ()
    sentences = SENTENCES
    catalogue = Catalogue({"reason": lambda reason: f": {reason}" if reason else "", "drained": _name_drained})


def answer(code: str, cause: str = "", **values: Any) -> str:
    """The sentence of an answer."""
    return str(DaemonAnswer(code, values, cause))


def refusal(code: str, **values: Any) -> Refused:
    """The answer as a refusal, with what to do about it."""
    told = DaemonAnswer(code, values)
    return Refused(str(told), hint=told.remedy or None)
