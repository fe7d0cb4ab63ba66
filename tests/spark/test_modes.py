"""The same commands and the same tests on a Spark Connect server and on a standalone master with two workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from deltalake import DeltaTable, write_deltalake
from tests.documents import validated
from tests.leash import leashed
from tests.spark import kill_rounds
from tests.spark.fleets import member
from tests.spark.kill_rounds import KILLED, Run
from tests.spark.series import START_MS, run, sample_rows
from tests.spark.servers import QUICK, ROOT, connect_server, packed_environment, standalone
from tests.spark.test_jobs import RATE, grow, table, world, write
from tests.spark.test_pipeline_kills import BALLAST, assert_each_minute_once, minutes, steady

from ballast.adapters.samples.store import table_url
from ballast.core.planner import Balance, plan
from ballast.core.what_if import POLICY, digest
from ballast.pipeline.fleet_store import append_snapshots, read_plans
from ballast.pipeline.jobs import JOBS
from ballast.pipeline.session import DELTA_LOCK
from ballast.sandbox.jars import ensure_jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

IN_TURN: Final = """
import json, sys
from ballast.cli.main import main
from ballast.cli.process_end import run_to_its_end

def in_turn():
    for words in json.loads(sys.argv[1]):
        try:
            main(words)
        except SystemExit as end:
            if end.code:
                raise

run_to_its_end(in_turn)
"""
"""Commands one after another in a process: each has a session of its own, and they share what takes long, a warm JVM."""
PYTEST: Final = """
import sys, pytest
from ballast.cli.process_end import run_to_its_end
run_to_its_end(lambda: sys.exit(pytest.main(sys.argv[1:])))
"""
"""Tests read tables as commands do, and so end as these do."""
KILLS: Final = {"connect": 3, "standalone": 1}
"""In the suite, by kind of Spark: on a standalone cluster each round starts a driver of its own."""
SEED: Final = 97
A_ROUND: Final = 7
"""Minutes that are new in each round."""
ATTEMPTS: Final = 5
IN_THE_WAY: Final = "Another pipeline run changed the table"
LIMIT_S: Final = 800
"""A busy machine must not be a defect: a command takes about half a minute on a quiet one."""


SUITE: Final = (
    "test_jobs.py::test_samples_become_a_model_and_late_ones_change_only_what_they_touch",
    "test_fleet_job.py",
    "test_transforms.py",
)
"""Run again on each kind of Spark: late samples, every transform, fleets.

The command below asserts what the other tests of the jobs do about tables; the rest of these reads tables without Spark.  By
``BALLAST_TEST_SPARK`` all of them run on each kind, the kill tests too: every time it would take minutes.
"""
LONG_AGO: Final = -1000 * 60
"""The minute of a sample that is kept no longer, a thousand hours before the others."""


class Mode(NamedTuple):
    """A kind of Spark: where it is, and the properties of a session there."""

    kind: str
    url: str
    conf: dict[str, str]

    def command(self, *words: str) -> list[str]:
        """A command's words with the flags for this Spark."""
        return [*words, "--spark", self.url, *(part for k, v in self.conf.items() for part in ("--conf", f"{k}={v}"))]

    def ballast(self, *commands: Sequence[str]) -> str:
        """Run commands here; what they print."""
        return here("-c", IN_TURN, json.dumps([self.command(*words) for words in commands]))


def here(*arguments: str, **more: str) -> str:
    """Run Python; its story is the failure's text."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("PYTEST_")}
    done = subprocess.run(
        leashed(sys.executable, *arguments),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", **more},
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module", params=["connect", "standalone"])
def mode(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mode]:
    """Servers of these tests' own on the loopback; they end with them, or with the run."""
    folder = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        if request.param == "connect":
            yield Mode(request.param, stack.enter_context(connect_server(folder, list(ensure_jars(DELTA_LOCK)))), {})
            return
        # Nothing on the workers knows Ballast: what the jobs need comes with them, as the documentation tells.
        url = stack.enter_context(standalone(folder, bare=True))
        conf = {
            **QUICK,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "700m",
            "spark.local.dir": str(folder),
            "spark.archives": f"{packed_environment(folder)}#env",
            "spark.pyspark.python": "./env/bin/python",
        }
        yield Mode(request.param, url, conf)


