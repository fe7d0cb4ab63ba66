"""``ballast plan``: one command for each intent, one plan out."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from ballast.adapters.kafka.collector import pause_collection
from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.commands.plan.options import PlanOptions, partition_of, plan_options
from ballast.cli.default_command import WholeLines
from ballast.cli.option_types import BROKERS, PLACEMENT, PLACEMENT_HELP, union_of
from ballast.cli.tables import print_line
from ballast.core.named_brokers import NamedBrokers
from ballast.core.planner import (
    Balance,
    ChangeReplicationFactor,
    Decommission,
    Demote,
    Evacuate,
    Expand,
    Intent,
    Leaders,
    Place,
    Racks,
    ReplaceBroker,
)
from ballast.core.wording import human_brokers
from ballast.errors import NoPlanFound, UsageError

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.leadership.plan import Measure
    from ballast.core.plan import Plan
    from ballast.core.planner import Loads
    from ballast.executor.machine.policy import ExecutionPolicy

EXIT_PENDING = 3
SLOW_S = 3.0
"""How long a plan may take without a word."""


@click.group(cls=WholeLines)
def plan() -> None:
    """Make a plan: what is wrong, what to do, what it costs and why.  Nothing is changed.

    Every plan prints the least bytes that any plan could move.  Save it with --save and execute it with ballast apply.
    """


@plan.command()
@plan_options
@cluster_options
def balance(*, options: PlanOptions, cluster: ClusterOptions) -> int:
    """Bring everything within its range: down and draining brokers, racks, disk, traffic, replicas, leaders."""
    return _run(Balance(selection=options.selection()), options, cluster)


@plan.command()
@click.option(
    "--minimize",
    "measure",
    type=click.Choice(["counts", "bytes"]),
    help="Balance only how many partitions, or how many bytes, each broker leads, down to the least possible maximum.",
)
@plan_options
@cluster_options
def leaders(*, measure: Measure | None, options: PlanOptions, cluster: ClusterOptions) -> int:
    """Bring the number, the traffic and the CPU of leaders within their ranges by replica list changes and elections: no data is moved.

    With --minimize counts the result is the least possible maximum of leaders per broker with the fewest replica list changes; with --minimize
    bytes it comes with the distance from the lower bound.  Draining brokers (--drain) get no leaders.

    With --cross-rack partitions are then led where less traffic crosses racks, within ranges that are met, for example
    ballast plan leaders --cross-rack --store /var/lib/ballast/store --config ballast.yaml
    """
    if measure is None:
        return _run(Leaders(selection=options.selection()), options, cluster)
    return _minimize(measure, options, cluster)


@plan.command()
@click.argument("brokers_", type=BROKERS, nargs=-1, required=True, metavar="BROKER…")
@plan_options
@cluster_options
def demote(*, brokers_: tuple[NamedBrokers, ...], options: PlanOptions, cluster: ClusterOptions) -> int:
    """Move leadership off these brokers; move no replica."""
    return _run_on(brokers_, partial(Demote, selection=options.selection()), options, cluster)


@plan.command()
@click.argument("brokers_", type=BROKERS, nargs=-1, required=True, metavar="BROKER…")
@plan_options
@cluster_options
def decommission(*, brokers_: tuple[NamedBrokers, ...], options: PlanOptions, cluster: ClusterOptions) -> int:
    """Move everything off brokers so that they can be stopped; what is moved already is not planned again."""
    return _run_on(brokers_, partial(Decommission, selection=options.selection()), options, cluster)


@plan.command()
@click.argument("brokers_", type=BROKERS, nargs=-1, required=True, metavar="BROKER…")
@plan_options
@cluster_options
def expand(*, brokers_: tuple[NamedBrokers, ...], options: PlanOptions, cluster: ClusterOptions) -> int:
    """Fill new brokers to their share; nothing moves between the old ones."""
    return _run_on(brokers_, partial(Expand, selection=options.selection()), options, cluster)


@plan.command()
@click.argument("brokers_", type=BROKERS, nargs=-1, metavar="BROKER…")
@click.option("--rack", "racks_", multiple=True, metavar="RACK", help="Every broker of this rack.")
@click.option(
    "--offline-only",
    is_flag=True,
    help="Only partitions of which these brokers hold an offline replica, as on a failed log dir.",
)
@plan_options
@cluster_options
def evacuate(
    *,
    brokers_: tuple[NamedBrokers, ...],
    racks_: tuple[str, ...],
    offline_only: bool,
    options: PlanOptions,
    cluster: ClusterOptions,
) -> int:
    """Rebuild elsewhere the replicas of brokers that are down, of a rack, or of failed log dirs (--offline-only)."""
    if not brokers_ and not racks_:
        raise UsageError("Nothing to evacuate is named.", hint="Give broker ids, or --rack.")
    intent = partial(Evacuate, racks=frozenset(racks_), offline_only=offline_only, selection=options.selection())
    return _run_on(brokers_, intent, options, cluster)


@plan.command(name="change-rf")
@click.argument("topics_", nargs=-1, metavar="REGEX…")
@click.option("--replication-factor", type=click.IntRange(1), required=True, help="Target replication factor.")
@plan_options
@cluster_options
def change_rf(
    *, topics_: tuple[str, ...], replication_factor: int, options: PlanOptions, cluster: ClusterOptions
) -> int:
    """Give topics more or fewer replicas, racks kept; topics are regular expressions on the whole name."""
    if bool(topics_) == bool(options.topics):
        raise UsageError("Which topics?", hint="Name them as arguments or with --topics; '.*' is every topic.")
    pattern = options.topics or (topics_[0] if len(topics_) == 1 else "|".join(f"(?:{t})" for t in topics_))
    return _run(
        ChangeReplicationFactor(to=replication_factor, selection=replace(options.selection(), topics=pattern)),
        options,
        cluster,
    )


@plan.command()
@plan_options
@cluster_options
def racks(*, options: PlanOptions, cluster: ClusterOptions) -> int:
    """Make replica placement rack-aware; move nothing else."""
    return _run(Racks(selection=options.selection()), options, cluster)


@plan.command("replace")
@click.argument("old", type=int)
@click.argument("new", type=int)
@plan_options
@cluster_options
def replace_broker(*, old: int, new: int, options: PlanOptions, cluster: ClusterOptions) -> int:
    """Replace broker OLD with broker NEW in every replica list."""
    return _run(ReplaceBroker(old=old, new=new, selection=options.selection()), options, cluster)


@plan.command()
@click.argument("topics_", nargs=-1, required=True, metavar="REGEX…")
@click.option("--placement", type=PLACEMENT, default="auto", show_default=True, help=PLACEMENT_HELP)
@click.option(
    "--replication-factor",
    "factor",
    type=click.IntRange(1),
    help="Replicas of each partition.  [default: as many as now]",
)
@click.option("--start", type=click.IntRange(0), help="Position of partition 0's first replica; classic alone.")
@click.option("--shift", type=click.IntRange(0), help="Replica shift (nextReplicaShift).  [default: the start]")
@plan_options
@cluster_options
def place(
    *,
    topics_: tuple[str, ...],
    placement: str,
    factor: int | None,
    start: int | None,
    shift: int | None,
    options: PlanOptions,
    cluster: ClusterOptions,
) -> int:
    """Give topics the replica lists that Kafka's own algorithm gives them, on --brokers (1,2,3) or on all.

    Topics are regular expressions on the whole name. Unset --start and --shift are random (--seed). Shown beside it:
    what balancing the same topics would move instead, and what the loss of one broker and of two does to the lists.
    """
    if options.topics:
        raise UsageError("Name the topics as arguments.")
    pattern = topics_[0] if len(topics_) == 1 else "|".join(f"(?:{t})" for t in topics_)

    def intent(state: ClusterState) -> Intent:
        from ballast.core.placement.placer import choose_algorithm

        chosen = choose_algorithm(placement, state, start=start)
        selection = replace(options.selection(), topics=pattern)
        return Place(selection=selection, algorithm=chosen, replication_factor=factor, start=start, shift=shift)

    return _run(intent, options, cluster)


def _run_on(
    named: Iterable[NamedBrokers],
    intent: Callable[..., Intent],
    options: PlanOptions,
    cluster: ClusterOptions,
) -> int:
    """The plan of an intent that is about brokers, of which an expression means those that the cluster has."""
    brokers = union_of(named)
    return _run(lambda state: intent(brokers=brokers.among(state.broker_index)), options, cluster)


def _run(intent: Intent | Callable[[ClusterState], Intent], options: PlanOptions, cluster: ClusterOptions) -> int:
    wanted = partition_of(options.why) if options.why else None
    # What is made here is needed to the end or lies in no cycle, and looking through it again and again would cost a sixth of the time.
    with pause_collection():
        policy = options.policy(cluster.settings().balance)
        state, loads, drained = _read_cluster(options, cluster)
        intent = intent if isinstance(intent, Intent) else intent(state)
        policy = options.add_closed_brokers(policy, state.broker_index)
        from ballast.core.planner import plan as make_plan
        from ballast.core.planner.request import dump_request

        # Drains are of the moment, not of the question: a plan that is made again goes by those there are then.
        asked = dump_request(intent, policy, options.seed)
        policy = policy.with_drained(drained)
        with _tell_when_slow():
            made = make_plan(state, intent, loads=loads, policy=policy, seed=options.seed)
    asked = {**asked, "history": options.store} if options.store is not None else asked
    made = replace(made, created_at_ms=int(time.time() * 1000), request=asked)
    execution = cluster.settings().execution
    _write(made, options, _rate(made, state, execution, options))
    if wanted is not None or options.why_not is not None:
        from ballast.cli.commands.plan.view import warn
        from ballast.core.planner.report.explain import why, why_not

        lines = why(state, made, intent, wanted, loads=loads, policy=policy) if wanted else ()
        if options.why_not is not None:
            lines += why_not(state, made, intent, options.why_not, loads=loads, policy=policy)
        click.echo("\n".join(lines))
        warn(made)
        return _exit_code(made, options) if options.check else 0
    return _finish(made, state, loads, options, execution)


def _rate(made: Plan, state: ClusterState, execution: ExecutionPolicy, options: PlanOptions) -> int | None:
    """What ``--rate`` says, or else the rate that ``ballast apply`` begins with at the broker that needs the longest; None where it has none."""
    from ballast.executor.driver.pace import first_pace

    if options.rate is not None:
        return options.rate_bytes_per_s
    busiest = first_pace(made, state, execution).busiest
    return busiest.bytes_per_s if busiest else None


def _minimize(measure: Measure, options: PlanOptions, cluster: ClusterOptions) -> int:
    """The plan that bounds and ranges have no say in."""
    from ballast.core.leadership.plan import balance, leader_plan
    from ballast.core.planner import Selection

    selection, policy = options.selection_of_topics("--minimize"), options.policy(cluster.settings().balance)
    state, loads, drained = _read_cluster(options, cluster)
    policy = options.add_closed_brokers(policy, state.broker_index)
    unknown = sorted(union_of(options.drain).ids - state.broker_index.keys())
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        raise UsageError(f"There {are} no {human_brokers(unknown)} in this cluster.")
    pinned = Selection(topics=policy.pinned_topics) if policy.pinned_topics is not None else None
    names = [t.name for t in state.topics if selection.topic(t.name) and not (pinned and pinned.topic(t.name))]
    found = balance(state, measure, excluded=policy.with_drained(drained).draining, topics=names)
    made = leader_plan(state, found, created_at_ms=int(time.time() * 1000))
    execution = cluster.settings().execution
    _write(made, options, _rate(made, state, execution, options))
    return _finish(made, state, loads, options, execution)


def _finish(made: Plan, state: ClusterState, loads: Loads, options: PlanOptions, execution: ExecutionPolicy) -> int:
    """Print the plan, or what playing it tells; the exit code."""
    if options.simulate and not made.is_empty:
        _play(state, made, loads, options, execution)
    else:
        _show(made, options, _rate(made, state, execution, options))
    return _exit_code(made, options)


def _exit_code(made: Plan, options: PlanOptions) -> int:
    """Of a plan that was shown; raises ``NoPlanFound`` with the first obstacle."""
    if made.status == "no-plan-found":
        first = made.obstacles[0]
        raise NoPlanFound(f"{first.subject}: {first.detail}.", hint=first.remedy or None)
    return EXIT_PENDING if options.check and (made.log_dir_errors or not made.is_empty) else 0


@contextmanager
def _tell_when_slow() -> Iterator[None]:
    """Say why planning is slow: a user who waits in silence for half a minute takes a program for dead."""
    sentence = "Planning. The first plan after an installation takes longer, since the planner is compiled."
    timer = threading.Timer(SLOW_S, lambda: click.echo(sentence, err=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _read_cluster(options: PlanOptions, cluster: ClusterOptions) -> tuple[ClusterState, Loads, frozenset[int]]:
    """The cluster to plan for, live or from a file, what its partitions cost, and which of its brokers people drain."""
    drained: frozenset[int] = frozenset()
    if options.snapshot is not None:
        from ballast.cli.commands.snapshot import read_snapshot

        taken = read_snapshot(options.snapshot)
        state, loads = taken.state, taken.loads
    else:
        from ballast.app.journal_reading import read_drained
        from ballast.core.planner import Loads

        with cluster.open() as opened:
            state = opened.cluster.snapshot()
            drained = read_drained(opened, state, print_line)
        loads = Loads.from_state(state)
    if options.store is not None:
        from ballast.wiring.loads import HistoryPolicy, loads_from_history

        loads = loads_from_history(state, HistoryPolicy(store=options.store), now=datetime.now(UTC))
    return state, loads, drained


def _write(made: Plan, options: PlanOptions, rate_bytes_per_s: int | None) -> None:
    if options.save is not None:
        from ballast.core.plan.file import dumps

        options.save.write_text(dumps(made), encoding="utf-8")
        click.echo(f"Plan saved; execute it with: ballast apply {options.save}", err=True)
    if options.report is not None:
        from ballast.core.planner.report.page import page

        options.report.write_text(page(made, rate_bytes_per_s=rate_bytes_per_s), encoding="utf-8")
        click.echo(f"Report written to {options.report}", err=True)


def _play(state: ClusterState, made: Plan, loads: Loads, options: PlanOptions, execution: ExecutionPolicy) -> None:
    from ballast.cli.commands.plan.view import headline, warn
    from ballast.cli.commands.simulate.command import NETWORK, show_played
    from ballast.cli.tables import console

    if options.output != "json":
        console().print(headline(made))
    warn(made)
    rate = options.rate_bytes_per_s
    policy = execution if rate is None else replace(execution, throttle=rate, throttle_per_broker={})
    network = policy.network_bytes_per_s or NETWORK
    show_played(state, made, policy, loads=loads, failure=None, network=network, output=options.output)


def _show(made: Plan, options: PlanOptions, rate_bytes_per_s: int | None) -> None:
    from ballast.cli.commands.plan.view import show, warn

    if options.form != "kafka" and options.output != "json":
        show(made, rate_bytes_per_s=rate_bytes_per_s)
        return
    from ballast.core.plan.file import dumps, kafka_json

    if options.form == "kafka":
        sys.stdout.write(kafka_json(made))
        warn(made)
    elif options.output == "json":
        sys.stdout.write(dumps(made))
    else:
        show(made, rate_bytes_per_s=rate_bytes_per_s)
