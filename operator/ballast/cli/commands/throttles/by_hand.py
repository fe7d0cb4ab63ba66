"""``ballast throttles set`` and ``remove``: what kafka-configs can do with throttles, journaled so that it can be removed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.commands.throttles.listing import broker_ids, judge
from ballast.cli.option_types import BROKERS, union_of
from ballast.cli.run_options import Rate, confirm, lock_options
from ballast.cli.tables import human_many, print_line
from ballast.core.named_brokers import NamedBrokers

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.throttles import Setting

DEFAULT: Final = "default"
"""As a broker: the cluster-wide default, which holds on every broker without a rate of its own."""


class Replicas(click.ParamType[frozenset[str]]):
    """A throttle list: ``0:1,0:2`` (partition:broker) or ``*``."""

    name = "replicas"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """The entries."""
        entries = [e.strip() for e in str(value).split(",") if e.strip()]
        for entry in entries:
            partition, sign, broker = entry.partition(":")
            if entry != "*" and not (
                sign and partition.isascii() and partition.isdigit() and broker.isascii() and broker.isdigit()
            ):
                self.fail(
                    f"{entry!r} is not PARTITION:BROKER; write for example 0:1,0:2, or * for all replicas.", param, ctx
                )
        if not entries or ("*" in entries and len(entries) > 1):
            self.fail("Name at least one replica, and * alone.", param, ctx)
        return frozenset(entries)


class BrokersOrDefault(click.ParamType[NamedBrokers | None]):
    """Brokers, or ``default``, which is None."""

    name = "brokers"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """As help shows it."""
        return f"IDS|REGEX|{DEFAULT}"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> NamedBrokers | None:
        """The brokers; None for the cluster-wide default."""
        return None if value is None or str(value) == DEFAULT else BROKERS.convert(value, param, ctx)


def names_of(named: Collection[NamedBrokers | None], known: Collection[int]) -> set[str]:
    """The names of these brokers' settings in Kafka; the cluster-wide default is ``default``."""
    brokers = union_of(n for n in named if n is not None).among(known)
    return {str(b) for b in brokers} | ({DEFAULT} if None in named else set())


@click.command("set")
@click.option("--rate", type=Rate(), help="Bytes per second on both sides, as 50MB.")
@click.option("--leader-rate", type=Rate(), help="Bytes per second that leaders send to throttled replicas.")
@click.option("--follower-rate", type=Rate(), help="Bytes per second that throttled followers fetch.")
@click.option("--log-dir-rate", type=Rate(), help="Bytes per second of copies between log dirs of one broker.")
@click.option(
    "--brokers",
    "named",
    type=BrokersOrDefault(),
    multiple=True,
    help="The rates on these brokers, or default for the cluster-wide default; may be repeated.  [default: every alive broker, "
    "with --moves-of those of the moves]",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME",
    help="Throttle this topic: all its replicas, unless lists are given; may be repeated.",
)
@click.option(
    "--leader-replicas", type=Replicas(), metavar="P:B,…|*", help="With --topic: its list of the leader side."
)
@click.option(
    "--follower-replicas", type=Replicas(), metavar="P:B,…|*", help="With --topic: its list of the follower side."
)
@click.option(
    "--moves-of",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Throttle the moves of this reassignment JSON.",
)
@lock_options
@cluster_options
def set_throttle(
    *,
    rate: int | None,
    leader_rate: int | None,
    follower_rate: int | None,
    log_dir_rate: int | None,
    named: tuple[NamedBrokers | None, ...],
    topics: tuple[str, ...],
    leader_replicas: frozenset[str] | None,
    follower_replicas: frozenset[str] | None,
    moves_of: Path | None,
    journal: str | None,
    lock_wait: float,
    take_over: bool,
    cluster: ClusterOptions,
) -> int:
    """Set throttles by hand: rates on brokers, lists on topics, or both; they stay until ballast throttles remove.

    Entries are added to existing lists; existing entries are kept. Rates alone, and lists alone, are fine: a throttle works
    where a list names a replica and its broker has a rate.
    """
    from ballast.core.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIR_RATE
    from ballast.errors import Incomplete, UsageError
    from ballast.wiring.runs import open_writer
    from ballast.wiring.throttles import set_throttles

    rates = {LEADER_RATE: leader_rate or rate, FOLLOWER_RATE: follower_rate or rate, LOG_DIR_RATE: log_dir_rate}
    wanted_rates = {key: value for key, value in rates.items() if value is not None}
    lists = {LEADER_REPLICAS: leader_replicas, FOLLOWER_REPLICAS: follower_replicas}
    if (leader_replicas or follower_replicas) and not topics:
        raise UsageError("Lists belong to a topic.", hint="Give --topic NAME as well.")
    if named and not wanted_rates:
        raise UsageError("Brokers have rates.", hint="Give --rate, --leader-rate, --follower-rate or --log-dir-rate.")
    if not (wanted_rates or topics or moves_of):
        raise UsageError("Nothing to set is named.", hint="Give a rate, --topic NAME or --moves-of FILE.")
    with (
        cluster.open() as opened,
        open_writer(
            opened, command="ballast throttles set", journal=journal, lock_wait_s=lock_wait, take_over=take_over
        ) as writer,
    ):
        state = opened.cluster.snapshot()
        aim = dict(_lists(state, topics, _sides(lists, wanted_rates)))
        brokers = names_of(named, state.broker_index)
        on = brokers or {str(b) for b in state.alive}
        if moves_of is not None:
            listed, involved = _of_moves(state, moves_of)
            aim |= listed
            on = brokers or involved
        aim |= dict(_rates(state, on, wanted_rates))
        failures = set_throttles(writer, aim)
    if failures:
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be set: {failures[0]}")
    print_line(f"Set {human_many(len(aim), 'setting')}. Remove them with: ballast throttles remove")
    return 0


