"""Reads the cluster for the machine, no more than it needs: cheap looks often, dear ones rarely.

A look is the controller's list of reassignments and the state of the partitions being changed.  Guards want the whole cluster:
a light reading no older than ``policy.guard_s``, with the slow facts of the last full one (``core.cluster.slow_facts``).
A reading that took long is repeated less often, so that looking never takes more than a tenth of a large cluster's time.  Where another
part of the process takes full readings as well, the newer of both is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

import numpy as np

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.core.cluster.log_ends import LogEnds, holders
from ballast.core.cluster.slow_facts import with_slow_facts
from ballast.core.throttles import Ledger
from ballast.executor.driver.foreign_throttles import rates_of_others
from ballast.executor.machine.observation import Disks, Needs, Picture
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import BrokerLogs, ClusterReader, Reassignment
from ballast.ports.time import Clock

FULL_EVERY_S: Final = 60.0
LATE_S: Final = 30.0
"""How much longer a run waits for the next full reading of another part of the process before it takes one itself."""
REFUSAL_AGE_S: Final = 2.0
"""Age of the reading that a refusal is judged by again."""
SHARE_OF_TIME: Final = 10.0
"""A reading that took t seconds is not repeated within this many times t."""


class FullReading(NamedTuple):
    """A reading of the whole cluster with sizes and configs, and the monotonic times at which it began and ended."""

    state: ClusterState
    began_s: float
    ended_s: float


def no_reading() -> FullReading | None:
    """What a process answers where nothing else reads the cluster."""
    return None


class _Cadence:
    """When a reading is due again."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._next_s = self.ended_s = float("-inf")
        self._cost_s = 0.0

    def due(self, now_s: float) -> bool:
        return now_s >= self._next_s

    def record_reading(self, began_s: float, ended_s: float) -> None:
        self._cost_s = ended_s - began_s
        self.count_as_read(ended_s)

    def count_as_read(self, ended_s: float) -> None:
        """Another reading told the same; what it cost says nothing of this kind's."""
        self.ended_s = ended_s
        self._next_s = ended_s + max(self._every_s, self._cost_s * SHARE_OF_TIME)

    def read_sooner(self, every_s: float) -> None:
        self._next_s = min(self._next_s, self.ended_s + max(every_s, self._cost_s * SHARE_OF_TIME))


