"""How a process ends: with its own code, its output whole and its threads waited for, whatever Arrow's threads still do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

END = """
import atexit, sys, threading, time
from ballast.cli.process_end import run_to_its_end
atexit.register(print, "taken down")

def command():
    {imports}
    atexit.register(print, "heard of the end")
    threading.Thread(target=lambda: (time.sleep(0.2), print("another thread"))).start()
    print("done")
    {end}

run_to_its_end(command)
"""
READ = """
import sys
from ballast.cli.process_end import run_to_its_end

def command():
    from deltalake import DeltaTable
    DeltaTable(sys.argv[1]).to_pyarrow_table(columns=["a"])

run_to_its_end(command)
"""


def python(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(("end", "code"), [("sys.exit(6)", 6), ("sys.exit()", 0), ("pass", 0), ("1 / 0", 1)])
def test_the_code_and_every_line_come_out_where_arrow_was_used(end: str, code: int) -> None:
    """All that is done before the interpreter is taken down was done; it itself is not."""
    done = python(END.format(imports="import pyarrow", end=end))
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines() == ["done", "another thread", "heard of the end"]
    assert ("ZeroDivisionError" in done.stderr) == (code == 1)


def test_a_process_without_arrow_ends_as_any_other() -> None:
    """Nothing is left out there."""
    done = python(END.format(imports="pass", end="sys.exit(6)"))
    assert done.returncode == 6
    assert done.stdout.splitlines()[-1] == "taken down"


@pytest.mark.slow
def test_a_process_that_ends_right_after_a_read_is_not_aborted(tmp_path: Path) -> None:
    """Without this end about one in four of these processes was, on two busy cores."""
    for part in range(6):
        rows = pa.table({"a": list(range(50_000)), "part": [part] * 50_000})
        write_deltalake(tmp_path / "table", rows, partition_by=["part"], mode="append")
    for _ in range(6):
        done = python(READ, str(tmp_path / "table"))
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("say", ["click.echo('a line')", "rich.print('a line', flush=True)"])
def test_a_reader_that_has_seen_enough_is_no_bug(say: str) -> None:
    """``ballast … | head``: nothing is said, and the code is not the one of a bug, whatever wrote the line."""
    text = f"""
import click, rich
from ballast.cli import main
@main.cli.command()
def shout():
    {say}
main.LazyGroup.get_command = lambda self, context, name: shout
main.main(["shout"])
"""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        words = [sys.executable, "-c", text]
        done = subprocess.run(words, stdout=closed, stderr=subprocess.PIPE, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
