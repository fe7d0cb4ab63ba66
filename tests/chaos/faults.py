"""What each kind of fault does.  One that lasts returns what ends it; one that cannot begin now raises ``Skipped``."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.chaos.cluster import ChaosSandbox
from tests.chaos.credentials import Credentials
from tests.chaos.daemons import Daemons
from tests.chaos.health import Health
from tests.chaos.person import Person
from tests.chaos.schedule import KINDS, Step
from tests.chaos.verdicts import Judge, Violated, Violation

from ballast.ports.journal import JOURNAL_TOPIC
from ballast.sandbox.layout import ZOOKEEPER, node_name

Heal = Callable[[], None]
CLOCK_STEPS_S = (-7200.0, -90.0, -5.0, 0.0, 5.0, 90.0, 7200.0)


class Skipped(Exception):
    """This fault cannot be now; it says why."""


@dataclass
class Faults:
    """Everything that can be hurt."""

    sandbox: ChaosSandbox
    daemons: Daemons
    person: Person
    health: Health
    credentials: Credentials | None
    on_line: Callable[[str], None]
    deeds: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="person"))
    """A person does one thing after the other, and waits for a hurt cluster while the other faults go on."""
    gave_up: list[Violation] = field(default_factory=list)
    journal_watched: threading.Event = field(default_factory=threading.Event)
    """Set while the journal has a lease: it was not deleted, or was made again since."""

    def begin(self, step: Step) -> Heal | None:
        """Do it; how it ends, None where it is over already."""
        on = KINDS[step.kind].on
        if on == "ballast" and not self.journal_watched.is_set():
            raise Skipped("the journal was deleted, and only this process knows what stood in it")
        act: Callable[[Step], Heal | None] = getattr(self, step.kind.replace("-", "_"))
        return act(step)

    # Brokers

    def _broker(self, step: Step, hurt: Callable[[int], None], heal: Callable[[int], None]) -> Heal:
        broker = int(step.target)
        self.health.fails(broker)
        hurt(broker)

        def healed() -> None:
            heal(broker)
            self.health.returns(broker)

        return healed

    def _start(self, broker: int) -> None:
        self.sandbox.start_broker(broker, wait=False)

    def broker_kill(self, step: Step) -> Heal:
        """``kill -9``, and a start later."""
        return self._broker(step, self.sandbox.kill_broker, self._start)

    def broker_pause(self, step: Step) -> Heal:
        """SIGSTOP, and SIGCONT later."""
        return self._broker(step, self.sandbox.pause_broker, self.sandbox.resume_broker)

    def broker_restart(self, step: Step) -> Heal:
        """In order: it hands its leaders over first.  One that cannot (no controller) would take minutes."""
        broker = int(step.target)
        self.health.fails(broker)
        self.sandbox.signal(node_name(broker), signal.SIGTERM)

        def healed() -> None:
            if self.sandbox.running().get(broker):
                self.sandbox.kill_broker(broker)
            self._start(broker)
            self.health.returns(broker)

        return healed

    def broker_cut_off(self, step: Step) -> Heal:
        """Nothing gets through to it or from it."""
        return self._broker(
            step, lambda b: self.sandbox.cut_off(node_name(b)), lambda b: self.sandbox.rejoin(node_name(b))
        )

    def revive(self, hurt: Callable[[str], bool]) -> None:
        """Start a broker that has ended though nothing hurts it, as a supervisor would.

        One that is cut off while it starts loses its ZooKeeper session, and ends.
        """
        for broker, runs in self.sandbox.running().items():
            if not runs and not hurt(str(broker)):
                self.on_line(f"  broker {broker} had ended, and is started")
                self._start(broker)
                self.health.returns(broker)

    def disk_full(self, step: Step) -> Heal:
        """No file of the broker's grows any more; a log dir that Kafka gave up for it comes back with the process."""

        def heal(broker: int) -> None:
            self.sandbox.kill_broker(broker)
            self._start(broker)

        return self._broker(step, self.sandbox.fill_disk, heal)

    # Who keeps the metadata

    def _controller(self) -> str:
        """The active controller of KRaft as the brokers tell it; ZooKeeper where there is none."""
        if self.sandbox.zookeeper:
            return ZOOKEEPER
        try:
            leader = self.person.cluster.snapshot(log_dirs=False, configs=False).controller_id
        except Exception as failure:
            raise Skipped("no controller says that it is active") from failure
        if leader not in self.sandbox.spec.controller_ids:
            raise Skipped("no controller is active")
        return node_name(leader)

    def _controller_signal(self, hurt: signal.Signals, heal: Callable[[str], object]) -> Heal:
        name = self._controller()
        self.on_line(f"  it is {name}")
        self.health.controller_fails()
        self.sandbox.signal(name, hurt)

        def healed() -> None:
            heal(name)
            self.health.controller_returns()

        return healed

    def controller_kill(self, step: Step) -> Heal:
        """The active controller is killed: another one takes over, where there is one."""
        return self._controller_signal(signal.SIGKILL, self.sandbox.supervisor.start)

    def controller_pause(self, step: Step) -> Heal:
        """The active controller is frozen."""
        return self._controller_signal(signal.SIGSTOP, lambda name: self.sandbox.signal(name, signal.SIGCONT))

    # Ballast

    def ballast_kill(self, step: Step) -> Heal:
        """``kill -9``, and a new process later."""
        self.daemons.kill(step.target)
        return lambda: void(self.daemons.begin(step.target))

    def ballast_restart(self, step: Step) -> Heal:
        """SIGTERM, and a new process when it has ended."""
        self.gave_up += self.daemons.stop(step.target)
        return lambda: void(self.daemons.begin(step.target))

    def ballast_pause(self, step: Step) -> Heal:
        """SIGSTOP, often for longer than a lease; when it wakes, another one may act."""
        self.daemons.freeze(step.target)
        return lambda: self.daemons.wake(step.target)

    def ballast_cut_off(self, step: Step) -> Heal:
        """The process lives, and reaches no node of the cluster."""
        name = self.daemons.live[step.target].name
        self.sandbox.cut_off(name)
        return lambda: self.sandbox.rejoin(name)

    def ballast_doubled(self, step: Step) -> Heal:
        """One more, for a while; killed where it stands."""
        self.daemons.begin(step.target)
        return lambda: self.daemons.kill(step.target)

    def clock_step(self, step: Step) -> None:
        """Its wall clock jumps, and stays off until the next step."""
        off_s = Random(step.draw).choice(CLOCK_STEPS_S)
        self.on_line(f"  by {off_s:+.0f} s")
        self.daemons.step_clock(step.target, off_s)

    def credentials_rotated(self, step: Step) -> Heal:
        """Ballast's user gets a new password; its file has it a while later, and never before a person's deeds let the cluster have it."""
        credentials = self.credentials
        if credentials is None:
            raise Skipped("this cluster has no credentials")
        self._enqueue("rotate", credentials.rotate)
        return lambda: self._enqueue("hand over", credentials.hand_over)

    # A person

    def _do(self, step: Step, deed: Callable[[Random], None]) -> None:
        self._enqueue(str(step), lambda: deed(Random(step.draw)))

    def _enqueue(self, what: str, deed: Callable[[], None]) -> None:
        """After whatever else is wanted: who hurts and heals never waits for a person, who may wait for a broker to be healed."""
        self.deeds.submit(self._guarded, what, deed)

    def _guarded(self, what: str, deed: Callable[[], None]) -> None:
        try:
            deed()
        except BaseException as failure:  # noqa: BLE001 — told at the end: what a person wants is not certain then
            judge = failure.violation.judge if isinstance(failure, Violated) else Judge.ITSELF
            self.gave_up.append(Violation(judge, f"{what}: {type(failure).__name__} {failure}"))

    def topic_config(self, step: Step) -> None:
        """A topic's config that is none of Ballast's."""
        self._do(step, self.person.change_topic_config)

    def broker_config(self, step: Step) -> None:
        """A broker's config that is none of Ballast's."""
        self._do(step, self.person.change_broker_config)

    def throttle_rate(self, step: Step) -> None:
        """A broker's rate, maybe while Ballast has set one there."""
        self._do(step, self.person.change_throttle_rate)

    def throttle_list(self, step: Step) -> None:
        """A topic's list, maybe while Ballast has entries there."""
        self._do(step, self.person.change_throttle_list)

    def foreign_reassignment(self, step: Step) -> None:
        """A person moves a partition, without Ballast."""
        self._do(step, self.person.reassign)

    def pile_up(self, step: Step) -> None:
        """A person puts a topic on one broker, without Ballast."""
        self._do(step, self.person.pile_up)

    def topic_remade(self, step: Step) -> None:
        """A topic is deleted and recreated, maybe while it moves."""
        self._do(step, self.person.remake_topic)

    def journal_deleted(self, step: Step) -> None:
        """The journal's topic goes, while the one who acts lives to make it again."""
        if len(self.daemons.leaders()) != 1:
            raise Skipped("no process runs that could remember its records")
        self.journal_watched.clear()
        self._enqueue(str(step), self._delete_journal)

    def _delete_journal(self) -> None:
        admin: AdminClient = self.person.admin
        try:
            admin.delete_topics([JOURNAL_TOPIC], operation_timeout=20)[JOURNAL_TOPIC].result(30)
        except KafkaException as failure:
            self.on_line(f"  the journal could not be deleted: {failure}")


def void(_: object) -> None:
    """Forget a result."""
