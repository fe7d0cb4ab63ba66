"""What a run has made of each broker: leaders, replicas and bytes before and after, side by side."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from ballast.cli.tables import Column, console, human_bytes, print_json_line, render_table
from ballast.core.cluster import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Collection

    from ballast.cli.documents.runs import BrokerFigures
    from ballast.core.cluster import ClusterState, TopicPartition
    from ballast.core.plan import Plan
    from ballast.ports.cluster import ClusterReader

SETTLES_S: Final = 10.0
"""How long metadata may take to show what the controller has done; elections show late."""
LOOK_S: Final = 0.5
FIGURES: Final = ("leaders", "replicas", "bytes")


def broker_figures(state: ClusterState, among: Collection[TopicPartition]) -> dict[int, dict[str, int]]:
    """Leaders, replicas (without those being added) and bytes of each broker; ``UNKNOWN`` bytes where it did not say.

    Only partitions ``among`` these count: what was created meanwhile, the journal's own topics first of all, is no run's work.
    """
    p = state.partitions
    counted = np.fromiter((name in among for name in state.index), np.bool_, len(p))
    replica_counted = np.repeat(counted, np.diff(p.start))
    out = {}
    for broker in state.brokers:
        here = (p.replica == broker.id) & ~p.adding & replica_counted
        sizes = p.size_bytes[here]
        said = broker.log_dirs_known and not bool((sizes == UNKNOWN).any())
        out[broker.id] = {
            "leaders": int(((p.leader == broker.id) & counted).sum()),
            "replicas": int(here.sum()),
            "bytes": int(sizes.astype(np.int64).sum()) if said else UNKNOWN,
        }
    return out


def settled_snapshot(cluster: ClusterReader, plan: Plan) -> ClusterState:
    """The cluster once metadata shows what the plan has done, or a little later as it is."""
    until = time.monotonic() + SETTLES_S
    names = [*(m.name for m in plan.moves), *plan.elections]
    wanted = {m.name: m.new for m in plan.moves}
    while time.monotonic() < until:
        seen = cluster.partitions(names)
        late = any(
            s.replicas != wanted.get(n, s.replicas) or (n in plan.elections and s.leader != s.replicas[0])
            for n, s in seen.items()
        )
        if not late:
            break
        time.sleep(LOOK_S)
    return cluster.snapshot(configs=False)


def show_change(before: ClusterState, after: ClusterState, *, output: str) -> None:
    """The table, or one JSON line, on stdout."""
    old, new = broker_figures(before, before.index), broker_figures(after, before.index)
    brokers = sorted({*old, *new})
    if output == "json":
        from ballast.cli.documents.runs import BrokerChange, BrokerChanges

        rows = [BrokerChange(broker=b, before=_figures(old.get(b)), after=_figures(new.get(b))) for b in brokers]
        print_json_line(BrokerChanges(brokers=rows))
        return
    racks = {b.id: b.rack or "-" for b in (*before.brokers, *after.brokers)}
    columns = [Column("Broker"), Column("Rack", "left", 2), Column("Leaders"), Column("Replicas"), Column("Data")]
    lines = [
        [str(b), racks[b], *(_both(name, old.get(b, {}).get(name), new.get(b, {}).get(name)) for name in FIGURES)]
        for b in brokers
    ]
    screen = console()
    screen.print("\nBefore → after, by broker")
    screen.print(render_table(columns, lines, screen.width))


def _figures(figures: dict[str, int] | None) -> BrokerFigures | None:
    from ballast.cli.documents.runs import BrokerFigures

    return None if figures is None else BrokerFigures(**figures)


def _both(name: str, old: int | None, new: int | None) -> str:
    texts = [
        "-" if figure is None else human_bytes(figure) if name == "bytes" else str(figure) for figure in (old, new)
    ]
    return texts[0] if texts[0] == texts[1] else " → ".join(texts)
