"""What the command line draws with."""

from __future__ import annotations

import pytest

from ballast.cli.tables import console, human_moment


def test_a_name_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Words between colons in a rack or a path are no pictures."""
    console().print("rack :x:")
    assert capsys.readouterr().out == "rack :x:\n"


def test_a_moment_is_said_in_utc() -> None:
    """Its reader may be anywhere."""
    assert human_moment(1_795_262_400_000) == "2026-11-21 12:00:00 UTC"
