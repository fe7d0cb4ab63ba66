"""CPU, memory and time of a piece of work, this process's children included."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil


class Meter:
    """CPU seconds and resident memory of this process (or of others) and its children, sampled while something runs.

    Spark's Python workers end unreaped, so no process is charged with their CPU afterwards: what each process was last seen to
    have used is kept here.  At most an interval of sampling is lost for each process that ends.
    """

    def __init__(self, *roots: psutil.Process) -> None:
        self.roots = roots or (psutil.Process(),)
        self._used: dict[tuple[int, float], float] = {}

    def look(self) -> float:
        """Note every process's CPU; the resident memory of the whole tree, MB."""
        total = 0
        for process in self._tree():
            try:
                times = process.cpu_times()
                total += process.memory_info().rss
            except psutil.Error:
                continue
            self._used[process.pid, process.create_time()] = times.user + times.system
        return total / 1e6

    def _tree(self) -> Iterator[psutil.Process]:
        for root in self.roots:
            with suppress(psutil.Error):
                yield root
                yield from (child for child in root.children(recursive=True) if not _is_twin(child))

    def cpu_s(self) -> float:
        """CPU of the whole tree so far, of those that ended as well."""
        self.look()
        return sum(self._used.values())


def _is_twin(process: psutil.Process) -> bool:
    """Is it a JVM's own image in the moment before it becomes the program that the JVM starts?  Its memory is the JVM's.

    Hadoop starts ``chmod`` and ``ls`` for files of this machine, so a peak would often count one heap twice.
    """
    with suppress(psutil.Error):
        command, parent = process.cmdline(), process.parent()
        return parent is not None and command == parent.cmdline() != [] and Path(command[0]).name == "java"
    return False


def measured(meter: Meter, name: str, work: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Run something; wall, CPU and the highest memory seen."""
    peak, done = [meter.look()], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peak.append(meter.look())

    wall, cpu = time.monotonic(), meter.cpu_s()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        answer = work()
    finally:
        done.set()
        thread.join()
    figures = {
        "step": name,
        "wall_s": round(time.monotonic() - wall, 2),
        "cpu_s": round(meter.cpu_s() - cpu, 2),
        "peak_mb": round(max(peak)),
    }
    print(json.dumps(figures), file=sys.stderr, flush=True)
    return answer, figures
