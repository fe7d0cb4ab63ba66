"""Every program that tests start is in the one table, from which the set-up installs and by which tests are left out."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from bootstrap import programs
from bootstrap.programs import TABLE, Outside, known
from tests.leash import leashed
from tests.programs_started import PYTHON, objection, started
from tests.requirements import NEEDS

ROOT: Final = Path(__file__).resolve().parents[3]
LISTS: Final = frozenset({"run", "Popen", "check_output", "check_call", "call"})
"""Functions of ``subprocess``, whose first argument is a command line."""
WORDS: Final = frozenset({"leashed", "which", "path_of"})
"""Functions whose first argument is the program."""
MAINTAINERS: Final = {
    "apt-config": "its network settings go into the pristine root of `make fresh`",
    "apt-get": "installs what the table names, on Debian and Ubuntu alone",
    "c++": "looked for first; without it numba compiles the planner at its first plan",
    "cc": "looked for first; without it numba compiles the planner at its first plan",
    "git": "lists the files for `make fresh`; without it no commit subject is judged",
    "mmdebstrap": "builds the root of `make fresh`, which names it where it is missing",
    "systemctl": "looked for first; keeps what was installed for tests from starting at the next boot",
    "unshare": "gives `make fresh` namespaces of its own, and is named where it is missing",
}
"""Programs outside the table that a set-up or a maintainer's tool starts, and why a fresh machine can do without each."""


