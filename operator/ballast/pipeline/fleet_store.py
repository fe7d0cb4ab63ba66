"""The fleet's tables without Spark: append readings, read plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from ballast.adapters.arrow_schema import arrow_schema
from ballast.adapters.samples_delta import check_layout, describe, table_url
from ballast.errors import Unavailable, UsageError
from ballast.pipeline.fleet_rows import Member, to_batch
from ballast.pipeline.schemas import FLEET_PLAN, FLEET_SNAPSHOT

_FILES: Final = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=1)
"""A row is a whole cluster, and is read by whoever plans that cluster alone."""


def append_snapshots(store: str, members: Sequence[Member], options: Mapping[str, str] | None = None) -> None:
    """Add one reading of each cluster, in one commit."""
    url, schema = table_url(store, FLEET_SNAPSHOT.name), arrow_schema(FLEET_SNAPSHOT.columns)
    with _translated():
        try:
            target = DeltaTable(url, storage_options=dict(options or {}))
        except TableNotFoundError:
            target = DeltaTable.create(
                url,
                schema=schema,
                mode="ignore",
                description=describe(FLEET_SNAPSHOT.name, FLEET_SNAPSHOT.version),
                storage_options=dict(options or {}),
            )
        check_layout(FLEET_SNAPSHOT.name, target.metadata().description, known=FLEET_SNAPSHOT.version)
        write_deltalake(
            target,
            pa.Table.from_batches([to_batch(m) for m in members], schema=schema),
            mode="append",
            writer_properties=_FILES,
        )


def read_plans(store: str, options: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Every row of the newest fleet plan; raises ``UsageError`` when there is none."""
    with _translated():
        try:
            table = DeltaTable(table_url(store, FLEET_PLAN.name), storage_options=dict(options or {}))
        except TableNotFoundError:
            raise UsageError("The fleet has not been planned yet.", hint="Run `ballast fleet plan` first.") from None
        check_layout(FLEET_PLAN.name, table.metadata().description, known=FLEET_PLAN.version)
        rows: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda r: (r["name"], r["scenario"], r["subject"]))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError) as failure:
        raise Unavailable(
            f"The fleet's store does not answer ({type(failure).__name__}).",
            hint="Check the store's address and credentials.",
        ) from failure
