"""Takes minute samples beside the daemon's loop: a reading is handed over, the rest happens on a thread of its own.

The loop never waits for the store or for offsets.  One sample at most is under way; a reading that comes meanwhile replaces
the one that waits, so a slow store costs minutes of history and nothing else.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from ballast.core.cluster import ClusterState
from ballast.core.cluster.external_load import ExternalLoad, producer_bytes_per_s
from ballast.core.cluster.log_ends import holders, lags, tiered_leaders
from ballast.core.samples import MinuteSample, offset_columns
from ballast.errors import BallastError, Unavailable
from ballast.ports.cluster import ClusterReader
from ballast.ports.time import Clock

log = logging.getLogger(__name__)

STOP_WAIT_S: Final = 10.0
"""How long ``stop`` waits for a sample that is being written; what is killed later is no harm to the table."""


class Sink(Protocol):
    """Where minutes go."""

    def write(self, sample: MinuteSample) -> bool:
        """Record a minute; False when it is recorded already."""
        ...


External = Callable[[ClusterState], ExternalLoad | None]
"""Brings figures from outside the Kafka protocol; None where nothing does. Raises ``Unavailable`` when it gets none."""


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What became of one sample."""

    recorded: bool
    """False: this minute was recorded before."""
    partitions: int
    replicas: int
    epoch_minute: int
    seconds: float
    missing: tuple[str, ...] = ()
    """What was wanted from outside the protocol and is a gap in this sample, one sentence each."""
    bytes_in_per_s: float | None = None
    """From producers to all live brokers as these measured it; None where no metrics of theirs told it of each."""


def take(
    reader: ClusterReader,
    state: ClusterState,
    sink: Sink,
    clock: Clock,
    *,
    writer: str,
    external: External = lambda _: None,
) -> SampleReport:
    """Add offsets (and figures from outside the protocol) to a reading and record it.

    Raises ``Unavailable`` when the cluster or the store does not answer: that minute is then a gap.  Figures from outside the
    protocol that do not come are a gap in the sample, and no reason not to have it.
    """
    begun = clock.monotonic_s()
    tiered = tiered_leaders(state)
    starts = reader.local_starts(tiered) if tiered else {}
    earliest, high = offset_columns(state, reader.offsets(list(state.index)), starts)
    behind = lags(state, reader.log_ends(holders(state, range(len(state.partitions)))))
    state = replace(state, partitions=replace(state.partitions, lag=behind))
    at_ms = clock.now_ms()
    try:
        joined = external(state)
        missing = joined.missing if joined else ()
    except Unavailable as away:
        joined, missing = None, (str(away),)
    incoming = None if joined is None else producer_bytes_per_s(joined, state.alive)
    taken = MinuteSample(
        state,
        earliest=earliest,
        high_watermark=high,
        taken_at_ms=at_ms,
        monotonic_ms=int(begun * 1000),
        writer=writer,
        external=joined,
    )
    recorded = sink.write(taken)
    p = state.partitions
    took_s = clock.monotonic_s() - begun
    return SampleReport(recorded, len(p), len(p.replica), taken.epoch_minute, took_s, missing, incoming)


class Sampler:
    """Call it with each reading; it records the first of every minute."""

    def __init__(
        self,
        reader: ClusterReader,
        sink: Sink,
        clock: Clock,
        *,
        external: External = lambda _: None,
        on_sample: Callable[[SampleReport], None] = lambda _: None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._reader = reader
        self._sink = sink
        self._clock = clock
        self._external = external
        self._on_sample = on_sample
        self._on_failure = on_failure
        self._writer = uuid.uuid4().hex
        self._last_minute = -1
        self._waiting: ClusterState | None = None
        self._stopping = False
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="sampler", daemon=True)
        self._thread.start()

    def __call__(self, state: ClusterState) -> None:
        """Hand a reading over; returns at once."""
        with self._wake:
            self._waiting = state
            self._wake.notify()

    def stop(self) -> None:
        """Finish the sample under way and end the thread."""
        with self._wake:
            self._stopping = True
            self._waiting = None
            self._wake.notify()
        self._thread.join(STOP_WAIT_S)

    def _next(self) -> ClusterState | None:
        with self._wake:
            self._wake.wait_for(lambda: self._stopping or self._waiting is not None)
            state, self._waiting = self._waiting, None
            return state

    def _work(self) -> None:
        while (state := self._next()) is not None:
            if self._clock.now_ms() // 60_000 == self._last_minute:
                continue
            try:
                report = take(
                    self._reader, state, self._sink, self._clock, writer=self._writer, external=self._external
                )
            except BallastError as failure:
                log.warning("this minute is not sampled: %s", failure)
                self._on_failure()
                continue
            except Exception:
                # A bug here must not take the history down for good: one minute is lost, and it is said.
                log.exception("this minute is not sampled because of a bug")
                self._on_failure()
                continue
            self._last_minute = report.epoch_minute
            self._on_sample(report)
