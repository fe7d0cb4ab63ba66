"""What the command line says over what the settings say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.core.planner.clusters import cluster

from ballast.cli.commands.plan.command import EXIT_PENDING
from ballast.cli.commands.plan.options import rule_of
from ballast.cli.commands.snapshot import read_snapshot
from ballast.cli.main import cli
from ballast.core.plan.file import loads
from ballast.core.planner import Loads, TopicRule
from ballast.core.snapshot.file import Snapshot, dumps
from ballast.errors import NoPlanFound, UsageError
from ballast.executor.driver.pace import first_pace
from ballast.settings import load_settings

SETTINGS = """
balance:
  band: 0.3
  trigger: 0.4
  pinned_topics: "held.*"
  cordoned: [4]
  max_replica_moves: 3
"""


def planned(folder: Path, *words: str, settings: str = SETTINGS) -> dict[str, Any]:
    """``ballast plan balance`` on a snapshot of five brokers of which the first two hold everything."""
    state = cluster(*[(1, 2), (2, 1)] * 12, brokers=5, sizes=(1 << 24,) * 24)
    (folder / "case.json").write_text(dumps(Snapshot(state, Loads.from_state(state))))
    (folder / "ballast.yaml").write_text(settings)
    line = ["plan", "balance", "--snapshot", str(folder / "case.json"), "--config", str(folder / "ballast.yaml")]
    done = CliRunner().invoke(cli, [*line, "--output", "json", *words], standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, NoPlanFound), done.exception
    return dict(json.loads(done.stdout))


def test_the_settings_hold_where_nothing_is_said(tmp_path: Path) -> None:
    """Band, cordon and budget come from the file."""
    made = planned(tmp_path)
    assert {r["band"] for r in made["summary"]["resources"]} == {0.3}
    assert made["summary"]["replicaMoves"] <= 3
    assert not any(4 in m["new"] for m in made["moves"])


def test_the_command_line_wins_and_cordons_add_up(tmp_path: Path) -> None:
    """A band and a budget that are said replace the file's; brokers named in either take nothing."""
    made = planned(tmp_path, "--band", "0.1", "--max-replica-moves", "1000")
    assert {r["band"] for r in made["summary"]["resources"]} == {0.1}
    assert made["summary"]["replicaMoves"] > 3
    both = planned(tmp_path, "--cordon", "3")
    assert not any({3, 4} & set(m["new"]) for m in both["moves"])


@pytest.mark.parametrize(
    ("words", "filled"),
    [
        (("expand", "3-5"), {3, 4, 5}),
        (("expand", "3,5"), {3, 5}),
        (("expand", "[35]"), {3, 5}),
        (("expand", "3", "5"), {3, 5}),
        (("balance", "--cordon", "4-5"), {3}),
        (("balance", "--cordon", "[45]"), {3}),
        (("balance", "--drain", "4,5"), {3}),
        (("balance", "--brokers", "1-3"), {3}),
        (("balance", "--brokers", "[123]"), {3}),
        (("balance", "--exclude-brokers", "4,5"), {3}),
    ],
    ids=str,
)
def test_brokers_are_ids_or_an_expression_wherever_they_are_named(
    tmp_path: Path, words: tuple[str, ...], filled: set[int]
) -> None:
    """Of five brokers of which three are empty: those that are filled."""
    planned(tmp_path)
    line = ["plan", *words, "--snapshot", str(tmp_path / "case.json"), "--output", "json"]
    done = CliRunner().invoke(cli, line, standalone_mode=False)
    assert done.exception is None, done.exception
    assert {b for m in json.loads(done.stdout)["moves"] for b in m["new"]} - {1, 2} == filled


