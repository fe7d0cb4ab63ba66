"""The library of compiled loops: which source it is for, and what it may be called with."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from ballast.core import compiled

CORE = Path(compiled.__file__).parent
DEPLOY = str(CORE.parents[2] / "deploy")


def imported(module: str) -> set[str]:
    """What a module of the core imports from the core."""
    tree = ast.parse((CORE / f"{module.replace('.', '/')}.py").read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name.removeprefix("ballast.core.") for name in names if name.startswith("ballast.core.")}


def test_the_digest_covers_every_loop_and_the_constants_that_it_takes() -> None:
    """Otherwise a library of another version would be loaded."""
    loops = {
        str(path.relative_to(CORE).with_suffix("")).replace("/", ".")
        for path in CORE.rglob("*.py")
        if "@kernel" in path.read_text()
    }
    taken = set().union(*map(imported, loops)) - {"cluster", "compiled"}
    assert loops | taken == set(compiled.SOURCES)


def test_another_source_has_another_library(tmp_path: Path) -> None:
    """One changed constant is enough."""
    for source in compiled.SOURCES:
        path = tmp_path / f"{source.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((CORE / path.relative_to(tmp_path)).read_bytes())
    now = compiled.library_path()
    assert compiled.library_path(tmp_path) == now
    with (tmp_path / "planner" / "problem" / "problem.py").open("a") as file:
        file.write("LOWER = 7\n")
    assert compiled.library_path(tmp_path) != now


NUMBERS = np.zeros((2, 2), np.int64)
PLANS = """
import sys
sys.path.insert(0, sys.argv[2])
from ballast.core import compiled
if sys.argv[1] == "numba":
    compiled.library = lambda: None
from small_clusters import plans
from ballast.core.planner import plan
from ballast.core.what_if import digest
for state, intent in plans():
    print(type(intent).__name__, digest(plan(state, intent)))
print("numba" in sys.modules, file=sys.stderr)
"""


COMPILER_TRIED = """
import sys
sys.path.insert(0, sys.argv[1])
import library
from numba.pycc.platform import external_compiler_works
external_compiler_works()
"""


class Named(NamedTuple):
    """What a loop takes by name."""

    values: Any
    most: int


def twice(a: int) -> int:
    """A loop's part."""
    return 2 * a


def total(values: Any) -> int:
    """A loop."""
    out = 0
    for v in values:
        out += twice(v)
    return out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((NUMBERS, 1, np.int64(2)), "a7d2ii"),
        (((NUMBERS[0], np.zeros(1, np.bool_)), True, np.bool_(1)), "Ta7d1a0d1Ebb"),
        ((Named(NUMBERS, 1), 2), "Ta7d2iEi"),
        ((NUMBERS.astype(np.int32), NUMBERS.astype(np.int8)), "a5d2a1d2"),
        ((NUMBERS[:, 0],), "strided"),
        ((1.0,), "other"),
    ],
)
def test_a_call_is_described_by_its_types(arguments: tuple[Any, ...], said: str) -> None:
    """Types that numba would compile apart are told apart, and memory that is not in one piece is not passed for such."""
    assert compiled.describe(arguments) == said


def test_building_the_library_leaves_nothing_in_the_folder_for_temporary_files(tmp_path: Path) -> None:
    """Neither the program that numba tries the compiler with nor its cache."""
    script = [sys.executable, "-c", COMPILER_TRIED, DEPLOY]
    subprocess.run(script, env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, timeout=120)
    assert list(tmp_path.iterdir()) == []


def test_what_the_library_was_not_built_for_is_compiled_by_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library checks nothing itself: other types never reach it, neither in a loop nor in one that it calls."""
    name = compiled.symbol(__name__, "total", "a7d1")
    monkeypatch.setattr(compiled, "library", lambda: SimpleNamespace(**{name: lambda _: "the library"}))
    monkeypatch.setitem(globals(), "twice", compiled.kernel(twice))
    call = compiled.kernel(total)
    assert call(NUMBERS[0]) == "the library"
    assert call(np.array([1, 2, 3], np.int32)) == 12
    assert call(np.arange(6)[::2]) == 12


def test_without_numba_python_runs_what_the_library_was_not_built_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the images: the same integers, and a warning that they took long."""
    name = compiled.symbol(__name__, "twice", "i")
    monkeypatch.setattr(compiled, "library", lambda: SimpleNamespace(**{name: lambda a: 2 * a}))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setitem(globals(), "twice", compiled.kernel(twice))
    with pytest.warns(UserWarning, match="total"):
        assert compiled.kernel(total)(np.arange(6)[::2]) == 12


@pytest.mark.slow
def test_both_ways_make_the_same_plans() -> None:
    """Move by move, for every intent."""
    ran = [
        subprocess.run([sys.executable, "-c", PLANS, way, DEPLOY], capture_output=True, text=True, check=True)
        for way in ("as it is", "numba")
    ]
    assert len(ran[0].stdout.splitlines()) > 20
    assert ran[0].stdout == ran[1].stdout
    # Where there is a library, it has every loop for every type that is passed to it.
    assert ran[0].stderr.strip() == str(compiled.library() is None)


def test_without_a_library_numba_compiles(tmp_path: Path) -> None:
    """As in an installation from the package index."""
    program = "import sys; sys.prefix = sys.argv[1]; from ballast.core.leadership import reorder; print('numba' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "True"
