"""How a process of ours ends: with its own exit code, also when Arrow's threads are still closing files.

Arrow reads tables on threads of its own, which hold Python objects a moment longer than the read lasts.  One that drops them
while the interpreter is being taken down aborts the process (SIGABRT), after all its work was done.  So where Arrow was used
the interpreter is not taken down: everything that it would do before that has been done by then.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Callable


def run_to_its_end(command: Callable[[], object]) -> None:
    """Run the one thing that this process is for; to be called before other libraries want to hear of the process's end.

    Such handlers run last in, first out, and after other threads have been waited for: ours is the last of them.
    """
    codes = [1]
    atexit.register(_end, codes)
    try:
        command()
    except SystemExit as end:
        codes[0] = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    codes[0] = 0


def _end(codes: list[int]) -> None:
    if "pyarrow" not in sys.modules:
        return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # A reader that has gone, or a stream that is closed, takes nothing more.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(codes[0])
