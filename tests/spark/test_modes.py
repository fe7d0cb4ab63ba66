"""The same commands on a Spark Connect server and on a standalone master with two workers give the same tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.spark.fleets import member
from tests.spark.pure import load_rows, model_rows
from tests.spark.series import HOUR_MS, START_MS, run
from tests.spark.servers import QUICK, connect_server, packed_environment, standalone
from tests.spark.test_jobs import grow, table, world, write

from ballast.core.planner import Level, plan
from ballast.pipeline.fleet_store import append_snapshots, read_plans
from ballast.pipeline.scenarios import POLICY, digest
from ballast.pipeline.session import DELTA_LOCK
from ballast.sandbox.jars import ensure_jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

IN_TURN: Final = """
import json, sys
from ballast.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        if end.code:
            raise
"""
"""Commands one after another in a process: each has a session of its own, and they share what takes long, a warm JVM."""
LIMIT_S: Final = 800
"""A busy machine must not be a defect: a command takes about half a minute on a quiet one."""


class Mode(NamedTuple):
    """A kind of Spark and the flags of a command for it."""

    flags: list[str]

    def ballast(self, *commands: Sequence[str]) -> str:
        """Run commands with this mode's flags; what they print.  Their story is the failure's text."""
        lines = [[*words, *self.flags] for words in commands]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            [sys.executable, "-c", IN_TURN, json.dumps(lines)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@pytest.fixture(params=["connect", "standalone"])
def mode(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mode]:
    """Servers of the test's own on the loopback; they end with it, or with the run."""
    with ExitStack() as stack:
        if request.param == "connect":
            url, conf = stack.enter_context(connect_server(tmp_path, list(ensure_jars(DELTA_LOCK)))), {}
        else:
            # Nothing on the workers knows Ballast: what the jobs need comes with them, as the documentation tells.
            url = stack.enter_context(standalone(tmp_path, bare=True))
            conf = {
                **QUICK,
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "700m",
                "spark.local.dir": str(tmp_path),
                "spark.archives": f"{packed_environment(tmp_path)}#env",
                "spark.pyspark.python": "./env/bin/python",
            }
        yield Mode(["--spark", url, *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}"))])


def test_samples_become_the_same_model_and_fleets_the_same_plans(mode: Mode, tmp_path: Path) -> None:
    """From minutes to the load model, and one fleet job: what the servers' workers make is what the folds make here."""
    store = str(tmp_path / "store")
    world_ = world()
    samples = run(world_, range(50, 75), grow(world_))
    write(store, samples)
    fleet_member = member(1)
    append_snapshots(store, [fleet_member])

    figures = tmp_path / "ballast.prom"
    told = mode.ballast(
        ("pipeline", "run", "--store", store, "--metrics-file", str(figures)),
        ("fleet", "plan", "--store", store, "--what-if", "level"),
    )
    assert 'ballast_pipeline_rows{table="load_model"} 3.0' in figures.read_text()
    assert "ballast_pipeline_last_success_timestamp_seconds " in figures.read_text()
    assert "The load model knows everything up to 2026-11-21T14 UTC." in told
    hours = [load_rows(samples, START_MS + n * HOUR_MS) for n in (0, 1)]
    assert comparable(table(store, "load_model")) == comparable(model_rows(hours))
    assert {r["minutes"] for r in table(store, "broker_imbalance")} == {10, 15}
    assert len(table(store, "samples_hour")) == 2 * 3 * 3
    assert len(table(store, "disk_outlook")) == 3

    (row,) = read_plans(store)
    assert row["digest"] == digest(plan(fleet_member.state, Level(), loads=fleet_member.loads, policy=POLICY))


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in a fixed order, floats as they are."""
    return sorted(rows, key=lambda r: (r["cluster"], r["topic"], r["partition"]))
