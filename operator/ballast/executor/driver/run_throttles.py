"""The throttles of the run in progress: what is owed, what other open runs need of it, and how a person restores it by hand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ballast.core.throttles import DesiredThrottles, Ledger, Setting, brokers_involved
from ballast.core.throttles.restore_commands import restore_commands
from ballast.errors import Unavailable
from ballast.executor.journal.ledger import Throttler, merge
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.records import load_open_runs
from ballast.executor.journal.run_journal import restore_from_memory
from ballast.executor.journal.term import LeaseTerm
from ballast.executor.machine.decide import wanted_throttle
from ballast.executor.machine.run import Now, Run
from ballast.ports.cluster import Cluster, Outcome
from ballast.ports.journal import Record
from ballast.ports.time import Clock


@dataclass(slots=True)
class RunThrottles:
    """Settles them through one ledger, which stays in memory where the journal is lost."""

    cluster: Cluster
    journal: LeaseTerm
    clock: Clock
    server: str
    """How a person reaches the cluster."""
    write: Callable[[list[Record]], None]
    note: Callable[[RunNote], None]
    _throttler: Throttler = field(init=False)
    _others: DesiredThrottles = field(default_factory=dict)
    """What other open runs have in progress under a throttle of theirs: it must stand until they are taken up."""

    def __post_init__(self) -> None:
        self._throttler = Throttler(self.cluster, self.clock, self.journal.renew)

    def begin(self, run: Run) -> None:
        """Of this run from now on; what is owed is as the journal says."""
        self._load(run.id)
        self._throttler.keep_existing_rates = run.policy.keep_existing_rates

    def _load(self, run_id: str) -> None:
        records = self.journal.read()
        self._throttler.load(records)
        ledger = self._throttler.ledger
        others: dict[Setting, frozenset[str]] = {}
        now = Now(self.clock.now_ms(), self.clock.monotonic_s())
        for other in load_open_runs(records, now) if ledger else ():
            if other.id != run_id:
                wanted = wanted_throttle(other, frozenset(brokers_involved(m.move for m in other.open_moves)))
                others |= {s: v for s, v in wanted.items() if s in ledger}
        self._others = others

    def settle(self, desired: DesiredThrottles, alive: Collection[int]) -> dict[Setting, Outcome]:
        """Make these stand beside those of others, and everything else of ours be gone; answers what could not be changed."""
        return self._throttler.settle(merge(desired, self._others), alive, self.write, self.note)

    def restore_of_ended(self) -> dict[Setting, Outcome]:
        """Restore every setting of runs that have ended; answers what is still owed, and why."""
        self._load("")
        return self._restore() if self._throttler.ledger else {}

    def restore_at_end(self) -> dict[Setting, Outcome]:
        """Restore what the run that ends here leaves; what is still owed is told as well."""
        owed: dict[Setting, Outcome] = {}
        if self._throttler.ledger:
            try:
                owed = self._restore()
            except Unavailable as silence:
                no_answer = Outcome(ok=False, code="NO_ANSWER", message=silence.message)
                owed = dict.fromkeys(self._throttler.ledger, no_answer)
        for setting, outcome in owed.items():
            self.note(RunNote("throttle-not-removed-now", {"setting": str(setting), "outcome": outcome}))
        return owed

    def restore_from_memory(self, run: Run) -> None:
        """Restore what no move in progress needs, without a journal."""
        restore_from_memory(self.cluster, self._throttler, run, self._others, self.note)

    def _restore(self) -> dict[Setting, Outcome]:
        return self.settle({}, self.cluster.snapshot(log_dirs=False, configs=False).alive)

    def ids_now(self) -> dict[str, str]:
        """The ids of the topics that were read a moment ago."""
        return self._throttler.ids_now()

    def ledger(self) -> Ledger:
        """What this process has set, and what was there before."""
        return self._throttler.ledger

    def commands(self) -> list[str]:
        """The commands by which a person restores every setting that this process has changed, from memory."""
        return restore_commands(dict(self._throttler.ledger), self.server)

    def to_restore(self) -> tuple[Setting, ...]:
        """The settings that this process has set and not yet put back."""
        return tuple(setting for setting, held in dict(self._throttler.ledger).items() if held.ours)
