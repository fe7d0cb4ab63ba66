"""Scenario files: the production planner, machine and driver on a simulated cluster, with budgets they must keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.errors import UsageError
from ballast.sim.scenario import Scenario

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=[f.stem for f in FILES])
def test_the_scenario_ends_as_expected(file: Path) -> None:
    """Every ``expect`` of the file holds."""
    outcome = Scenario(file.read_text(), seed=42, folder=file.parent).run()
    assert not outcome.failures, outcome


def test_the_same_seed_gives_the_same_run() -> None:
    """Down to the second and the byte."""
    text = (Path(__file__).parent / "scenarios" / "a_new_broker_gets_its_share.txt").read_text()
    first, second = Scenario(text, seed=7).run(), Scenario(text, seed=7).run()
    assert (first.seconds, first.bytes, first.moves) == (second.seconds, second.bytes, second.moves)


def test_an_expectation_that_fails_is_said_with_its_line() -> None:
    """The figure found stands in the sentence."""
    outcome = Scenario("cluster brokers=3\ntopic t partitions=3 rf=2\nexpect moves>=1 lost=0\n").run()
    assert outcome.failures == ["line 3: expected moves>=1, and it is 0.0"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("balance", "Line 1 .* first statement is cluster"),
        ("snapshot a.json", "Line 1 .* one file beside the scenario"),
        ("cluster brokers=3\nfly 2", "Line 2 .* no 'fly'"),
        ("cluster brokers=3 wings=2", "Line 1 .* does not know wings"),
        ("cluster", "Line 1 .* needs brokers="),
        ("cluster brokers=3\ntopic t partitions=1 rf=9", "Line 2 .* 9 replicas"),
        ("cluster brokers=3\nat 5s balance", "Line 2 .* balance cannot be put at a time"),
        ("cluster brokers=3\nat soon kill 2", "Line 2 .* 'soon' is not a figure"),
        ("cluster brokers=3\nkill two", "Line 2 .* not a list of brokers"),
        ("cluster brokers=3\nexpect happiness", "Line 2 .* is no claim"),
        ("cluster brokers=3\nmove orders to=1", "Line 2 .* write it like orders-3"),
        ('cluster brokers=3\ntopic "t', "Line 2 .*quotation"),
    ],
)
def test_a_slip_in_a_scenario_is_named_with_its_line(text: str, sentence: str) -> None:
    """One sentence: which line, and what it should have been."""
    with pytest.raises(UsageError, match=sentence):
        Scenario(text).run()


def test_a_snapshot_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Files are looked for beside the scenario."""
    with pytest.raises(UsageError, match=r"Line 1 .* no file gone\.json beside"):
        Scenario("snapshot gone.json", folder=tmp_path).run()
