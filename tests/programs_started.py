"""Watches which programs tests start: one that is not in ``bootstrap.programs`` fails the test that starts it.

So does one of the table whose marker the test lacks: on a machine without it the test would fail instead of being left out.
What a test makes itself, or what Python's environments and the cache hold, may be started freely.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from bootstrap.programs import TABLE, known

SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/opt/", "/snap/")
"""Where programs from outside lie."""
OWN: Final = (f"{Path(__file__).parents[1]}/", f"{Path.home() / '.cache'}/")
"""Where our own lie, also for a checkout in /opt."""
ALWAYS_MET: Final = frozenset({"java"})
"""What is brought as a wheel where the machine has none."""
PYTHON: Final = re.compile(r"python3(\.\d+)?")
"""Debian's names of the interpreter, which everything here needs; it has no ``python``, and ``python3-config`` is a package."""
MARKERS: Final = {name: outside.marker for outside in TABLE for name in (outside.name, *outside.also)}
RUNNING: Final[list[pytest.Item]] = []


class UnlistedProgram(AssertionError):
    """A test starts a program that its machine need not have."""


def objection(words: Sequence[str], markers: frozenset[str]) -> str | None:
    """What speaks against a test of these markers starting this command line; None when nothing does."""
    program = started(words)
    name = Path(program).name
    own = program == sys.executable or program.startswith(OWN) or ("/" in program and not program.startswith(SYSTEM))
    if own or PYTHON.fullmatch(name):
        return None
    if name not in known():
        return f"{program} is not in bootstrap/programs.py; a fresh machine may not have it"
    if name not in ALWAYS_MET and name in MARKERS and MARKERS[name] not in markers:
        return f"{program} needs the marker {MARKERS[name]!r}, which this test lacks"
    return None


def started(words: Sequence[str]) -> str:
    """The program of a command line; of a leashed one, what it becomes."""
    if len(words) > 4 and Path(words[2]).name == "leash.py":
        return words[4]
    return words[0]


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen" or not RUNNING:
        return
    executable, words, *_ = arguments
    line = [words] if isinstance(words, str | bytes) else list(words) or [executable]
    texts = [word.decode() if isinstance(word, bytes) else str(word) for word in line]
    if told := objection(texts, frozenset(mark.name for mark in RUNNING[-1].iter_markers())):
        raise UnlistedProgram(told)


def pytest_configure() -> None:
    """Listen from now on; the interpreter has no way to stop."""
    sys.addaudithook(_watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Know whose command it is."""
    RUNNING.append(item)
    try:
        return (yield)
    finally:
        RUNNING.pop()
