"""How results look: tables that fit the terminal, figures that people read, JSON documents.

stdout carries the result and stderr the progress.  A table drops its least important columns on a narrow terminal instead of
wrapping them; a pipe is as wide as the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click

from ballast.core.wording import UNKNOWN_TEXT, human_bytes, human_count, human_many, human_names, human_percent

if TYPE_CHECKING:
    from rich.console import Console

    from ballast.cli.documents.base import Document

__all__ = [
    "UNKNOWN_TEXT",
    "Cell",
    "Column",
    "Row",
    "console",
    "human_bytes",
    "human_count",
    "human_many",
    "human_moment",
    "human_names",
    "human_percent",
    "output_option",
    "print_json",
    "print_json_line",
    "print_line",
    "render_table",
]
F = TypeVar("F", bound=Callable[..., Any])
_PIPE_WIDTH: Final = 1_000
_GAP: Final = 2


class OutputOption(click.Option):
    """``--output``, and the kinds of documents that the command prints with ``--output json``."""

    def __init__(self, *args: Any, documents: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.documents = tuple(documents)


def output_option(*documents: str, help_text: str = "Output format.") -> Callable[[F], F]:
    """Add ``--output table|json``, passed on as ``output``; ``documents`` are the kinds that JSON comes in (``cli.documents``)."""
    return click.option(
        "--output",
        cls=OutputOption,
        documents=documents,
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help=help_text,
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A table column."""

    title: str
    """Shown in capitals, however it is written here."""
    justify: Literal["left", "right"] = "right"
    rank: int = 0
    """0 is always shown; on a narrow terminal the highest rank goes first."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with a meaning that colour underlines; the text alone says everything."""

    text: str
    style: str = ""


Row = Sequence[str | Cell]


def console() -> Console:
    """Where results are drawn: as wide as the terminal, or as wide as needed into a pipe."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False, emoji=False, soft_wrap=False)
    return Console(file=sys.stdout, width=_PIPE_WIDTH, highlight=False, emoji=False, no_color=True)


def render_table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> Any:
    """A rich table of the columns that fit into ``width`` characters."""
    from rich.table import Table
    from rich.text import Text

    cells = [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in rows]
    widths = [
        max([len(column.title), *(len(row[at].text) for row in cells)]) + _GAP for at, column in enumerate(columns)
    ]
    kept = _fitting(columns, widths, width)
    # Where even the columns that must stay are too wide, lines break: a cut name is of no use.
    tight = sum(widths[at] for at in kept) - _GAP > width
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_edge=False, header_style="bold")
    for at in kept:
        table.add_column(columns[at].title.upper(), justify=columns[at].justify, no_wrap=not tight, overflow="fold")
    for row in cells:
        table.add_row(*(Text(row[at].text, style=row[at].style) for at in kept))
    return table


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Positions of the columns to show."""
    kept = list(range(len(columns)))
    while sum(widths[at] for at in kept) - _GAP > width:
        droppable = [at for at in kept if columns[at].rank]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda at: (columns[at].rank, at)))
    return kept


def human_moment(ms: int) -> str:
    """Milliseconds since the epoch as ``2026-11-21 12:00:00 UTC``: its reader may be anywhere."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def print_json(document: Document) -> None:
    """One JSON document; keys keep their order."""
    click.echo(document.model_dump_json(indent=2))


def print_json_line(document: Document) -> None:
    """One JSON document on one line, for streams."""
    click.echo(document.model_dump_json())


def print_line(line: str) -> None:
    """A line for people, on stderr."""
    click.echo(line, err=True)
