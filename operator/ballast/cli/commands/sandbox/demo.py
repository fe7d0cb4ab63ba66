"""The demo: a cluster unbalanced, and the commands that a person would type at it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ballast.errors import Incomplete
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.current_sandbox import new_current_folder
from ballast.sandbox.fill import Filling, fill
from ballast.sandbox.prepare import prepare
from ballast.sandbox.readiness import wait_until_in_sync

FILLING: Final = Filling(topics=6, partitions=8, replication_factor=2, megabytes=120, shape="newcomer")
RESTARTED: Final = (2, 3)
"""Brokers that the demo restarts: they come back without their leaders, as after a rolling upgrade gone half way."""

PLAN: Final = "balance.json"
STEPS: Final[tuple[tuple[str, Sequence[str]], ...]] = (
    ("Leaders have piled up, and broker 5 is new and empty:", ["status"]),
    ("The cheapest plan that balances it. Nothing has changed yet:", ["plan", "balance", "--save", PLAN]),
    ("Carried out: journaled, throttled, verified:", ["apply", PLAN, "--yes"]),
    ("The cluster is as the plan wanted it:", ["verify", PLAN]),
    (
        "After it, nothing needs attention. New are only the journal's two small topics, and two that Kafka itself keeps:",
        ["status", "--check"],
    ),
)
"""What the demo shows, in order: a sentence, and the command line behind ``ballast``."""


def tell(line: str) -> None:
    """The story, on stderr."""
    click.echo(click.style(f"\n» {line}", bold=True), err=True)


def run(*, keep: bool) -> None:
    """Start, unbalance, balance, show; and end the sandbox, unless it is to be kept."""
    started = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"  {line}", err=True)

    folder = new_current_folder()
    tell("A real Kafka on this machine: five brokers in three racks.")
    prepare(say=say)
    sandbox = Sandbox.up(SandboxSpec(brokers=5), folder=folder, say=say)
    try:
        tell("Unbalancing it: data on four brokers only, then two of them restarted.")
        fill(sandbox, FILLING, say=say)
        for broker in RESTARTED:
            say(f"restarting broker {broker}")
            sandbox.stop_broker(broker)
            sandbox.start_broker(broker)
        with tempfile.TemporaryDirectory(prefix="ballast-demo-") as scratch:
            for sentence, words in STEPS:
                wait_until_in_sync(sandbox.bootstrap_server, sandbox.librdkafka_properties, within_s=120)
                tell(sentence)
                show(words, Path(scratch))
        if keep:
            sandbox.supervisor.disown()
    finally:
        if not keep:
            sandbox.down()
    if keep:
        tell("The sandbox stays. Look around, then: ballast sandbox down")
    else:
        tell(
            f"Done in {time.monotonic() - started:.0f} s; the sandbox is gone. `ballast sandbox demo --keep` keeps it."
        )


def show(words: Sequence[str], folder: Path) -> None:
    """Run one command as a person would, in a scratch folder, its output going straight to the terminal."""
    click.echo(click.style(f"$ ballast {' '.join(words)}", fg="cyan"), err=True)
    code = subprocess.run([sys.executable, "-m", "ballast", *words], cwd=folder, check=False).returncode
    if code != 0:
        raise Incomplete(f"`ballast {' '.join(words)}` ended with {code}.", hint="What it wrote above says why.")
