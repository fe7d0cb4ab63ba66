"""What must hold at every moment, looked at by threads of their own while faults go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from tests.chaos.cluster import CLIENT_TIMEOUTS
from tests.chaos.daemons import Daemons
from tests.chaos.health import Health
from tests.chaos.lease import Tenures
from tests.chaos.person import Person
from tests.chaos.unasked import Unasked
from tests.chaos.verdicts import Judge, Violation
from tests.real.daemon_process import Daemon

from ballast.errors import BallastError
from ballast.ports.cluster import Cluster
from ballast.ports.journal import JOURNAL_TOPIC
from ballast.ports.journal_codec import LEASE_KEY, decode_value

CATCHES_UP_S: Final = 120.0
"""After this long without any fault a replica is in sync, on a machine that does much else."""
UNDER_S: Final = 15.0
"""A partition may be seen under its min ISR for so long although enough of its brokers are well: metadata is late."""
STANDS_S: Final = 120.0
"""A run that has not got on for this long has to say what it waits for."""
SILENT: Final = frozenset({None, "Looking"})
"""What a run says that does not know what it waits for."""
LOOK_S: Final = 1.0


@dataclass
class Watch:
    """One thread that looks again and again until it is told to end."""

    name: str
    look: Callable[[], None]
    found: list[Violation]
    every_s: float = LOOK_S
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._watch, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, after the look that is going on."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(90)

    def _watch(self) -> None:
        while not self._over.wait(self.every_s):
            try:
                self.look()
            except Exception as failure:  # noqa: BLE001 — a watch that ends in silence would watch nothing
                what = f"the watch {self.name} failed: {type(failure).__name__} {failure}"
                self.found.append(Violation(Judge.ITSELF, what))
                return


@dataclass
class Partitions:
    """Replica counts and min ISRs, as metadata shows them."""

    admin: AdminClient
    person: Person
    health: Health
    min_isr: dict[str, int]
    found: list[Violation]
    judged: int = 0
    """How often a partition was under its min ISR or not although enough of its brokers had long been well."""
    _under: dict[tuple[str, int], float] = field(default_factory=dict)
    _told: set[tuple[str, int]] = field(default_factory=set)

    def look(self) -> None:
        """Once."""
        well = self.health.well(CATCHES_UP_S)
        try:
            topics = self.admin.list_topics(timeout=10).topics
        except ck.KafkaException:
            return
        for name, factor in dict(self.person.factors).items():
            for p in topics[name].partitions.values() if name in topics else ():
                self._judge((name, p.id), p, factor, well)

    def _judge(self, key: tuple[str, int], p: Any, factor: int, well: set[int]) -> None:
        topic, number = key
        if topic not in self.min_isr:
            return
        if len(p.replicas) < factor and key not in self._told:
            self._told.add(key)
            self.found.append(Violation(Judge.REPLICAS, f"{topic}-{number} has only the replicas {p.replicas}"))
        least = self.min_isr[topic]
        # While it moves the list is the union, in which only the old ones have to be in sync: as many as may still copy are left out.
        if len(well & set(p.replicas)) - (len(p.replicas) - factor) < least:
            self._under.pop(key, None)
            return
        self.judged += 1
        now = time.monotonic()
        if len(p.isrs) >= least:
            self._under.pop(key, None)
        elif now - self._under.setdefault(key, now) > UNDER_S and key not in self._told:
            self._told.add(key)
            what = (
                f"{topic}-{number} is under its min ISR {least} although nothing has hurt brokers {sorted(well)} for "
                f"{CATCHES_UP_S:.0f} s: replicas {p.replicas}, in sync {p.isrs}"
            )
            self.found.append(Violation(Judge.MIN_ISR, what))


@dataclass
class Runs:
    """Whether each run gets on, or says what it waits for."""

    daemons: Daemons
    found: list[Violation]
    seen: set[str] = field(default_factory=set)
    """Ids of runs that a daemon had in flight."""
    _marks: dict[str, tuple[tuple[Any, ...], float]] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Once."""
        for daemon in list(self.daemons.live.values()):
            self._judge(daemon)

    def _judge(self, daemon: Daemon) -> None:
        try:
            run = daemon.status.get("run")
        except ValueError:
            return
        if not run or run["id"] == "throttles":
            return
        self.seen.add(run["id"])
        mark = (
            daemon.name,
            run["phase"],
            run["movesVerified"],
            run["movesEndedOtherwise"],
            run["electionsCompleted"],
            run["bytesLeft"],
        )
        now = time.monotonic()
        if self._marks.get(run["id"], ((), 0.0))[0] != mark:
            self._marks[run["id"]] = mark, now
        elif now - self._marks[run["id"]][1] > STANDS_S and run["detail"] in SILENT and run["id"] not in self._told:
            self._told.add(run["id"])
            what = f"run {run['id']} of {daemon.name} stands still and does not say why: {run['detail']!r}"
            self.found.append(Violation(Judge.RUNS, what))


