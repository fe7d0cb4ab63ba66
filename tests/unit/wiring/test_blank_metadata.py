"""A broker that has just started knows no cluster yet: it is asked again, and nothing of ours ends by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from bench.recorded_broker import recorded_broker
from bench.snapshot import METADATA_VERSION, metadata_bytes

READER = """
import sys
from pathlib import Path

from ballast.errors import Unavailable
from ballast.wiring.cluster import open_cluster

with open_cluster(bootstrap_server=sys.argv[1], timeout_s=4) as opened:
    state = opened.cluster.snapshot(log_dirs=False, configs=False)
    print([(b.id, b.rack) for b in state.brokers], len(state.partitions), flush=True)
    Path(sys.argv[2]).touch()
    for _ in range(3):
        try:
            opened.cluster.snapshot(log_dirs=False, configs=False)
        except Unavailable as silence:
            print(silence.message, flush=True)
"""
"""In a process of its own: librdkafka's ``describe_cluster`` ends the whole process at such an answer."""


def test_a_broker_that_knows_no_cluster_yet_is_unavailable(tmp_path: Path) -> None:
    """Its answer to Metadata is one without brokers and topics, without an error."""
    lists = np.ones((3, 1), np.int32)
    blank = tmp_path / "blank"
    with recorded_broker(lambda port: metadata_bytes(lists, 1, port), METADATA_VERSION, blank=blank) as where:
        done = subprocess.run(
            [sys.executable, "-c", READER, where, str(blank)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[(1, 'rack-1')] 3"
    assert len(done.stdout.splitlines()) == 4
