"""Plans a fleet in one Spark job: a row for each cluster and scenario, the core planner in the workers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from ballast.core.what_if import ADD_BROKERS, BALANCE, CHANGE_RF, GROW, KINDS, LOSE_BROKER, LOSE_RACK
from ballast.errors import UsageError
from ballast.pipeline.fleet_rows import from_row, plan_row, record_batch
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT
from ballast.pipeline.tables import SparkTables, translate_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST_TASKS: Final = 256
"""Clusters differ in size: many small tasks keep every core busy to the end, and each costs Spark some CPU."""
_ROWS_A_BATCH: Final = "8"
"""A row is a whole cluster, which may be megabytes."""


def newest_readings(readings: DataFrame) -> DataFrame:
    """The newest reading of each name; of the others nothing but two columns is read."""
    newest = readings.groupBy("name").agg(F.max("taken_at").alias("taken_at"))
    return readings.join(F.broadcast(newest), on=["name", "taken_at"], how="left_semi")


def what_ifs(readings: DataFrame, scenarios: Mapping[str, str]) -> DataFrame:
    """A row for each reading and question; kinds map to arguments."""
    asked = [_questions(kind, argument) for kind, argument in scenarios.items()]
    exploded = readings.withColumn("asked", F.explode(F.concat(*asked)))
    return exploded.select("*", "asked.scenario", "asked.subject").drop("asked")


def _questions(kind: str, argument: str) -> Column:
    """What a kind of scenario is asked of a cluster: for each live broker, for each rack, or once."""
    if kind == LOSE_BROKER:
        subjects = F.expr("transform(filter(brokers, b -> b.alive), b -> cast(b.id as string))")
    elif kind == LOSE_RACK:
        racks = F.expr("array_distinct(transform(filter(brokers, b -> b.alive AND b.rack IS NOT NULL), b -> b.rack))")
        subjects = F.when(F.size(racks) > 1, F.array_sort(racks)).otherwise(F.expr("cast(array() as array<string>)"))
    else:
        subjects = F.array(F.lit(argument))
    return F.transform(subjects, lambda subject: F.struct(F.lit(kind).alias("scenario"), subject.alias("subject")))


def plans(batches: Iterable[Any]) -> Iterator[Any]:
    """Rows of ``what_ifs`` to rows of ``FLEET_PLAN``, in a worker."""
    for batch in batches:
        for row in range(batch.num_rows):
            scenario, subject = (
                batch.column(batch.schema.get_field_index(n))[row].as_py() for n in ("scenario", "subject")
            )
            begun = time.perf_counter()
            found = plan_row(from_row(batch, row), scenario, subject)
            found["seconds"] = time.perf_counter() - begun
            yield record_batch(FLEET_PLAN, {column: [value] for column, value in found.items()})


def fleet_plan(readings: DataFrame, scenarios: Mapping[str, str]) -> DataFrame:
    """A row of ``FLEET_PLAN`` for each question of each cluster's newest reading."""
    asked = what_ifs(newest_readings(readings), scenarios)
    tasks = max(min(asked.select("name").count(), MOST_TASKS), 1)
    return asked.repartition(tasks, "name", "scenario", "subject").mapInArrow(plans, FLEET_PLAN.ddl)


def plan_fleet(tables: SparkTables, scenarios: Mapping[str, str]) -> int:
    """Plan every cluster's newest reading and replace the fleet plan; returns the rows written."""
    if not tables.log.exists(FLEET_SNAPSHOT):
        raise UsageError("No cluster of the fleet was read yet.", hint="Run `ballast fleet collect` first.")
    with translate_errors("planning the fleet"):
        tables.session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _ROWS_A_BATCH)
        return tables.overwrite(FLEET_PLAN, fleet_plan(tables.read(FLEET_SNAPSHOT), scenarios))


def parse_scenarios(texts: tuple[str, ...]) -> dict[str, str]:
    """``lose-broker`` or ``add-brokers=3`` to kind and argument; raises ``UsageError`` for what does not fit."""
    needs = {ADD_BROKERS: "3", CHANGE_RF: "3", GROW: "90"}
    found: dict[str, str] = {}
    for text in texts:
        kind, _, argument = text.partition("=")
        if kind not in KINDS:
            raise UsageError(f"There is no scenario {kind!r}.", hint=f"Choose among {', '.join(KINDS)}.")
        if kind in needs and not (argument.isdigit() and int(argument) > 0):
            raise UsageError(f"{kind} wants a number.", hint=f"Write {kind}={needs[kind]}.")
        if kind not in needs and argument:
            raise UsageError(f"{kind} takes no number.", hint=f"Write {kind}.")
        found[kind] = argument
    return found or {BALANCE: "", LOSE_BROKER: "", LOSE_RACK: "", GROW: "90"}
