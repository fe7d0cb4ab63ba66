"""Run every measurement, one after another: ``make bench``.

One that fails, or that is over its limit, does not keep those after it from running; they are named at the end.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
MAKES_INPUT: Final = frozenset({"cases"})
"""Commands that write clusters for others to measure: they need to be told where to."""


def measurements() -> tuple[Path, ...]:
    """The files that measure something when they are run without an argument."""
    commands = (p for p in sorted(FOLDER.glob("*.py")) if p != Path(__file__) and p.stem not in MAKES_INPUT)
    return tuple(p for p in commands if '__name__ == "__main__"' in p.read_text(encoding="utf-8"))


def run(files: Sequence[Path]) -> int:
    """Run them all; 1 where any did not end with 0."""
    failed = []
    for file in files:
        print(f"== {file.parent.name}/{file.name}", flush=True)
        if subprocess.run([sys.executable, str(file)], check=False).returncode:
            failed.append(file.name)
    if failed:
        print(f"Failed, or over a limit: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(run(measurements()))
