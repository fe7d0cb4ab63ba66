"""What a person or a program sees while a run goes on, and what Ctrl-C does.

The driver runs in a thread of its own so that the lease is renewed while a question stands on the screen.  Signal handlers
only count.  The first Ctrl-C asks (leave it running, cancel, roll back, go on); the second leaves: what is being done is
written down within ``LEAVES_WITHIN_S``, and then the lock is released.  The third does not wait for that, which is safe as well: what
was begun is in the journal and a later start resumes it.  Without a terminal the first one leaves, and the second does not wait.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from ballast.cli.tables import human_bytes, human_many, print_line
from ballast.core.wording import UNKNOWN_TEXT, human_elections, human_percent, human_time

if TYPE_CHECKING:
    from rich.console import Console

    from ballast.executor.driver.driver import Driver
    from ballast.executor.driver.events import RunEvent, RunResult
    from ballast.executor.machine.progress import Progress

MOVES_SHOWN: Final = 8
RUN_DOCUMENTS: Final = (
    "RunBegan",
    "RunThrottle",
    "MoveChanged",
    "RunWaiting",
    "RunProgress",
    "RunNote",
    "RunEnded",
)
"""What a command that executes a run prints with ``--output json``, one a line."""
LEAVES_WITHIN_S: Final = 20.0
"""How long leaving may take before the process ends without it: a journal that does not answer must not hold a person."""


class Screen(Protocol):
    """Hears the driver from its thread, draws from the main one."""

    def on_event(self, event: RunEvent) -> None:
        """Take note."""
        ...

    def draw(self) -> None:
        """Show what has been heard."""
        ...

    @contextmanager
    def show(self) -> Iterator[None]:
        """While the block lasts, the screen is this one's."""
        ...

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Make room for a question."""
        ...


def sentence(event: RunEvent) -> str | None:
    """An event worth a line, as text."""
    from ballast.core.plan.work import work_of
    from ballast.executor.driver import events
    from ballast.executor.journal.notes import RunNote
    from ballast.executor.machine.stages import Failed, Stalled

    match event:
        case events.RunBegan(run, resumed):
            verb = "resumed" if resumed else "begins"
            parts = work_of(m.move for m in run.moves.values()).parts()
            parts += [human_elections(len(run.elections), unclean=run.unclean)] if run.elections else []
            return f"Run {run.id} {verb}: {run.intent} ({', '.join(parts) or 'nothing'})."
        case events.Paced(pace):
            return "\n".join(pace.lines()) or None
        case events.MoveChanged(name, before, after, outcome) if isinstance(after, Stalled | Failed) or type(
            before
        ) is type(after):
            return f"{name} {after.code}{f' ({outcome})' if outcome else ''}: {event.detail}"
        case events.Refusing(verdicts):
            more = f" (and {len(verdicts) - 1} more)" if len(verdicts) > 1 else ""
            return f"Waiting: {verdicts[0]}{more}" if verdicts else "No guard refuses any more."
        case RunNote():
            return str(event)
    return None


class _LineByLine:
    """A screen that writes one line after another, and so has nothing to prepare and nothing to clear."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lines: deque[str] = deque()

    def draw(self) -> None:
        """Write the lines."""
        while self._lines:
            self._write(self._lines.popleft())

    @contextmanager
    def show(self) -> Iterator[None]:
        """Write the last lines when the block ends."""
        yield
        self.draw()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Do nothing."""
        yield


class LineScreen(_LineByLine):
    """Lines on stderr, for logs and pipes; progress every half minute."""

    EVERY_S = 30.0

    def __init__(self) -> None:
        super().__init__(print_line)
        self._shown_s = 0.0

    def on_event(self, event: RunEvent) -> None:
        """Turn it into a line where it is worth one."""
        from ballast.executor.driver.events import Progressed

        line = sentence(event)
        if line is not None:
            self._lines.append(line)
        if isinstance(event, Progressed) and time.monotonic() - self._shown_s >= self.EVERY_S:
            self._shown_s = time.monotonic()
            self._lines.append(progress_line(event.progress))


def progress_line(p: Progress) -> str:
    """Progress in one line."""
    rate = f", {human_bytes(p.bytes_per_s)}/s" if p.bytes_per_s is not None else ""
    left = f", {human_time(p.left_s)} left" if p.left_s else ""
    otherwise = f", {p.ended_otherwise} ended otherwise" if p.ended_otherwise else ""
    return (
        f"{p.verified} of {human_many(p.moves, 'partition')} done, {len(p.in_flight)} in progress{otherwise}; "
        f"{human_bytes(p.bytes_done)} of {human_bytes(p.bytes_total)}{rate}{left}"
    )


class JsonScreen(_LineByLine):
    """One JSON document a line on stdout: progress, changes, refusals, notes (``documents.runs``)."""

    def __init__(self) -> None:
        super().__init__(click.echo)

    def on_event(self, event: RunEvent) -> None:
        """Turn it into a document."""
        from ballast.cli.run_documents import document_of

        document = document_of(event)
        if document is not None:
            self._lines.append(document.model_dump_json())


class LiveScreen:
    """Bars on the terminal, the story above them."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.live import Live

        self._console = console or _stderr_console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._lines: deque[str] = deque()
        self._progress: Progress | None = None

    def on_event(self, event: RunEvent) -> None:
        """Keep the newest progress and the lines worth telling."""
        from ballast.executor.driver.events import Progressed

        if isinstance(event, Progressed):
            self._progress = event.progress
        line = sentence(event)
        if line is not None:
            self._lines.append(line)

    def draw(self) -> None:
        """Lines first, bars below."""
        from rich.markup import escape

        while self._lines:
            self._console.print(escape(self._lines.popleft()))
        if self._progress is not None:
            self._live.update(_bars(self._progress), refresh=True)

    @contextmanager
    def show(self) -> Iterator[None]:
        """Bars stand at the bottom."""
        with self._live:
            yield
        self._progress = None
        self.draw()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Take the bars away for a question."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()


