"""``ballast throttles set`` and ``remove``: what kafka-configs can do with throttles, journaled so that it can be removed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import BROKERS
from ballast.cli.run_options import LockOptions, Rate, lock_options
from ballast.cli.tables import human_many, print_line
from ballast.core.named_brokers import NamedBrokers

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
    lock: LockOptions,
    cluster: ClusterOptions,
) -> int:
    """Set throttles by hand: rates on brokers, lists on topics, or both; they stay until ballast throttles remove.

    Entries are added to existing lists; existing entries are kept. Rates alone, and lists alone, are fine: a throttle works
    where a list names a replica and its broker has a rate.
    """
    from ballast.app.throttles import WantedThrottles, set_by_hand
    from ballast.core.stock.files import parse_reassignment
    from ballast.core.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIR_RATE
    from ballast.errors import UsageError

    rates = {LEADER_RATE: leader_rate or rate, FOLLOWER_RATE: follower_rate or rate, LOG_DIR_RATE: log_dir_rate}
    wanted_rates = {key: value for key, value in rates.items() if value is not None}
    lists = {LEADER_REPLICAS: leader_replicas, FOLLOWER_REPLICAS: follower_replicas}
    if (leader_replicas or follower_replicas) and not topics:
        raise UsageError("Lists belong to a topic.", hint="Give --topic NAME as well.")
    if named and not wanted_rates:
        raise UsageError("Brokers have rates.", hint="Give --rate, --leader-rate, --follower-rate or --log-dir-rate.")
    if not (wanted_rates or topics or moves_of):
        raise UsageError("Nothing to set is named.", hint="Give a rate, --topic NAME or --moves-of FILE.")
    moves = None
    if moves_of is not None:
        moves = parse_reassignment(moves_of.read_text(encoding="utf-8"), source=str(moves_of))
    wanted = WantedThrottles(
        rates=wanted_rates,
        brokers=named,
        topics=topics,
        lists={key: entries for key, entries in lists.items() if entries is not None},
        moves=moves,
    )
    with cluster.open() as opened, lock.writer(opened, "ballast throttles set") as writer:
        count = set_by_hand(writer, wanted)
    print_line(f"Set {human_many(count, 'setting')}. Remove them with: ballast throttles remove")
    return 0


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
    lock: LockOptions,
    cluster: ClusterOptions,
) -> int:
    """Remove what ballast throttles set has set; previous values are restored, entries that others added are kept.

    A topic or broker that is named loses all its throttles, set by anyone, except those of a run of Ballast.
    """
    from ballast.app.throttles import remove_by_hand
    from ballast.cli.terminal import Terminal

    with cluster.open() as opened, lock.writer(opened, "ballast throttles remove") as writer:
        count = remove_by_hand(writer, Terminal(yes=yes), topics, named_brokers)
    if count:
        print_line(f"Removed {human_many(count, 'setting')}.")
    return 0
