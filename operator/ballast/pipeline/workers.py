"""The way that every job goes: Spark says who folds which share, and its workers read, fold and write it themselves.

Rows of samples or of tables pass neither the JVM nor the driver: a worker is handed numbers of shares and answers which
files it wrote.  Arrow and NumPy do in a worker what the JVM would do with an object for each entry of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

from ballast.pipeline.chunks import Chunks
from ballast.pipeline.part_files import WRITTEN_DDL, Target, answered, written
from ballast.pipeline.table_log import in_a_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_TASKS: Final = 256
"""Shares beyond this go several to a task: a task costs Spark some CPU, and its whole clusters' rows make one file."""


class Cut(Protocol):
    """A share of the work: no fold of another one needs any of its rows."""

    @property
    def cut(self) -> Chunks:
        """The chunks of one cluster that it is about."""
        ...


class Source(Protocol):
    """Where rows are read, and the shares of what is to be folded."""

    @property
    def shares(self) -> Sequence[Cut]:
        """In the order in which they are handed out."""
        ...


Read = Callable[[Any, Any], Iterator[Any]]
"""Of a source, the record batches of a share, sorted as its fold wants them."""
Fold = Callable[[Iterable[Any]], Iterator[Any]]


def made(session: SparkSession, target: Target, source: Source, read: Read, fold: Fold) -> DataFrame:
    """The files (rows of ``WRITTEN``) that workers write of what ``fold`` makes of the shares."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        return worked(batches, target, source, read, fold)

    count = len(source.shares)
    return session.range(0, count, 1, max(min(count, MOST_TASKS), 1)).mapInArrow(work, WRITTEN_DDL)


def stored(rows: DataFrame, target: Target) -> DataFrame:
    """The files that workers write of rows that Spark made."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        with in_a_worker(f"write {target.table.name}"):
            yield answered(written(target, batches))

    return rows.select(*target.table.names).mapInArrow(work, WRITTEN_DDL)


def worked(batches: Iterable[Any], target: Target, source: Source, read: Read, fold: Fold) -> Iterator[Any]:
    """In a worker: fold and write the shares with these numbers; part of a cluster makes a file, whole ones share one."""
    shares = (source.shares[number] for batch in batches for number in batch.column(0).to_pylist())

    def found(share: Cut) -> Iterator[Any]:
        with in_a_worker(f"read what {target.table.name} is made of"):
            yield from read(source, share)

    for label, those in groupby(shares, key=lambda share: share.cut.label):
        with in_a_worker(f"write {target.table.name}"):
            rows = (made_ for share in those for made_ in fold(found(share)))
            yield answered(written(target, rows, label))
