"""Plans a fleet in one Spark job: a row for each cluster and scenario, the core planner in the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ballast.errors import UsageError
from ballast.pipeline.fleet_reader import Snapshots, WhatIf, plans, what_ifs
from ballast.pipeline.scenarios import ADD_BROKERS, CHANGE_RF, GROW, KINDS, LEVEL, LOSE_BROKER, LOSE_RACK
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT
from ballast.pipeline.table_log import read_of_store
from ballast.pipeline.tables import SparkTables, translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_TASKS: Final = 256
"""Clusters differ in size: many small tasks keep every core busy to the end, and each costs Spark some CPU."""


def fleet_plan(session: SparkSession, snapshots: Snapshots, asked: tuple[WhatIf, ...]) -> DataFrame:
    """A row of ``FLEET_PLAN`` for each question."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        return plans(snapshots, (asked[number] for batch in batches for number in batch.column(0).to_pylist()))

    tasks = max(min(len(asked), MOST_TASKS), 1)
    return session.range(0, len(asked), 1, tasks).mapInArrow(work, FLEET_PLAN.ddl)


def plan_fleet(tables: SparkTables, scenarios: Mapping[str, str]) -> int:
    """Plan every cluster's newest reading and replace the fleet plan; returns the rows written."""
    at = tables.log.position(FLEET_SNAPSHOT)
    if at is None:
        raise UsageError("No cluster of the fleet was read yet.", hint="Run `ballast fleet collect` first.")
    snapshots = Snapshots(tables.url(FLEET_SNAPSHOT), at)
    with read_of_store("the fleet's readings"):
        asked = what_ifs(snapshots, scenarios)
    with translated("planning the fleet"):
        return tables.overwrite(FLEET_PLAN, fleet_plan(tables.session, snapshots, asked))


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
