"""Plans for a cluster one of whose log dirs has failed: they name it, and the way out that they name leads out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.contract.cluster_forms import SandboxHands
from tests.waiting import becomes, until

from ballast.core.cluster import STORAGE_ERROR, TopicPartition
from ballast.core.plan.file import loads
from ballast.sandbox import Sandbox, SandboxSpec
from ballast.sandbox.fill import Filling, fill
from ballast.wiring.cluster import open_cluster

pytestmark = pytest.mark.kafka

DEGRADED = 3
EXIT_PENDING = 3


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Four brokers of two disks each, with the same of everything."""
    with Sandbox.up(SandboxSpec(brokers=4, racks=2, log_dirs=2)) as sandbox:
        fill(sandbox, Filling(topics=2, partitions=16, shape="even", megabytes=4))
        yield sandbox


def ballast(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    """A command as a person runs it."""
    line = [sys.executable, "-m", "ballast", *words, "-b", sandbox.bootstrap_server]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)


def on_broker(sandbox: Sandbox, broker: int) -> tuple[set[TopicPartition], set[TopicPartition]]:
    """Partitions with a replica there, internal topics left out, and those of which it is offline."""
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        state = opened.cluster.snapshot()
    p = state.partitions
    row = np.repeat(np.arange(len(p)), np.diff(p.start))
    here = p.replica == broker
    held, lost = ({state.name(r) for r in row[mask].tolist()} for mask in (here, here & p.offline))
    internal = {n for n in held if n.topic.startswith("__")}
    return held - internal, lost - internal


def test_a_failed_log_dir_is_named_by_every_plan_until_its_broker_is_emptied_and_replaced(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Nothing would move, and ``--check`` is not 0; the plan that drains the broker can be made and executed."""
    well = ballast(sandbox, "plan", "balance", "--check", "--output", "json")
    assert loads(well.stdout).log_dir_errors == ()
    failed = str(sandbox.log_dirs(DEGRADED)[1])
    SandboxHands(sandbox).fail_dir(DEGRADED, 1)
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:

        def given_up() -> bool:
            state = opened.cluster.snapshot()
            broker = state.broker(DEGRADED)
            here = state.partitions.replica == DEGRADED
            return bool(broker and broker.bad_log_dirs) and bool((state.partitions.offline & here).any())

        until(given_up, "the broker has given the log dir up")

    for intent in (("balance",), ("leaders",), ("racks",)):
        done = ballast(sandbox, "plan", *intent, "--check", "--output", "json")
        assert done.returncode == EXIT_PENDING, done.stderr
        (error,) = loads(done.stdout).log_dir_errors
        assert (error.broker, error.path, error.error) == (DEGRADED, failed, STORAGE_ERROR)
        assert error.offline_replicas > 0
    table = ballast(sandbox, "plan", "balance", "--check")
    assert table.returncode == EXIT_PENDING
    words = ("evacuate", str(DEGRADED), "--offline-only")
    assert all(word in table.stdout for word in (f"roker {DEGRADED}", failed, STORAGE_ERROR, " ".join(words)))
    shown = json.loads(ballast(sandbox, "status", "--output", "json").stdout)
    (told,) = (d for b in shown["brokers"] for d in b["logDirs"] if d["error"])
    assert (told["path"], told["error"]) == (failed, STORAGE_ERROR)

    file = tmp_path / "plan.json"
    held, lost = on_broker(sandbox, DEGRADED)
    rebuilt = ballast(sandbox, "plan", *words, "--save", str(file), "--output", "json")
    assert rebuilt.returncode == 0, rebuilt.stdout + rebuilt.stderr
    assert {m.name for m in loads(rebuilt.stdout).moves} == lost
    assert lost < held
    applied = ballast(sandbox, "apply", str(file), "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    # The process has ended; brokers that it did not ask hear of its last steps a moment later.
    becomes(lambda: on_broker(sandbox, DEGRADED), (held - lost, set()))

    drained = ballast(sandbox, "plan", "decommission", str(DEGRADED), "--save", str(file))
    assert drained.returncode == 0, drained.stdout + drained.stderr
    applied = ballast(sandbox, "apply", str(file), "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    (left,) = loads(ballast(sandbox, "plan", "racks", "--output", "json").stdout).log_dir_errors
    assert (left.broker, left.offline_replicas) == (DEGRADED, 0)
