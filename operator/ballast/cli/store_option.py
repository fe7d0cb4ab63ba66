"""The option that names the store of samples and models, shared by every command about history."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ballast.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def store_option(command: F) -> F:
    """Add ``--store``, passed on as ``store``."""
    option = click.option(
        "--store",
        metavar="FOLDER|URL",
        help="Where samples and models are: a folder, s3://…, gs://… or abfss://….  [default: samples.store of the settings]",
    )
    return option(command)


def the_store(store: str | None, config: Path | None) -> str:
    """The store that was named, else the settings' own; raises ``UsageError`` when there is none."""
    from ballast.settings.load import load_settings

    found = store or load_settings(config, os.environ).samples.store
    if not found:
        raise UsageError("No store is named.", hint="Give --store FOLDER, or set samples.store in the settings.")
    return found if "://" in found else str(Path(found).expanduser().absolute())
