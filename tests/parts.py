"""The parts of the suite: in which order they run, how several processes share them, and how long each takes against its budget."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

PARTS: Final[dict[str, tuple[tuple[str, ...], int]]] = {
    "units and properties": (("unit", "oracle"), 90),
    "simulator": (("sim",), 60),
    "contract and real clusters": (("containers", "contract", "real", "daemon", "chaos"), 960),
    "chart and page": (("chart", "page"), 60),
    # Late: Spark takes the cores, and what hurts brokers in containers and waits for them is not to run beside it.
    "Spark": (("spark",), 270),
    # Last: many short tests, for the processes that have nothing else left to do.
    "fuzz": (("fuzz",), 60),
}
"""Part, its folders under ``tests``, and its budget in seconds on four cores; all of them together are 25 minutes."""
BUDGET_CORES: Final = 4
"""Where there are fewer, a budget is longer in proportion: most of the time the tests take all cores there are."""

TESTS: Final = Path(__file__).parent
ORDER: Final = {folder: place for place, folder in enumerate(f for folders, _ in PARTS.values() for f in folders)}
WHOLE: Final = frozenset({"contract", "containers"})
"""Folders whose tests share costly clusters of their own: one process takes all of such a folder, otherwise a group or a file at a time."""
TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    "plain": (
        "real/test_drained_by_hand.py",
        "real/test_execution.py",
        "real/test_execution_stock.py",
        "real/test_history.py",
        "real/test_sandbox.py",
        "real/test_topic_changes.py",
        "real/test_topic_recreated.py",
    ),
    "guarded": (
        "real/test_daemon_credentials.py",
        "real/test_journal_clusters.py",
        "real/test_stale_leader.py",
        "real/test_sandbox_security.py",
        "real/test_status_guarded.py",
    ),
    "old": (
        "real/test_min_isr.py",
        "real/test_sandbox_kinds.py",
        "real/test_status_kinds.py",
        "real/test_throttles.py",
        "real/test_two_clusters.py",
        "real/test_zk_admin.py",
        "real/test_zk_journal.py",
        "real/test_zk_run.py",
        "real/test_zk_sessions.py",
    ),
    "session": (
        "spark/test_fleet_job.py",
        "spark/test_jobs.py",
        "spark/test_maintenance.py",
        "spark/test_pipeline_kills.py",
        "spark/test_transforms.py",
    ),
}
"""Files that one process takes as a group: they use the same clusters of ``tests.clusters``, or the one Spark session."""
GROUPS: Final = {name: group for group, names in TOGETHER.items() for name in names}
BY_PARAMETER: Final = frozenset({"spark/test_modes.py"})
"""Files that start servers for each parameter: each parameter goes to a process of its own."""


def folder_of(path: Path) -> str:
    """The folder right under ``tests`` in which a test lies."""
    try:
        return path.relative_to(TESTS).parts[0]
    except ValueError:
        return ""


def group_of(path: Path) -> str:
    """What one process takes as a whole: a folder, a group of files, or a file."""
    folder = folder_of(path)
    return folder if folder in WHOLE else GROUPS.get(f"{folder}/{path.name}", str(path))


def unit_of(nodeid: str) -> str:
    """What the scheduler hands out as a whole: a group, or one parameter of a file that goes by parameter."""
    file, _, test = nodeid.partition("::")
    group = group_of(TESTS.parent / file)
    return f"{group}[{test.partition('[')[2]}" if file.removeprefix("tests/") in BY_PARAMETER else group


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out files, and what is to stay whole."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _reschedule(self, node: Any) -> None:
        """Hand out the next only to a process that would stand still: it begins a test when it knows the one after it.

        One test earlier, as the library does, a process takes two or three long files that the others could have begun.
        """
        for done in [scope for scope, tests in self.workqueue.items() if all(tests.values())]:
            # A process that died gives back what it had finished, too: a worker that got it would wait for ever.
            del self.workqueue[done]
        if node.shutting_down or not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    """How several processes share the tests."""
    return ByCluster(config, log)


def shuffle(items: list[pytest.Item], random: Random) -> None:
    """Another order of files, and of the tests within each: a file's fixtures still serve all its tests in one go."""
    drawn: defaultdict[Path, float] = defaultdict(random.random)
    items[:] = sorted(items, key=lambda item: (drawn[item.path], random.random()))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast parts first, so that a mistake shows early; within a part, the files of a group follow each other.

    ``BALLAST_ORDER=7`` draws the order of groups, of their files, and of the tests in a file from that seed: no test may count on another.
    """
    if seed := os.environ.get("BALLAST_ORDER"):
        shuffle(items, Random(seed))
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        first.setdefault(group_of(item.path), place)
    items.sort(key=lambda item: (ORDER.get(folder_of(item.path), len(ORDER)), first[group_of(item.path)]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Note where a test lies: its report may be read in another process."""
    report = yield
    report.folder = folder_of(item.path)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print each part's time beside its budget, when more than one part ran."""
    spent: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            spent[getattr(report, "folder", "")] += getattr(report, "duration", 0.0)
    processes = max(1, int(config.getoption("numprocesses", None) or 1))
    cores = min(BUDGET_CORES, len(os.sched_getaffinity(0)))
    rows = []
    for part, (folders, budget_s) in PARTS.items():
        seconds, allowed_s = sum(spent[folder] for folder in folders) / processes, budget_s * BUDGET_CORES / cores
        if seconds:
            over = "  over its budget" if seconds > allowed_s else ""
            rows.append(f"{part:28} {seconds:7.1f} s of {allowed_s:5.0f} s{over}")
    if len(rows) < 2:
        return
    terminalreporter.section(f"time of each part, {processes} at once, beside its budget on {cores} cores")
    for row in rows:
        terminalreporter.write_line(row)
