"""``ballast simulate``: how a plan would go, and what losing brokers would mean, without touching the cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.commands.plan.options import size_of
from ballast.cli.option_types import BROKERS, TIME, seconds_of, union_of
from ballast.cli.run_options import execution_options, policy_from
from ballast.cli.tables import output_option, print_json, print_line
from ballast.core.wording import human_many
from ballast.errors import Incomplete, UsageError

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.named_brokers import NamedBrokers
    from ballast.core.plan import Plan
    from ballast.core.planner import Loads, PlannerPolicy
    from ballast.executor.machine.policy import ExecutionPolicy
    from ballast.sim.play import BrokerFailure

NETWORK: Final = 125_000_000
"""What each broker's network carries in each direction unless it is stated: one gigabit a second, in bytes."""
_INPUT: Final = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command()
@click.argument("plan", type=_INPUT, required=False)
@click.option("--kill-broker", "brokers_", multiple=True, type=BROKERS, help="These brokers fail.")
@click.option("--kill-rack", "racks_", multiple=True, metavar="RACK", help="Every broker of this rack fails.")
@click.option(
    "--at",
    default="50%",
    show_default=True,
    metavar="PERCENT|TIME",
    help="When they fail: a fraction of the bytes (50%), or a time (10m).",
)
@click.option("--restart-after", type=TIME, help="Delay before restart.  [default: never]")
@click.option(
    "--rate",
    metavar="RATE",
    help="Rate at which the time of a repair is estimated.  [default: the one that ballast apply begins with]",
)
@click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Simulate the cluster in this file (from ballast snapshot) instead of a live one.",
)
@click.option(
    "--scenario",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run this scenario file instead; its expectations decide the exit code (7 when one fails).",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), metavar="N", help="Random seed.")
@execution_options
@output_option("Simulation", "Loss")
@cluster_options
def simulate(
    *,
    plan: Path | None,
    brokers_: tuple[NamedBrokers, ...],
    racks_: tuple[str, ...],
    at: str,
    restart_after: float | None,
    rate: str | None,
    snapshot: Path | None,
    scenario: Path | None,
    seed: int,
    policy_options: Mapping[str, Any],
    output: str,
    cluster: ClusterOptions,
) -> int:
    """Play PLAN with its batches and throttle on a simulated copy of the cluster, and say what it would do.

    Without PLAN, --kill-broker and --kill-rack say what the cluster would look like without them. Where no --network is
    given, nor in the settings, each broker's network carries 125 MB/s.
    """
    if scenario is not None:
        return _play_scenario(scenario, seed)
    if plan is None and not brokers_ and not racks_:
        raise UsageError(
            "Nothing to simulate is named.", hint="Give a plan file, --kill-broker, --kill-rack or --scenario."
        )
    if plan is None:
        policy = policy_from(policy_options, cluster.settings().execution)
        if rate is not None:
            policy = replace(policy, throttle=size_of(rate, "--rate"), throttle_per_broker={})
        balance = cluster.settings().balance
        return _lose(_read(snapshot, cluster), union_of(brokers_), racks_, policy, balance, output=output)
    from ballast.app.apply import read_plan, resolve_drift

    text = sys.stdin.read() if str(plan) == "-" else plan.read_text(encoding="utf-8")
    state, loads = _read(snapshot, cluster)
    wanted = resolve_drift(read_plan(text, str(plan), state), state, "refuse", (), print_line)
    failure = failure_of(state, union_of(brokers_), racks_, at, restart_after) if brokers_ or racks_ else None
    policy, network = _stated(policy_options, cluster.settings().execution)
    status = show_played(state, wanted, policy, loads=loads, failure=failure, network=network, output=output)
    return 0 if status == "done" else Incomplete.exit_code


def _stated(options: Mapping[str, Any], settings: ExecutionPolicy) -> tuple[ExecutionPolicy, int]:
    """The policy of the run, and what each broker's network carries: stated for the simulated brokers and for ``auto`` alike."""
    stated = options["network"]
    policy = policy_from({**options, "network": None}, settings)
    if stated is not None and policy.auto:
        policy = replace(policy, network_bytes_per_s=stated)
    return policy, stated or policy.network_bytes_per_s or NETWORK


def show_played(
    state: ClusterState,
    plan: Plan,
    policy: ExecutionPolicy,
    *,
    loads: Loads,
    failure: BrokerFailure | None,
    network: int,
    output: str,
) -> str:
    """Play it and print what came of it; how the run ends."""
    from ballast.cli.commands.simulate.view import play_document, show_play
    from ballast.sim.play import play

    played = play(state, plan, policy, loads=loads, nic_bytes_per_s=float(network), failure=failure)
    if output == "json":
        print_json(play_document(played, plan, failure))
    else:
        show_play(played, failure)
    return played.status


def failure_of(
    state: ClusterState, brokers: NamedBrokers, racks: tuple[str, ...], at: str, restart_after: float | None
) -> BrokerFailure:
    """Which brokers fail, and when."""
    from ballast.core.what_if.loss import brokers_of
    from ballast.sim.play import BrokerFailure

    share, at_s = 0.0, None
    if at.strip().endswith("%"):
        try:
            share = float(at.strip().removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise UsageError(f"--at {at!r} is not a fraction.", hint="Write for example 50%, or a time like 10m.")
    else:
        try:
            at_s = seconds_of(at)
        except ValueError as wrong:
            raise UsageError(f"--at {wrong}", hint="A fraction of the bytes is written 50%.") from None
    return BrokerFailure(
        brokers=brokers_of(state, brokers.among(state.broker_index), racks),
        at_share=share,
        at_s=at_s,
        restart_after_s=restart_after,
    )


def _read(snapshot: Path | None, cluster: ClusterOptions) -> tuple[ClusterState, Loads]:
    if snapshot is not None:
        from ballast.cli.commands.snapshot import read_snapshot

        taken = read_snapshot(snapshot)
        return taken.state, taken.loads
    from ballast.core.planner import Loads

    with cluster.open() as opened:
        state = opened.cluster.snapshot()
    return state, Loads.from_state(state)


def _lose(
    read: tuple[ClusterState, Loads],
    brokers: NamedBrokers,
    racks: tuple[str, ...],
    policy: ExecutionPolicy,
    balance: PlannerPolicy,
    *,
    output: str,
) -> int:
    from ballast.cli.commands.simulate.view import loss_document, show_loss
    from ballast.core.planner import Evacuate
    from ballast.core.planner import plan as make_plan
    from ballast.core.what_if.loss import brokers_of, loss_of
    from ballast.executor.driver.pace import first_pace

    state, loads = read
    lost = loss_of(state, brokers_of(state, brokers.among(state.broker_index), racks))
    repair = make_plan(
        lost.after, Evacuate(brokers=frozenset(lost.brokers)), loads=loads, policy=replace(balance, prove=False)
    )
    if output == "json":
        print_json(loss_document(lost, repair))
    else:
        busiest = first_pace(repair, lost.after, policy).busiest
        show_loss(lost, repair, rate_bytes_per_s=busiest.bytes_per_s if busiest else None)
    return 0


def _play_scenario(file: Path, seed: int) -> int:
    from ballast.cli.tables import human_bytes
    from ballast.core.wording import human_time
    from ballast.errors import Incomplete
    from ballast.sim.scenario import Scenario

    outcome = Scenario(file.read_text(encoding="utf-8"), seed=seed, folder=file.parent).run()
    click.echo(
        f"{file.name}: {outcome.status}; {human_many(outcome.moves, 'move')} ({human_bytes(outcome.bytes)}) in "
        f"{human_time(outcome.seconds)}, at best {human_time(outcome.bound_s)}."
    )
    if outcome.failures:
        raise Incomplete(f"{file.name}: " + "; ".join(outcome.failures) + ".")
    return 0
