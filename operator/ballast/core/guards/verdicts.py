"""Why a move may not start: a code with its figures, and the one place that says each in a sentence with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ballast.core.catalogue import Catalogue, Key, Message, Template
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.cluster.isr import leaving_sentence
from ballast.core.throttles import RateShortfall

Value = int | float | str | tuple[int, ...] | tuple[str, ...] | TopicPartition | RateShortfall

ENDS: Final = frozenset({"deleted", "already-there", "modified-externally"})
"""Codes that end a move; every other code holds it."""


GO_ON: Final = "Bring its out-of-sync replicas back in sync; the moves then continue."
SPACE_UNKNOWN: Final = "Free disk space of broker {broker} is unknown (for {partition})."
ALLOW: Final = "or say --unknown-disk-space allow."

TEMPLATES: Final[Mapping[Key, Template]] = {
    # The partition.
    "deleted": Template("{partition} no longer exists or is being deleted."),
    "foreign-reassignment": Template(
        "{partition} is being moved to {replicas:list} by a reassignment that Ballast did not start.",
        "Wait for that move to end, or cancel it with the tool that started it.",
    ),
    "another-batch": Template(
        "A foreign reassignment moves {partition}{others:others}, and only one batch may be in progress.",
        "Ballast waits for it; if it cannot end, cancel it where it was started.",
    ),
    "already-there": Template("{partition} already has the replica list {replicas:list}."),
    "modified-externally": Template(
        "{partition} has the replica list {replicas:list}, and the plan was made for {planned:list}.",
        "Make a new plan.",
    ),
    "no-leader": Template(
        "{partition} has no leader, so nothing can be copied from it.", "Bring one of the brokers {replicas:list} back."
    ),
    # The brokers that are to have it, and their disks.
    "destination-down": Template(
        "Broker {broker}, where {partition} is to go, is not alive.", "Start it, or make a new plan without it."
    ),
    "destination-cordoned": Template(
        "Broker {broker}, where {partition} is to go, is cordoned.",
        "Remove its log dirs from cordoned.log.dirs, or make a new plan without it.",
    ),
    "destination-full": Template(
        "Broker {broker} has {free:bytes} free and {partition} needs {size:bytes}.{failed:failed}",
        "Free disk space there, or make a new plan.",
    ),
    ("destination-full", "log-dir"): Template(
        "Log dir {log_dir} of broker {broker} has {free:bytes} free and {partition} needs {size:bytes}.{failed:failed}",
        "Free disk space there, or make a new plan.",
    ),
    "destination-space-unknown": Template(f"{SPACE_UNKNOWN}{{failed:failed}}", f"Check that broker, {ALLOW}"),
    ("destination-space-unknown", "unreachable"): Template(
        f"{SPACE_UNKNOWN} It did not report its log dirs.", f"Check that broker, {ALLOW}"
    ),
    ("destination-space-unknown", "unsized"): Template(
        f"{SPACE_UNKNOWN} {{other}} is being copied there, and its size is not known.",
        f"Log dirs are read again within a minute, {ALLOW}",
    ),
    "size-unknown": Template(
        "The size of {partition} is not known: no broker of its replicas {replicas:list} reported it, so it may not fit.",
        "Log dirs are read again within a minute; it requires Describe on the cluster (DescribeLogDirs). "
        "Or say --unknown-disk-space allow.",
    ),
    "space-reserved": Template(
        "Free disk space of broker {broker} is reserved for moves before {partition} in the plan.",
        "It starts when they have ended.",
    ),
    # In-sync replicas.
    "drops-in-sync": Template(
        "{partition} would keep its replica on broker {keeps}, which is out of sync, and remove the one on broker {gives_up}, "
        "which is in sync (ISR: {in_sync:list}).",
        "Bring broker {keeps} back in sync, or make a new plan.",
    ),
    "replicas-below-min-isr": Template(
        "{partition} has {replicas:replicas} and min.insync.replicas is {min_isr}: writes with acks=all are rejected "
        "while one is added (NOT_ENOUGH_REPLICAS).",
        "Lower min.insync.replicas, or say --replicas-below-min-isr allow during low traffic.",
    ),
    "at-min-isr": Template(
        "{partition} is at min ISR (ISR: {in_sync:list}); with one more replica out of sync it is under min ISR.",
        GO_ON,
    ),
    "min-isr-unknown": Template(
        "{partition} is under-replicated (ISR: {in_sync:list}), and its min.insync.replicas is not known: with one "
        "more replica out of sync it may be under min ISR.",
        "It is read again within a minute; it requires DescribeConfigs on the topic.",
    ),
    "under-replicated": Template(
        "{other} on broker {broker} is under-replicated (ISR: {in_sync:list}), "
        "and {partition} would load that broker more.",
        GO_ON,
    ),
    # Throttles.
    "foreign-throttle": Template(
        "Foreign moves on broker {broker} run under their own throttle of {rate_bytes_per_s:bytes}/s, "
        "and {partition} would take part of it or change it.",
        "It waits until they have ended; --keep-rates shares their rate instead.",
    ),
    "throttle-too-low": Template("{lack}.", "Give a higher --throttle, or --raise-throttle."),
    ("throttle-too-low", "foreign"): Template(
        "{lack}; that throttle is that of foreign reassignments.", "It waits until they have ended."
    ),
    ("throttle-too-low", "headroom"): Template(
        "{lack}, and auto may give broker {lack.broker} at most {max_bytes_per_s:bytes}/s.",
        "Wait for lower traffic, or give a rate with --throttle.",
    ),
}
"""Every verdict."""


@dataclass(frozen=True, slots=True)
class Verdict(Message):
    """Why a move may not start; the value ``partition`` is the one that it is about, as a rule the one that waits."""

    subject: str = ""
    isr_within_s: float = UNKNOWN
    """For a refusal that waits for an ISR: after this long at most it no longer names a follower that has stopped fetching."""

    sentences = TEMPLATES
    catalogue = Catalogue({"others": lambda count: f" and {count} more partitions" if count else ""})

    @property
    def ends(self) -> bool:
        """Waiting would not help: the move is over."""
        return self.code in ENDS

    def __str__(self) -> str:
        """With what to do about it."""
        return " ".join(part for part in (self.detail, self.remedy, leaving_sentence(self.isr_within_s)) if part)


def verdict(code: str, subject: object, *, cause: str = "", isr_within_s: float = UNKNOWN, **values: Value) -> Verdict:
    """A verdict of this code; its subject is a partition, or a broker by its id."""
    on = f"broker {subject}" if isinstance(subject, int) else str(subject)
    return Verdict(code, values, cause, on, isr_within_s)
