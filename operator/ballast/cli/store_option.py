"""The options that name the store of samples and load models, and the settings file."""

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
        help="Where samples and models are: a folder, s3://…, gs://… or abfss://….  [default: settings (samples.store)]",
    )
    return option(command)


def load_model_option(use: str) -> Callable[[F], F]:
    """Add ``--store`` to a command that can do without, passed on as ``store``; ``use`` says what the load model is for."""
    return click.option(
        "--store", metavar="FOLDER|URL", help=f"Where samples and models are: {use} by the load model there."
    )


def config_option(command: F) -> F:
    """Add ``--config``, passed on as ``config``."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option("--config", type=file, envvar="BALLAST_CONFIG", help="Ballast's settings file (YAML).")(command)


def resolve_store(store: str | None, config: Path | None) -> str:
    """The store that was named, else the settings' own; raises ``UsageError`` when there is none."""
    from ballast.settings.load import load_settings

    found = store or load_settings(config, os.environ).samples.store
    if not found:
        raise UsageError("No store is named.", hint="Give --store FOLDER, or set samples.store in the settings.")
    return found if "://" in found else str(Path(found).expanduser().absolute())
