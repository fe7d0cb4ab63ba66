"""Prints what tests measured at the end of a run: ``record_property(FIGURE, "…")`` in a test.

What a test writes while it runs is lost where several processes share the tests; properties travel with its report.
"""

from __future__ import annotations

from typing import Any, Final

FIGURE: Final = "figure"
"""The property that is printed."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print each figure, by the test that measured it."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())]
    rows = [(r.nodeid, said) for r in reports for name, said in r.user_properties if name == FIGURE]
    if not rows:
        return
    terminalreporter.section("figures that tests measured")
    for test, said in sorted(rows):
        terminalreporter.write_line(f"{test.partition('::')[2]}: {said}")
