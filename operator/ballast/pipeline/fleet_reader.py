"""What is asked of a fleet, and the planning of it in the workers: each reads the clusters that it plans itself.

A cluster is megabytes in one row, and one what-if of many: the questions are handed out, the rows are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc
from deltalake import DeltaTable

from ballast.pipeline import arrow
from ballast.pipeline.fleet_rows import Member, brokers_of, from_row
from ballast.pipeline.scenarios import LOSE_BROKER, LOSE_RACK, planned, subjects
from ballast.pipeline.schemas import FLEET_PLAN
from ballast.pipeline.table_log import Position, in_a_worker

_OF_BROKERS: Final = frozenset({LOSE_BROKER, LOSE_RACK})
"""Scenarios that are asked for each of something that the cluster has."""


class Snapshots(NamedTuple):
    """The table of readings at a version."""

    url: str
    at: Position


class WhatIf(NamedTuple):
    """One plan to make: of a reading of a cluster, under a scenario."""

    name: str
    taken_at_ms: int
    scenario: str
    subject: str


def what_ifs(snapshots: Snapshots, scenarios: Mapping[str, str]) -> tuple[WhatIf, ...]:
    """Every question for the newest reading of each name, a cluster's own one after another; kinds map to arguments."""
    newest = newest_readings(snapshots)
    brokers = _brokers(snapshots, newest) if _OF_BROKERS & set(scenarios) else {}
    return tuple(
        WhatIf(name, taken_at_ms, kind, subject)
        for name, taken_at_ms in sorted(newest.items())
        for kind, argument in scenarios.items()
        for subject in subjects(brokers_of(brokers.get(name, ())), kind, argument)
    )


def newest_readings(snapshots: Snapshots) -> dict[str, int]:
    """When each name was last read."""
    rows = _readings(*snapshots).to_table(columns=["name", "taken_at_ms"])
    found = rows.group_by("name").aggregate([("taken_at_ms", "max")]).to_pydict()
    return dict(zip(found["name"], found["taken_at_ms_max"], strict=True))


def _brokers(snapshots: Snapshots, newest: Mapping[str, int]) -> dict[str, Any]:
    """The brokers of these readings; of the others, which a store may have thousands of, nothing is decoded."""
    found: dict[str, Any] = {}
    for group in row_groups(snapshots, pc.field("taken_at_ms").isin(sorted(set(newest.values())))):
        for row in group.to_table(columns=["name", "taken_at_ms", "brokers"], use_threads=False).to_pylist():
            if newest[row["name"]] == row["taken_at_ms"]:
                found[row["name"]] = row["brokers"]
    return found


def plans(snapshots: Snapshots, asked: Iterable[WhatIf]) -> Iterator[Any]:
    """Answers as record batches of ``FLEET_PLAN``, one for each question."""
    for name, taken_at_ms, scenario, subject in asked:
        with in_a_worker(f"read the reading of {name}"):
            member = read_member(snapshots, name, taken_at_ms)
        found = planned(member, scenario, subject)
        yield arrow.batch(FLEET_PLAN, {column: [value] for column, value in found.items()})


@lru_cache(maxsize=1)
def read_member(snapshots: Snapshots, name: str, taken_at_ms: int) -> Member:
    """One reading of one cluster; the what-ifs of a cluster come one after another and share it."""
    which = (pc.field("name") == name) & (pc.field("taken_at_ms") == taken_at_ms)
    for group in row_groups(snapshots, which):
        rows = group.to_table(schema=_readings(*snapshots).schema, filter=which, use_threads=False)
        if len(rows):
            return from_row(rows.combine_chunks().to_batches()[0], 0)
    raise LookupError(f"{name} at {taken_at_ms} is not in version {snapshots.at.version} of the readings")


def row_groups(snapshots: Snapshots, which: Any) -> Iterator[Any]:
    """The row groups that may hold such rows, by their statistics: a reading is a row group of its own."""
    readings = _readings(*snapshots)
    for file in readings.get_fragments(which):
        yield from file.split_by_row_group(which, schema=readings.schema)


@lru_cache(maxsize=1)
def _readings(url: str, at: Position) -> Any:
    return DeltaTable(url, version=at.version).to_pyarrow_dataset()
