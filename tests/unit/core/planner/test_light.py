"""What a plan loads: a cluster within its ranges needs no search, and pays for no compiled code."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.planner import Balance, plan
lists = [tuple((p + i) % {used} for i in range(3)) for p in range(100)]
rows = [PartitionRow("t", p, m[0], m, m, sizes=(1 << 30,) * 3) for p, m in enumerate(lists)]
made = plan(build("c", tuple(Broker(i, host="h") for i in range(5)), (Topic("t"),), rows), Balance())
print(made.status, "ballast.core.compiled" in sys.modules)
"""


def loaded(used: int) -> str:
    """What a process that makes one plan says, where so many of five brokers hold everything."""
    line = [sys.executable, "-c", PROGRAM.format(used=used)]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_a_balanced_cluster_loads_no_compiled_code() -> None:
    """Loading or compiling the loops of the search is for a cluster that is not balanced."""
    assert loaded(5) == "nothing-to-do False"
    assert loaded(4) == "meets-all-goals True"
