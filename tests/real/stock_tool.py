"""Kafka's own ``kafka-reassign-partitions``, to be compared with."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

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
