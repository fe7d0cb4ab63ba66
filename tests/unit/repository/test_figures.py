"""Figures that tests measure are seen at the end of a run, however many processes share it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.figures import FIGURE, pytest_terminal_summary


class Terminal:
    """Where the summary is printed."""

    def __init__(self, **stats: list[Any]) -> None:
        self.stats = stats
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        """A heading."""
        self.lines.append(title)

    def write_line(self, line: str) -> None:
        """A line."""
        self.lines.append(line)


def report(test: str, *properties: tuple[str, object]) -> Any:
    """What a process sends of a test that it ran."""
    return SimpleNamespace(nodeid=f"tests/unit/test_a.py::{test}", user_properties=list(properties))


def test_each_figure_is_printed_by_its_test() -> None:
    """Also that of a test which failed because of it; other properties are not."""
    terminal = Terminal(
        passed=[report("test_b", (FIGURE, "1.01 of the least"), ("seed", 3)), report("test_c")],
        failed=[report("test_a", (FIGURE, "2.5 of the least"))],
    )
    pytest_terminal_summary(terminal)
    assert terminal.lines[1:] == ["test_a: 2.5 of the least", "test_b: 1.01 of the least"]


def test_without_a_figure_nothing_is_printed() -> None:
    """Not even a heading."""
    terminal = Terminal(passed=[report("test_c")])
    pytest_terminal_summary(terminal)
    assert terminal.lines == []