def test_samples_become_the_same_model_and_fleets_the_same_plans(mode: Mode, tmp_path: Path) -> None:
    """From minutes to the load model, and one fleet job: the rates that went in come out, and the plans are those made here."""
    store = str(tmp_path / "store")
    world_ = world()
    write(store, run(world_, range(50, 75), grow(world_)))
    samples = table(store, "samples")
    write_deltalake(table_url(store, "samples"), sample_rows([world_.sample(LONG_AGO)]), mode="append")
    fleet_member = member(1)
    append_snapshots(store, [fleet_member])

    figures = tmp_path / "ballast.prom"
    told = mode.ballast(
        ("pipeline", "run", "--store", store, "--metrics-file", str(figures), "--maintenance", *keeping(tmp_path)),
        ("fleet", "plan", "--store", store, "--what-if", "balance"),
        ("pipeline", "run", "--store", store, "--output", "json"),
    )
    assert 'ballast_pipeline_rows{table="load_model"} 3.0' in figures.read_text()
    assert "ballast_pipeline_last_success_timestamp_seconds " in figures.read_text()
    assert "The load model knows everything up to 2026-11-21T14 UTC." in told
    rates = {(r["topic"], r["partition"]): r["bytes_in_mean"] for r in table(store, "load_model")}
    assert rates == pytest.approx({("busy", 0): 10 * RATE, ("calm", 0): RATE, ("calm", 1): RATE})
    assert {r["seconds"] for r in table(store, "load_model")} == {24 * 60}
    assert {r["samples"] for r in table(store, "broker_imbalance")} == {10, 15}
    assert len(table(store, "disk_outlook")) == 3
    # What is old was forgotten, each hour is one file, no other row is another one, and to the jobs none of it is news.
    assert sorted(table(store, "samples"), key=str) == sorted(samples, key=str)
    assert len(DeltaTable(table_url(store, "samples")).file_uris()) == 2
    (again,) = validated(told[told.index("{") :])
    assert [(job["table"], job["replaced"]) for job in again["jobs"]] == [(name, []) for name in JOBS]

    (row,) = read_plans(store)
    assert row["digest"] == digest(plan(fleet_member.state, Balance(), loads=fleet_member.loads, policy=POLICY))


def keeping(folder: Path) -> tuple[str, str]:
    """An option whose settings keep the samples of 2026-11-21, however late it is, and nothing of a thousand hours before."""
    hours = int((datetime.now(UTC).timestamp() - START_MS / 1000) // 3600) + 500
    kept = {
        "samples_retention_hours": hours,
        "load_hour_retention_days": hours // 24 + 30,
        "table_retention_days": hours // 24 + 400,
    }
    file = folder / "ballast.yaml"
    file.write_text(json.dumps({"pipeline": {"history": kept}}))
    return "--config", str(file)


def test_the_tests_of_the_jobs_hold_here_too(mode: Mode, tmp_path: Path) -> None:
    """Incremental runs, late samples, fleets and their refusals: what holds on the embedded Spark, on these servers."""
    files = [str(Path(__file__).with_name(name)) for name in SUITE]
    told = here(
        *("-c", PYTEST, "-q", "-x", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "again")),
        *files,
        BALLAST_TEST_SPARK=mode.url,
        BALLAST_TEST_SPARK_CONF=json.dumps(mode.conf),
    )
    assert " passed" in told
    assert "skipped" not in told


def test_commands_killed_at_random_leave_every_minute_exactly_once(mode: Mode, tmp_path: Path) -> None:
    """New minutes, and ``kill -9`` anywhere in the run that would read them, round after round.

    What a killed one had handed to a Connect server goes on there beside the next one; on a standalone cluster the driver is
    killed with it, and its executors are left without one.
    """
    store, dice, kills = str(tmp_path / "store"), kill_rounds.dice(SEED), kill_rounds.rounds(KILLS[mode.kind])
    world_ = steady()
    command = mode.command(BALLAST, "pipeline", "run", "--store", store)
    write(store, minutes(world_, 30, A_ROUND))
    begun = time.monotonic()
    mode.ballast(("pipeline", "run", "--store", store))
    lasts_s, killed, rounds = time.monotonic() - begun, 0, 1
    while killed < kills:
        write(store, minutes(world_, 30 + rounds * A_ROUND, A_ROUND))
        rounds += 1
        run_ = Run.start(command, tmp_path)
        run_.until_it_says("making")
        begun = time.monotonic()
        code = run_.kill(dice.uniform(0, lasts_s), whole_group=True)
        if code == KILLED:
            killed += 1
        else:
            # It was quicker this time, or met what a killed one had left to the server.
            assert code == 0 or IN_THE_WAY in run_.told(), run_.told()[-3000:]
            lasts_s = min(lasts_s, time.monotonic() - begun)
    print(f"{killed} killed in {rounds - 1} rounds")  # noqa: T201 — what a developer who asked for many wants to read
    told = finish(mode, store)
    assert_each_minute_once(store, rounds * A_ROUND)
    (first,), (second,) = validated(told), validated(finish(mode, store))
    assert first["newestHour"]
    assert all(job["replaced"] == [] for job in second["jobs"])


def finish(mode: Mode, store: str) -> str:
    """A run to its end; what a killed one left to the server may get into its way, and says so."""
    for _ in range(ATTEMPTS):
        try:
            return mode.ballast(("pipeline", "run", "--store", store, "--output", "json"))
        except AssertionError as refused:
            if IN_THE_WAY not in str(refused):
                raise
    pytest.fail("another run is always in the way")
