"""The demo: a cluster unbalanced, and the commands that a person would type at it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ballast.core.compiled import library_path
from ballast.core.wording import ShowLine
from ballast.errors import Incomplete
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.current_sandbox import new_current_folder
from ballast.sandbox.fill import Filling, assignments, fill
from ballast.sandbox.prepare import prepare
from ballast.sandbox.readiness import wait_until_in_sync

if TYPE_CHECKING:
    from ballast.core.plan import Plan

SPEC: Final = SandboxSpec(brokers=5)
FILLING: Final = Filling(topics=6, partitions=8, replication_factor=2, megabytes=120, shape="empty-broker")
RESTARTED: Final = (1, 4)
"""Brokers of one rack, restarted side by side: they come back without their leaders, as after a rolling upgrade gone half way."""
COMPILE: Final = "from ballast.cli.commands.sandbox.demo import plan_for_compiling; plan_for_compiling()"
"""What the process that compiles the planner's loops runs."""

PLAN: Final = "balance.json"
STEPS: Final[tuple[tuple[str, Sequence[str]], ...]] = (
    ("Leaders have piled up, and broker 5 is new and empty:", ["status"]),
    ("The cheapest plan that balances it. Nothing has changed yet:", ["plan", "balance", "--save", PLAN]),
    ("Executed: journaled, throttled, verified:", ["apply", PLAN, "--yes"]),
    ("The cluster is as the plan wanted it:", ["verify", PLAN]),
    (
        "After it, nothing needs attention. New are only the journal's two small topics, and two that Kafka itself keeps:",
        ["status", "--check"],
    ),
    ("And a second plan finds nothing to move:", ["plan", "balance", "--check"]),
)
"""What the demo shows, in order: a sentence, and the command line behind ``ballast``."""


def print_heading(line: str) -> None:
    """What the demo shows next, on stderr."""
    click.echo(click.style(f"\n» {line}", bold=True), err=True)


def run(*, keep: bool) -> None:
    """Start, unbalance, balance, show; and end the sandbox, unless it is to be kept."""
    started = time.monotonic()

    def print_detail(line: str) -> None:
        click.echo(f"  {line}", err=True)

    folder = new_current_folder()
    print_heading("A real Kafka on this machine: five brokers in three racks.")
    with compile_in_background() as compiled_by_now:
        prepare(on_line=print_detail)
        sandbox = Sandbox.up(SPEC, folder=folder, on_line=print_detail)
        _show_all(sandbox, compiled_by_now, keep=keep, on_line=print_detail)
    if keep:
        print_heading("The cluster is balanced, and the sandbox stays. Look around, then: ballast sandbox down")
    else:
        print_heading(
            f"Done in {time.monotonic() - started:.0f} s: the cluster ended balanced. The sandbox is gone; "
            "`ballast sandbox demo --keep` keeps it."
        )


def _show_all(sandbox: Sandbox, compiled_by_now: Callable[[], object], *, keep: bool, on_line: ShowLine) -> None:
    def restart(broker: int) -> None:
        on_line(f"restarting broker {broker}")
        sandbox.stop_broker(broker)
        sandbox.start_broker(broker)

    try:
        print_heading("Unbalancing it: data on four brokers only, then two of them restarted.")
        fill(sandbox, FILLING, on_line=on_line)
        with ThreadPoolExecutor(len(RESTARTED)) as pool:
            list(pool.map(restart, RESTARTED))
        with tempfile.TemporaryDirectory(prefix="ballast-demo-") as scratch:
            for sentence, words in STEPS:
                wait_until_in_sync(sandbox.bootstrap_server, sandbox.librdkafka_properties, within_s=120)
                print_heading(sentence)
                if words[0] == "plan":
                    compiled_by_now()
                show(words, Path(scratch))
        if keep:
            sandbox.supervisor.detach()
    finally:
        if not keep:
            sandbox.down()


@contextmanager
def compile_in_background() -> Iterator[Callable[[], object]]:
    """Have numba compile the loops that the demo's plan calls, while the brokers start; yields what waits for it.

    A library has them compiled.  Where the process fails, the plan compiles them itself, and says why it cannot.
    """
    if library_path().is_file():
        yield lambda: None
        return
    process = subprocess.Popen([sys.executable, "-c", COMPILE])
    try:
        yield process.wait
    finally:
        process.kill()
        process.wait()


def plan_for_compiling() -> Plan:
    """A plan of the demo's kind for the demo's cluster before its restarts, without a cluster."""
    from ballast.core.cluster import Broker, LogDir, PartitionRow, Topic, build
    from ballast.core.planner import Balance, plan

    racks = {broker: SPEC.rack_of(broker) for broker in SPEC.broker_ids}
    disk = LogDir("/data", 1 << 40, 1 << 39)
    size = int(FILLING.megabytes * 1e6) // (FILLING.topics * FILLING.partitions)
    rows = [
        PartitionRow(topic, number, old[0], tuple(old), tuple(old), sizes=(size,) * len(old), log_dirs=(0,) * len(old))
        for topic, lists in assignments(FILLING, list(racks), racks).items()
        for number, old in enumerate(lists)
    ]
    brokers = tuple(Broker(b, rack=rack, log_dirs=(disk,), log_dirs_known=True) for b, rack in racks.items())
    return plan(build("demo", brokers, tuple(Topic(t) for t in {r.topic: None for r in rows}), rows), Balance())


def show(words: Sequence[str], folder: Path) -> None:
    """Run one command as a person would, in a scratch folder, its output going straight to the terminal."""
    click.echo(click.style(f"$ ballast {' '.join(words)}", fg="cyan"), err=True)
    code = subprocess.run([sys.executable, "-m", "ballast", *words], cwd=folder, check=False).returncode
    if code != 0:
        raise Incomplete(f"`ballast {' '.join(words)}` ended with {code}.", hint="What it wrote above says why.")
