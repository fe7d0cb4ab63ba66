"""Options that every planning command shares, and what they mean to the planner."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ballast.cli.option_types import BROKERS, TIME, union_of
from ballast.cli.store_option import load_model_option
from ballast.cli.tables import output_option
from ballast.core.cluster import TopicPartition
from ballast.core.named_brokers import NamedBrokers
from ballast.core.planner import Capacity, CrossRackPolicy, PlannerPolicy, Selection, TopicRule
from ballast.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?)\s*([KMGTP]?)(i?)B?(?:/s)?", re.IGNORECASE)
_PARTITION: Final = re.compile(r"(.+)-([0-9]{1,10})", re.DOTALL)
_BANDED: Final = (
    "brokers", "exclude_brokers", "band", "band_of", "trigger", "max_bytes", "max_replica_moves", "deadline", "disk_limit", "disk_of",
    "cordon", "topic_rule", "why", "why_not", "prove", "cross_rack",
)  # fmt: skip
"""Options that mean something to a plan within bands alone."""
_RULE_WORDS: Final = {f.name.replace("_", "-"): f for f in fields(TopicRule) if f.name != "topics"}
_RULE_HINT: Final = (
    "Write the topics' pattern and then one or more of "
    + ", ".join(name if f.type == "bool" else f"{name}=…" for name, f in _RULE_WORDS.items())
    + "."
)


def size_of(text: str, option: str) -> int:
    """``50MB`` as 50 000 000, ``50MiB`` as 52 428 800."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text!r} is not a size.", hint="Write for example 500MB, 2TB or 64MiB.")
    number, prefix, binary = match.groups()
    power = " KMGTP".index(prefix.upper() or " ")
    unit: int = (1024 if binary else 1000) ** power
    return round(float(number) * unit)


def partition_of(text: str) -> TopicPartition:
    """``orders-3`` as a partition; the number is what follows the last dash."""
    match = _PARTITION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a partition.", hint="Write TOPIC-NUMBER, for example orders-3.")
    return TopicPartition(match[1], int(match[2]))


def rule_of(text: str) -> TopicRule:
    """A topic's own rule as one argument: ``'gpu-.* brokers=7,8,9 max-per-broker=2 ignore-racks'``.

    Words apart by spaces, which no topic's name holds: the pattern, then what is said of its topics.
    """
    pattern, *words = text.split() or [""]
    said: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        field = _RULE_WORDS.get(name)
        if field is None:
            raise UsageError(f"--topic-rule {text!r} says {word!r}, which is no rule.", hint=_RULE_HINT)
        if field.name in said:
            raise UsageError(f"--topic-rule {text!r} says {name} twice.", hint=_RULE_HINT)
        try:
            said[field.name] = _rule_value(str(field.type), value, given=bool(sign))
        except ValueError:
            raise UsageError(
                f"--topic-rule {text!r} gives {name} no value that it can have.", hint=_RULE_HINT
            ) from None
    return TopicRule(topics=pattern, **said)


