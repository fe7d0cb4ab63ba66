"""Types of options that several commands share: times, and brokers as ids or a regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import click

from ballast.core.named_brokers import NamedBrokers

_TIME: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)\s*([smhd]?)", re.IGNORECASE)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str) -> float:
    """``2h`` as 7200, ``90`` as 90; raises ``ValueError`` with a sentence."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time; write for example 30s, 10m or 2h (a bare number is seconds).")
    return float(match.group(1)) * _SECONDS[match.group(2).lower()]


class Time(click.ParamType[float]):
    """Seconds: ``30s``, ``10m``, ``2h``, ``1d``, or a bare number."""

    name = "time"

    def __init__(self, *, minimum: float = 0.0, positive: bool = False) -> None:
        self.minimum = minimum
        self.positive = positive
        """Zero is refused as well."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """As help shows it."""
        return "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        try:
            seconds = seconds_of(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)
        if seconds < self.minimum or (self.positive and seconds == 0):
            self.fail(
                f"{value} is too short: give {f'{self.minimum:g}s or more' if self.minimum else 'more than 0'}.",
                param,
                ctx,
            )
        return seconds


TIME: Final = Time()


class Reason(click.ParamType[str]):
    """Why something is asked for, on a line, as long as the journal keeps it."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Without space around it."""
        from ballast.ports.journal import LONGEST_REASON

        text = str(value).strip()
        if len(text) > LONGEST_REASON or not text.isprintable():
            self.fail(f"write a line of at most {LONGEST_REASON} characters.", param, ctx)
        return text


class BrokersType(click.ParamType[NamedBrokers]):
    """Ids (``1,2,5-7``), or a regular expression on the whole id."""

    name = "brokers"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """As help shows it; an argument shows its own name."""
        return "IDS|REGEX" if isinstance(param, click.Option) else None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NamedBrokers:
        """Which brokers are meant; a regular expression is applied to those that the cluster has."""
        if isinstance(value, NamedBrokers):
            return value
        try:
            return NamedBrokers.parse(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


BROKERS: Final = BrokersType()
PLACEMENT: Final = click.Choice(["auto", "classic", "kraft", "naive"])
PLACEMENT_HELP: Final = (
    "The algorithm: auto takes the one that this cluster's controller uses (classic with --start); classic and kraft are Kafka's; "
    "naive is the round robin that is often taken for Kafka's."
)


def union_of(many: Iterable[NamedBrokers]) -> NamedBrokers:
    """All that are named by one of these."""
    found = NamedBrokers()
    for one in many:
        found |= one
    return found
