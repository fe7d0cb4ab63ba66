"""What a year of runs costs a process that reads the journal: a daemon reads it every half minute.

Writes runs into a journal in a file as the driver does (begin, submit, end, expire) and measures, at several ages, how
many entries and bytes it holds, what a process that has just started pays to read it, what the daemon's reading of every half
minute costs afterwards, and the memory that one handle takes.

    python bench/journal.py [--runs 10,50,365] [--moves 2000] [--output json]
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ballast.adapters.journal.file import FileJournal
from ballast.core.plan import Move, Plan, Reason
from ballast.daemon.acting.journal_view import JournalView, ParsedJournal, journal_view_of
from ballast.executor.journal.history import expire
from ballast.executor.journal.records import changes, dump_run
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, Run, Status, new_run, with_moves
from ballast.executor.machine.stages import Submitted, Verified
from ballast.ports.journal import Holder
from ballast.ports.journal_codec import encode_record
from ballast.sim.clock import SimClock

READINGS = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """A journal of a certain age."""

    runs: int
    open_moves: int
    entries: int
    kilobytes: int
    first_reading_cpu_s: float
    next_reading_cpu_s: float
    handle_mb: float


def plan_of(number: int, moves: int) -> Plan:
    """Moves with names, reasons and sizes as they come."""
    made = tuple(
        Move(
            f"orders-{i % 200:04}.events.v1",
            i // 200,
            (i % 60 + 1, i % 60 + 2, i % 60 + 3),
            (i % 60 + 1, i % 60 + 2, i % 60 + 9),
            1_000_000_007 * (i + number) % 50_000_000_000,
            Reason("disk-over", f"takes {i % 97} MB/s from broker {i % 60 + 3}, which is 8 % over its range"),
        )
        for i in range(moves)
    )
    return Plan("balance", "bench", "", made)


def executed(journal: FileJournal, number: int, moves: int) -> None:
    """One run, from its plan to its end, as the driver writes it down."""
    run = begun(journal, number, moves)
    for stage in (Submitted(), Verified()):
        after = with_moves(run, {n: replace(m, stage=stage) for n, m in run.moves.items()})
        if isinstance(stage, Verified):
            after = replace(after, phase=Phase.ENDED, status=Status.DONE, ended_ms=run.started_ms + 1000)
        journal.append(changes(run, after))
        run = after
    journal.append(expire(journal.read()))


def begun(journal: FileJournal, number: int, moves: int) -> Run:
    """A run of which nothing has happened yet."""
    run = new_run(f"r{number:05}", plan_of(number, moves), ExecutionPolicy(), Now(number * 86_400_000, 0.0))
    journal.append(dump_run(run))
    return run


def measured(path: Path, runs: int, open_moves: int) -> Figures:
    """A process that starts now, and its readings from then on."""

    def reader() -> Callable[[], JournalView]:
        journal, clock, parsed = FileJournal(path), SimClock(), ParsedJournal()
        return lambda: journal_view_of(journal.read(), clock, parsed)

    read = reader()
    began = time.process_time()
    read()
    first = time.process_time() - began
    began = time.process_time()
    for _ in range(READINGS):
        read()
    following = (time.process_time() - began) / READINGS
    read = reader()
    gc.collect()
    tracemalloc.start()
    kept = read()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    records = FileJournal(path).read()
    entries = [entry for record in records for entry in encode_record(record)]
    size = sum(len(key) + len(data or b"") for key, data in entries)
    return Figures(
        runs, open_moves, len(entries), round(size / 1000), round(first, 3), round(following, 4), round(held / 1e6, 1)
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", default="10,50,365", help="ages to measure, in runs")
    options.add_argument("--moves", type=int, default=2000, help="moves of each run")
    options.add_argument("--output", choices=["table", "json"], default="table")
    given = options.parse_args()
    ages = sorted(int(n) for n in given.runs.split(","))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        journal = FileJournal(path)
        journal.acquire(Holder("bench", "the bench", lease_s=1e6))
        for number in range(1, ages[-1] + 1):
            executed(journal, number, given.moves)
            if number in ages:
                found.append(measured(path, number, 0))
        begun(journal, ages[-1] + 1, given.moves)
        found.append(measured(path, ages[-1], given.moves))
    if given.output == "json":
        print(json.dumps([asdict(f) for f in found], indent=1))
        return
    print(
        "| runs ended | moves of an open run | entries | KB | first reading, CPU s | each next one, CPU s | a handle, MB |"
    )
    print("|---|---|---|---|---|---|---|")
    for f in found:
        print("|", " | ".join(str(v) for v in asdict(f).values()), "|")


if __name__ == "__main__":
    main()
