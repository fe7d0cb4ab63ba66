"""Whom a use case talks to: it says what happens, asks before it changes the cluster, and shows a run while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ballast.executor.driver.events import Listener, RunResult

if TYPE_CHECKING:
    from ballast.executor.driver.driver import Driver


class RunView(Listener, Protocol):
    """Shows one run; hears of it from before it begins."""

    def execute(self, act: Callable[[], RunResult], driver: Driver) -> RunResult:
        """Do ``act``, which uses the driver, and show meanwhile what is heard."""
        ...


class UserInterface(Protocol):
    """A person at a terminal, or the log of a program."""

    @property
    def asks(self) -> bool:
        """Is a person asked, who reads what is told before that?"""
        ...

    def show_line(self, line: str) -> None:
        """Show a line to people."""
        ...

    def confirm(self, question: str) -> None:
        """Return when the answer is yes; raises ``Interrupted`` or ``UsageError`` where it is not."""
        ...

    def view(self) -> RunView:
        """A view for one run."""
        ...

    def tell(self, result: RunResult) -> None:
        """Tell how a run ended, and what to do where it did not end well."""
        ...
