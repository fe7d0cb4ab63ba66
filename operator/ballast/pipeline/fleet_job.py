"""Plans a fleet in one Spark job: a row for each cluster and scenario, the core planner in the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from ballast.errors import UsageError
from ballast.pipeline.scenarios import ADD_BROKERS, CHANGE_RF, GROW, KINDS, LEVEL, LOSE_BROKER, LOSE_RACK, fold_fleet
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT
from ballast.pipeline.tables import SparkTables, translated

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_PER_BATCH: Final = 64
"""A row is a whole cluster: more of them in one batch only cost memory."""
TASKS: Final = 64
"""Clusters differ in size; many small tasks keep every core busy to the end."""


def newest(snapshots: DataFrame) -> DataFrame:
    """The last reading of each name."""
    last = snapshots.groupBy("name").agg(F.max("taken_at_ms").alias("taken_at_ms"))
    return snapshots.join(last, on=["name", "taken_at_ms"], how="inner").dropDuplicates(["name"])


def _asked(kind: str, argument: str) -> Column:
    """The scenarios of one kind for a row: structs of kind and subject."""

    def entry(subject: Column) -> Column:
        return F.struct(F.lit(kind).alias("scenario"), subject.cast("string").alias("subject"))

    alive = F.filter("brokers", lambda b: b["alive"])
    if kind == LOSE_BROKER:
        return F.transform(alive, lambda b: entry(b["id"]))
    if kind == LOSE_RACK:
        racks = F.array_sort(F.array_distinct(F.array_compact(F.transform(alive, lambda b: b["rack"]))))
        return F.when(F.size(racks) > 1, F.transform(racks, entry)).otherwise(F.array().cast(_SCENARIOS))
    return F.array(entry(F.lit(argument)))


_SCENARIOS: Final = "array<struct<scenario:string,subject:string>>"


def fleet_plan(snapshots: DataFrame, scenarios: Mapping[str, str], *, tasks: int = TASKS) -> DataFrame:
    """Rows of ``FLEET_SNAPSHOT`` to rows of ``FLEET_PLAN``; ``scenarios`` maps a kind to its argument."""
    asked = [_asked(kind, argument).cast(_SCENARIOS) for kind, argument in scenarios.items()]
    return (
        newest(snapshots.select(*FLEET_SNAPSHOT.names))
        .withColumn("what_if", F.explode(F.concat(*asked)))
        .select(*FLEET_SNAPSHOT.names, "what_if.scenario", "what_if.subject")
        .repartition(tasks, "name", "scenario", "subject")
        .mapInArrow(fold_fleet, FLEET_PLAN.ddl)
    )


def plan_fleet(tables: SparkTables, scenarios: Mapping[str, str]) -> int:
    """Plan every cluster's newest reading and replace the fleet plan; returns the rows written."""
    if tables.log.position(FLEET_SNAPSHOT) is None:
        raise UsageError("No cluster of the fleet was read yet.", hint="Run `ballast fleet collect` first.")
    with translated("planning the fleet"):
        tables.session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_PER_BATCH))
        tables.overwrite(FLEET_PLAN, fleet_plan(tables.read(FLEET_SNAPSHOT), scenarios))
    return len(tables.log.column(FLEET_PLAN, "name"))


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
    return found or {LEVEL: "", LOSE_BROKER: "", LOSE_RACK: "", GROW: "90"}
