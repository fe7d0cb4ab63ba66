"""CPU, memory and time of a piece of work, this process's children included."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil


class Meter:
    """CPU seconds and peak memory of this process and its children, sampled while something runs."""

    def __init__(self) -> None:
        self.me = psutil.Process()

    def cpu_s(self) -> float:
        """CPU of the whole tree; workers that ended are counted by their parents."""
        total = 0.0
        for process in (self.me, *self.me.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def rss_mb(self) -> float:
        """Resident memory of the whole tree."""
        total = 0
        for process in (self.me, *self.me.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        return total / 1e6


def measured(meter: Meter, name: str, work: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Run something; wall, CPU and the highest memory seen."""
    peak, done = [meter.rss_mb()], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peak.append(meter.rss_mb())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    wall, cpu = time.monotonic(), meter.cpu_s()
    answer = work()
    figures = {
        "step": name,
        "wall_s": round(time.monotonic() - wall, 2),
        "cpu_s": round(meter.cpu_s() - cpu, 2),
        "peak_mb": round(max(peak)),
    }
    done.set()
    thread.join()
    print(json.dumps(figures), file=sys.stderr, flush=True)
    return answer, figures