def test_an_expression_that_no_broker_matches_is_refused(tmp_path: Path) -> None:
    """A plan for no broker would look as if there were nothing to do."""
    planned(tmp_path)
    line = ["plan", "decommission", "9.", "--snapshot", str(tmp_path / "case.json")]
    done = CliRunner().invoke(cli, line, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "9." in done.exception.message


def test_a_question_does_not_keep_the_plan_from_being_written(tmp_path: Path) -> None:
    """``--why`` answers instead of showing the plan; what ``--save`` and ``--report`` ask for is written all the same."""
    planned(tmp_path)
    saved, page = tmp_path / "plan.json", tmp_path / "plan.html"
    line = ["plan", "balance", "--snapshot", str(tmp_path / "case.json"), "--why", "t-0", "--why-not", "5"]
    done = CliRunner().invoke(cli, [*line, "--save", str(saved), "--report", str(page)], standalone_mode=False)
    assert done.stdout.startswith("t-0 ")
    assert "Broker 5 gets" in done.stdout
    assert json.loads(saved.read_text())["moves"]
    assert page.stat().st_size > 0
    assert done.return_value == 0
    assert CliRunner().invoke(cli, [*line, "--check"], standalone_mode=False).return_value == EXIT_PENDING


@pytest.mark.parametrize(
    ("settings", "words", "rate"),
    [
        ("{}", (), "8.0 MiB/s"),
        ("execution: {auto_small_copy_s: 80}", (), "32.0 MiB/s"),
        ("execution: {throttle: 3145728}", (), "3.0 MiB/s"),
        ("execution: {throttle: 3145728}", ("--rate", "5MiB/s"), "5.0 MiB/s"),
        ("execution: {throttle: none}", (), None),
    ],
)
def test_a_plans_time_is_told_at_the_rate_that_its_run_begins_with(
    tmp_path: Path, settings: str, words: tuple[str, ...], rate: str | None
) -> None:
    """In the table and in the report, as ``apply`` tells it and the daemon's page: by the settings, unless another is said."""
    planned(tmp_path, settings=settings)
    report, saved = tmp_path / "plan.html", tmp_path / "plan.json"
    line = [
        "plan",
        "balance",
        "--snapshot",
        str(tmp_path / "case.json"),
        "--config",
        str(tmp_path / "ballast.yaml"),
        *words,
    ]
    done = CliRunner().invoke(cli, [*line, "--report", str(report), "--save", str(saved)], standalone_mode=False)
    assert done.exception is None, done.exception
    told = re.findall(r"At ([0-9.]+ [KM]iB/s) into", done.stdout)
    assert told == ([rate] if rate else [])
    assert ("No throttle bounds the copies" in done.stdout) is (rate is None)
    assert re.findall(r"at ([0-9.]+ [KM]iB/s) into", report.read_text()) == ([rate] if rate else [])
    if rate and not words:
        state = read_snapshot(tmp_path / "case.json").state
        policy = load_settings(tmp_path / "ballast.yaml", {}).execution
        plan = loads(saved.read_text(), source="plan.json")
        assert any(f"Throttle: {rate} on" in said for said in first_pace(plan, state, policy).lines())


def test_a_deadline_needs_the_rate_that_it_is_computed_with(tmp_path: Path) -> None:
    """How much a time carries is not known before it is known what moves."""
    planned(tmp_path)
    line = ["plan", "balance", "--snapshot", str(tmp_path / "case.json"), "--deadline", "2h"]
    done = CliRunner().invoke(cli, line, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert planned(tmp_path, "--deadline", "1s", "--rate", "20MB/s", settings="{}")["summary"]["replicaMoves"] == 1


RULED = """
balance:
  topic_rules:
    - topics: "t"
      brokers: [1, 2, 3]
"""


def test_topic_rules_of_the_settings_and_the_command_line_add_up(tmp_path: Path) -> None:
    """What either forbids is forbidden, and the plan file says what was asked."""
    made = planned(tmp_path, "--topic-rule", "t not-brokers=3", "--topic-rule", "x.* spread-evenly", settings=RULED)
    assert {b for m in made["moves"] for b in m["new"]} <= {1, 2}
    assert made["request"]["policy"]["topic_rules"] == [
        {"topics": "t", "brokers": [1, 2, 3]},
        {"topics": "t", "not_brokers": [3]},
        {"topics": "x.*", "spread_evenly": True},
    ]
    made = planned(tmp_path, "--topic-rule", "t max-per-broker=12", settings=RULED.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
    assert {b for m in made["moves"] for b in m["new"]} <= {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "says nothing"),
        ("t", "says nothing"),
        ("t colour=red", "says 'colour=red', which is no rule"),
        ("t brokers=a", "gives brokers no value"),
        ("t brokers=", "gives brokers no value"),
        ("t spread-evenly=yes", "gives spread-evenly no value"),
        ("t max-per-broker=1 max-per-broker=2", "says max-per-broker twice"),
        ("( ignore-racks", "is not a regular expression"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(text: str, sentence: str) -> None:
    """One sentence that names the place, and what can be said."""
    with pytest.raises(UsageError, match=re.escape(sentence)) as refused:
        rule_of(text)
    assert refused.value.hint


def test_every_kind_of_rule_can_be_said() -> None:
    """Fields by their names, with dashes."""
    assert rule_of("gpu-.* brokers=1,2 leader-brokers=1 leader-racks=a,b max-per-broker=3 ignore-racks") == TopicRule(
        topics="gpu-.*",
        brokers=frozenset({1, 2}),
        leader_brokers=frozenset({1}),
        leader_racks=frozenset({"a", "b"}),
        max_per_broker=3,
        ignore_racks=True,
    )


def test_pinned_topics_of_the_settings_stay(tmp_path: Path) -> None:
    """The only topic is pinned, so nothing moves."""
    made = planned(tmp_path, settings=SETTINGS.replace("held.*", "t"))
    assert made["moves"] == []


def test_a_file_for_kafkas_tool_holds_moves_that_fit_all_at_once(tmp_path: Path) -> None:
    """That tool starts every move of its file together: what is asked for says so, and only then."""
    saved = tmp_path / "plan.json"
    for words, at_once in (((), False), (("--format", "kafka"), True)):
        planned(tmp_path, "--save", str(saved), *words)
        made = json.loads(saved.read_text())
        assert (made["request"]["policy"].get("at_once", False), made["inOrder"]) == (at_once, False)
