"""``ballast version``: what a bug report should say of the installation."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import click

from ballast import __version__

_SHOWN = ("kafka-python", "confluent-kafka", "deltalake", "pyspark")


@click.command()
def version() -> int:
    """Show the version of Ballast, of Python, and of the libraries and extras that are installed."""
    click.echo(f"ballast {__version__}")
    click.echo(f"Python {platform.python_version()}")
    for name in _SHOWN:
        try:
            click.echo(f"{name} {version_of(name)}")
        except PackageNotFoundError:
            click.echo(f"{name} not installed")
    return 0