@dataclass
class JournalWatch:
    """Every committed record of the journal in its order, and whether one process wrote at a time."""

    server: str
    found: list[Violation]
    unasked: Unasked
    has_lease: threading.Event
    records: list[tuple[int, int, str, Any]] = field(default_factory=list)
    """Incarnation of the topic, offset, key, value."""
    tenures: Tenures = field(default_factory=Tenures)
    incarnation: int = 0
    read_until_s: float = 0.0
    """When the newest record that was read had been written."""
    _admin: AdminClient | None = None
    _consumer: ck.Consumer | None = None
    _topic_id: str = ""

    def look(self) -> None:
        """Read what is new."""
        topic_id = self._id_now()
        if topic_id is None:
            return
        if topic_id != self._topic_id:
            self._begin_again(topic_id)
        assert self._consumer is not None
        while (message := self._consumer.poll(0.3)) is not None:
            if message.error() is not None:
                # The topic may be another one by now, or shorter: the next look asks.
                if message.error().code() in {ck.KafkaError._AUTO_OFFSET_RESET, ck.KafkaError.UNKNOWN_TOPIC_OR_PART}:
                    self._topic_id = ""
                    return
                continue
            self._take(message)

    def _id_now(self) -> str | None:
        """The topic's id; None where there is no topic, and while no broker tells it."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.server, **CLIENT_TIMEOUTS})
        try:
            described = self._admin.describe_topics(ck.TopicCollection([JOURNAL_TOPIC]), request_timeout=10)
            return str(described[JOURNAL_TOPIC].result(15).topic_id)
        except (ck.KafkaException, BallastError, TimeoutError):
            return None

    def _begin_again(self, topic_id: str) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = ck.Consumer(
            {"bootstrap.servers": self.server, "group.id": "chaos-journal", "isolation.level": "read_committed",
             "enable.auto.commit": False, "auto.offset.reset": "error", "log_level": 0}
        )  # fmt: skip
        self._consumer.assign([ck.TopicPartition(JOURNAL_TOPIC, 0, 0)])
        self._topic_id = topic_id
        self.incarnation += 1
        self.tenures.forget()

    def _take(self, message: ck.Message) -> None:
        key = (message.key() or b"").decode()
        data = message.value()
        value = decode_value(key, data) if data is not None and not key.startswith("piece/") else None
        self.records.append((self.incarnation, message.offset() or 0, key, value))
        self.unasked.requested.read(key, value)
        written_s = message.timestamp()[1] / 1000
        self.read_until_s = max(self.read_until_s, written_s)
        if key == LEASE_KEY:
            self.has_lease.set()
            if (told := self.tenures.take(value, written_s)) is not None:
                what = f"{told} (journal {self.incarnation}, offset {message.offset()})"
                self.found.append(Violation(Judge.ONE_WRITER, what))

    def close(self) -> None:
        """Let the connection go."""
        if self._consumer is not None:
            self._consumer.close()


@dataclass
class Moves:
    """Whether each move that is in flight was wanted."""

    cluster: Cluster
    journal: JournalWatch
    found: list[Violation]

    def look(self) -> None:
        """Once."""
        unasked = self.journal.unasked
        try:
            moving = self.cluster.reassignments()
        except BallastError:
            return
        unasked.see(moving, time.time())
        self.found += [Violation(Judge.UNASKED, what) for what in unasked.convict(self.journal.read_until_s)]
