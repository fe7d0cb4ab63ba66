"""What the command line draws with."""

from __future__ import annotations

import pytest

from ballast.cli.tables import console


def test_a_name_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Words between colons in a rack or a path are no pictures."""
    console().print("rack :x:")
    assert capsys.readouterr().out == "rack :x:\n"
