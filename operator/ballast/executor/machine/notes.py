"""Why a move or an election is where it is: a code with its figures, and the one place that says each in a sentence.

Decisions look at codes and figures.  The journal keeps them with the sentence: a note that was read from it says what it said when
it was written, whichever version wrote it.  A record of a version that kept the sentence alone makes a note that is ``journaled``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from ballast.core.catalogue import Catalogue, Message, Table
from ballast.core.guards import Verdict
from ballast.core.throttles import RateShortfall
from ballast.core.wording import human_brokers, human_bytes
from ballast.ports.cluster import Outcome

Value = int | float | str | bool | tuple[int, ...] | Mapping[int, str] | Outcome | Verdict | RateShortfall | None

JOURNALED: Final = "journaled"
"""The code of a note of which the journal has nothing but the sentence."""


@dataclass(frozen=True, slots=True)
class MoveNote(Message):
    """One reason."""

    text: str = field(default="", compare=False)
    """The sentence that the journal has; empty for a note of this process."""

    sentences: ClassVar[Table] = {
        # What was seen of a move.
        "deleted": "{partition} no longer exists.",
        "topic-recreated": "Topic {topic} was deleted and recreated: its id was {was} and is {now}.",
        "overridden": "{partition} is being moved to {replicas:list} by a reassignment that Ballast did not start.",
        "followed": "The move was in progress already and is followed.",
        "not-shown": "The cluster did not show the move; it is submitted again.",
        "never-shown": "{partition} was submitted {attempts:times} and never appeared in ListPartitionReassignments.",
        "assignment-changed-during-submit": (
            "{partition} had the replica list {replicas:list} when the move began; it is cancelled."
        ),
        "not-moving": "{partition} is no longer moving and has the replica list {replicas:list}.",
        "cancelled-by": "Cancelled by {by}.",
        "cancel-without-effect": "The cancel had no effect.",
        "arrived-before-cancel": "Completed before the cancellation.",
        "reassignment-reappeared": "It began again after its cancel, by a request that was sent before.",
        "other-order": (
            "{partition} is back on its old brokers in the order {replicas:list}, and {wanted:list} was not put back{answer:because}. "
            "Reassign it to {wanted:list} where its preferred leader is to be as before: that copies nothing."
        ),
        "changed-after-cancel": (
            "{partition} was back on its old brokers after its cancel and has the replica list {replicas:list} now; the run leaves it there. "
            "Reassign it to {wanted:list} where it is to be as before."
        ),
        "changed-after-arrival": "{partition} has the replica list {replicas:list} a moment after its move had completed.",
        "fell-out-of-sync": "The move of {partition} completed, and broker {broker} has fallen out of sync since.",
        "copy-gone": "Its copy on broker {broker} is gone: it was stopped, or the log dir has failed.",
        # What was decided.
        "cancel-unsafe": "It is not cancelled: none of its old replicas {replicas:list} is alive and in sync.",
        "cancel-below-min-isr": (
            "It is not cancelled: {in_sync} of its old replicas {replicas:list} are in sync, and min.insync.replicas is {min_isr}: "
            "writes with acks=all that succeed now would be rejected (NOT_ENOUGH_REPLICAS). It goes on until more of them are in sync."
        ),
        "not-in-log-dir": "The replica on broker {broker} is not in {path} after {attempts} attempts.",
        "log-dirs-cancelled": "The run was cancelled before its replicas were in the log dirs asked for.",
        "copy-not-stopped": "Broker {broker} is not alive and was not ordered to stop: its copy to {path} may go on when it returns.",
        "guard": "{verdict.detail}",
        "guard-for-too-long": "{verdict}",
        # What the cluster answered.
        "answer": "{answer:answer}",
        "cancel-refused": "The cancel was refused: {answer:answer}",
        "order-refused": "The old order was refused: {answer:answer}",
        "throttle-refused": "Its throttle could not be set: {answer:answer}",
        # Elections.
        "election-unanswered": "The cluster did not answer the request.",
        "election-cancelled": "The run was cancelled before this election.",
        # Why a move is stalled: see ``stalls.CAUSES``.
        "destination-down": "Broker {broker}, its destination, is not alive; the move goes on when it returns.",
        "no-leader": "{partition} has no leader to copy from; bring one of the brokers {replicas:list} back.",
        "destination-unreachable": (
            "Broker {broker}, its destination, counts as alive and does not answer: it may be frozen or cut off. "
            "The move goes on when it answers; restart the broker if it does not."
        ),
        "destination-cordoned": (
            "Broker {broker}, its destination, is cordoned; remove its log dirs from cordoned.log.dirs."
        ),
        "log-dir-failed": (
            "Log dir {path} of broker {broker} is offline ({error}), most often because its disk is full or broken: "
            "free space on it or replace it, and restart the broker, or cancel."
        ),
        "disk-full": "Broker {broker} has {free:bytes} of disk space free, and {left:left} still to be copied.",
        "throttle-too-low": "{lack}{theirs:theirs}.",
        "not-created": (
            "Broker {broker}, its destination, answers and has not created {partition}: "
            "look for errors of that partition in its log (state.change.logger, ReplicaManager)."
        ),
        "not-added-to-isr": (
            "Every byte has arrived on broker {broker}, and broker {leader}, the leader, does not add it to "
            "the ISR: look for AlterPartition and errors of {partition} in the leader's log."
        ),
        "slow": (
            "{done:bytes} have arrived in {passed_s:.0f} s, and {leg:bytes} were due within {allowed_s:.0f} s "
            "({throttled:source} {share:bytes}/s); {left:left} left."
        ),
        "log-dir-copy": (
            "Nothing arrives in {dirs:dirs}, although it answers; {left:left} left. Look for errors of {partition} in the "
            "broker's log (ReplicaAlterLogDirsThread), and whether replica.alter.log.dirs.io.max.bytes.per.second is set."
        ),
        "fetch-errors": (
            "Nothing arrives on {brokers:brokers} from broker {leader}, the leader, although it is alive, has free space and no "
            "throttle holds it back; {left:left} left{records:records}{inbound:inbound}. Look for fetch errors of {partition} "
            "in its log (ReplicaFetcherThread), and whether it reaches broker {leader} on the brokers' own listener."
        ),
        # Where a replica changes its log dir.
        ("destination-down", "log-dir"): (
            "Broker {broker}, which is to copy it to {path}, is not alive; the copy goes on when it returns."
        ),
        ("destination-unreachable", "log-dir"): (
            "Broker {broker}, which is to copy it to {path}, counts as alive and does not answer: it may be frozen or cut "
            "off. Restart the broker if it does not come back."
        ),
    }
    catalogue = Catalogue(
        {
            "brokers": lambda ids: human_brokers(ids) if ids else "its replicas",
            "dirs": lambda dirs: ", ".join(f"{path} of broker {broker}" for broker, path in dirs.items()),
            "left": lambda size: "an unknown number of bytes" if size is None else human_bytes(size),
            "records": lambda count: f" ({count:,} records)" if count > 0 else "",
            "inbound": lambda rate: f", and falls behind by {human_bytes(rate)} more each second" if rate >= 1 else "",
            "source": lambda throttled: (
                "its share of the throttle is" if throttled else "without a throttle it is expected to make"
            ),
            "theirs": lambda theirs: " (a rate that Ballast did not set)" if theirs else "",
            "answer": str,
            "because": lambda outcome: "" if outcome is None else f" ({outcome})",
        }
    )

    def __post_init__(self) -> None:
        """What the journal has may be of another version, and is shown as that said it."""
        if not self.text:
            Message.__post_init__(self)

    @property
    def detail(self) -> str:
        """As the journal has it, else its sentence."""
        return self.text or Message.detail.fget(self)  # type: ignore[attr-defined]

    @property
    def remedy(self) -> str:
        """None: its sentence says what to do."""
        return ""


def note(code: str, cause: str = "", /, **values: Value) -> MoveNote:
    """A note of this code."""
    return MoveNote(code, values, cause)


def journaled_note(
    text: str, code: str = JOURNALED, values: Mapping[str, Any] | None = None, cause: str = ""
) -> MoveNote | None:
    """The note that a record of the journal tells; None where it tells none."""
    figures = {k: tuple(v) if isinstance(v, list) else v for k, v in (values or {}).items()}
    return MoveNote(code, figures, cause, text=text) if text else None


def note_fields(of: MoveNote | None) -> dict[str, Any]:
    """Its code, figures and sentence, as documents have them."""
    cause, parameters = ("", None) if of is None else (of.cause, of.parameters)
    return {"code": code_of(of), "cause": cause, "parameters": parameters, "detail": text_of(of)}


def code_of(of: MoveNote | None) -> str | None:
    """Its code; None without one, or where an old record tells the sentence alone."""
    return None if of is None or of.code == JOURNALED else of.code


def text_of(of: MoveNote | None) -> str:
    """Its sentence; empty without one."""
    return "" if of is None else str(of)
