"""``ballast man``: a manual page for each command, from the same texts as its ``--help``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from ballast import __version__
from ballast.cli.registry import examples_of
from ballast.errors import BallastError

FOLDER = Path("~/.local/share/man/man1")


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=FOLDER,
    show_default=True,
    help="Where they are written; man finds them in a folder man1 of its path.",
)
@click.pass_context
def man(ctx: click.Context, folder: Path) -> int:
    """Write a manual page for each command; man ballast-apply shows one."""
    folder = folder.expanduser()
    root = click.Context(ctx.find_root().command, info_name="ballast")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for command in commands(root):
            path = folder / f"{command.command_path.replace(' ', '-')}.1"
            path.write_text(page(command), encoding="utf-8")
            count += 1
    except OSError as failure:
        raise BallastError(
            f"Manual pages cannot be written to {folder}: {failure.strerror}.", hint="Name another with --folder."
        ) from failure
    click.echo(f"{count} manual pages in {folder}; man ballast shows the first.")
    return 0


def commands(ctx: click.Context) -> Iterator[click.Context]:
    """A command and all below it that are shown."""
    yield ctx
    for child in _below(ctx):
        yield from commands(child)


def _below(ctx: click.Context) -> Iterator[click.Context]:
    """The commands of a group that are shown; of any other command none."""
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            if command is not None and not command.hidden:
                yield click.Context(command, info_name=name, parent=ctx)


def page(ctx: click.Context) -> str:
    """One command's manual page, in roff."""
    command, path = ctx.command, ctx.command_path
    lines = [
        f'.TH "{path.replace(" ", "-").upper()}" 1 "" "ballast {__version__}" "Ballast"',
        ".SH NAME",
        f"{roff(path.replace(' ', '-'))} \\- {roff(command.get_short_help_str(200))}",
        ".SH SYNOPSIS",
        f".B {roff(path)}",
        roff(" ".join(command.collect_usage_pieces(ctx))),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
    ]
    records = [r for p in command.get_params(ctx) if (r := p.get_help_record(ctx)) is not None]
    if records:
        lines += [
            ".SH OPTIONS",
            *(line for names, text in records for line in (".TP", f".B {roff(names)}", roff(text))),
        ]
    lines += [".SH EXAMPLES", ".nf", *map(roff, examples_of(path.split()[1:])), ".fi"]
    below = list(_below(ctx))
    if below:
        lines.append(".SH COMMANDS")
        for child in below:
            lines += [".TP", f".BR {roff(child.command_path.replace(' ', '-'))} (1)"]
            lines.append(roff(child.command.get_short_help_str(200)))
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Help as click takes it: paragraphs, and those that it is told to leave as they stand."""
    for paragraph in re.split(r"\n\s*\n", text.partition("\f")[0].strip()):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield from (".nf", *(roff(line) for line in paragraph.splitlines()[1:]), ".fi")
        else:
            yield roff(" ".join(paragraph.split()))


def roff(text: str) -> str:
    """As roff prints it, and takes none of it for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
