"""What a plan loads: a cluster within its ranges needs no search, and pays for no compiled code."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from ballast.core.cluster import Broker, PartitionRow, Topic, build
from ballast.core.planner import Level, plan
lists = [tuple((p + i) % {used} for i in range(3)) for p in range(100)]
rows = [PartitionRow("t", p, m[0], m, m, sizes=(1 << 30,) * 3) for p, m in enumerate(lists)]
made = plan(build("c", tuple(Broker(i, host="h") for i in range(5)), (Topic("t"),), rows), Level())
print(made.status, "numba" in sys.modules)
"""


def loaded(used: int) -> str:
    """What a process that makes one plan says, where so many of five brokers hold everything."""
    line = [sys.executable, "-c", PROGRAM.format(used=used)]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_a_level_cluster_loads_no_compiled_code() -> None:
    """Importing numba and loading the kernels is most of a small plan's time; a cluster that is not level pays it."""
    assert loaded(5) == "nothing-to-do False"
    assert loaded(4) == "complete True"
