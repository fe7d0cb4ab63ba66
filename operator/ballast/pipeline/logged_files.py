"""The files of a folded table as its log has them: what may be in each is told without opening any."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from ballast.pipeline.chunks import Chunks
from ballast.pipeline.schemas import Table


class File(NamedTuple):
    """One file."""

    path: str
    """Below the table's folder, as a file system names it."""
    part: str
    size_bytes: int
    first_cluster: str | None
    """The least of its clusters; None where the log does not say."""
    last_cluster: str | None

    @property
    def cut(self) -> Chunks | None:
        """Which chunks it has; None for all."""
        return Chunks.of_file(self.path)

    @property
    def cluster(self) -> str | None:
        """The only cluster in it; None where there may be several."""
        return self.first_cluster if self.first_cluster == self.last_cluster else None

    def may_have(self, cluster: str) -> bool:
        """May a row be of this cluster?"""
        return (
            self.first_cluster is None
            or self.last_cluster is None
            or self.first_cluster <= cluster <= self.last_cluster
        )


def files_of(table: Any, layout: Table) -> tuple[File, ...]:
    """The files of a version of a table, opened with delta-rs, in the order of their parts."""
    added = pa.table(table.get_add_actions(flatten=True))
    by = layout.partition_by[0]

    def column(name: str) -> list[Any]:
        return added.column(name).to_pylist() if name in added.column_names else [None] * len(added)

    bounds = ("partition.cluster",) * 2 if by == "cluster" else ("min.cluster", "max.cluster")
    names = ("path", f"partition.{by}", "size_bytes", *bounds)
    found = (File(unquote(path), *rest) for path, *rest in zip(*map(column, names), strict=True))
    return tuple(sorted(found, key=lambda file: (file.part, file.path)))
