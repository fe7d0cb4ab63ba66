"""Counts the small changes of the code ("mutants") that unit tests do not notice, and prints them.

``python tools/mutants.py executor/machine/step executor/journal/ledger`` tries them with the unit tests of the executor, the throttles and the
guards; ``python tools/mutants.py core/leadership/skew --tests tests/unit/core/leadership`` with those that are named.  It needs mutmut, which is no dependency of ours (``pip install
mutmut==3.8.1`` into the environment, or into a folder that ``PYTHONPATH`` names).  Mutmut wants the package in ``src``, so it
works on a copy in ``build/mutants``; there ``python -m mutmut run NAME…`` tries some of them again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
COPY: Final = ROOT / "build" / "mutants"
LEFT_OUT: Final = shutil.ignore_patterns(".*", "__pycache__", "build", "operator")
WORDS: Final = {0: "survived", 1: "killed", 3: "killed", 5: "not run by any test", 33: "not run by any test"}
"""By pytest's exit code, of which mutmut keeps one for each mutant; others are time-outs and crashes, which tests notice."""
NO_TESTS: Final = ("stream", "ten_thousand_moves")
"""Of the executor's tests, those that take seconds."""


def executor_tests() -> list[str]:
    """The unit tests of what executes plans."""
    units = ROOT / "tests" / "unit"
    return [
        str(path.relative_to(ROOT))
        for path in (
            *sorted((units / "executor").rglob("test_*.py")),
            *sorted((units / "core" / "guards").glob("test_*.py")),
            *sorted((units / "core" / "throttles").glob("test_*.py")),
            units / "core" / "cluster" / "test_min_isr.py",
            units / "cli" / "commands" / "throttles" / "test_by_hand.py",
        )
        if path.stem.removeprefix("test_") not in NO_TESTS
    ]


def copy(modules: Iterable[str], tests: list[str]) -> None:
    """The tree as mutmut wants it, with the present state of the code and its tests."""
    config = COPY / "pyproject.toml"
    before = config.read_text() if config.exists() else ""
    shutil.copytree(ROOT, COPY, ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.copytree(ROOT / "operator", COPY / "src", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    if not (COPY / "operator").is_symlink():
        (COPY / "operator").symlink_to("src")
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/ballast/{module}.py" for module in modules],
        "also_copy": ["docs", "bench", "bootstrap", "locks", "helm", "deploy", "tools"],
        "pytest_add_cli_args": ["-q", "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": tests,
    }
    project = (
        (ROOT / "pyproject.toml").read_text().replace('pythonpath = ["operator", "."]', 'pythonpath = ["src", "."]')
    )
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    text = f"{project}\n[tool.mutmut]\n{lines}\n"
    if text != before:
        # Mutmut does not change a file that it has copied unchanged for other modules.
        shutil.rmtree(COPY / "mutants", ignore_errors=True)
    config.write_text(text)


def exit_codes(module: str) -> dict[str, int | None]:
    """What became of each mutant of a module so far; None for those not tried yet."""
    meta = COPY / "mutants" / "src" / "ballast" / f"{module}.py.meta"
    return dict(json.loads(meta.read_text())["exit_code_by_key"]) if meta.exists() else {}


def survivors(modules: Iterable[str]) -> list[str]:
    """The mutants that no test has noticed so far."""
    return [name for module in modules for name, code in exit_codes(module).items() if code == 0]


def report(modules: Iterable[str]) -> str:
    """The survivors as differences, and a line of counts for each module."""
    lines = [_mutmut("show", name, capture_output=True, text=True).stdout for name in survivors(modules)]
    for module in modules:
        codes = exit_codes(module).values()
        found = Counter("not tried" if code is None else WORDS.get(code, "killed") for code in codes)
        lines.append(f"{module}: " + ", ".join(f"{number} {word}" for word, number in sorted(found.items())))
    return "\n".join(lines)


def _mutmut(*arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=COPY, check=False, **how)  # type: ignore[call-overload, no-any-return]


def main() -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", help="such as executor/machine/step")
    parser.add_argument(
        "--tests", nargs="+", help="files or folders; the executor's, throttles' and guards' unit tests otherwise"
    )
    parser.add_argument("--minutes", type=float, default=60, help="end the run after so long")
    parser.add_argument("--processes", default="2")
    asked = parser.parse_args()
    copy(asked.modules, asked.tests or executor_tests())
    try:
        _mutmut("run", "--max-children", asked.processes, timeout=asked.minutes * 60)
    except subprocess.TimeoutExpired:
        print("The time is up.")
    print(report(asked.modules))


if __name__ == "__main__":
    main()