class Looker:
    """Keeps what the last readings said."""

    def __init__(
        self,
        cluster: ClusterReader,
        clock: Clock,
        policy: ExecutionPolicy,
        ledger: Callable[[], Ledger] = dict,
        full_reading: Callable[[], FullReading | None] = no_reading,
    ) -> None:
        """``ledger`` tells which throttle settings are ours now, ``full_reading`` the newest that another part of the process took."""
        self._cluster = cluster
        self._clock = clock
        self._full_reading = full_reading
        self._ledger = ledger if policy.throttled else None
        self._bystanders = policy.auto
        self._others = _Cadence(policy.guard_s)
        self._foreign: frozenset[TopicPartition] = frozenset()
        self._rates_of_others: Mapping[int, int] = {}
        self._full = _Cadence(FULL_EVERY_S)
        self._light = _Cadence(policy.guard_s)
        self._logs = _Cadence(policy.progress_s)
        self._state: ClusterState | None = None
        self._slow: ClusterState | None = None
        self._sizes: dict[TopicPartition, int] = {}
        self._growth: Mapping[TopicPartition, float] | None = None
        self._grown_from: tuple[float, float, dict[TopicPartition, int]] | None = None
        """When the reading from which growth is measured began and ended, and its sizes."""
        self._full_s = self._full_ended_s = float("-inf")
        """When the last full reading began, and ended."""
        self._disks: dict[int, tuple[float, BrokerLogs]] = {}
        """Log dirs read since, and when that began."""
        self._shown = Disks()
        """The disks as ``_state`` shows them."""
        self._listed: dict[TopicPartition, tuple[Reassignment, float]] = {}
        """Reassignments that some disk was last read before the end of, and when each was last listed."""

    def state(self) -> ClusterState:
        """A whole-cluster reading that guards may judge by."""
        now_s = self._clock.monotonic_s()
        newer = self._newer_reading()
        if newer is not None:
            self._take(newer)
            self._full.count_as_read(newer.ended_s + LATE_S)
        elif self._state is None or self._full.due(now_s):
            self._take(self._read_full())
        if newer is not None or self._light.due(now_s):
            light = self._cluster.snapshot(log_dirs=False, configs=False)
            assert self._slow is not None
            self._shown = Disks(self._slow, self._full_s, dict(self._disks))
            self._state = with_slow_facts(light, self._slow, {b: logs.dirs for b, (_, logs) in self._disks.items()})
            self._light.record_reading(now_s, self._clock.monotonic_s())
        assert self._state is not None
        return self._state

    def _read_full(self) -> FullReading:
        began_s = self._clock.monotonic_s()
        state = self._cluster.snapshot()
        ended_s = self._clock.monotonic_s()
        self._full.record_reading(began_s, ended_s)
        self._light.count_as_read(ended_s)
        return FullReading(state, began_s, ended_s)

    def _newer_reading(self) -> FullReading | None:
        """What another part of the process read since our last full one, where no broker left anything out.

        The first reading is our own: what ended between another's and our first list of reassignments is not known.
        """
        found = self._full_reading()
        if found is None or self._state is None or found.began_s <= self._full_ended_s or found.state.gaps:
            return None
        return found

    def _take(self, reading: FullReading) -> None:
        """Go by this full reading from now on."""
        self._slow = self._state = reading.state
        self._full_s, self._full_ended_s = reading.began_s, reading.ended_s
        # What was read of disks before is older than this.
        self._disks = {b: read for b, read in self._disks.items() if read[0] > reading.began_s}
        self._shown = Disks(reading.state, reading.began_s, dict(self._disks))
        self._sizes = partition_sizes(reading.state)
        self._measure_growth(reading)

    def _measure_growth(self, reading: FullReading) -> None:
        """What partitions grew by since a reading that is long enough ago.

        A broker may have been the first one asked in one of the two and the last one in the other.
        """
        if self._grown_from is not None:
            began_s, ended_s, sizes = self._grown_from
            apart_s = reading.ended_s - ended_s
            took_s = max(reading.ended_s - reading.began_s, ended_s - began_s)
            if apart_s < SHARE_OF_TIME * took_s:
                return
            self._growth = growth(sizes, self._sizes, apart_s)
        self._grown_from = reading.began_s, reading.ended_s, self._sizes

    @property
    def last_state(self) -> ClusterState | None:
        """The last whole-cluster reading, however old."""
        return self._state

    def read_sooner(self) -> None:
        """Make the next light reading due sooner than usual: a move is refused, and is to be judged again by fresher facts."""
        self._light.read_sooner(REFUSAL_AGE_S)

    def read_isrs_next(self) -> None:
        """Have the next look read every ISR: the cluster told that some have changed."""
        self._light.read_sooner(0.0)

    def look(self, needs: Needs) -> Picture:
        """One look; partitions are read before the list, so that an ended move is never called gone too early."""
        state = self.state()
        partitions = self._cluster.partitions(needs.names) if needs.names else {}
        listed_s = self._clock.monotonic_s()
        listed = self._cluster.reassignments()
        grown, self._growth = self._growth, None
        logs = self._read_logs(needs.logs & state.alive)
        return Picture(
            reassignments=listed,
            partitions=partitions,
            names=needs.names,
            alive=state.alive,
            logs=logs,
            ends=self._read_ends(state, logs, needs.names),
            state=state,
            disks=self._shown,
            ended=self._find_ended(listed, listed_s),
            rates_of_others=self._read_others({n: r for n, r in listed.items() if n not in needs.names}),
            growth=grown,
            sizes=self._sizes,
        )

    def _find_ended(
        self, listed: Mapping[TopicPartition, Reassignment], now_s: float
    ) -> dict[TopicPartition, tuple[Reassignment, float]]:
        """Reassignments that went on when some disk was last read, and have ended since."""
        seen = {n: (r, s) for n, (r, s) in self._listed.items() if s >= self._shown.full_s}
        self._listed = seen | {n: (r, now_s) for n, r in listed.items()}
        return {n: last for n, last in seen.items() if n not in listed}

    def _read_others(self, foreign: Mapping[TopicPartition, Reassignment]) -> Mapping[int, int]:
        """The rates that moves of others run under; read anew when their moves are others than before, or from time to time."""
        if self._ledger is None or not foreign:
            self._foreign, self._rates_of_others = frozenset(), {}
            return {}
        now_s = self._clock.monotonic_s()
        if self._foreign != foreign.keys() or self._others.due(now_s):
            self._rates_of_others = rates_of_others(self._cluster, foreign, self._ledger())
            self._foreign = frozenset(foreign)
            self._others.record_reading(now_s, self._clock.monotonic_s())
        return self._rates_of_others

    def _read_logs(self, brokers: Collection[int]) -> Mapping[int, BrokerLogs] | None:
        now_s = self._clock.monotonic_s()
        if not brokers or not self._logs.due(now_s):
            return None
        logs = self._cluster.log_dirs(brokers)
        self._logs.record_reading(now_s, self._clock.monotonic_s())
        self._disks.update({broker: (now_s, answer) for broker, answer in logs.items()})
        return logs

    def _read_ends(
        self, state: ClusterState, logs: Mapping[int, BrokerLogs] | None, names: Collection[TopicPartition]
    ) -> LogEnds | None:
        """Beside the log dirs, which do not tell how far a replica is behind."""
        if logs is None:
            return None
        wanted = set(names)
        if self._bystanders:
            wanted.update(*(answer.replicas for answer in logs.values()))
        index = state.index
        return self._cluster.log_ends(holders(state, (index[n] for n in wanted if n in index)))


def partition_sizes(state: ClusterState) -> dict[TopicPartition, int]:
    """The largest replica of each partition; unknown sizes are left out."""
    p = state.partitions
    if not len(p):
        return {}
    out = {}
    ends = p.start.tolist()
    sizes = p.size_bytes
    for row, name in enumerate(state.index):
        run = sizes[ends[row] : ends[row + 1]]
        largest = int(np.max(run)) if len(run) else UNKNOWN
        if largest != UNKNOWN:
            out[name] = largest
    return out


def growth(
    before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int], seconds: float
) -> dict[TopicPartition, float]:
    """Bytes/s that each partition grew by; what retention took away reads as no growth."""
    return {n: max(0, size - before[n]) / max(seconds, 1e-3) for n, size in after.items() if n in before}
