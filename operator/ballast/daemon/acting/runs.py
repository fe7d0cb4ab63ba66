"""The run in progress: of which kind it is, whether it may begin further moves, and what each kind has done so far."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from ballast.daemon.acting.action_history import NO_ACTIONS, ActionHistory
from ballast.daemon.context.access import Access
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Board
from ballast.daemon.policy import ActionKind, LivePolicy, Mode
from ballast.errors import BallastError
from ballast.executor.journal.pause import Pause
from ballast.ports.journal import Record, read_record

log = logging.getLogger("ballast.daemon")


class _Held(NamedTuple):
    """Whether the run in progress begins no further move, and the person who wants that, where it is one."""

    paused: bool
    by: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A run that began, right after the run ``after`` of its kind."""

    at_ms: int
    run: str
    after: str

    def add_to(self, acts: ActionHistory) -> ActionHistory:
        """The counts with it."""
        return acts.add_late_start(self.at_ms, self.run, after=self.after)


@dataclass(frozen=True, slots=True)
class _End:
    """A run that ended."""

    at_ms: int

    def add_to(self, acts: ActionHistory) -> ActionHistory:
        """The counts with it."""
        return acts.add_late_end(self.at_ms)


@dataclass(slots=True)
class Runs:
    """What is known of runs beside the journal's own records."""

    board: Board
    policy: LivePolicy
    access: Access
    acts: Mapping[ActionKind, ActionHistory] = field(default_factory=dict)
    """What each kind has done; the caps and cool-downs go by it."""
    running: ActionKind | None = None
    """The kind of action that the current run is."""
    _seen: bool = False
    """A run was in progress when this was last looked at, started by this process or by another."""
    _unwritten: dict[ActionKind, tuple[_Start | _End, ...]] = field(default_factory=dict)
    """What the counts in the journal lack."""
    _told: str = ""
    """Why they could not be written, as it was logged last."""
    _writing: threading.Lock = field(default_factory=threading.Lock)
    """The loops that begin runs and the one that keeps the lock write the same records."""

    def in_flight(self) -> str:
        """The run that this process or, as far as the journal tells, another one executes; empty for none."""
        run = self.access.current() or self.board.view.run_elsewhere
        return run.id if run else ""

    def note_in_flight(self) -> None:
        """A run is in progress, started by this process or by another: its end brings new checks."""
        self._seen = True

    @property
    def end_pending(self) -> bool:
        """Has a run begun whose end was not taken up yet?"""
        return self.running is not None or self._seen

    def take_end(self) -> ActionKind | None:
        """The run is over; the kind of action that it was, None where this process had not begun it, and no record tells."""
        kind, self.running, self._seen = self.running, None, False
        return kind

    def leave(self) -> None:
        """Whatever process goes on with the current run counts its end."""
        self.running = None

    def set_pause(self, pause: Pause | None) -> None:
        """Show the pause switch; the run in progress heeds it."""
        self.board.publish(pause=pause)
        self.hold()

    def hold(self) -> None:
        """Hold the next moves of the run in progress back while a person paused, or while its kind is in observe mode."""
        while self.access.run_controller is not None:
            held = self._held()
            self.access.run_controller.pause(paused=held.paused, by=held.by)
            # Another loop may have changed it on the way, and have told the run before this one did.
            if held == self._held():
                return

    def _held(self) -> _Held:
        pause = self.board.view.pause
        return _Held(bool(self.why_held_by_mode()), "") if pause is None else _Held(paused=True, by=pause.signed)

    def why_held_by_mode(self) -> str:
        """Why the run in progress begins no further move, as far as modes go; empty where it may.

        A run whose kind no record tells is held only where nothing at all is written.
        """
        kind = self.running
        if kind is not None and self.policy.now.mode_of(kind) is Mode.OBSERVE:
            return f"the mode for {kind.value} is observe"
        return "" if self.policy.now.writes else "the mode is observe"

    def kind_of(self, run: str) -> ActionKind | None:
        """The kind of action that this run was started as; None where no record tells."""
        return next((kind for kind, acts in self.acts.items() if acts.run == run), None)

    def adopt(self, run: str) -> None:
        """A run of the journal is the current one from now on; empty for none."""
        self.running = self.kind_of(run) if run else None
        self.hold()

    def note_start(self, kind: ActionKind, run: str, now_ms: int) -> None:
        """A run of this kind began."""
        self.running = kind
        self.hold()
        self._remember(kind, lambda acts: (acts.add_start(now_ms, run), _Start(now_ms, run, acts.run)))

    def note_end(self, kind: ActionKind, now_ms: int) -> None:
        """A run of this kind is over."""
        self._remember(kind, lambda acts: (acts.add_end(now_ms), _End(now_ms)))

    def load_acts(self, records: Iterable[Record]) -> None:
        """Count by what the journal says, and by what it has still to be told."""
        with self._writing:
            acts = acts_in(records)
            for kind, missing in self._unwritten.items():
                for one in missing:
                    acts[kind] = one.add_to(acts.get(kind, NO_ACTIONS))
            self.acts = acts

    def write_acts(self) -> None:
        """Tell the journal what it does not know yet; the lock check does so with each of its beats, until it is there."""
        if not self._unwritten:
            return
        with self._writing:
            for kind in list(self._unwritten):
                try:
                    written = self.access.write(Record(acts_key(kind), asdict(self.acts[kind])))
                except BallastError as failure:
                    # What has begun, or ended, has: that it is not written yet must not pass for a failure of that.
                    sentence = f"The counts of {kind.value} are not in the journal yet: {failure}"
                    if sentence != self._told:
                        log_event(log, sentence, level=logging.WARNING, failure=failure.id)
                    self._told = sentence
                    return
                if written:
                    del self._unwritten[kind]
                    self._told = ""

    def _remember(
        self, kind: ActionKind, count: Callable[[ActionHistory], tuple[ActionHistory, _Start | _End]]
    ) -> None:
        """In the journal too: a restart must not grant a second day's worth."""
        with self._writing:
            acts, change = count(self.acts.get(kind, NO_ACTIONS))
            self.acts = {**self.acts, kind: acts}
            self._unwritten[kind] = (*self._unwritten.get(kind, ()), change)
        self.write_acts()


def acts_in(records: Iterable[Record]) -> dict[ActionKind, ActionHistory]:
    """The counts of each kind, as the journal keeps them; counts that are not whole are refused, since caps would begin anew."""
    kinds = {acts_key(kind): kind for kind in ActionKind}
    return {kinds[r.key]: read_record(r, ActionHistory) for r in records if r.key in kinds and r.value is not None}


def acts_key(kind: ActionKind) -> str:
    """The journal key of a kind's counts."""
    return f"daemon/acts/{kind.value}"
