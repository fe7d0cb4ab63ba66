"""A sampler that is killed anywhere neither loses nor doubles a minute that it said it recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from deltalake import DeltaTable
from tests.leash import leashed
from tests.spark import kill_rounds
from tests.spark.series import START_MS, Log, World

from ballast.adapters.samples.store import SampleStore, table_url

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 30
AT_MOST = 3
"""Minutes that a writer tells before it is killed; the next one begins with one that is recorded."""
ENDLESS = 100_000
"""Minutes of a writer that is to be killed: however late that comes, it is still writing."""
LATEST_S = 0.03
"""A commit takes ten milliseconds or more: a kill comes somewhere within the write after a minute that was told."""
CHILD = """
import os, sys
from ballast.adapters.samples.store import SampleStore
from tests.spark.series import START_MS, Log, World
world = World({("t", n): Log() for n in range(20)})

def write(first, end):
    store = SampleStore(sys.argv[1])
    for minute in range(first, end):
        store.write(world.sample(minute))
        print(minute, flush=True)

if len(sys.argv) == 3:
    write(0, int(sys.argv[2]))
else:
    # A writer for each line that comes in.  What takes long, importing, was done once; what a writer opens is its own.
    for line in sys.stdin:
        if (writer := os.fork()) == 0:
            write(*map(int, line.split()))
            os._exit(0)
        print("pid", writer, flush=True)
        os.waitpid(writer, 0)
        print("end", flush=True)
"""


def minutes_in(store: str, table: str = "samples") -> Counter[tuple[int, str, int]]:
    """How often each row of each minute since the start is there."""
    found = DeltaTable(table_url(store, table)).to_pyarrow_table().to_pylist()
    key = ("topic", "partition") if table == "samples" else ("path", "broker")
    return Counter((int(r["time"].timestamp() * 1000 - START_MS) // 60_000, r[key[0]], r[key[1]]) for r in found)


def test_killed_writers_leave_every_minute_exactly_once(tmp_path: Path) -> None:
    """Dozens of writers, each killed somewhere, each begun anew a little before that; the last one is left to finish."""
    kill_writers(str(tmp_path / "store"), kill_rounds.rounds(ROUNDS), LATEST_S)


def kill_writers(store: str, kills: int, latest_s: float) -> None:
    """Kill so many writers, each at most so long after a minute that it told, and look at what the tables have."""
    dice = kill_rounds.dice(4)
    said: set[int] = set()
    killed = 0
    command = leashed(sys.executable, "-c", CHILD, store, "many", "writers")
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
    ) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        for round_ in range(kills + 1):
            first = max(said, default=0)
            writers.stdin.write(f"{first} {first + (ENDLESS if round_ < kills else AT_MOST)}\n")
            writers.stdin.flush()
            patience, told, pid = dice.randint(0, AT_MOST), -1, 0
            for line in iter(writers.stdout.readline, "end\n"):
                assert line, "the writers ended"
                if line.startswith("pid"):
                    pid = int(line.split()[1])
                else:
                    said.add(int(line))
                told += 1
                # A writer may tell a minute before its parent tells its pid.
                if pid and told >= patience and round_ < kills:
                    time.sleep(dice.uniform(0, latest_s))
                    os.kill(pid, signal.SIGKILL)
                    killed, pid = killed + 1, 0
        writers.stdin.close()
    found = minutes_in(store)
    recorded = {minute for minute, _, _ in found}
    assert killed == kills
    assert set(found.values()) == {1}
    # A minute that was told is there, and so is one that was committed and not told any more; none is left out between.
    assert recorded == said == set(range(max(said) + 1))
    # What is committed before the samples is there at most once as well, and with every minute of them.
    log_dirs = minutes_in(store, "log_dirs")
    assert set(log_dirs.values()) == {1}
    assert {minute for minute, _, _ in log_dirs} >= recorded
    # Whichever process was killed, the next writer measured from what is recorded: only the first interval is missing.
    rows = DeltaTable(table_url(store, "samples")).to_pyarrow_table(columns=["time", "seconds"]).to_pylist()
    assert {r["seconds"] for r in rows if int(r["time"].timestamp() * 1000 - START_MS) // 60_000} == {60.0}


def test_two_samplers_of_one_cluster_record_a_minute_once(tmp_path: Path) -> None:
    """A pod and a person's laptop: the second finds the minute taken; another cluster's minute is its own."""
    store = str(tmp_path)
    world, other = World({("t", 0): Log()}), World({("t", 0): Log()}, cluster="beta")
    assert SampleStore(store).write(world.sample(3)) is True
    assert SampleStore(store).write(world.sample(3)) is False
    assert SampleStore(store).write(other.sample(3)) is True
    assert SampleStore(store).write(world.sample(4)) is True
    assert set(minutes_in(str(tmp_path)).values()) == {1, 2}, "two clusters share the table"


def test_racing_samplers_record_a_minute_once(tmp_path: Path) -> None:
    """Both look before either commits; the later commit conflicts and counts as recorded."""
    world = World({("t", 0): Log()})
    SampleStore(str(tmp_path)).write(world.sample(0))
    children = [
        subprocess.Popen(
            leashed(sys.executable, "-c", CHILD, str(tmp_path), "20"),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env=_environment(),
        )
        for _ in range(2)
    ]
    assert [child.communicate(timeout=120) and child.returncode for child in children] == [0, 0]
    found = minutes_in(str(tmp_path))
    assert set(found.values()) == {1}
    assert len({minute for minute, _, _ in found}) == 20


def _environment() -> dict[str, str]:
    bucket = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    return {"PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}", "PATH": "/usr/bin:/bin", **bucket}
