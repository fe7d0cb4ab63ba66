"""``ballast`` under a wall clock that can be stepped: ``CHAOS_CLOCK`` names a file with the seconds that it is off.

What Python reads as wall time is stepped: ``time.time``, ``time.time_ns``, ``time.gmtime``.  The monotonic clock is not, which a step of the
machine's clock leaves alone as well, nor are the clocks inside client libraries and brokers.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FILE = Path(os.environ["CHAOS_CLOCK"])
_time, _time_ns, _gmtime = time.time, time.time_ns, time.gmtime


def offset_s() -> float:
    """How far the clock is off now."""
    try:
        return float(FILE.read_text())
    except (OSError, ValueError):
        return 0.0  # Just being written.


def stepped() -> float:
    """Seconds since the epoch, by the stepped clock."""
    return _time() + offset_s()


def stepped_ns() -> int:
    """Nanoseconds since the epoch, by the stepped clock."""
    return _time_ns() + int(offset_s() * 1e9)


def stepped_gmtime(seconds: float | None = None) -> time.struct_time:
    """The UTC calendar, by the stepped clock where no time is named."""
    return _gmtime(stepped() if seconds is None else seconds)


if __name__ == "__main__":
    time.time, time.time_ns = stepped, stepped_ns
    time.gmtime = stepped_gmtime  # type: ignore[assignment]
    from ballast.__main__ import run

    run()
