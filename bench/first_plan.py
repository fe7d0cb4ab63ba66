"""CPU seconds from the command to the table: ``ballast plan level`` as a process of its own, on small clusters.

    python bench/first_plan.py

A cluster within its ranges needs no search, and none of the compiled code is loaded.  What a first plan takes beyond that is
importing numba and loading the kernels that it keeps compiled on disk.  Both are the best of some runs, side by side, since a busy
machine costs CPU time as well; their ratio is held.
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
from ballast.core.planner import Loads
from ballast.core.snapshot_file import Snapshot, dumps

SHARE: Final = 0.6
"""Most that a level cluster may take of what a first plan takes."""
RUNS: Final = 5


def cluster(partitions: int, *, level: bool, brokers: int = 12) -> ClusterState:
    """Partitions of three; level, or drawn at random over all brokers but the last."""
    random = Random(1)
    rows = []
    for p in range(partitions):
        drawn = random.sample(range(brokers - 1), 3)
        members = tuple((p + i) % brokers for i in range(3)) if level else tuple(drawn)
        size = 1 << 28 if level else random.randrange(1 << 24, 1 << 29)
        rows.append(PartitionRow("t", p, members[0], members, members, sizes=(size,) * 3))
    return build("c", tuple(Broker(i, host=f"b{i}") for i in range(brokers)), (Topic("t"),), rows)


def cpu_s(file: Path) -> float:
    """User and system seconds of one ``ballast plan level``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "ballast", "plan", "level", "--no-prove", "--snapshot", str(file)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the table; 1 when a level cluster takes more than its share."""
    slow = False
    sys.stdout.write("replicas   level cluster, CPU s   first plan, CPU s\n")
    with tempfile.TemporaryDirectory() as folder:
        for partitions in (100, 1_000, 5_000):
            best = []
            for level in (True, False):
                state = cluster(partitions, level=level)
                file = Path(folder) / f"{partitions}-{level}.json"
                file.write_text(dumps(Snapshot(state, Loads.from_state(state))), encoding="utf-8")
                best.append(min(cpu_s(file) for _ in range(RUNS)))
            sys.stdout.write(f"{3 * partitions:>8}   {best[0]:>20.2f}   {best[1]:>17.2f}\n")
            slow |= best[0] > SHARE * best[1]
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
