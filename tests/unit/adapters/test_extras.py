"""What to type where an extra is not installed: for this environment, and no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ballast.adapters import extras
from ballast.errors import UsageError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without the extras, with a pip of its own."""
    environment = tmp_path / ".venv"
    environment.mkdir()
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.setattr(sys, "executable", str(environment / "bin" / "python"))
    monkeypatch.setattr(extras, "find_spec", lambda name: name if name == "pip" else None)
    return environment


def test_the_line_is_that_of_the_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own pip; pipx where pipx made it; the checkout's set-up in a checkout; uv where there is no pip."""
    python = home / "bin" / "python"
    assert extras.install_line("history") == f"{python} -m pip install 'kafka-ballast[history]'"
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    assert extras.install_line("spark") == f"uv pip install 'kafka-ballast[spark]' --python {python}"
    (home.parent / "bootstrap").mkdir()
    (home.parent / "bootstrap" / "__main__.py").touch()
    assert extras.install_line("spark") == "make setup"
    (home / "pipx_metadata.json").touch()
    assert extras.install_line("history") == "pipx inject kafka-ballast 'kafka-ballast[history]'"


def test_what_lacks_an_extra_says_the_line(home: Path) -> None:
    """As the hint, which the command prints below the sentence."""
    with pytest.raises(UsageError) as refusal:
        extras.require("history", "Recording samples")
    assert str(home) in (refusal.value.hint or "")
