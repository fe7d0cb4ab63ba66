"""``ballast snapshot``: one reading of the cluster as a file, to plan on, to simulate, or to send with a report."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.option_types import Time
from ballast.cli.store_option import load_model_option
from ballast.cli.tables import print_line
from ballast.core.wording import human_many

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.planner import Loads
    from ballast.core.snapshot.file import Snapshot
    from ballast.wiring.cluster import OpenCluster


SCENARIO: Final = """\
# The cluster as it was read, balanced while producers write; see docs/simulator.md for what else can happen to it.
snapshot {file} nic=125MB/s
policy throttle=50MB/s
balance
expect lost=0 moving=0 throttles_unchanged steady
"""


@click.command()
@click.option(
    "--save", "-o", "save", type=click.Path(dir_okay=False, writable=True, path_type=Path), metavar="FILE",
    help="Write it here.  [default: stdout]",
)  # fmt: skip
@click.option("--anonymise", is_flag=True, help="Replace the names of topics, racks, folders and the cluster.")
@click.option(
    "--measure",
    type=Time(minimum=1),
    help="Measure log growth for this long, so that plans and simulations know what producers write.",
)
@click.option(
    "--scenario",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write a scenario of the simulator as well, which balances this cluster; edit it, then ballast simulate --scenario.",
)
@load_model_option("tell traffic and CPU")
@cluster_options
def snapshot(
    *,
    save: Path | None,
    anonymise: bool,
    measure: float | None,
    scenario: Path | None,
    store: str | None,
    cluster: ClusterOptions,
) -> int:
    """Write what the cluster is now: brokers, disks, replica lists, sizes, throttles; no host, no secret.

    ballast plan … --snapshot FILE and ballast simulate --snapshot FILE work on the file as on the cluster, and the line
    "snapshot FILE" begins a scenario of the simulator.
    """
    from ballast.core.snapshot.anonymise import anonymise_snapshot
    from ballast.core.snapshot.file import Snapshot, dumps
    from ballast.errors import UsageError

    if measure is not None and store is not None:
        raise UsageError("Rates are either measured or taken from a load model.", hint="Give --measure or --store.")
    if scenario is not None and (save is None or save.parent.resolve() != scenario.parent.resolve()):
        raise UsageError("A scenario names its snapshot's file.", hint="Give -o FILE as well, in the same folder.")
    with cluster.open() as opened:
        state, loads = _read(opened, measure, store)
    made = Snapshot(state, loads)
    text = dumps(anonymise_snapshot(made) if anonymise else made)
    if save is None:
        sys.stdout.write(text)
    else:
        save.write_text(text, encoding="utf-8")
        print_line(
            f"{human_many(len(state.brokers), 'broker')}, {human_many(len(state.topics), 'topic')}, {human_many(len(state.partitions), 'partition')} written to {save}."
        )
        print_line(f"  Look at it with: ballast plan balance --snapshot {save}")
    if scenario is not None and save is not None:
        scenario.write_text(SCENARIO.format(file=save.name), encoding="utf-8")
        print_line(f"  Play it with: ballast simulate --scenario {scenario}")
    for gap in state.gaps:
        print_line(f"  Missing: {gap.missing} of {gap.subject}: {gap.detail}.")
    return 0


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot file, for the commands that take one in place of a cluster."""
    from ballast.core.snapshot.file import loads

    return loads(path.read_bytes(), source=path.name)


def _read(opened: OpenCluster, measure: float | None, store: str | None) -> tuple[ClusterState, Loads]:
    from ballast.core.planner.loads import Loads, measure_growth

    state, began_s = opened.cluster.snapshot(), time.monotonic()
    if measure is not None:
        time.sleep(measure)
        later = opened.cluster.snapshot()
        return later, measure_growth(state, later, seconds=time.monotonic() - began_s)
    if store is not None:
        from ballast.wiring.loads import HistoryPolicy, loads_from_history

        return state, loads_from_history(state, HistoryPolicy(store=store), now=datetime.now(UTC))
    return state, Loads.from_state(state)
