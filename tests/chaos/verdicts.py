"""What a run of chaos found to be broken: which judge says so, and what it saw."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn


class Judge(StrEnum):
    """Everything that must hold, and by which name a violation is counted."""

    RECORDS = "records"
    """An acknowledged record is there, once, in its order."""
    TRANSACTIONS = "transactions"
    REPLICAS = "replicas"
    """Topics, partitions and replica counts are the person's."""
    SETTINGS = "settings"
    """What a person set stands, and nothing else."""
    THROTTLES = "throttles"
    """Rates and lists are the person's, and the ledger is empty."""
    ONE_WRITER = "one-writer"
    UNASKED = "unasked"
    """Whatever moves, a person or a record of the journal wanted it there."""
    MIN_ISR = "min-isr"
    RUNS = "runs"
    """A run gets on or says what it waits for."""
    LIFE = "life"
    """A process of Ballast ends when it is told to, and not before."""
    BUGS = "bugs"
    WHOLE = "whole"
    """The cluster itself recovers once nothing hurts it any more."""
    BALANCED = "balanced"
    STILL = "still"
    ITSELF = "itself"
    """Not Ballast but this test could not do what it had to."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that did not hold."""

    judge: Judge
    what: str

    def __str__(self) -> str:
        return f"{self.judge}: {self.what}"


class Violated(AssertionError):
    """A violation that ends what was going on."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


def violated(judge: Judge, what: str) -> NoReturn:
    """End here."""
    raise Violated(Violation(judge, what))
