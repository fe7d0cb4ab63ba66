"""One run of chaos: a cluster, two daemons, producers, a person, a schedule of faults, and what must hold in spite of them."""

from __future__ import annotations

import heapq
import itertools
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from tests.chaos import evidence
from tests.chaos.cluster import CLIENT_TIMEOUTS, ChaosSandbox
from tests.chaos.credentials import Credentials
from tests.chaos.daemons import FAULT, MODULE, PLANTED, Daemons
from tests.chaos.faults import Faults, Heal, Skipped
from tests.chaos.health import Health
from tests.chaos.person import REMADE, Person
from tests.chaos.schedule import BALLASTS, KINDS, Step, draw_schedule
from tests.chaos.settling import Settling
from tests.chaos.transfers import Transfers
from tests.chaos.unasked import Unasked
from tests.chaos.verdicts import Judge, Violated, Violation
from tests.chaos.watches import JournalWatch, Moves, Partitions, Runs, Watch
from tests.containers.traffic import Traffic
from tests.real.daemon_process import until

from ballast.sandbox import SandboxSpec
from ballast.wiring.cluster import open_cluster

KINDS_OF_CLUSTER: Final = ("kraft", "zookeeper")
NUMBERED, TRANSFERS, BULK = "numbered", "transfers", "bulk"
CONTROLLERS: Final = 3
"""So that another one takes over where one fails."""
BEGINS_WITHIN_S: Final = 240.0
QUIET_MOST_S: Final = 3600.0
"""For the end: how long producers may go on beyond the faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to do."""

    seed: int
    minutes: float
    kind: str = "kraft"
    brokers: int = 4
    kinds: tuple[str, ...] = tuple(KINDS)
    still_checks: int = 5
    """Checks of the load in which nothing may happen at the end."""
    balanced_within_s: float = 600.0
    """How long the cluster may take to become balanced after the last fault."""
    plant: str = ""
    """A fault of Ballast's own, to see that it is found (``tests.chaos.planted``)."""
    keep: Path = Path("build/chaos")

    @property
    def spec(self) -> SandboxSpec:
        """The cluster: small, with racks to keep apart and a user to rotate."""
        zookeeper = self.kind == "zookeeper"
        return SandboxSpec(
            brokers=self.brokers,
            racks=2,
            mode="zookeeper" if zookeeper else "kraft",
            kafka_version="3.9.2" if zookeeper else SandboxSpec().kafka_version,
            controllers=1 if zookeeper else CONTROLLERS,
            security="scram",
            heap_mib=192,
        )


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    wanted: Wanted
    steps: tuple[Step, ...] = ()
    begun: Counter[str] = field(default_factory=Counter)
    """Faults that happened, by kind."""
    skipped: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    kept: Path | None = None
    """Where the evidence of a violation is."""


