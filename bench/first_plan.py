"""CPU seconds from the command to the table: ``ballast plan balance`` as a process of its own, on small clusters.

    python bench/first_plan.py

A cluster within its ranges needs no search.  Others are planned with the library of compiled loops, which the checkout's set-up
builds: without the proof of the bound, and with it as the command has it by default; then with the loops that numba keeps on disk.
Each is the best of some runs, side by side, since a busy machine costs CPU time as well.  With the library and without the proof a
first plan must stay under ``MOST_CPU_S`` up to ``HELD_REPLICAS``.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from ballast.core.cluster import Broker, ClusterState, PartitionRow, Topic, build
from ballast.core.compiled import library
from ballast.core.planner import Loads
from ballast.core.snapshot.file import Snapshot, dumps

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


def cpu_s(file: Path, *program: str, prove: bool = False) -> float:
    """User and system seconds of one ``ballast plan balance``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        *program,
        "plan",
        "balance",
        *(() if prove else ("--no-prove",)),
        "--snapshot",
        str(file),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the table; 1 when a first plan takes too long, 2 without a library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=int, default=RUNS, help="of each command, the best of which counts (%(default)s)"
    )
    options = parser.parse_args()
    if library() is None:
        sys.stderr.write("The library of compiled loops is not built: run make setup, and read what it says.\n")
        return 2
    slow = False
    sys.stdout.write(
        "| replicas | balanced cluster, CPU s | first plan, CPU s | with the proof, CPU s | with numba, CPU s |\n"
    )
    sys.stdout.write("|---|---|---|---|---|\n")
    with tempfile.TemporaryDirectory() as folder:
        for partitions in (100, 1_000, 5_000, 16_600):
            files = {}
            for balance in (True, False):
                state = cluster(partitions, balance=balance)
                files[balance] = Path(folder) / f"{partitions}-{balance}.json"
                files[balance].write_text(dumps(Snapshot(state, Loads.from_state(state))), encoding="utf-8")
            ballast = ("-m", "ballast")
            ways = (
                (True, ballast, False),
                (False, ballast, False),
                (False, ballast, True),
                (False, ("-c", NUMBA), False),
            )
            runs = [
                [cpu_s(files[balance], *program, prove=prove) for balance, program, prove in ways]
                for _ in range(options.runs)
            ]
            balance_s, first_s, proof_s, numba_s = map(min, zip(*runs, strict=True))
            sys.stdout.write(
                f"| {3 * partitions:,} | {balance_s:.2f} | {first_s:.2f} | {proof_s:.2f} | {numba_s:.2f} |\n"
            )
            sys.stdout.flush()
            slow |= first_s > MOST_CPU_S and 3 * partitions <= HELD_REPLICAS
    sys.stdout.write(f"\nLoad: {os.getloadavg()}\n")
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
