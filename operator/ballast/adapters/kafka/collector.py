"""Python's garbage collector, which stands still while a large answer is turned into columns.

A reading makes an object for each partition and lets all of them go at once, without a cycle among them.  The collector would
look through them again and again meanwhile: that is a third of what the reading of a large cluster costs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_lock: Final = threading.Lock()
_pauses = 0
_resume = False


@contextmanager
def pause_collection() -> Iterator[None]:
    """No collection in this process until the last thread inside has left; it is then as it was before the first."""
    global _pauses, _resume  # noqa: PLW0603 — the collector is the process's own, and so is the count
    with _lock:
        if _pauses == 0:
            _resume = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _resume:
                gc.enable()
