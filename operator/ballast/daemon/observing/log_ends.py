"""Log ends of the partitions that a page shows, read when it asks for them: a reading does not have them.

Bounded: a few readings at a time, each in a thread of its own, one for what is asked for again meanwhile.  The page's answer waits
for one only where nothing is known yet, and not for long: a broker that does not answer does not hold it up.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Final

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.log_ends import LogEnds
from ballast.errors import BallastError
from ballast.ports.cluster import ClusterReader
from ballast.ports.time import Clock

READ_AGAIN_S: Final = 15.0
"""Younger than this they are not read again."""
SHOWN_S: Final = 60.0
"""Older than this they are not shown: lag goes up and down within seconds."""
AT_ONCE: Final = 4
KEPT: Final = 16
"""Topics whose log ends are kept."""
NOTHING: Final[LogEnds] = {}


@dataclass(slots=True)
class LogEndReader:
    """Safe to be asked from many threads."""

    cluster: ClusterReader
    clock: Clock
    wait_s: float = 2.0
    """The longest that an answer waits."""
    _known: dict[str, tuple[float, LogEnds]] = field(default_factory=dict)
    """By topic: when its newest reading came (monotonic), and what brokers told; the oldest first."""
    _reading: dict[str, Future[LogEnds]] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, topic: str, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """What is known now of these replicas of a topic, by broker; what a broker has not told is absent."""
        with self._turn:
            read_at_s, known = self._known.get(topic, (None, NOTHING))
            age_s = None if read_at_s is None else self.clock.monotonic_s() - read_at_s
            if age_s is not None and age_s < READ_AGAIN_S:
                return known
            reading = self._begin(topic, replicas)
        if age_s is not None and age_s < SHOWN_S:
            return known
        return reading.result() if reading is not None and wait([reading], timeout=self.wait_s).done else NOTHING

    def _begin(self, topic: str, replicas: Mapping[int, Collection[TopicPartition]]) -> Future[LogEnds] | None:
        """The reading of this topic that is in progress, or a new one; None where too many are."""
        found = self._reading.get(topic)
        if found is None and len(self._reading) < AT_ONCE:
            found = self._reading[topic] = Future()
            threading.Thread(target=self._read, args=(topic, replicas, found), name="log-ends", daemon=True).start()
        return found

    def _read(self, topic: str, replicas: Mapping[int, Collection[TopicPartition]], reading: Future[LogEnds]) -> None:
        ends, bug = NOTHING, None
        try:
            ends = self.cluster.log_ends(replicas)
        except BallastError:
            ends = NOTHING  # the cluster cannot be asked, and the page says so by itself
        except BaseException as failure:  # noqa: BLE001 — raised again where the answer waits for it
            bug = failure
        with self._turn:
            del self._reading[topic]
            self._known.pop(topic, None)
            self._known[topic] = (self.clock.monotonic_s(), ends)
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]
        if bug is None:
            reading.set_result(ends)
        else:
            reading.set_exception(bug)