def _bars(p: Progress) -> Any:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    moves = sorted(p.in_flight, key=lambda m: (m.stage.code != "stalled", (m.total_bytes or 0) - m.copied_bytes))
    for m in moves[:MOVES_SHOWN]:
        total = m.total_bytes or 0
        bar = ProgressBar(total=max(total, 1), completed=m.copied_bytes, width=24, pulse=not total)
        share = f"{human_percent(min(1.0, m.copied_bytes / total), 0) if total else UNKNOWN_TEXT:>5}"
        style = "yellow" if m.stage.code == "stalled" else ""
        table.add_row(Text(str(m.name), style=style), bar, Text(share), Text(m.detail or m.stage.code, style=style))
    if len(moves) > MOVES_SHOWN:
        table.add_row(Text(f"… {len(moves) - MOVES_SHOWN} more"), "", "", "")
    whole = Table.grid(padding=(0, 1))
    whole.add_row(
        Text("all", style="bold"), ProgressBar(total=max(p.bytes_total or 0, 1), completed=p.bytes_done, width=40)
    )
    refusals = [Text(f"waiting: {r}", style="yellow") for r in p.refusals[:2]]
    # Below the bar and not beside it: together they are wider than many terminals, and the line's length changes all the time.
    return Group(table, *refusals, whole, Text(progress_line(p)))


def screen_for(output: str) -> Screen:
    """JSON lines, bars or plain lines: what was asked for and what the terminal can show."""
    if output == "json":
        return JsonScreen()
    console = _stderr_console()
    # On a terminal that cannot move its cursor (TERM=dumb) bars would never appear, and neither would any progress.
    return LiveScreen(console) if console.is_terminal and not console.is_dumb_terminal else LineScreen()


