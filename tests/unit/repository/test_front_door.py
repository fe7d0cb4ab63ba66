"""What the command costs before it does anything: the time and the libraries that ``ballast --help`` loads."""

from __future__ import annotations

import resource
import subprocess
import sys

HEAVY = (
    "confluent_kafka", "kafka", "kazoo", "pyspark", "numpy", "pyarrow", "numba", "highspy", "deltalake", "pydantic",
    "prometheus_client", "starlette", "uvicorn", "rich", "tenacity", "yaml",
)  # fmt: skip


def test_the_command_line_loads_nothing_heavy() -> None:
    """Importing ``ballast.cli.main`` brings click and the table of commands, and none of what commands will need."""
    ask = f"import sys, ballast.cli.main; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []


def test_help_answers_at_once() -> None:
    """Under half a second of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "ballast", "--help"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Keep a live Kafka cluster balanced" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_importing_the_sandbox_loads_no_client() -> None:
    """Every command asks for the running sandbox, so finding it must cost nothing."""
    ask = f"import sys, ballast.sandbox; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == []
