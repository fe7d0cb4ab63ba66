"""The parts of the suite: in which order they run, and how long each takes against its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

PARTS: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "units and properties": (("unit", "oracle"), 120),
    "simulator": (("sim",), 240),
    "contract and real clusters": (("contract", "real", "daemon", "containers"), 720),
    "Spark": (("spark",), 300),
    "chart and page": (("chart", "page"), 240),
    "fuzz": (("fuzz",), 180),
}
"""Part, its folders under ``tests``, and its budget in seconds on two cores."""

TESTS: Final = Path(__file__).parent
ORDER: Final = {folder: place for place, folder in enumerate(f for folders, _ in PARTS.values() for f in folders)}
SPENT_S: Final = pytest.StashKey[dict[str, float]]()


def folder_of(path: Path) -> str:
    """The folder right under ``tests`` in which a test lies."""
    try:
        return path.relative_to(TESTS).parts[0]
    except ValueError:
        return ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast parts first, so that a mistake shows early; within a part nothing moves."""
    items.sort(key=lambda item: ORDER.get(folder_of(item.path), len(ORDER)))


def pytest_configure(config: pytest.Config) -> None:
    """Start the clocks."""
    config.stash[SPENT_S] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add a test's set-up, run and tear-down to its folder's time."""
    spent = item.config.stash[SPENT_S]
    folder = folder_of(item.path)
    spent[folder] = spent.get(folder, 0.0) + call.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print each part's time beside its budget, when more than one part ran."""
    spent = config.stash[SPENT_S]
    rows = []
    for part, (folders, budget_s) in PARTS.items():
        seconds = sum(spent.get(folder, 0.0) for folder in folders)
        if seconds:
            over = "  over its budget" if seconds > budget_s else ""
            rows.append(f"{part:28} {seconds:7.1f} s of {budget_s:4d} s{over}")
    if len(rows) < 2:
        return
    terminalreporter.section("time of each part")
    for row in rows:
        terminalreporter.write_line(row)
