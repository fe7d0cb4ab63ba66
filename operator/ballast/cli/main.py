"""The ``ballast`` command: finds the subcommand, runs it, turns failures into one sentence and an exit code.

Subcommands are imported when they are called, so that ``ballast --help`` and shell completion stay instant.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import NoReturn

import click

from ballast import __version__
from ballast.adapters.kafka.librdkafka import LOGGER, RepeatFilter
from ballast.cli.default_command import LazyGroup
from ballast.cli.examples import add_examples
from ballast.cli.registry import ARGUMENTS, COMMANDS, SECTIONS
from ballast.errors import BallastError, UsageError


class Root(LazyGroup):
    """All commands, by what a person wants to do."""

    def invoke(self, ctx: click.Context) -> object:
        """A closed pipe is heard of before click, and after rich: both would exit with 1, the code of a bug."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_closed_pipe()
        except SystemExit as ended:
            if isinstance(ended.__context__, BrokenPipeError):
                _leave_closed_pipe()
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Grouped by what a person wants to do, without importing a single command."""
        for section in SECTIONS:
            rows = [(name, c.help) for name, c in COMMANDS.items() if c.section == section]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)


@click.command(
    cls=Root,
    targets={name: entry.target for name, entry in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="ballast")
def cli() -> None:
    """Keep a live Kafka cluster balanced."""


add_examples(cli)


class ClientLines(logging.Handler):
    """Lines of the Kafka client library, told as part of the story."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line on whatever stderr is now."""
        click.echo(f"ballast: Kafka client: {record.getMessage()}", err=True)


def hear_client() -> None:
    """Let the client library say errors, or what ``BALLAST_CLIENT_LOG`` asks for; its failures come back from calls as well."""
    level = os.environ.get("BALLAST_CLIENT_LOG", "error").upper()
    if level not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise UsageError(
            f"BALLAST_CLIENT_LOG is {level.lower()!r}.",
            hint="Set it to debug, info, warning or error, or leave it out.",
        )
    logger = logging.getLogger(LOGGER)
    logger.setLevel(level)
    logger.handlers[:] = [ClientLines()]
    logger.filters[:] = [RepeatFilter()]
    logger.propagate = False


def _hint_of(mistake: click.ClickException) -> str | None:
    """Where to find what an argument that is missing, or that is no file, stands for."""
    if not isinstance(mistake, click.BadParameter) or mistake.param is None or mistake.ctx is None:
        return None
    return ARGUMENTS.get(mistake.param.make_metavar(mistake.ctx))


def _leave_closed_pipe() -> NoReturn:
    """The reader (head, less) has seen enough; Python would otherwise complain again while it closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with the documented code."""
    try:
        hear_client()
        code = cli.main(args=argv, prog_name="ballast", standalone_mode=False)
    except BallastError as failure:
        click.echo(f"ballast: {failure.message}", err=True)
        if failure.hint:
            click.echo(f"  → {failure.hint}", err=True)
        sys.exit(failure.exit_code)
    except click.ClickException as mistake:
        mistake.show()
        if hint := _hint_of(mistake):
            click.echo(f"  → {hint}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("ballast: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        _leave_closed_pipe()
    except Exception:  # noqa: BLE001 — a bug is any other exception, and this is its one catcher
        traceback.print_exc()
        click.echo("ballast: this is a bug in Ballast; nothing more was done. Please report the lines above.", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
