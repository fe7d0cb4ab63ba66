"""A sampler that is killed anywhere neither loses nor doubles a minute that it said it recorded."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from deltalake import DeltaTable
from tests.leash import leashed
from tests.spark.series import Log, World

from ballast.adapters.samples_delta import SampleStore, table_url

ROOT = Path(__file__).resolve().parents[2]
MINUTES = 60
ROUNDS = 12
CHILD = """
import sys
from ballast.adapters.samples_delta import SampleStore
from tests.spark.series import Log, World
world, store = World({("t", n): Log() for n in range(20)}), SampleStore(sys.argv[1])
for minute in range(int(sys.argv[2])):
    store.write(world.sample(minute))
    print(minute, flush=True)
"""


def minutes_in(store: Path) -> Counter[tuple[str, int, int]]:
    """How often each row of each minute is there."""
    table = DeltaTable(table_url(str(store), "samples_minute")).to_pyarrow_table(columns=["hour", "minute", "chunk"])
    return Counter((r["hour"], r["minute"], r["chunk"]) for r in table.to_pylist())


def test_killed_writers_leave_every_minute_exactly_once(tmp_path: Path) -> None:
    """A dozen writers, each from the first minute on, each killed somewhere; the last one is left to finish."""
    store, dice, killed = tmp_path / "store", random.Random(4), 0
    said: set[int] = set()
    for round_ in range(ROUNDS):
        command = leashed(sys.executable, "-c", CHILD, str(store), str(MINUTES))
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=_environment()) as child:
            assert child.stdout is not None
            patience = dice.randint(1, 12)
            for told, line in enumerate(child.stdout, start=1):
                said.add(int(line))
                if round_ < ROUNDS - 1 and told >= patience:
                    # Somewhere within the next write, not at its edge.
                    time.sleep(dice.uniform(0, 0.02))
                    child.send_signal(signal.SIGKILL)
                    killed += 1
                    break
            child.wait(30)
    found = minutes_in(store)
    assert killed == ROUNDS - 1
    assert set(found.values()) == {1}
    assert {minute for _, minute, _ in found} == set(range(MINUTES)) == said


def test_two_samplers_of_one_cluster_record_a_minute_once(tmp_path: Path) -> None:
    """A pod and a person's laptop: the second finds the minute taken; another cluster's minute is its own."""
    store = str(tmp_path)
    world, other = World({("t", 0): Log()}), World({("t", 0): Log()}, cluster="beta")
    assert SampleStore(store).write(world.sample(3)) is True
    assert SampleStore(store).write(world.sample(3)) is False
    assert SampleStore(store).write(other.sample(3)) is True
    assert SampleStore(store).write(world.sample(4)) is True
    assert set(minutes_in(tmp_path).values()) == {1, 2}, "two clusters share the table"


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
    found = minutes_in(tmp_path)
    assert set(found.values()) == {1}
    assert len({minute for _, minute, _ in found}) == 20


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}", "PATH": "/usr/bin:/bin"}