def _sides(lists: dict[str, frozenset[str] | None], rates: Collection[str]) -> dict[str, frozenset[str]]:
    """The lists that are meant: those given, else all replicas on the sides that get a rate, both where none does."""
    from ballast.core.throttles import EVERYTHING, FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS

    given = {key: entries for key, entries in lists.items() if entries is not None}
    if given:
        return given
    sided = {LEADER_REPLICAS: LEADER_RATE in rates, FOLLOWER_REPLICAS: FOLLOWER_RATE in rates}
    return {key: frozenset({EVERYTHING}) for key, named in sided.items() if named or not any(sided.values())}


def _lists(
    state: ClusterState, topics: Collection[str], lists: dict[str, frozenset[str]]
) -> Iterator[tuple[Setting, frozenset[str]]]:
    from ballast.core.throttles import Setting

    state.require_topics(topics)
    for topic in topics:
        for key, entries in lists.items():
            yield Setting("topic", topic, key), entries


def _rates(
    state: ClusterState, brokers: Collection[str], rates: dict[str, int]
) -> Iterator[tuple[Setting, frozenset[str]]]:
    from ballast.core.throttles import Setting

    if rates:
        state.require_brokers(int(b) for b in brokers if b != DEFAULT)
    for broker in sorted(brokers):
        for key, rate in rates.items():
            yield Setting("broker", "" if broker == DEFAULT else broker, key), frozenset({str(rate)})


def _of_moves(state: ClusterState, file: Path) -> tuple[dict[Setting, frozenset[str]], set[str]]:
    from ballast.core.stock.files import parse_reassignment
    from ballast.core.stock.plan import plan_of_entries
    from ballast.core.throttles import brokers_involved, entries

    text = file.read_text(encoding="utf-8")
    moves = plan_of_entries(parse_reassignment(text, source=str(file)), state).moves
    return entries(moves), {str(b) for b in brokers_involved(moves)}


@click.command("remove")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic's lists; may be repeated.")
@click.option(
    "--brokers",
    "named_brokers",
    type=BrokersOrDefault(),
    multiple=True,
    help="Only these brokers' rates, or default; may be repeated.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@lock_options
@cluster_options
def remove_throttle(
    *,
    topics: tuple[str, ...],
    named_brokers: tuple[NamedBrokers | None, ...],
    yes: bool,
    journal: str | None,
    lock_wait: float,
    take_over: bool,
    cluster: ClusterOptions,
) -> int:
    """Remove what ballast throttles set has set; previous values are restored, entries that others added are kept.

    A topic or broker that is named loses all its throttles, set by anyone, except those of a run of Ballast.
    """
    from ballast.errors import Incomplete
    from ballast.wiring.runs import open_writer
    from ballast.wiring.throttles import as_stale, read_set_by_hand, restore, select_settings

    with (
        cluster.open() as opened,
        open_writer(
            opened,
            command="ballast throttles remove",
            journal=journal,
            lock_wait_s=lock_wait,
            take_over=take_over,
        ) as writer,
    ):
        brokers = names_of(named_brokers, broker_ids(opened))
        set_by_hand = read_set_by_hand(writer)
        lines = {s: set_by_hand[s] for s in select_settings(set_by_hand, topics, brokers)}
        if topics or brokers:
            standing = {s.setting: s for s in judge(opened, journal) if not s.in_ledger and not s.static}
            others = [standing[s] for s in select_settings(standing, topics, brokers) if s not in lines]
            lines |= as_stale(others)
        if not lines:
            print_line(
                "Nothing was set with ballast throttles set." if not topics and not brokers else "Nothing is set there."
            )
            return 0
        for setting, held in sorted(lines.items()):
            back = f" → {held.prior}" if held.prior else ""
            print_line(f"{setting} = {','.join(sorted(held.ours))}{back}")
        confirm(f"Remove {human_many(len(lines), 'setting')}?", yes=yes)
        failures = restore(writer, lines)
    if failures:
        raise Incomplete(f"{human_many(len(failures), 'setting')} could not be removed: {failures[0]}")
    print_line(f"Removed {human_many(len(lines), 'setting')}.")
    return 0
