"""``leadership_history``: the samples that show another leader than the sample before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ballast.pipeline.schemas import LEADERSHIP_HISTORY
from ballast.pipeline.transforms.columns import contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def leadership_history(samples: DataFrame) -> DataFrame:
    """A change is seen at the first sample that shows it; the sample before may be minutes older."""
    return contract(samples.where(F.col("leader") != F.col("leader_before")), LEADERSHIP_HISTORY)
