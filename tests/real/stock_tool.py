"""Kafka's own ``kafka-reassign-partitions``, and ``ballast reassign`` to be compared with it."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

from tests.real.execution_scene import Scene

from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import ensure_java

SHORT_LIVED = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""It ends before compiling well would pay."""


class Answer(NamedTuple):
    """What a command printed and how it ended."""

    code: int
    out: str


def stock_reassign(bootstrap_server: str, *arguments: str) -> Answer:
    """Run the stock tool of the newest Kafka."""
    path = ":".join(map(str, ensure_jars("kafka-tools-4.3.1")))
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    done = subprocess.run(
        [ensure_java().executable, *SHORT_LIVED, "-cp", path, tool, "--bootstrap-server", bootstrap_server, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return Answer(done.returncode, done.stdout)


def stock(at: Scene, *arguments: str) -> Answer:
    """The stock tool on a test's cluster."""
    return stock_reassign(at.sandbox.bootstrap_server, *arguments)


def ours(at: Scene, *arguments: str) -> Answer:
    """``ballast reassign`` on a test's cluster."""
    process = at.ballast("reassign", *arguments)
    out, story = process.communicate(timeout=240)
    sys.stderr.write(story)  # Shown with a failure: the stock tool's words do not say what went wrong.
    assert process.returncode in {0, 1}, story
    return Answer(process.returncode, out)
