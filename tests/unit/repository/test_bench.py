"""``make bench`` runs every measurement to its end."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from bench.__main__ import MAKES_INPUT, measurements, run

ROOT = Path(__file__).resolve().parents[3]


class Parsed(Exception):
    """The command line was accepted."""


@pytest.mark.parametrize("name", [file.stem for file in measurements()])
def test_each_measurement_needs_no_argument(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It parses an empty command line before anything else; one with a required argument belongs to those that make input."""
    parse = argparse.ArgumentParser.parse_args

    def parsed(self: argparse.ArgumentParser, *given: Any, **options: Any) -> NoReturn:
        parse(self, *given, **options)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(Parsed):
        importlib.import_module(f"bench.{name}").main()


def test_what_makes_input_for_others_is_no_measurement() -> None:
    """They are commands of this folder, and ``make bench`` runs the rest."""
    names = {file.stem for file in measurements()}
    assert {"planner", "first_plan", "growth"} <= names
    assert not names & (MAKES_INPUT | {"__main__"})
    assert [name for name in MAKES_INPUT if not (ROOT / "bench" / f"{name}.py").is_file()] == []
    assert "$(BIN)/python -m bench\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_a_measurement_over_its_limit_does_not_end_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The rest is measured, the failed one is named, and the exit code says that there was one."""
    over, fine = tmp_path / "over.py", tmp_path / "fine.py"
    over.write_text("raise SystemExit(1)")
    fine.write_text("print('measured')")
    assert run([over, fine]) == 1
    told = capfd.readouterr()
    assert "measured" in told.out
    assert "over.py" in told.err
    assert "fine.py" not in told.err
    assert run([fine]) == 0
