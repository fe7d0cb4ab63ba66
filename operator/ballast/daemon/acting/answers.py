"""What the daemon alone says: what came of its plans, and its answers to approvals, drains, and cancels of runs that it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from ballast.core.catalogue import Catalogue, Message, Table, Template
from ballast.core.wording import human_brokers
from ballast.daemon.observing.reading import Held
from ballast.errors import Refused

WITHDRAWN: Final = "{plan} was withdrawn, since"
ASK_AGAIN: Final = "Ask again afterwards."


def _name_drained(brokers: list[int]) -> str:
    return f"Draining: {human_brokers(brokers)}." if brokers else "No broker is draining on request."


def _since(objections: Sequence[Message]) -> str:
    return f", since {'; '.join(map(str, objections))}" if objections else ""


def _held(groups: Sequence[Held]) -> str:
    said = []
    for group in groups:
        wait, rack = ("waits", "its rack") if len(group.brokers) == 1 else ("wait", "their rack")
        until = datetime.fromtimestamp(group.until_ms / 1000, UTC)
        said.append(
            f"{human_brokers(group.brokers, start=True)} {wait} until {until:%Y-%m-%d %H:%M:%S} UTC: "
            f"broker {group.returned} of {rack} came up, and the rest usually follows."
        )
    return " ".join(said)


class DaemonAnswer(Message):
    """What came of a plan, or of a request where only a daemon could do it."""

    __slots__ = ()
    sentences: ClassVar[Table] = {
        # Plans.
        "approved": "{by} approved {plan}. {effect}",
        "rejected": "{by} rejected {plan}{reason:reason}.",
        "plan-requested": "{by} requested a plan: {intent}.",
        "plan-ready": "The plan is ready: {outline}.",
        "no-plan": "No plan: {obstacles:obstacles}.",
        "no-plan-needed": "No plan is needed: there is nothing to do.",
        "plan-gone": Template(
            "There is no plan {plan} any more.", "The cluster changed; look at the plans that are proposed now."
        ),
        "plan-unknown": Template("No plan is called {intent!r}.", "Ask for {known}."),
        # What came of a plan.
        "run-ended": "A run has just ended: the cluster is read again before anything is decided.",
        "no-planning": "No planning while run {run} is in progress.",
        "proposed": "Proposed plan: {outline}. {guard.detail}",
        "rejected-before": "{plan} was rejected; another plan is proposed when the cluster has changed.",
        "approval-pending": "Waiting for approval of {plan}{objections:since}: {outline}.",
        "approvals-pending": "Waiting for approval: {plans:names}.",
        "guarded": "{plan} has to wait: {guard.detail}",
        "held": "{held:held}",
        "left-to-person": "{plan} waits for {asked}, which {by} requested: {outline}.",
        "plan-outdated": "The assignment changed since {plan} was planned; it is planned anew.",
        "lock-gone": "{plan} does not start: this process no longer holds the lock.",
        "cannot-start": "This process only observes: it cannot start a run.",
        "run-started": "Run {run} started{by:approved}: {outline}.",
        "nothing-pending": "No pending action.",
        ("withdrawn", "run-began"): f"{WITHDRAWN} run {{run}} began ({{outline}}). {ASK_AGAIN}",
        ("withdrawn", "run-in-progress"): f"{WITHDRAWN} run {{run}} is in progress. {ASK_AGAIN}",
        ("withdrawn", "run-ended"): f"{WITHDRAWN} a run has changed the cluster. {ASK_AGAIN}",
        ("withdrawn", "outage"): f"{WITHDRAWN} the cluster cannot be read. {ASK_AGAIN}",
        # The run.
        "nothing-runs": Template("Nothing is being executed.", "Name the run, if one is about to begin."),
        "run-in-progress": Template("Run {run} is in progress.", "Ask again when it has ended."),
        "run-not-executed": Template("Run {run} is not being executed.", "ballast runs show {run} tells how it ended."),
        "another-run": "Run {run} is not being executed; run {current} is.",
        "removing-throttles": "No run is being executed: throttles of earlier runs are being removed, and that cannot be cancelled.",
        "run-elsewhere": "Another process executes run {run}. This process only observes and cannot forward the request.",
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
    catalogue = Catalogue(
        {
            "approved": lambda by: f", approved by {by}" if by else "",
            "drained": _name_drained,
            "since": _since,
            "held": _held,
            "obstacles": lambda obstacles: "; ".join(f"{o.subject}: {o.detail}" for o in obstacles),
        }
    )


def answer(code: str, cause: str = "", /, **values: Any) -> DaemonAnswer:
    """An answer of this code."""
    return DaemonAnswer(code, values, cause)


def refusal(code: str, **values: Any) -> Refused:
    """The answer as a refusal, with what to do about it."""
    told = answer(code, **values)
    return Refused(str(told), hint=told.remedy or None)
