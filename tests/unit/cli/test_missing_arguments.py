"""A command without its RUN or PLAN says where to find one."""

from __future__ import annotations

import pytest

from ballast.cli.main import main
from ballast.cli.registry import ARGUMENTS


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["rollback"], "RUN"),
        (["runs", "show"], "RUN"),
        (["apply"], "PLAN"),
        (["apply", "no-such-file"], "PLAN"),
        (["verify"], "PLAN|RUN"),
    ],
)
def test_a_missing_argument_comes_with_its_hint(
    words: list[str], argument: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the line after the mistake, as for every other usage error."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"  → {ARGUMENTS[argument]}"


def test_another_mistake_gets_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """An option that there is not has nothing to do with runs."""
    with pytest.raises(SystemExit):
        main(["rollback", "--no-such-option"])
    assert "→" not in capsys.readouterr().err
