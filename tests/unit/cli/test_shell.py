"""What a shell is given: completion of commands, and manual pages."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ballast.cli.commands.completion import SHELLS
from ballast.cli.commands.man import commands, page, roff
from ballast.cli.main import cli

ALL = list(commands(click.Context(cli, info_name="ballast")))


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_completes_commands(shell: str) -> None:
    """It calls Ballast back by the variable that click listens to."""
    result = CliRunner().invoke(cli, ["completion", shell], prog_name="ballast")
    assert result.exit_code == 0
    assert f"_BALLAST_COMPLETE={shell}_complete" in result.output


def test_bash_completes_a_command() -> None:
    """As bash asks: the words so far, and which of them the cursor stands on."""
    environment = {"_BALLAST_COMPLETE": "bash_complete", "COMP_WORDS": "ballast plan dec", "COMP_CWORD": "2"}
    result = CliRunner().invoke(cli, [], env=environment, prog_name="ballast")
    assert result.output.split() == ["plain,decommission"]


def test_another_shell_is_refused_with_those_that_there_are() -> None:
    """By click itself."""
    result = CliRunner().invoke(cli, ["completion", "csh"], prog_name="ballast")
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.output


def test_every_command_has_a_page_with_all_of_its_options(tmp_path: Path) -> None:
    """From the texts of its help."""
    result = CliRunner().invoke(cli, ["man", "--folder", str(tmp_path / "man1")], prog_name="ballast")
    assert result.exit_code == 0, result.output
    assert {p.name for p in (tmp_path / "man1").iterdir()} == {f"{c.command_path.replace(' ', '-')}.1" for c in ALL}
    assert (tmp_path / "man1" / "ballast-plan-decommission.1").exists()
    for ctx in ALL:
        text = page(ctx)
        shown = [p for p in ctx.command.get_params(ctx) if isinstance(p, click.Option) and not p.hidden]
        missing = [o.opts[0] for o in shown if roff(o.opts[0]) not in text]
        assert not missing, ctx.command_path


def test_a_folder_that_takes_nothing_is_a_sentence(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "file").touch()
    result = CliRunner().invoke(cli, ["man", "--folder", str(tmp_path / "file" / "man1")], prog_name="ballast")
    assert "cannot be written" in str(result.exception)


def test_text_is_never_taken_for_a_request() -> None:
    """Nor a backslash for an escape, nor a hyphen for a soft one."""
    assert roff(".nf") == r"\&.nf"
    assert roff(r"a\b --minimize") == r"a\eb \-\-minimize"


@pytest.mark.parametrize(
    ("words", "meant"), [(["topics", "lst"], "list"), (["statu"], "status"), (["runs", "shwo"], "show")]
)
def test_a_mistyped_command_is_answered_with_the_likeliest(words: list[str], meant: str) -> None:
    """Of a group whose commands are imported late, too."""
    result = CliRunner().invoke(cli, words, prog_name="ballast")
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.output
