"""What a run has made of each broker, side by side: a table, or one JSON line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ballast.cli.tables import Column, console, human_bytes, print_json_line, render_table

if TYPE_CHECKING:
    from ballast.cli.documents.runs import BrokerFigures
    from ballast.core.cluster import ClusterState

FIGURES: Final = ("leaders", "replicas", "bytes")


def show_change(before: ClusterState, after: ClusterState, *, output: str) -> None:
    """The table, or one JSON line, on stdout."""
    from ballast.app.change import broker_figures

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
