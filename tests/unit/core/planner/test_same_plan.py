"""The same input gives the same plan on any machine: another processor, other threads, another order of memory and of sets."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = """
import os, sys
from hashlib import sha256
if sys.argv[1:] == ["one-core"]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from bench.mixed import mixed
from ballast.core.plan.file import dumps
from ballast.core.planner import Balance, PlannerPolicy, plan
case = mixed(102, brokers=6, partitions=120)
policy = PlannerPolicy(band=0.1, trigger=0.1, capacities=case.capacities)
made = plan(case.state, Balance(), loads=case.loads, policy=policy)
assert made.moves and made.bound_bytes
print(sha256(dumps(made).encode()).hexdigest())
"""
OLD = " ".join(
    name
    for name in np._core._multiarray_umath.__cpu_dispatch__  # type: ignore[attr-defined]
    if np._core._multiarray_umath.__cpu_features__[name]  # type: ignore[attr-defined]
)
"""What numpy uses of this processor beyond what every one of its kind has."""
MACHINES = {
    "an older processor": {
        "NPY_DISABLE_CPU_FEATURES": OLD,
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "generic",
    },
    "one thread and other memory": {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_PERTURB_": "165",
        "PYTHONHASHSEED": "7",
    },
}


def digest(*arguments: str, **environment: str) -> str:
    """Of the whole plan file, from a process of its own."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'operator'}", "PYTHONHASHSEED": "0", **environment}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True).stdout


@cache
def here() -> str:
    """The digest that this machine comes to."""
    return digest()


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_makes_the_same_plan(machine: str) -> None:
    """No sum depends on the processor's width, no solver on its threads, nothing on what memory held before."""
    one_core = ("one-core",) if hasattr(os, "sched_setaffinity") else ()
    assert digest(*one_core, **MACHINES[machine]) == here()