def _stderr_console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False)


def execute(act: Callable[[], RunResult], driver: Driver, screen: Screen) -> RunResult:
    """Run ``act`` (which uses the driver) in a thread, show it, and obey signals until it has ended."""
    results: list[RunResult] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(act())
        except BaseException as failure:  # noqa: BLE001 — handed over to the main thread, which raises it
            failures.append(failure)

    signals: deque[int] = deque()
    thread = threading.Thread(target=work, name="ballast-run", daemon=True)
    left_s: float | None = None
    with _count_signals(signals), screen.show():
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
            screen.draw()
            if signals and left_s is not None:
                break
            if signals:
                left_s = _leave_or_ask(signals, driver, screen)
                signals.clear()
            if left_s is not None and time.monotonic() - left_s > LEAVES_WITHIN_S:
                break
    if thread.is_alive():
        return _end_at_once(driver, screen)
    if failures:
        raise failures[0]
    return results[0]


def _end_at_once(driver: Driver, screen: Screen) -> RunResult:
    """End without waiting for the cluster or the journal to answer: the run as it is known here, and all that is owed."""
    from ballast.errors import Interrupted
    from ballast.executor.driver.events import RunEnded

    if (left := driver.abandon()) is None:
        raise Interrupted("Stopped without waiting; nothing was sent.")
    print_line("Stopped without waiting for the cluster and the journal.")
    screen.on_event(RunEnded(left))
    screen.draw()
    return left


@contextmanager
def _count_signals(signals: deque[int]) -> Iterator[None]:
    def note(number: int, _: FrameType | None) -> None:
        signals.append(number)

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


QUESTION: Final = (
    "\n  l  leave it running; resume later with ballast runs resume\n"
    "  c  cancel: reassignments in progress are cancelled, finished ones stay\n"
    "  r  roll back: return every partition to its old replicas\n"
    "  g  go on\n"
    "What now? [l/c/r/g] (Ctrl-C again: leave) "
)


def _leave_or_ask(signals: deque[int], driver: Driver, screen: Screen) -> float | None:
    """Leave at SIGTERM or without a terminal, else do what the person says; when leaving began, if it did."""
    from ballast.executor.machine.step import Command

    if signal.SIGTERM in signals or not sys.stdin.isatty():
        stays = ": moves in progress go on in the cluster; resume later with ballast runs resume"
        print_line(f"Leaving{stays if driver.run is not None else ''}.")
        driver.leave()
        return time.monotonic()
    with screen.suspend():
        answer = _ask(signals)
    if answer == "c":
        driver.ask(Command.CANCEL, by="Ctrl-C in its terminal")
    elif answer == "r":
        driver.ask(Command.ROLLBACK, by="Ctrl-C in its terminal")
    elif answer != "g":
        print_line(f"Leaving within {LEAVES_WITHIN_S:g} s; Ctrl-C leaves at once.")
        driver.leave()
        return time.monotonic()
    return None


def _ask(signals: deque[int]) -> str:
    """One key; another signal or the end of the input means leave."""
    with _alarm() as alarm:
        answer = ""
        while answer not in {"l", "c", "r", "g"}:
            if len(signals) > 1:
                return "l"
            click.echo(QUESTION, err=True, nl=False)
            ready, _, _ = select.select([sys.stdin, alarm], [], [])
            line = "" if alarm in ready else sys.stdin.readline()
            if not line:
                return "l"
            answer = line.strip().lower()[:1]
        return answer


@contextmanager
def _alarm() -> Iterator[int]:
    """A file descriptor that can be read as soon as a signal has come.

    A signal between the question and the system call that waits for the answer would otherwise be seen only after the answer.
    """
    alarm, bell = os.pipe()
    os.set_blocking(bell, False)
    before = signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    try:
        yield alarm
    finally:
        signal.set_wakeup_fd(before)
        os.close(alarm)
        os.close(bell)