def _rule_value(kind: str, text: str, *, given: bool) -> Any:
    if kind == "bool":
        if given:
            raise ValueError
        return True
    members = [part for part in text.split(",") if part]
    if not members:
        raise ValueError
    if "frozenset[int]" in kind:
        return frozenset(int(part) for part in members)
    return frozenset(members) if "frozenset" in kind else int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the person said about the plan, whatever the intent."""

    topics: str | None
    exclude_topics: str | None
    brokers: NamedBrokers | None
    exclude_brokers: NamedBrokers | None
    band: float | None
    band_of: tuple[str, ...]
    trigger: float | None
    max_bytes: str | None
    max_replica_moves: int | None
    deadline: float | None
    rate: str | None
    disk_limit: float | None
    disk_of: tuple[str, ...]
    cordon: tuple[NamedBrokers, ...]
    drain: tuple[NamedBrokers, ...]
    topic_rule: tuple[str, ...]
    replicas_below_min_isr: str
    store: str | None
    snapshot: Path | None
    seed: int
    output: str
    form: str
    save: Path | None
    report: Path | None
    why: str | None
    why_not: int | None
    prove: bool | None
    cross_rack: bool | None
    check: bool
    simulate: bool

    def selection(self) -> Selection:
        """Topics and brokers that take part."""
        return Selection(
            topics=self.topics,
            exclude_topics=self.exclude_topics,
            brokers=None if self.brokers is None else self.brokers.regex,
            exclude_brokers=None if self.exclude_brokers is None else self.exclude_brokers.regex,
        )

    def selection_of_topics(self, option: str) -> Selection:
        """Topics that take part, where ``option`` leaves nothing to bands, budgets and the choice of brokers."""
        odd = [f"--{name.replace('_', '-')}" for name in _BANDED if getattr(self, name) not in {None, ()}]
        if odd:
            raise UsageError(f"{option} goes without {', '.join(odd)}.", hint="Choose topics with --topics.")
        return self.selection()

    @property
    def rate_bytes_per_s(self) -> int | None:
        """The rate that time estimates assume; None where that at which ``ballast apply`` begins is meant."""
        if self.rate is None:
            return None
        rate = size_of(self.rate, "--rate")
        if rate <= 0:
            raise UsageError("--rate must be more than 0.", hint="Write for example 50MB/s.")
        return rate

    def policy(self, settings: PlannerPolicy) -> PlannerPolicy:
        """The planner's knobs: what was said here, over what the settings say (``balance``), over the defaults."""
        said: dict[str, Any] = {}
        if self.band is not None:
            # A user who names a band wants it reached, even where the usual trigger would leave things alone.
            said = {"band": self.band, "trigger": self.trigger or self.band}
        elif self.trigger is not None:
            said = {"trigger": self.trigger}
        others: dict[str, Any] = {
            "max_bytes": self._budget(),
            "max_replica_moves": self.max_replica_moves,
            "disk_limit": self.disk_limit,
            # Kafka's own tool starts every move of its file at once.
            "at_once": self.form == "kafka" or None,
            "prove": self.prove,
            "replicas_below_min_isr": self.replicas_below_min_isr == "allow" or None,
        }
        disks = (_pair(p, "--disk-of", lambda v: size_of(v, "--disk-of")) for p in self.disk_of)
        capacities = dict(settings.capacities)
        for broker, size in disks:
            capacities[int(broker)] = replace(capacities.get(int(broker), Capacity()), disk_bytes=size)
        return replace(
            settings,
            **said,
            **{k: v for k, v in others.items() if v is not None},
            bands={**settings.bands, **dict(_pair(p, "--band-of", float) for p in self.band_of)},
            capacities=capacities,
            cross_rack=self._cross_rack(settings.cross_rack),
            topic_rules=settings.topic_rules + tuple(rule_of(text) for text in self.topic_rule),
        )

    def add_closed_brokers(self, policy: PlannerPolicy, known: Collection[int]) -> PlannerPolicy:
        """The policy with the brokers that were cordoned and drained here; an expression means those that the cluster has."""
        return replace(
            policy,
            cordoned=policy.cordoned | union_of(self.cordon).among(known),
            draining=policy.draining | union_of(self.drain).among(known),
        )

    def _cross_rack(self, settings: CrossRackPolicy) -> CrossRackPolicy:
        return settings if self.cross_rack is None else replace(settings, leaders=self.cross_rack)

    def _budget(self) -> int | None:
        """The bytes that --max-bytes allows and that --deadline leaves time for, whichever is less."""
        limits = []
        if self.max_bytes is not None:
            limits.append(size_of(self.max_bytes, "--max-bytes"))
        if self.deadline is not None:
            if self.rate_bytes_per_s is None:
                raise UsageError(
                    "--deadline goes with --rate.", hint="Say what a broker may copy, for example --rate 50MB/s."
                )
            limits.append(int(self.deadline * self.rate_bytes_per_s))
        return min(limits) if limits else None


def _pair(text: str, option: str, read: Callable[[str], Any]) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    try:
        if sign:
            return name.strip(), read(value)
    except ValueError:
        pass
    raise UsageError(f"{option} {text!r} is not NAME=VALUE.", hint="Write for example disk=0.05 or 7=8TB.")


def plan_options(command: F) -> F:
    """Add the shared options and pass them on as one ``options`` argument."""

    @functools.wraps(command)
    def call(*args: Any, **kwargs: Any) -> Any:
        said = {name: kwargs.pop(name) for name in PlanOptions.__dataclass_fields__}
        return command(*args, options=PlanOptions(**said), **kwargs)

    wrapped: Any = call
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


