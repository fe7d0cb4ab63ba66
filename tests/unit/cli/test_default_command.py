"""``ballast runs`` and ``ballast throttles`` without a word more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ballast.cli.commands.runs import runs
from ballast.cli.commands.throttles.command import throttles
from ballast.cli.main import cli


@pytest.mark.parametrize("words", [[], ["list"]])
def test_a_bare_group_lists(words: list[str], tmp_path: Path) -> None:
    """Nothing is named: it lists, with the options that came right after the name, and shows no help."""
    own = tmp_path / "journal"
    listed = CliRunner().invoke(
        runs, [*words, "--journal", f"file:{own}", "--output", "json", "--bootstrap-server", "127.0.0.1:1"]
    )
    assert json.loads(listed.output) == {
        "apiVersion": "ballast/v1",
        "kind": "Runs",
        "holder": None,
        "runs": [],
        "skipped": [],
    }


@pytest.mark.parametrize("group", [runs, throttles])
def test_help_is_the_groups(group: object) -> None:
    """``--help`` right after the name tells of every command."""
    shown = CliRunner().invoke(group, ["--help"])  # type: ignore[arg-type]
    assert shown.exit_code == 0
    assert "list" in shown.output
    assert "Commands:" in shown.output


@pytest.mark.parametrize(
    "name", ["config", "drains", "fleet", "pipeline", "plan", "runs", "sandbox", "throttles", "topics"]
)
def test_the_overview_of_a_group_cuts_no_sentence(name: str) -> None:
    """A user who looks for a command reads the whole of what each does."""
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0
    assert "..." not in shown.output.partition("Commands:")[2]


def test_options_of_the_clean_up_need_it() -> None:
    """``--brokers`` without ``--clean`` would look as if it narrowed the list."""
    refused = CliRunner().invoke(throttles, ["--brokers", "1"])
    assert refused.exit_code == 2
    assert "--clean" in refused.output


def test_a_mistyped_command_is_answered_with_the_likeliest() -> None:
    """At the top, where commands are imported when they are called, as in every group."""
    refused = CliRunner().invoke(cli, ["statsu"])
    assert refused.exit_code == 2
    assert "'status'" in refused.output
