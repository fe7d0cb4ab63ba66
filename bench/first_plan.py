"""CPU seconds from the command to the table: ``ballast plan balance`` as a process of its own, on small clusters.

    python bench/first_plan.py

A cluster within its ranges needs no search.  Others are planned twice: with the library of compiled loops, where the
checkout's set-up could build it, and with the loops that numba keeps on disk.  Each is the best of some runs, side by side, since a busy
machine costs CPU time as well.  With the library a first plan must stay under ``MOST_CPU_S`` up to ``HELD_REPLICAS``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.cluster.snapshot_file import Snapshot, dumps
from ballast.core.compiled import library
from ballast.core.planner import Loads

MOST_CPU_S: Final = 1.0
"""Most that a first plan with the library may take, up to ``HELD_REPLICAS``."""
HELD_REPLICAS: Final = 15_000
RUNS: Final = 5
NUMBA: Final = "import sys; from ballast.core import compiled; compiled.library = lambda: None; from ballast.__main__ import run; run()"
"""The command as it is where no library could be built."""


def cluster(partitions: int, *, balance: bool, brokers: int = 12) -> ClusterState:
    """Partitions of three; balanced, or drawn at random over all brokers but the last."""
    random = Random(1)
    rows = []
    for p in range(partitions):
        drawn = random.sample(range(brokers - 1), 3)
        members = tuple((p + i) % brokers for i in range(3)) if balance else tuple(drawn)
        size = 1 << 28 if balance else random.randrange(1 << 24, 1 << 29)
        rows.append(PartitionRow("t", p, members[0], members, members, sizes=(size,) * 3))
    return build("c", tuple(Broker(i, host=f"b{i}") for i in range(brokers)), (Topic("t"),), rows)


def cpu_s(file: Path, *program: str) -> float:
    """User and system seconds of one ``ballast plan balance``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *program, "plan", "balance", "--no-prove", "--snapshot", str(file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the table; 1 when a first plan takes too long, 2 without a library."""
    if library() is None:
        sys.stderr.write("The library of compiled loops is not built: run make setup, and read what it says.\n")
        return 2
    slow = False
    sys.stdout.write("replicas   balanced cluster, CPU s   first plan, CPU s   with numba, CPU s\n")
    with tempfile.TemporaryDirectory() as folder:
        for partitions in (100, 1_000, 5_000, 16_600):
            files = {}
            for balance in (True, False):
                state = cluster(partitions, balance=balance)
                files[balance] = Path(folder) / f"{partitions}-{balance}.json"
                files[balance].write_text(dumps(Snapshot(state, Loads.from_state(state))), encoding="utf-8")
            ways = ((files[True], "-m", "ballast"), (files[False], "-m", "ballast"), (files[False], "-c", NUMBA))
            runs = [[cpu_s(*way) for way in ways] for _ in range(RUNS)]
            balance_s, first_s, numba_s = map(min, zip(*runs, strict=True))
            sys.stdout.write(f"{3 * partitions:>8}   {balance_s:>20.2f}   {first_s:>17.2f}   {numba_s:>17.2f}\n")
            slow |= first_s > MOST_CPU_S and 3 * partitions <= HELD_REPLICAS
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
