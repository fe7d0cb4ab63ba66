"""What a command costs before it does anything: the libraries and the packages that it loads."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.planner import Loads
from ballast.core.snapshot.file import Snapshot, dumps

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


RUN = """
import sys
from ballast.cli.main import main
try:
    main()
finally:
    print("loaded:", *sys.modules)
"""
DAEMON = {
    "ballast.daemon",
    "ballast.daemon.policy",
}
"""What a command may load of the daemon: its policies are settings."""
UNUSED = (
    "kazoo", "pydantic", "prometheus_client", "starlette", "uvicorn", "yaml", "cronsim", "rich._emoji_codes",
    "ballast.executor.driver.driver", "ballast.sim",
)  # fmt: skip
"""What neither a status nor a plan needs, where no ZooKeeper, no settings file and no JSON is asked for."""


def loaded_by(*command: str) -> set[str]:
    """Every module that a process of this command has loaded when it ends."""
    done = subprocess.run([sys.executable, "-c", RUN, *command], capture_output=True, text=True, check=False)
    return set(done.stdout.rpartition("loaded:")[2].split())


def unneeded(loaded: set[str]) -> list[str]:
    """Of these, what costs time and is not used."""
    return [m for m in UNUSED if m in loaded] + sorted(m for m in loaded - DAEMON if m.startswith("ballast.daemon"))


def test_a_status_loads_what_it_reads_with() -> None:
    """The clients, and nothing of ZooKeeper, of the daemon or of runs, nor what reads records before there is one."""
    loaded = loaded_by("status", "--bootstrap-server", "127.0.0.1:1", "--timeout", "0.1")
    assert "pydantic_core" not in loaded
    assert {"ballast.core.status", "ballast.app.journal_reading", "confluent_kafka"} <= loaded
    assert unneeded(loaded) == []


def test_a_plan_from_a_file_loads_no_client(tmp_path: Path) -> None:
    """From the command to the table, of a cluster that has to be balanced."""
    rows = [PartitionRow("t", p, p % 2, (p % 2, 2), (p % 2, 2), sizes=(1 << 30,) * 2) for p in range(60)]
    state = build("c", tuple(Broker(i, host="h") for i in range(4)), (Topic("t"),), rows)
    file = tmp_path / "cluster.json"
    file.write_text(dumps(Snapshot(state, Loads.from_state(state))), encoding="utf-8")
    loaded = loaded_by("plan", "balance", "--no-prove", "--snapshot", str(file))
    assert "ballast.core.planner.search.find" in loaded
    # Where no library of the compiled loops was built numba runs them, and looks for a settings file of its own.
    assert unneeded(loaded - {"yaml"} if "numba" in loaded else loaded) == []
    assert not loaded & {"kafka", "confluent_kafka", "ballast.wiring.cluster"}
