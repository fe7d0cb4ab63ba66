"""``ballast verify``: is the cluster as a plan or a run wanted it, and is anything left."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ballast.cli.cluster_options import ClusterOptions, cluster_options
from ballast.cli.tables import Column, console, human_many, output_option, print_json, print_line, render_table

if TYPE_CHECKING:
    from ballast.core.cluster import ClusterState
    from ballast.core.plan import Move
    from ballast.wiring.cluster import OpenCluster

MISMATCH = 7


@click.command()
@click.argument("what", metavar="PLAN|RUN")
@click.option("--journal", metavar="file:PATH", help="The journal, where it is not the cluster's own.")
@output_option("Verification")
@cluster_options
def verify(*, what: str, journal: str | None, output: str, cluster: ClusterOptions) -> int:
    """Compare the cluster with PLAN (a plan file or Kafka's reassignment JSON) or with RUN; exit with 7 on a mismatch.

    Changes nothing. Also names throttles that are no longer needed.
    """
    from ballast.app.throttles import judge
    from ballast.core.guards.drift import mismatches

    with cluster.open() as opened:
        state = opened.cluster.snapshot()
        moves = _moves(what, opened, state, journal)
        found = mismatches(moves, state)
        left = [s for s in judge(opened, journal, print_line) if s.stale and s.value]
    if output == "json":
        from ballast.cli.documents.runs import Mismatch, Verification

        print_json(
            Verification(
                moves=len(moves),
                mismatches=[
                    Mismatch(
                        topic=m.name.topic,
                        partition=m.name.partition,
                        code=m.difference.code,
                        parameters=m.difference.parameters,
                        detail=str(m.difference),
                    )
                    for m in found
                ],
                stale_throttles=[str(s.setting) for s in left],
            )
        )
    elif found:
        columns = [Column("partition", "left"), Column("difference", "left"), Column("detail", "left", 1)]
        out = console()
        out.print(
            render_table(columns, [[str(m.name), m.difference.code, str(m.difference)] for m in found], out.width)
        )
    for s in left:
        print_line(f"{s.setting} = {s.value}: {s.why}; remove it with ballast throttles --clean.")
    print_line(f"{len(moves) - len(found)} of {human_many(len(moves), 'partition')} as planned.")
    return MISMATCH if found else 0


def _moves(what: str, opened: OpenCluster, state: ClusterState, journal: str | None) -> tuple[Move, ...]:
    """The moves of a file, or of a run in the journal."""
    from ballast.app.apply import is_stock, require_cluster
    from ballast.core.plan import Move as PlanMove
    from ballast.core.plan.file import loads
    from ballast.core.stock.files import parse_reassignment
    from ballast.wiring.journal import journal_of
    from ballast.wiring.runs import find_run

    path = Path(what)
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        if is_stock(text):
            entries = parse_reassignment(text, source=what)
            return tuple(PlanMove(e.topic, e.partition, (), e.replicas) for e in entries)
        plan = loads(text, source=what)
        require_cluster(plan, state)
        return plan.moves
    with closing(journal_of(opened, journal)) as log:
        return tuple(m.move for m in find_run(log, what).moves.values())
