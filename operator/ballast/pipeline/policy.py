"""What the pipeline's user decides: which Spark, and how much history is kept and looked at.  Imports no Spark.

What is wrong is a ``ValueError`` here; settings and options make a sentence of it that names the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge

LOCAL: Final = "local[*]"
"""Spark inside this process, on every core."""
_HOST: Final = r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])"
_MASTERS: Final = (
    r"local(?:\[(?:\*|[1-9]\d*)(?:,\s*[1-9]\d*)?\])?",
    rf"spark://{_HOST}:\d+(?:,{_HOST}:\d+)*",
    rf"k8s://(?:https?://)?{_HOST}(?::\d+)?(?:/\S*)?",
    rf"sc://{_HOST}(?::\d+)?(?:/(?:;\S*)?)?",
)
_MASTER: Final = re.compile("|".join(_MASTERS))


def check_master(text: str) -> None:
    """Raise ``ValueError`` for what is no address of a Spark; its text does not repeat the address, which may carry a token."""
    if not _MASTER.fullmatch(text):
        raise ValueError("spark names no Spark: write local[*], spark://host:port, k8s://host:port or sc://host:port")
    # PySpark refuses these as well, and says them aloud.
    if any(part.count("=") != 1 for part in _parameters(text)):
        raise ValueError("spark has a parameter that is not name=value: write an = within a value as %3D")


def check_memory(text: str) -> None:
    """Raise ``ValueError`` for what is no size of a heap."""
    if not re.fullmatch(r"[1-9]\d*[kmgtKMGT]", text):
        raise ValueError("driver_memory is no size of a heap: write a number and k, m, g or t, such as 2g")


def show_master(master: str) -> str:
    """The address without what may follow it on ``sc://``: a token is among these parameters."""
    return master.partition(";")[0].removesuffix("/")


def hide_parameters(text: str, master: str) -> str:
    """A message about that address, without its parameters, whichever of them it repeats."""
    text = text.replace(master, show_master(master))
    for part in filter(None, _parameters(master)):
        text = text.replace(part, "…")
    return text


def carries_token(master: str) -> bool:
    """Does the address of a Spark Connect server have a token among its parameters?"""
    return any(part.partition("=")[0].strip().lower() == "token" for part in _parameters(master))


def _parameters(master: str) -> list[str]:
    return master.split(";")[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePolicy:
    """What the jobs keep and look at. Retention is `ballast pipeline run --maintenance`'s."""

    window_days: Annotated[int, Ge(1)] = 14
    """Days of history behind the load model."""
    samples_retention_hours: Annotated[int, Ge(2)] = 72
    """Hours for which samples are kept. Samples arriving later than this do not update hours that `load_hour` already has."""
    load_hour_retention_days: Annotated[int, Ge(1)] = 35
    """Days for which `load_hour` is kept."""
    table_retention_days: Annotated[int, Ge(1)] = 400
    """Days for which every other table of days and hours is kept: `load_day`, leaders, imbalance, disks and the page's charts."""
    readings_retention_days: Annotated[int, Ge(1)] = 35
    """Days for which the readings of a fleet are kept (`fleet_snapshot`); the newest reading of each cluster is always kept."""

    def __post_init__(self) -> None:
        """Refuse what would forget rows that the same day or window is still made from."""
        if self.load_hour_retention_days * 24 < self.samples_retention_hours + 24:
            raise ValueError(
                "load_hour_retention_days is too short: a day is made again as long as samples_retention_hours has samples"
            )
        if self.table_retention_days < self.window_days:
            raise ValueError(
                "table_retention_days is shorter than window_days: the load model needs the days of its window"
            )