_FILE: Final = click.Path(dir_okay=False, writable=True, path_type=Path)
_FRACTION: Final = click.FloatRange(0, 1, min_open=True, max_open=True)
_OPTIONS: Final = (
    click.option("--topics", metavar="REGEX", help="Only topics whose whole name matches."),
    click.option("--exclude-topics", metavar="REGEX", help="All but these topics."),
    click.option(
        "--brokers", type=BROKERS, help="Only these brokers take part: 1,2,5-7 or a regular expression on the id."
    ),
    click.option("--exclude-brokers", type=BROKERS, help="These brokers stay as they are."),
    click.option(
        "--band",
        type=_FRACTION,
        metavar="FRACTION",
        help="How far from its share a broker may be: 0.05 is ±5 %.  [default: 0.08]",
    ),
    click.option("--band-of", multiple=True, metavar="RESOURCE=BAND", help="Another band for one resource."),
    click.option(
        "--trigger",
        type=_FRACTION,
        metavar="FRACTION",
        help="Imbalance tolerated before a plan is made.  [default: --band, else 0.10]",
    ),
    click.option(
        "--max-bytes", metavar="SIZE", help="Copy at most SIZE: the plan is the best balance within this limit."
    ),
    click.option("--max-replica-moves", type=click.IntRange(0), metavar="N", help="Copy at most N replicas."),
    click.option("--deadline", type=TIME, help="Copy at most what --rate carries in this time: 2h."),
    click.option(
        "--rate",
        metavar="RATE",
        help="Rate at which times are estimated.  [default: the one that ballast apply begins with]",
    ),
    click.option(
        "--disk-limit",
        type=click.FloatRange(0, 1, min_open=True),
        help="Share of a disk that may be full while the plan runs.  [default: 0.9]",
    ),
    click.option(
        "--disk-of", multiple=True, metavar="BROKER=SIZE", help="Disk capacity of a broker that does not report it."
    ),
    click.option("--cordon", multiple=True, type=BROKERS, help="Brokers that take no new replica."),
    click.option("--drain", multiple=True, type=BROKERS, help="Brokers that plan balance empties."),
    click.option(
        "--topic-rule",
        multiple=True,
        metavar="'REGEX RULE…'",
        help="A rule for some topics: 'gpu.* brokers=7,8', 'audit leader-racks=a', 'orders spread-evenly'. May be repeated.",
    ),
    click.option(
        "--replicas-below-min-isr",
        type=click.Choice(["refuse", "allow"]),
        default="refuse",
        show_default=True,
        help="Whether balance, expand and racks copy partitions with fewer replicas than min.insync.replicas: writes with "
        "acks=all are rejected meanwhile.",
    ),
    load_model_option("balance traffic"),
    click.option(
        "--snapshot",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Plan for the cluster in this file (from ballast snapshot) instead of a live one.",
    ),
    click.option(
        "--seed", default=0, show_default=True, type=click.IntRange(0), metavar="N", help="Same seed, same plan."
    ),
    output_option("Plan", "Simulation", help_text="Output format; json is the plan file that ballast apply reads."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["ballast", "kafka"]),
        default="ballast",
        show_default=True,
        help="kafka prints Kafka's reassignment JSON instead.",
    ),
    click.option("--save", "-o", type=_FILE, metavar="FILE", help="Write the plan file here as well."),
    click.option("--report", type=_FILE, metavar="FILE", help="Write one HTML page with pictures."),
    click.option("--why", metavar="TOPIC-PARTITION", help="Explain why this partition moves, or stays."),
    click.option(
        "--why-not", type=int, metavar="BROKER", help="Explain why no more replicas move to or from this broker."
    ),
    click.option("--prove/--no-prove", default=None, help="Compute the lower bound, or only a fast estimate."),
    click.option(
        "--cross-rack/--no-cross-rack",
        default=None,
        help="Lead partitions where less traffic crosses racks (balance and leaders): see balance.cross_rack in the settings.",
    ),
    click.option(
        "--simulate",
        is_flag=True,
        help="Play the plan, at --rate where it is given, on a simulated copy: time, peaks of disk and network. See ballast simulate.",
    ),
    click.option(
        "--check", is_flag=True, help="Exit with 3 when the plan is not empty, or when a log dir reports an error."
    ),
)