def say(line: str) -> None:
    """The story, as it goes."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def chaos(wanted: Wanted, *, tell: Callable[[str], None] = say) -> Outcome:
    """Hurt a cluster for so many minutes, let it come to rest, and judge."""
    outcome = Outcome(wanted, draw_schedule(
        wanted.seed, seconds=60 * wanted.minutes, brokers=range(1, wanted.brokers + 1), kinds=wanted.kinds
    ))  # fmt: skip
    story: list[str] = []

    def told(line: str) -> None:
        story.append(f"{time.strftime('%H:%M:%S')} {line}")
        tell(line)

    told(f"chaos SEED={wanted.seed} MINUTES={wanted.minutes:g} KIND={wanted.kind}: {len(outcome.steps)} faults drawn")
    with ExitStack() as stack:
        sandbox = stack.enter_context(ChaosSandbox.up(wanted.spec, on_line=told))
        nemesis = stack.enter_context(hurt(sandbox, wanted, outcome, told))
        try:
            nemesis.prepare()
            nemesis.play()
            nemesis.rest()
        except Violated as failure:
            outcome.violations.append(failure.violation)
        except Exception as failure:  # noqa: BLE001 — what went wrong in here is kept like what it looks for
            told(traceback.format_exc())
            what = f"the run itself failed: {type(failure).__name__} {failure}"
            outcome.violations.append(Violation(Judge.ITSELF, what))
        nemesis.judge()
        if outcome.violations:
            outcome.kept = evidence.keep(nemesis.evidence(story), wanted.keep)
    report(outcome, told)
    return outcome


def report(outcome: Outcome, tell: Callable[[str], None]) -> None:
    """Counts of faults by kind, what was checked, and what was broken."""
    tell("faults by kind: " + ", ".join(f"{name} {n}" for name, n in sorted(outcome.begun.items())))
    if outcome.skipped:
        tell("not possible when due: " + ", ".join(f"{name} {n}" for name, n in sorted(outcome.skipped.items())))
    tell("checked: " + ", ".join(f"{name} {value}" for name, value in outcome.figures.items()))
    for violation in outcome.violations:
        tell(f"VIOLATED: {violation}")
    if outcome.kept is not None:
        tell(f"evidence: {outcome.kept}")
    tell(f"{sum(outcome.begun.values())} faults, {len(outcome.violations)} violations, SEED={outcome.wanted.seed}")


def launched(plant: str) -> tuple[str, Mapping[str, str]]:
    """What Python runs as Ballast, and what its environment says beside the clock."""
    return (PLANTED, {FAULT: plant}) if plant else (MODULE, {})


@contextmanager
def hurt(sandbox: ChaosSandbox, wanted: Wanted, outcome: Outcome, tell: Callable[[str], None]) -> Iterator[Nemesis]:
    """Everything that a run needs, and its end."""
    client = sandbox.daemons_folder / "client.properties"
    credentials = Credentials(sandbox, client) if sandbox.guard else None
    if credentials is not None:
        credentials.hand_over()
    with ExitStack() as stack:
        server = sandbox.inner_server
        opened = stack.enter_context(open_cluster(bootstrap_server=server, timeout_s=20))
        person = Person(
            opened.cluster, AdminClient({"bootstrap.servers": server, **CLIENT_TIMEOUTS}), server, sandbox.broker_ids
        )
        daemons = Daemons(sandbox, client if credentials else None, *launched(wanted.plant))
        stack.callback(daemons.close)
        faults = Faults(sandbox, daemons, person, Health(sandbox.broker_ids), credentials, tell)
        stack.callback(faults.deeds.shutdown, wait=False, cancel_futures=True)
        nemesis = Nemesis(wanted, outcome, sandbox, daemons, person, faults, tell)
        stack.callback(nemesis.close)
        yield nemesis


@dataclass
class Heals:
    """How the faults that last come to their ends, the next one first."""

    _due: list[tuple[float, int, Step, Heal]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def add(self, at_s: float, step: Step, heal: Heal) -> None:
        """One more."""
        heapq.heappush(self._due, (at_s, next(self._numbers), step, heal))

    def holds(self, target: str) -> bool:
        """Whether this one is being hurt: a schedule that is late would begin the next fault before the one before has ended."""
        return any(step.target == target for _, _, step, _ in self._due)

    @property
    def next_s(self) -> float | None:
        """When the next one is due; None where nothing is hurt."""
        return self._due[0][0] if self._due else None

    def pop(self) -> tuple[float, str, Heal]:
        """The next one."""
        at_s, _, step, heal = heapq.heappop(self._due)
        return at_s, f"  {step.kind} {step.target} ends", heal

    def rest(self) -> Iterator[tuple[str, Heal]]:
        """All of them, due or not."""
        while self._due:
            _, line, heal = self.pop()
            yield line, heal


def pause(until_s: float) -> None:
    """Wait until then."""
    time.sleep(max(0.0, until_s - time.monotonic()))


@dataclass
class Nemesis:
    """One run."""

    wanted: Wanted
    outcome: Outcome
    sandbox: ChaosSandbox
    daemons: Daemons
    person: Person
    faults: Faults
    tell: Callable[[str], None]
    found: list[Violation] = field(default_factory=list)
    """What the watches found."""
    watches: list[Watch] = field(default_factory=list)
    partitions: Partitions | None = None
    runs: Runs | None = None
    journal: JournalWatch | None = None
    load: dict[Judge, ExitStack] = field(default_factory=dict)
    """The producers that run, each with its judgement at the end."""
    traffic: Traffic | None = None
    transfers: Transfers | None = None

    def prepare(self) -> None:
        """Topics, daemons, producers, watches."""
        rng, brokers = Random(self.wanted.seed), list(self.sandbox.broker_ids)
        least = {"min.insync.replicas": "2"}

        def rows(count: int, factor: int) -> list[list[int]]:
            return [rng.sample(brokers, factor) for _ in range(count)]

        self.person.make_topic(NUMBERED, rows(6, 3), configs=least)
        self.person.make_topic(TRANSFERS, rows(4, 3), configs=least)
        for number in (1, 2):
            self.person.make_topic(f"{BULK}-{number}", rows(6, 3), kib=3072, configs=least)
            self.person.make_topic(f"{REMADE}-{number}", rows(3, 2), kib=512)
        server = self.sandbox.inner_server
        most_s = 60 * self.wanted.minutes + QUIET_MOST_S
        self.traffic = Traffic(server, NUMBERED, 6, records_per_s=40, most_s=most_s)
        self.transfers = Transfers(server, TRANSFERS, 4, seed=self.wanted.seed)
        running = {Judge.RECORDS: self.traffic.running(), Judge.TRANSACTIONS: self.transfers.running()}
        for judge, load in running.items():
            self.load[judge] = ExitStack()
            self.load[judge].enter_context(load)
        for who in BALLASTS:
            self.daemons.begin(who)
        self._watch()
        until("a leader and a standby", self._has_roles, list(self.daemons.live.values()), BEGINS_WITHIN_S)

    def _has_roles(self) -> bool:
        roles = sorted(d.role for d in self.daemons.live.values())
        return roles == ["active", "standby"] and self.faults.journal_watched.is_set()

    def _watch(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.sandbox.inner_server, **CLIENT_TIMEOUTS})
        min_isr = {NUMBERED: 2, TRANSFERS: 2, f"{BULK}-1": 2, f"{BULK}-2": 2}
        self.partitions = Partitions(admin, self.person, self.faults.health, min_isr, self.found)
        self.runs = Runs(self.daemons, self.found)
        unasked = Unasked(self.person.requested)
        self.journal = JournalWatch(self.sandbox.inner_server, self.found, unasked, self.faults.journal_watched)
        moves = Moves(self.person.cluster, self.journal, self.found)
        looks = {
            "partitions": self.partitions.look,
            "runs": self.runs.look,
            "journal": self.journal.look,
            "moves": moves.look,
        }
        self.watches = [Watch(name, look, self.found) for name, look in looks.items()]
        for watch in self.watches:
            watch.start()

    # The faults

    def play(self) -> None:
        """Execute the schedule; a fault whose turn is late lasts as long all the same."""
        began_s, heals = time.monotonic(), Heals()
        try:
            for step in self.outcome.steps:
                while (next_s := heals.next_s) is not None and next_s <= began_s + step.at_s:
                    self._end(heals)
                pause(began_s + step.at_s)
                self._begin(step, heals)
            while heals.next_s is not None:
                self._end(heals)
        finally:
            # What was found early is judged on a cluster that is well.
            for line, heal in heals.rest():
                self.tell(line)
                heal()

    def _begin(self, step: Step, heals: Heals) -> None:
        self.tell(str(step))
        if heals.holds(step.target):
            self._skip(step, "what happened to it before has not ended, since everything is late")
            return
        try:
            heal = self.faults.begin(step)
        except Skipped as reason:
            self._skip(step, str(reason))
            return
        self.outcome.begun[step.kind] += 1
        if heal is not None:
            heals.add(time.monotonic() + step.lasts_s, step, heal)
        self._look_in(heals)

    def _skip(self, step: Step, reason: str) -> None:
        self.tell(f"  not now: {reason}")
        self.outcome.skipped[step.kind] += 1

    def _end(self, heals: Heals) -> None:
        at_s, line, heal = heals.pop()
        pause(at_s)
        self.tell(line)
        heal()
        self._look_in(heals)

    def _look_in(self, heals: Heals) -> None:
        """Start what ended of itself, and end early where something was found: what is kept then is close to its cause."""
        self.faults.revive(heals.holds)
        lost = self.traffic._failures if self.traffic else []
        for found in (
            *self.found,
            *self.daemons.ended_by_themselves(),
            *(Violation(Judge.RECORDS, str(f)) for f in lost),
        ):
            raise Violated(found)

    # The end

    def rest(self) -> None:
        """Nothing is hurt any more: everything comes to rest, and stays there."""
        self.tell("no more faults")
        assert self.partitions is not None
        settling = Settling(
            self.sandbox,
            self.daemons,
            self.person,
            self.faults,
            self.partitions.admin,
            self.tell,
            self.wanted.still_checks,
            self.wanted.balanced_within_s,
        )
        settling.settle()
        self.outcome.figures |= settling.figures

    def judge(self) -> None:
        """Stop everything and say what was broken."""
        for watch in self.watches:
            watch.stop()
        found = [*self.outcome.violations, *self.found, *self.faults.gave_up]
        for judge, running in self.load.items():
            try:
                running.close()
            except (AssertionError, ck.KafkaException) as failure:
                found.append(Violation(judge, str(failure)))
        self.load = {}
        found += [*self.daemons.ended_by_themselves(), *self.daemons.bugs()]
        self.outcome.violations = list(dict.fromkeys(found))
        figures = self.outcome.figures
        figures["lives of Ballast"] = len(self.daemons.lives)
        if self.traffic is not None and self.transfers is not None:
            figures["records acknowledged"] = self.traffic.acked
            figures["transactions committed"] = len(self.transfers.outcomes.committed)
            figures["aborted"] = len(self.transfers.outcomes.aborted)
        if self.journal is not None and self.partitions is not None and self.runs is not None:
            figures["runs seen in flight"] = len(self.runs.seen)
            figures["different targets of moves seen"] = self.journal.unasked.judged
            figures["looks at min ISR that counted"] = self.partitions.judged
            figures["journal records"] = len(self.journal.records)
            figures["changes of the lock's holder"] = self.journal.tenures.changes

    def evidence(self, story: list[str]) -> evidence.Evidence:
        """What is kept of a violation."""
        return evidence.Evidence(
            name=f"{self.wanted.kind}-seed-{self.wanted.seed}",
            seed=self.wanted.seed,
            steps=self.outcome.steps,
            violations=self.outcome.violations,
            story=story,
            journal=self.journal.records if self.journal is not None else [],
            sandbox=self.sandbox,
            cluster=self.person.cluster,
            person={f"{r.kind} {r.name}": v for r, v in self.person.settings.items()},
            figures=self.outcome.figures,
        )

    def close(self) -> None:
        """Whatever is still going on ends."""
        self.person.over.set()
        for watch in self.watches:
            watch.stop()
        for load in (self.traffic, self.transfers):
            if load is not None:
                load._stop.set()
        if self.journal is not None:
            self.journal.close()
