"""The terminal as a use case knows it: lines on stderr, questions, and what a run shows while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ballast.cli.run_options import confirm
from ballast.cli.run_screen import Screen, execute, screen_for
from ballast.cli.tables import human_bytes, human_many, print_line
from ballast.core.wording import human_elections, human_time

if TYPE_CHECKING:
    from ballast.app.user_interface import RunView
    from ballast.executor.driver.driver import Driver
    from ballast.executor.driver.events import RunEvent, RunResult

ENDINGS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class _View:
    screen: Screen

    def on_event(self, event: RunEvent) -> None:
        self.screen.on_event(event)

    def execute(self, act: Callable[[], RunResult], driver: Driver) -> RunResult:
        """Obeys signals until the run has ended."""
        return execute(act, driver, self.screen)


@dataclass(frozen=True, slots=True)
class Terminal:
    """One command's terminal: ``UserInterface`` of the use cases."""

    output: str = "table"
    yes: bool = False
    """The person has agreed already."""

    @property
    def asks(self) -> bool:
        """Without ``--yes`` the user is asked."""
        return not self.yes

    def show_line(self, line: str) -> None:
        """On stderr."""
        print_line(line)

    def confirm(self, question: str) -> None:
        """Ask, unless the person has agreed already."""
        confirm(question, yes=self.yes)

    def view(self) -> RunView:
        """JSON lines, bars or plain lines."""
        return _View(screen_for(self.output))

    def tell(self, result: RunResult) -> None:
        """How a run ended, on stderr; JSON has told it already."""
        if self.output != "json" and result.status != "not-begun":
            for line in ending(result):
                print_line(line)


def ending(result: RunResult) -> list[str]:
    """How a run ended, and what to do where it did not end well."""
    lines = [
        f"  {ending.subject}: {ending.outcome}{f', {ending.detail}' if ending.detail else ''}"
        for ending in result.endings[:ENDINGS_SHOWN]
    ]
    if len(result.endings) > ENDINGS_SHOWN:
        lines.append(f"  … and {len(result.endings) - ENDINGS_SHOWN} more: ballast runs show {result.run_id}")
    counts = [result.verified_by_kind]
    if result.elections_completed:
        counts.append(f"{human_elections(result.elections_completed, unclean=result.unclean)} completed")
    others = {"rolled back": result.rolled_back, "ended otherwise": result.failed, "still open": result.still_open}
    counts += [f"{count} {word}" for word, count in others.items() if count]
    figures = f"{human_bytes(result.bytes_moved)} in {human_time(result.seconds)}"
    lines.append(f"Run {result.run_id} {result.status}: {', '.join(counts)}; {figures}.")
    if result.restore_commands:
        lines.append("  The journal does not hold these throttle settings; put them back with:")
        lines += [f"    {command}" for command in result.restore_commands]
    elif result.throttles_to_restore:
        owed = human_many(len(result.throttles_to_restore), "throttle setting")
        lines.append(f"  Throttles not yet removed: {owed}. The next start of Ballast does it.")
    if result.status == "left":
        lines.append(f"  Resume: ballast runs resume {result.run_id}   Roll back: ballast rollback {result.run_id}")
    return lines
