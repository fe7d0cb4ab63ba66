"""Takes out of an image's environment what no process of Ballast loads: numba and LLVM, the installer, packages' own tests and stubs.

``python trim.py``.  The compiled loops are there as a library (``library.py``), so that nothing imports numba.  It fails where
that library is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from ballast.core import compiled

UNUSED: Final = ("numba", "llvmlite", "setuptools", "pip")
"""pip takes itself out last."""


def main() -> int:
    """0 when nothing unused is left."""
    if not compiled.library_path().exists():
        print(f"missing: {compiled.library_path()}", file=sys.stderr)
        return 1
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "--yes", "--quiet", *UNUSED], check=True)
    packages = Path(sysconfig.get_path("purelib"))
    for folder in (*packages.rglob("tests"), *packages.rglob("__pycache__")):
        shutil.rmtree(folder, ignore_errors=True)
    for stub in packages.rglob("*.pyi"):
        stub.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