def named(tree: ast.AST) -> Iterator[str]:
    """The program names that stand in the calls of a module, also by a variable of the same function."""
    for scope in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))]:
        commands = {
            target.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and node.args:
                yield from _program(node.func, node.args[0], commands)


def _program(function: ast.expr, first: ast.expr, commands: dict[str, ast.expr]) -> Iterator[str]:
    if isinstance(first, ast.Name):
        first = commands.get(first.id, first)
    if isinstance(function, ast.Attribute) and function.attr in LISTS and ast.unparse(function.value) == "subprocess":
        yield from _heads(first, commands)
        return
    if (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) not in WORDS:
        return
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield Path(first.value).name


def _heads(line: ast.expr, commands: dict[str, ast.expr]) -> Iterator[str]:
    """The program of a command line: of either one where a condition chooses, and of the one that it goes on from."""
    if isinstance(line, ast.Name) and line.id in commands:
        yield from _heads(commands[line.id], {name: of for name, of in commands.items() if name != line.id})
    elif isinstance(line, ast.IfExp):
        yield from _heads(line.body, commands)
        yield from _heads(line.orelse, commands)
    elif isinstance(line, ast.Starred):
        yield from _heads(line.value, commands)
    elif isinstance(line, ast.List | ast.Tuple) and line.elts:
        yield from _heads(line.elts[0], commands)
    elif isinstance(line, ast.Constant) and isinstance(line.value, str):
        yield Path(line.value).name


def started_in(*folders: str) -> dict[str, str]:
    """Each program that modules of these folders name, with a module that does."""
    found: dict[str, str] = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text()
        if path != Path(__file__) and re.search(r"subprocess|leashed|which|path_of", text):
            for name in named(ast.parse(text)):
                found.setdefault(name, str(path.relative_to(ROOT)))
    return found


def test_no_module_names_a_program_that_is_not_in_the_table() -> None:
    """A program that is only on the author's machine makes a fresh one fail."""
    found = started_in("tests", "operator", "bench")
    assert {"docker", "dockerd", "openssl", "promtool"} <= set(found), "the search itself has gone blind"
    assert {name: path for name, path in found.items() if name not in known() and not PYTHON.fullmatch(name)} == {}


def test_what_set_up_and_maintainers_tools_start_is_in_the_table_or_explained() -> None:
    """And no explanation outlives the call that it is for."""
    found = started_in("tools", "deploy", "bootstrap")
    assert {name: path for name, path in found.items() if name not in known() | MAINTAINERS.keys()} == {}
    assert MAINTAINERS.keys() <= found.keys()


@pytest.mark.parametrize(
    ("source", "programs"),
    [
        ("subprocess.run(['jq', '.'])", {"jq"}),
        ("line = ['jq', '.']\nsubprocess.run([*line, '-'] if late else ('sed', 'p'))", {"jq", "sed"}),
        ("subprocess.Popen(leashed('/opt/jq', '.'))", {"jq"}),
        ("subprocess.run([sys.executable, 'jq'])\nself.run(['jq'])", set()),
    ],
)
def test_the_search_finds_the_program_of_a_command_line(source: str, programs: set[str]) -> None:
    """Also where it stands in a variable, is chosen by a condition, or goes on from another line."""
    assert set(named(ast.parse(source))) == programs


@pytest.mark.parametrize("outside", TABLE, ids=lambda outside: outside.name)
def test_every_row_belongs_to_a_marker_that_looks_for_it(outside: Outside) -> None:
    """A row that no marker asks for would be installed and never missed."""
    assert outside.marker in NEEDS


def test_what_is_missing_is_told_by_program_and_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library counts like a program, and the packages are named once."""
    monkeypatch.setenv("PATH", str(tmp_path))
    nowhere = replace(next(o for o in TABLE if o.name == "libatomic.so.1"), name="libnowhere.so.7")
    monkeypatch.setattr(programs, "TABLE", (*(o for o in TABLE if o.package != nowhere.package), nowhere))
    monkeypatch.setattr(programs, "DAEMONS", str(tmp_path))
    assert [outside.name for outside in programs.missing("chromium")] == ["chromium", "libnowhere.so.7"]
    (tmp_path / "google-chrome").touch(mode=0o755)
    assert [outside.name for outside in programs.missing("chromium")] == ["libnowhere.so.7"]
    assert programs.path_of("chromium") == str(tmp_path / "google-chrome")
    with pytest.raises(FileNotFoundError, match="apt-get install openssl"):
        programs.path_of("openssl")


def test_a_library_is_there_or_not() -> None:
    """The loader itself is asked."""
    there = Outside("libc.so.6", "libc6", "chromium", "")
    assert there.find() == "libc.so.6"
    assert Outside("libnowhere.so.7", "libnowhere7", "chromium", "").find() is None


@pytest.mark.parametrize(
    ("words", "markers", "refused"),
    [
        (["jq", "."], set(), True),
        (["/usr/bin/jq", "."], set(), True),
        (leashed("jq", "."), set(), True),
        (["promtool", "check"], set(), True),
        (["promtool", "check"], {"prometheus"}, False),
        (["/usr/lib/jvm/java-17/bin/java", "-version"], set(), False),
        (["/tmp/somewhere/made-by-the-test"], set(), False),  # noqa: S108 — only a name
        (["sh", "-c", "exit 7"], set(), False),
        ([sys.executable, "-V"], set(), False),
        (["/usr/bin/python3.11", "-V"], set(), False),
        (["python3", "-V"], set(), False),
        (["python", "-V"], set(), True),
        (["python3-config", "--includes"], set(), True),
        (["python3-config", "--includes"], {"containers"}, False),
        (["/usr/bin/python-argcomplete-check-easy-install-script"], set(), True),
    ],
)
def test_a_test_may_start_what_its_markers_promise(words: list[str], markers: set[str], *, refused: bool) -> None:
    """Anything else ends the test with the sentence that says what to do."""
    assert (objection(words, frozenset(markers)) is not None) is refused


def test_this_suite_is_watched() -> None:
    """The watch is on while tests run, and sees through the leash."""
    import subprocess

    from tests.programs_started import UnlistedProgram

    command: Any = ["no-such-program-anywhere"]
    with pytest.raises(UnlistedProgram):
        subprocess.run(command, check=False)
    assert started(leashed("touch", "x")) == "touch"
