"""The fleet's tables without Spark: append readings, read plans, forget what is old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import WriterProperties, write_deltalake

from ballast.adapters.samples.arrow_schema import arrow_schema
from ballast.adapters.samples.failures import store_failures
from ballast.adapters.samples.store import ensure_table, open_table, table_url
from ballast.core.what_if import Member
from ballast.core.wording import ShowLine, human_many
from ballast.errors import UsageError
from ballast.pipeline.fleet_rows import to_batch
from ballast.pipeline.policy import PipelinePolicy
from ballast.pipeline.schemas import FLEET_CONTACT, FLEET_PLAN, FLEET_SNAPSHOT
from ballast.pipeline.table_log import RETENTION_H

_FILES: Final = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=1)
"""A row is a whole cluster, and is read by a planner of that cluster alone."""


@dataclass(frozen=True, slots=True)
class Contact:
    """How the newest attempt to read a cluster of the list ended."""

    name: str
    cluster: str | None
    tried_at: datetime
    answered: bool
    detail: str


@dataclass(frozen=True, slots=True)
class FleetReport:
    """What the fleet's report is made of."""

    plans: list[dict[str, Any]]
    contacts: tuple[Contact, ...] = ()

    @property
    def unreachable(self) -> tuple[Contact, ...]:
        """Those that did not answer the newest ``collect``."""
        return tuple(c for c in self.contacts if not c.answered)

    @property
    def unplanned(self) -> list[str]:
        """Those that answered, but have no plan yet."""
        return sorted({c.name for c in self.contacts if c.answered} - self.last_read.keys())

    @property
    def last_read(self) -> dict[str, datetime]:
        """When each name that has a plan was read."""
        return {r["name"]: r["taken_at"] for r in self.plans}

    @property
    def same_cluster(self) -> dict[str, list[str]]:
        """Cluster ids that are planned under several names, as after a change of name in the list."""
        names = {
            i: sorted({r["name"] for r in self.plans if r["cluster"] == i}) for i in {r["cluster"] for r in self.plans}
        }
        return {i: found for i, found in sorted(names.items()) if len(found) > 1}


def append_snapshots(store: str, members: Sequence[Member]) -> None:
    """Add one reading of each cluster, in one commit."""
    with store_failures(table_url(store, FLEET_SNAPSHOT.name), write=True):
        rows = pa.Table.from_batches([to_batch(m) for m in members], schema=arrow_schema(FLEET_SNAPSHOT.columns))
        write_deltalake(ensure_table(store, FLEET_SNAPSHOT), rows, mode="append", writer_properties=_FILES)


def record_contacts(store: str, contacts: Sequence[Contact]) -> None:
    """Replace what is known of how these names answered, in one commit; other names keep theirs."""
    with store_failures(table_url(store, FLEET_CONTACT.name), write=True):
        rows = pa.Table.from_pylist([asdict(c) for c in contacts], schema=arrow_schema(FLEET_CONTACT.columns))
        wanted = " OR ".join(f"name = {_quote(c.name)}" for c in contacts)
        write_deltalake(ensure_table(store, FLEET_CONTACT), rows, mode="overwrite", predicate=wanted)


def maintain_readings(store: str, policy: PipelinePolicy, *, now: datetime, on_line: ShowLine = lambda _: None) -> None:
    """Forget readings older than the policy keeps, but each cluster's newest, and free the files of all tables.

    The plans need no forgetting: each job replaces them whole.
    """
    oldest = now - timedelta(days=policy.readings_retention_days)
    with store_failures(table_url(store, FLEET_SNAPSHOT.name), write=True):
        readings = open_table(store, FLEET_SNAPSHOT)
        if readings is not None:
            # Only files with an old reading are written anew, and only those that keep one of them.
            newest = _newest(readings).items()
            kept = [f"(name = {_quote(n)} AND taken_at = {_literal(at)})" for n, at in newest if at < oldest]
            wanted = f"taken_at < {_literal(oldest)}" + (f" AND NOT ({' OR '.join(kept)})" if kept else "")
            readings.delete(wanted, writer_properties=_FILES)
            on_line(f"{FLEET_SNAPSHOT.name}: kept from {oldest:%Y-%m-%dT%H}")
        for table in (FLEET_SNAPSHOT, FLEET_CONTACT, FLEET_PLAN):
            found = open_table(store, table)
            freed = [] if found is None else found.vacuum(RETENTION_H, dry_run=False, full=True)
            if freed:
                on_line(f"{table.name}: {human_many(len(freed), 'file')} freed")


def _newest(readings: Any) -> dict[str, datetime]:
    """When each name was last read."""
    rows = readings.to_pyarrow_table(columns=["name", "taken_at"])
    found = rows.group_by("name").aggregate([("taken_at", "max")]).to_pydict()
    return dict(zip(found["name"], found["taken_at_max"], strict=True))


def _literal(at: datetime) -> str:
    """A moment as a literal of a predicate."""
    return _quote(at.astimezone(UTC).isoformat())


def _quote(name: str) -> str:
    """A name of the fleet's list, which may hold anything, as a literal of a predicate."""
    return "'" + name.replace("'", "''") + "'"


def read_plans(store: str) -> list[dict[str, Any]]:
    """Every row of the newest fleet plan; raises ``UsageError`` when there is none."""
    with store_failures(table_url(store, FLEET_PLAN.name)):
        table = open_table(store, FLEET_PLAN)
        if table is None:
            raise UsageError(
                "The fleet has not been planned yet.",
                hint="Run `ballast fleet collect FLEET.YAML`, then `ballast fleet plan`.",
            )
        rows: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda r: (r["name"], r["scenario"], r["subject"]))


def read_report(store: str) -> FleetReport:
    """All that the report tells; raises ``UsageError`` where no cluster was planned and none is known to be unreachable."""
    with store_failures(table_url(store, FLEET_CONTACT.name)):
        table = open_table(store, FLEET_CONTACT)
        rows = [] if table is None else table.to_pyarrow_table().to_pylist()
    contacts = tuple(sorted((Contact(**row) for row in rows), key=lambda c: c.name))
    try:
        plans = read_plans(store)
    except UsageError:
        if all(c.answered for c in contacts):
            raise
        plans = []
    return FleetReport(plans, contacts)
