"""Which partitions a file or a share is about: some chunks of a cluster, numbered as the samples number them.

Tables that are folded from samples keep their partitions apart in the same way, a file for each share.  The file's name says
which chunks it has, so that the next fold opens the files of its own share and no others.  Names are hints for what to
open: rows are chosen by their own keys, and a file that says nothing is read by every share.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ballast.core.cluster import Flags
from ballast.core.samples import chunk_numbers, topic_seed

_IN_A_NAME: Final = re.compile(r"part-c(\d+)-(\d+)of(\d+)-[^/]*$")


class Chunks(NamedTuple):
    """The chunks ``first`` to ``end`` (not included) of ``of``, a power of two."""

    first: int
    end: int
    of: int

    @classmethod
    def of_file(cls, path: str) -> Chunks | None:
        """What a file's name says; None where it says nothing."""
        found = _IN_A_NAME.search(path)
        return cls(*map(int, found.groups())) if found else None

    @property
    def label(self) -> str:
        """As it stands in a file's name; empty for all chunks, since such files may hold several clusters."""
        return "" if self.end - self.first == self.of else f"c{self.first}-{self.end}of{self.of}-"

    def meets(self, other: Chunks) -> bool:
        """May a partition be in both?  A chunk's number under a smaller count is what remains of it."""
        count = min(self.of, other.of)
        return bool({n % count for n in range(*self[:2])} & {n % count for n in range(*other[:2])})

    def has_all_of(self, other: Chunks | None) -> bool:
        """Is every partition of the other surely in this one?"""
        if self.end - self.first == self.of:
            return True
        return other is not None and other.of == self.of and self.first <= other.first and other.end <= self.end

    def holds(self, topic: Any, partition: Any) -> Flags:
        """Which rows are in it, from a dictionary of topics' names for each row and partitions' numbers."""
        coded = topic.combine_chunks() if isinstance(topic, pa.ChunkedArray) else topic
        seeds = np.array([topic_seed(name) for name in coded.dictionary.to_pylist()], np.int64)
        number = chunk_numbers(seeds[coded.indices.to_numpy()], partition.to_numpy(), self.of)
        return np.asarray((self.first <= number) & (number < self.end), np.bool_)
