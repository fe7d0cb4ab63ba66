"""What every partition costs the broker that holds it: bytes on disk, bytes in, bytes out, CPU.

All figures are integers, so that sums do not depend on the order in which they are taken.  A figure that
was not measured is not invented here in silence: the resource is left out of ``known`` or its stand-in is written down in
``assumptions``, which the plan repeats to the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import UNKNOWN, ClusterState, Flags, Ints
from ballast.errors import UsageError

CPU_UNIT: Final = 1_000_000
"""CPU loads are in millionths of a percent of one broker's CPU: a load of 2 % is 2 * CPU_UNIT."""

DISK: Final = "disk"
BYTES_IN: Final = "bytes-in"
BYTES_OUT: Final = "bytes-out"
CPU: Final = "cpu"
MEASURED: Final = (DISK, BYTES_IN, BYTES_OUT, CPU)
"""The resources that need figures; replica and leader counts need none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Loads:
    """Loads by partition, in the row order of one ``ClusterState``."""

    size_bytes: Ints
    """Bytes of one replica on disk."""
    bytes_in_per_s: Ints
    """Produced bytes per second: what the leader receives and each follower fetches."""
    bytes_out_per_s: Ints
    """What the leader sends: to consumers and to followers."""
    bytes_read_per_s: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of that, what consumers read in the mean; ``UNKNOWN`` where no figure tells, left out where none tells it of any partition."""
    bytes_written_per_s: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """What producers write in the mean, where ``bytes_in_per_s`` is another figure, such as a peak; left out, that counts."""
    cpu_leader: Ints
    """CPU the leader spends, in ``CPU_UNIT``."""
    cpu_follower: Ints
    """CPU each follower spends, in ``CPU_UNIT``."""
    known: frozenset[str] = frozenset(MEASURED)
    """The resources whose figures mean something; the others take no part in planning."""
    assumed: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    """By partition: was its size assumed?  Good enough to balance by, and unknown to a move that copies it; left out, none was."""
    assumptions: tuple[str, ...] = ()
    """What was assumed in place of measurements, one sentence each."""

    def __len__(self) -> int:
        return len(self.size_bytes)

    @property
    def unknown_sizes(self) -> int:
        """How many partitions have a size that was assumed."""
        return int(self.assumed.sum())

    @cached_property
    def known_bytes(self) -> list[int]:
        """By partition its size as a move tells it: ``UNKNOWN`` where it is not known."""
        if DISK not in self.known:
            return [UNKNOWN] * len(self)
        sizes = np.where(self.assumed, UNKNOWN, self.size_bytes) if len(self.assumed) else self.size_bytes
        return [int(size) for size in sizes.tolist()]

    @classmethod
    def from_state(cls, state: ClusterState) -> Loads:
        """Sizes from the log dirs; traffic and CPU stay unknown and take no part."""
        sizes, known, assumed = replica_sizes(state)
        zero = np.zeros(len(sizes), np.int64)
        notes = ["No traffic or CPU metrics: only disk, replicas and preferred leaders are balanced."]
        resources: frozenset[str] = frozenset({DISK})
        if not known:
            if len(sizes):
                notes.append("No size is known: a plan cannot say how many bytes it moves.")
            resources = frozenset()
        elif assumed.any():
            notes.append(
                f"{int(assumed.sum())} partitions of unknown size were taken to be as large as the median partition. How much "
                "is copied of them is not known, and none is copied before it is, unless --unknown-disk-space allow."
            )
        return cls(
            size_bytes=sizes,
            bytes_in_per_s=zero,
            bytes_out_per_s=zero,
            cpu_leader=zero,
            cpu_follower=zero,
            known=resources,
            assumed=assumed,
            assumptions=tuple(notes),
        )

    @classmethod
    def from_model(
        cls,
        state: ClusterState,
        columns: Mapping[str, npt.NDArray[np.generic]],
        *,
        assumptions: tuple[str, ...] = (),
    ) -> Loads:
        """Join a load model to the state by ``topic`` and ``partition``.

        ``columns`` holds ``topic`` (text), ``partition`` and any of ``size_bytes``, ``bytes_in_per_s``,
        ``bytes_out_per_s``, ``bytes_read_per_s`` (NaN where unknown),
        ``bytes_written_per_s``, ``cpu_leader_percent`` and ``cpu_follower_percent``, all of one length.  A size that the
        state knows wins over the model's.  A partition that the model does not have gets the median of its resource,
        and that is said.
        """
        rows = _rows_of(state, columns)
        found = rows >= 0
        sizes, some_known, assumed = replica_sizes(state)
        notes = list(assumptions)
        known: set[str] = set()

        def take(name: str, unit: int = 1) -> Ints | None:
            if name not in columns:
                return None
            values = np.rint(np.asarray(columns[name], np.float64)[found] * unit).astype(np.int64)
            if len(values) and int(values.min()) < 0:
                raise UsageError(f"The load model has negative values in {name!r}.", hint="Rebuild the load model.")
            out = np.full(len(sizes), int(np.median(values)) if len(values) else 0, np.int64)
            out[rows[found]] = values
            return out

        missing = len(sizes) - len(np.unique(rows[found]))
        if missing:
            notes.append(f"{missing} partitions have no history yet: each counts as the median partition.")
        model_sizes = take("size_bytes")
        if model_sizes is not None:
            sizes = np.where(assumed, model_sizes, sizes)
            remembered = np.zeros(len(sizes), np.bool_)
            remembered[rows[found]] = True
            assumed = assumed & ~remembered
        if some_known or model_sizes is not None:
            known.add(DISK)
        zero = np.zeros(len(sizes), np.int64)
        incoming, outgoing = take("bytes_in_per_s"), take("bytes_out_per_s")
        written = take("bytes_written_per_s")
        leader, follower = take("cpu_leader_percent", CPU_UNIT), take("cpu_follower_percent", CPU_UNIT)
        known |= {BYTES_IN} if incoming is not None else set()
        known |= {BYTES_OUT} if outgoing is not None else set()
        known |= {CPU} if leader is not None and follower is not None else set()
        absent = sorted(set(MEASURED) - known)
        if absent:
            notes.append(f"Unknown and not balanced: {', '.join(absent)}.")
        return cls(
            size_bytes=sizes,
            bytes_in_per_s=zero if incoming is None else incoming,
            bytes_out_per_s=zero if outgoing is None else outgoing,
            bytes_read_per_s=_read(columns, rows, len(sizes)),
            bytes_written_per_s=np.zeros(0, np.int64) if written is None else written,
            cpu_leader=zero if leader is None else leader,
            cpu_follower=zero if follower is None else follower,
            known=frozenset(known),
            assumed=assumed,
            assumptions=tuple(notes),
        )


