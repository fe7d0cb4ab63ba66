"""The words of a scenario file: one statement a line, ``verb word key=value``, with units where a figure has one.

Reading only; what a statement does is ``scenario``'s affair.  A mistake is a ``UsageError`` with the line's number.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.errors import UsageError

_UNITS: Final = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "s": 1.0, "m": 60.0, "h": 3600.0}
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)(/s)?")


@dataclass(frozen=True, slots=True)
class Statement:
    """One line: its verb, its plain words, its keys and when it is to happen."""

    line: int
    verb: str
    words: tuple[str, ...] = ()
    keys: dict[str, str] = field(default_factory=dict)
    at_s: float | None = None
    """For ``at TIME …``: the moment in simulated seconds; None means in its turn."""

    def fail(self, message: str) -> UsageError:
        """A mistake in this line."""
        return UsageError(f"Line {self.line} of the scenario: {message}")

    def number(self, key: str, default: float | None = None) -> float:
        """A quantity with its unit, in bytes, seconds, bytes a second or plain."""
        if key not in self.keys:
            if default is None:
                raise self.fail(f"{self.verb} needs {key}=…")
            return default
        return quantity(self.keys[key], self)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        return int(self.number(key, None if default is None else float(default)))

    def only(self, *known: str) -> Statement:
        """Refuse keys that mean nothing here."""
        strange = sorted(set(self.keys) - set(known))
        if strange:
            raise self.fail(f"{self.verb} does not know {', '.join(strange)}; it knows {', '.join(known)}.")
        return self


def quantity(text: str, statement: Statement) -> float:
    """``20MB/s``, ``1.5GB``, ``10m``, ``3``."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        raise statement.fail(f"{text!r} is not a figure; write it like 20MB/s, 1.5GB, 90s or 3.")
    return float(match[1]) * _UNITS[match[2]]


def brokers(text: str, statement: Statement) -> tuple[int, ...]:
    """``1,2,3``."""
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise statement.fail(f"{text!r} is not a list of brokers.") from None


def partition(text: str, statement: Statement) -> TopicPartition:
    """``orders-3``."""
    topic, _, number = text.rpartition("-")
    if not topic or not number.isdecimal():
        raise statement.fail(f"{text!r} is not a partition; write it like orders-3.")
    return TopicPartition(topic, int(number))


def parse(text: str) -> list[Statement]:
    """The statements of a scenario, in order; ``#`` begins a comment."""
    statements = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as mistake:
            raise UsageError(f"Line {number} of the scenario: {mistake}.") from None
        if not words:
            continue
        at_s = None
        if words[0] == "at":
            here = Statement(number, "at")
            if len(words) < 3:
                raise here.fail("write it like: at 30s kill 2")
            at_s, words = quantity(words[1], here), words[2:]
        if words[0] == "expect":
            # What is expected is kept as written: its comparisons are not keys.
            statements.append(Statement(number, "expect", tuple(words[1:])))
            continue
        keys = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        plain = tuple(word for word in words[1:] if "=" not in word)
        statements.append(Statement(number, words[0], plain, keys, at_s))
    return statements
