"""What the actions of ``ballast reassign`` share: the options that execute them, and how a file of Kafka's tools is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import click

from ballast.cli.cluster_options import ClusterOptions
from ballast.errors import UsageError

COMMAND: Final = "ballast reassign"


def print_own_line(text: str) -> None:
    """A line of Ballast's own, beside those of the stock tool."""
    click.echo(f"ballast: {text}", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignOptions:
    """What was asked of ``--execute``, ``--verify`` or ``--cancel``."""

    cluster: ClusterOptions
    reassignment_json_file: Path
    throttle: int | Literal["auto", "none"] = "auto"
    """Bytes per second between brokers; ``auto`` where none is given, ``none`` only where that was asked for."""
    replica_alter_log_dirs_throttle: int | None = None
    """Bytes per second between log dirs of a broker."""
    timeout_ms: int = 10_000
    """Longest wait for moves between log dirs to begin."""
    additional: bool = False
    unknown_disk_space: Literal["refuse", "allow"] = "refuse"
    replicas_below_min_isr: Literal["refuse", "allow"] = "refuse"
    disallow_replication_factor_change: bool = False
    preserve_throttles: bool = False
    clear_throttles: bool = False
    """Take away what other tools, or a person, have set on the topics of the file as well."""


def read_text(path: Path) -> str:
    """A file's text; Kafka's tools read UTF-8 too."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise UsageError(f"{path} cannot be read: {failure}.") from None