def _read(columns: Mapping[str, npt.NDArray[np.generic]], rows: Ints, count: int) -> Ints:
    """What consumers read, by partition; nothing stands in for what is not known."""
    if "bytes_read_per_s" not in columns:
        return np.zeros(0, np.int64)
    values = np.asarray(columns["bytes_read_per_s"], np.float64)
    known = (rows >= 0) & ~np.isnan(values)
    out = np.full(count, UNKNOWN, np.int64)
    out[rows[known]] = np.rint(values[known]).astype(np.int64)
    return out


def measure_growth(first: ClusterState, second: ClusterState, *, seconds: float) -> Loads:
    """Loads of the second reading, with bytes in by growth since the first: what producers write, where no history is at hand.

    Retention that deletes a segment in between hides growth: such a partition counts as zero, never as less.  Partitions
    that one of the readings cannot tell count as the median of the others.
    """
    before, after = _leader_sizes(first), _leader_sizes(second)
    past = np.array([_size_at(first, before, name) for name in second.index], np.int64)
    told = (past >= 0) & (after >= 0)
    plain = Loads.from_state(second)
    notes = [f"Bytes in are what logs grew by in {seconds:g} s; bytes out and CPU are not known."]
    if not bool(told.any()):
        return plain
    rates = np.zeros(len(after), np.int64)
    rates[told] = np.rint(np.maximum(after - past, 0)[told] / seconds).astype(np.int64)
    if not bool(told.all()):
        rates[~told] = int(np.median(rates[told]))
        notes.append(f"{int((~told).sum())} partitions could not be measured: each counts as the median partition.")
    return replace(plain, bytes_in_per_s=rates, known=plain.known | {BYTES_IN}, assumptions=tuple(notes))


def _leader_sizes(state: ClusterState) -> Ints:
    """Per partition the bytes that its leader holds, ``UNKNOWN`` without a leader or its word."""
    p = state.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    out = np.full(len(p), UNKNOWN, np.int64)
    leads = p.replica == p.leader[row]
    out[row[leads]] = p.size_bytes[leads]
    return out


def _size_at(state: ClusterState, sizes: Ints, name: object) -> int:
    row = state.index.get(name)  # type: ignore[call-overload]
    return UNKNOWN if row is None else int(sizes[row])


def replica_sizes(state: ClusterState) -> tuple[Ints, bool, Flags]:
    """Per partition the size of its largest known replica; whether any is known; which were assumed.

    The largest, not the mean: a replica that is still being copied shows less than it will hold.
    """
    p = state.partitions
    if not len(p):
        return np.zeros(0, np.int64), False, np.zeros(0, np.bool_)
    largest = _largest(state)
    unknown = largest < 0
    if bool(unknown.all()):
        return np.zeros(len(p), np.int64), False, unknown
    median = int(np.median(largest[~unknown]))
    return np.where(unknown, median, largest), True, unknown


def _largest(state: ClusterState) -> Ints:
    p = state.partitions
    counts = np.diff(p.start)
    out = np.full(len(p), -1, np.int64)
    has = counts > 0
    if bool(has.any()):
        out[has] = np.maximum.reduceat(p.size_bytes, p.start[:-1][has])
    return out


def _rows_of(state: ClusterState, columns: Mapping[str, npt.NDArray[np.generic]]) -> Ints:
    """For each row of the model, its row in the state, or -1."""
    if "topic" not in columns or "partition" not in columns:
        raise UsageError("The load model lacks its topic and partition columns.", hint="Rebuild the load model.")
    lengths = {len(c) for c in columns.values()}
    if len(lengths) != 1:
        raise UsageError("The load model's columns differ in length.", hint="Rebuild the load model.")
    p = state.partitions
    names = np.asarray(columns["topic"]).astype(str)
    numbers = np.asarray(columns["partition"]).astype(np.int64)
    unique, inverse = np.unique(names, return_inverse=True)
    topics = np.array([state.topic_index.get(str(n), -1) for n in unique], np.int64)
    topic = topics[inverse] if len(unique) else np.zeros(0, np.int64)
    width = int(max(p.number.max() if len(p) else 0, numbers.max() if len(numbers) else 0)) + 1
    keys = p.topic.astype(np.int64) * width + p.number
    wanted = topic * width + numbers
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (topic >= 0), at, -1)
