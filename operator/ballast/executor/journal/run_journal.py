"""A run's dealings with the journal: what of it is written down, and what is done when the journal fails.

It may not take records, or be no longer the one that was written to.  Nothing is sent whose intent is not durable; meanwhile the moves in
progress are still followed, and what is owed is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ballast.core.throttles import DesiredThrottles, Setting
from ballast.errors import JournalLost, Refused, Unavailable
from ballast.executor.journal.history import expire
from ballast.executor.journal.ledger import Throttler, merge
from ballast.executor.journal.notes import RunNote
from ballast.executor.journal.records import changes, dump_run
from ballast.executor.journal.term import LeaseTerm
from ballast.executor.machine.decide import wanted_throttle
from ballast.executor.machine.rollback import rollback_run
from ballast.executor.machine.run import Now, Run
from ballast.ports.cluster import Cluster, Outcome
from ballast.ports.journal import Journal, Record
from ballast.ports.time import Clock

SILENCE_S: Final = 30.0
"""A journal that takes nothing for this long is told by name, with the commands that put throttles back by hand."""

STOOD_STILL_S: Final = 15.0
"""A whole lease: what was judged before an intent that took longer to write down is judged anew."""


class RunJournal:
    """Writes a driver's run, shows that its process lives, and makes a lost journal again."""

    def __init__(
        self,
        journal: Journal | LeaseTerm,
        clock: Clock,
        note: Callable[[RunNote], None],
        restore_commands: Callable[[], list[str]],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._note = note
        self._restore_commands = restore_commands
        self.gone: JournalLost | None = None
        """How it was lost, until it is made again."""
        self._written: Run | None = None
        self._silent_since_s: float | None = None
        self._told = False

    def begin(self, run: Run) -> None:
        """The run as the journal has it."""
        self._written = run

    def write(self, run: Run, records: Sequence[Record] = ()) -> None:
        """Journal these, and whatever of the run is not written yet, in one atomic append."""
        assert self._written is not None
        # The rollback begins in the very append that ends the run: a death in between must not forget it.
        back = rollback_run(self._written, run, Now(self._clock.now_ms(), self._clock.monotonic_s()))
        lines = [*changes(self._written, run), *(dump_run(back) if back is not None else []), *records]
        if lines:
            self._journal.append(lines)
        self._written = run

    def write_and_check(self, run: Run | None, records: Sequence[Record]) -> None:
        """The same, of a run or outside of one, right before something is sent: raises unless the lock is surely held, and in time."""
        began_s = self._clock.monotonic_s()
        if run is not None:
            self.write(run, records)
        elif records:
            self._journal.append(records)
        self._journal.check()
        self._require_in_time(began_s)

    def drop_expired(self) -> None:
        """Forget old runs; where the journal cannot be read or written now, the next run's end does it."""
        try:
            records = self._journal.read()
        except Unavailable as silence:
            self._note(RunNote("journal-not-read", {"error": silence.id, "message": str(silence)}))
            return
        try:
            if old := expire(records):
                self._journal.append(old)
        except Unavailable as silence:
            self._note(RunNote("old-runs-kept", {"error": silence.id, "message": str(silence)}))

    def renew(self, doing: str) -> bool:
        """Show that the holder lives; False while the journal does not answer, so that moves are followed without it."""
        try:
            self._journal.renew(doing)
        except Unavailable as silence:
            if not silence.retryable:
                raise
            self._keep_silence(silence)
            return False
        if self._told:
            self._note(RunNote("journal-answers"))
        self._silent_since_s, self._told = None, False
        return True

    def _keep_silence(self, silence: Unavailable) -> None:
        now = self._clock.monotonic_s()
        since = self._silent_since_s = now if self._silent_since_s is None else self._silent_since_s
        if self._told or now - since < SILENCE_S:
            return
        self._told = True
        self._note(
            RunNote("journal-silent", {"silent_s": now - since, "error": silence.id, "message": silence.message})
        )
        self.tell_restore_commands()

    def _require_in_time(self, began_s: float) -> None:
        """Raise ``Unavailable`` where writing an intent took so long that the cluster may have become another one.

        The process was stopped, or the journal hardly answers.
        """
        late_s = self._clock.monotonic_s() - began_s
        if late_s > STOOD_STILL_S:
            raise Unavailable(f"Its intent took {late_s:.0f} s to write down, so nothing was sent.")

    def require(self) -> None:
        """Raise ``JournalLost`` while it is gone: where nothing is to be written the journal itself is not asked."""
        if self.gone is not None:
            raise self.gone

    def recreate(self, lost: JournalLost, *, alone: bool, finish: bool) -> bool:
        """Tell the loss and make the journal again, so that the run can end; False where the run is to be left instead.

        Where another part of this process makes it again, the loss is raised.
        """
        if self.gone is None or self.gone.how != lost.how:
            self._note(RunNote("journal-lost", {"how": lost.how, "message": str(lost)}))
            self.tell_restore_commands()
        self.gone = lost
        if not alone:
            raise lost
        if not finish:
            return False
        try:
            self._journal.remake()
        except (Unavailable, JournalLost) as failure:
            self._note(RunNote("journal-not-recreated", {"error": failure.id, "message": failure.message}))
        else:
            self.gone = None
            self._note(RunNote("journal-recreated"))
        return True

    def tell_restore_commands(self) -> None:
        """Tell the commands by which a person restores the throttle settings, should this process end."""
        commands = self._restore_commands()
        if commands:
            self._note(RunNote("restore-by-hand"))
        for command in commands:
            self._note(RunNote("restore-command", {"command": command}))


def restore_from_memory(
    cluster: Cluster, throttler: Throttler, run: Run, others: DesiredThrottles, note: Callable[[RunNote], None]
) -> None:
    """Restore the throttle settings that no move in progress needs: without a journal no other process can."""
    owed: dict[Setting, Outcome] = {}
    # The ledger is the same one; the lock that it would renew went with the journal.
    throttler = replace(throttler, renew=lambda: None)
    try:
        alive = cluster.snapshot(log_dirs=False, configs=False).alive
        needed = merge({} if run.ended else wanted_throttle(run, alive), others)
        owed = throttler.settle(needed, alive, lambda _records: None, note)
    except (Unavailable, Refused) as failure:
        note(RunNote("throttles-not-removed", {"error": failure.id, "message": failure.message}))
    for setting, outcome in owed.items():
        note(RunNote("throttle-not-removed", {"setting": str(setting), "outcome": outcome}))
