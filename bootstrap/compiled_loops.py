"""The library of the planner's compiled loops in the checkout's environment, where this machine can build it.

Without it numba compiles each loop at its first call and keeps it: everything works, and a first plan takes half a second more.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

from environment import ROOT, VENV
from story import say

BUILT = "from ballast.core import compiled; raise SystemExit(not compiled.library_path().exists())"


def build_kernels() -> None:
    """Build it unless it is there for the present source; say so where that cannot be."""
    python = str(VENV / "bin" / "python")
    if subprocess.run([python, "-c", BUILT], check=False).returncode == 0:
        return
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if not (shutil.which("cc") and shutil.which("c++") and headers.exists()):
        say(
            "no C++ compiler or no Python headers (Debian: g++ python3-dev): numba compiles the planner at its first plan"
        )
        return
    say("compiling the planner's inner loops (about half a minute)")
    if subprocess.run([python, str(ROOT / "deploy" / "library.py")], check=False).returncode:
        say("that failed, see above: numba compiles the planner at its first plan")
