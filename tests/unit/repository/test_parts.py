"""How the suite is handed out: what shares a cluster is run by one process."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests import clusters
from tests.clusters import SECURED, SPECS, needed
from tests.parts import BY_PARAMETER, GROUPS, TESTS, ByCluster, group_of, shuffle, unit_of


def test_a_file_that_shares_a_cluster_is_in_a_group() -> None:
    """Two files of one group follow each other in one process; a file that is in none would start brokers of its own."""
    shared = re.compile(rf"\b(?:{'|'.join((*SPECS, SECURED))}): (?:Sandbox|Callable|Secured)\b")
    users = {f"real/{p.name}" for p in (TESTS / "real").glob("test_*.py") if shared.search(p.read_text())}
    assert users
    users |= {f"spark/{p.name}" for p in (TESTS / "spark").glob("test_*.py") if "(spark: Any" in p.read_text()}
    assert users - set(GROUPS) == set()
    assert [name for name in GROUPS if not (TESTS / name).is_file()] == []


def test_files_of_a_group_go_together_and_others_alone() -> None:
    """The scheduler's key: a group, a folder that stays whole, or the file."""
    real = TESTS / "real"
    assert group_of(real / "test_zk_run.py") == group_of(real / "test_zk_admin.py")
    assert group_of(real / "test_zk_run.py") != group_of(real / "test_execution.py")
    assert group_of(real / "test_planning.py") != group_of(real / "test_leaders.py")
    assert group_of(TESTS / "containers" / "test_hurt.py") == group_of(TESTS / "containers" / "test_kills.py")


def test_each_parameter_of_a_file_with_servers_goes_alone() -> None:
    """Two kinds of Spark need not wait for each other; a parameter of any other file stays with its file."""
    modes = "tests/spark/test_modes.py"
    assert unit_of(f"{modes}::test_a[connect]") == unit_of(f"{modes}::test_b[connect]")
    assert unit_of(f"{modes}::test_a[connect]") != unit_of(f"{modes}::test_a[standalone]")
    assert unit_of("tests/chart/test_chart.py::test_a[x]") == unit_of("tests/chart/test_chart.py::test_b")
    assert [name for name in BY_PARAMETER if not (TESTS / name).is_file()] == []


def test_a_seed_draws_the_order_and_keeps_the_tests_of_a_file_together() -> None:
    """The same seed gives every process the same order; another one gives another."""
    tests: list[Any] = [SimpleNamespace(path=Path(f), name=f"{f}::{n}") for f in "abcd" for n in range(5)]
    orders = []
    for seed in (1, 1, 2):
        drawn = list(tests)
        shuffle(drawn, Random(seed))
        orders.append([test.name for test in drawn])
        files = [test.path for test in drawn]
        assert [files[n] for n in range(0, 20, 5)] == [files[n] for n in range(4, 20, 5)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(test.name for test in tests)


class Process:
    """A process of a run that takes note of what it was handed."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.tests: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, tests: list[int]) -> None:
        """Hear of the next tests."""
        self.tests += tests

    def shutdown(self) -> None:
        """Hear that there are no more."""
        self.shutting_down = True


def test_a_process_takes_the_next_file_only_when_it_would_stand_still() -> None:
    """A test is begun when the one after it is known: two files are enough, and a third would be kept from other processes."""
    names = [f"tests/real/test_{n}.py::test_it" for n in range(8)]
    processes = [Process("one"), Process("two")]
    options: Any = SimpleNamespace(getvalue=lambda _: ["2*popen"], option=SimpleNamespace(loadscopereorder=False))
    scheduler = ByCluster(options)
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, names)
    scheduler.schedule()
    assert [process.tests for process in processes] == [[0, 2], [1, 3]]
    scheduler.mark_test_complete(processes[1], 1)
    assert [process.tests for process in processes] == [[0, 2], [1, 3, 4]]


def test_what_a_dead_process_had_finished_is_not_run_again() -> None:
    """Another process runs what it had not finished; one that got only finished tests would hang."""
    names = [f"tests/real/test_{n}.py::test_it" for n in range(8)]
    one, two = processes = [Process("one"), Process("two")]
    options: Any = SimpleNamespace(getvalue=lambda _: ["2*popen"], option=SimpleNamespace(loadscopereorder=False))
    scheduler = ByCluster(options)
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, names)
    scheduler.schedule()
    for done in (1, 3):
        scheduler.mark_test_complete(two, done)
    scheduler.remove_node(two)
    ran: list[int] = []
    while len(ran) < len(one.tests):
        ran.append(one.tests[len(ran)])
        scheduler.mark_test_complete(one, ran[-1])
    assert sorted({*ran, 1, 3}) == list(range(8))
    assert one.shutting_down


def test_a_cluster_is_kept_for_a_test_that_asks_for_it_later() -> None:
    """As a fixture, or by its name as a parameter."""

    def item(*fixtures: str, **parameters: object) -> Any:
        return SimpleNamespace(fixturenames=fixtures, callspec=SimpleNamespace(params=parameters))

    assert needed([]) == set()
    assert needed([item("tmp_path", "kraft"), item(kind="zk23", mode=7), item("secured", kind="tls")]) == {
        "kraft",
        "zk23",
        "secured",
    }


def test_no_cluster_ends_in_mid_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test asked for in mid-run is known to its file's fixtures alone; after the file, only what is needed later stays."""
    kept: list[set[str]] = []
    monkeypatch.setattr(clusters.CLUSTERS, "keep", lambda fixtures: kept.append(set(fixtures)))
    session = SimpleNamespace(items=[])

    def item(name: str, *fixtures: str) -> Any:
        return SimpleNamespace(path=TESTS / "contract" / name, fixturenames=fixtures, session=session)

    session.items += [item("test_a.py"), item("test_a.py"), item("test_b.py"), item("test_b.py", "kraft")]
    first, second, third, last = session.items
    clusters.pytest_runtest_teardown(first, second)
    assert kept == []
    clusters.pytest_runtest_teardown(second, third)
    clusters.pytest_runtest_teardown(last, None)
    assert kept == [{"kraft"}, set()]
