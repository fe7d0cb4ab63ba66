"""The store in a bucket, for samplers and for Spark: an S3 server of the suite on the loopback."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootstrap.programs import path_of
from tests.leash import leashed
from tests.spark import kill_rounds
from tests.spark.kill_rounds import KILLED, Run
from tests.spark.servers import QUICK, free_port, wait_for
from tests.spark.test_jobs import world, write
from tests.spark.test_modes import Mode, keeping
from tests.spark.test_pipeline_kills import BALLAST, MOMENTS, assert_each_minute_once, minutes, steady
from tests.spark.test_sampler_kills import kill_writers

from ballast.adapters.samples.store import SampleStore
from ballast.core.samples import SAMPLES
from ballast.errors import Unavailable
from ballast.pipeline.table_log import TableLog

pytestmark = pytest.mark.s3

KILLS = 6
SPARK_KILLS = 1
SEED = 31
A_ROUND = 40
"""Minutes that are new in each round, so that two rounds cross an hour."""
LATEST_S = 0.1
"""A commit to the server takes longer than one to a folder."""


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket, which is a folder of the server's; its credentials are in the environment, as delta-rs takes them."""
    (tmp_path / "buckets" / "ballast").mkdir(parents=True)
    port, secret, log = free_port(), secrets.token_hex(16), tmp_path / "server.log"
    environment = {**os.environ, "ROOT_ACCESS_KEY": "ballast", "ROOT_SECRET_KEY": secret}
    command = leashed(path_of("versitygw"), "--port", f"127.0.0.1:{port}", "posix", str(tmp_path / "buckets"))
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as server,
    ):
        wait_for(port, server, log)
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_S3_ADDRESSING_STYLE": "path",
            "AWS_CONDITIONAL_PUT": "etag",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "ballast",
            "AWS_SECRET_ACCESS_KEY": secret,
        }.items():
            monkeypatch.setenv(name, value)
        yield "s3a://ballast/store"
        server.terminate()


def test_killed_writers_leave_every_minute_of_a_bucket_exactly_once(bucket: str) -> None:
    """As of a folder."""
    kill_writers(bucket, KILLS, LATEST_S)


@pytest.mark.spark
@pytest.mark.s3a
@pytest.mark.timeout(1800)
def test_jobs_killed_over_a_bucket_leave_every_minute_exactly_once(bucket: str, tmp_path: Path) -> None:
    """The same commands, with the environment's variables for the bucket and nothing else; maintenance is not read as new samples there either."""
    dice, kills, world_ = kill_rounds.dice(SEED), kill_rounds.rounds(SPARK_KILLS), steady()
    spark = Mode("bucket", "local[2]", {**QUICK, "spark.local.dir": str(tmp_path)})
    run_words = ("pipeline", "run", "--store", bucket, "--output", "json")
    for round_ in range(kills):
        write(bucket, minutes(world_, 30 + round_ * A_ROUND, A_ROUND))
        run = Run.start(spark.command(BALLAST, *run_words), tmp_path)
        run.until_it_says(dice.choice(MOMENTS[1:]))
        assert run.kill(dice.uniform(0, LATEST_S), whole_group=True) == KILLED, run.told()[-3000:]
    told = spark.ballast(run_words, (*run_words, "--maintenance", *keeping(tmp_path)), run_words)
    assert_each_minute_once(bucket, kills * A_ROUND)
    assert {part.files for part in TableLog(bucket).parts(SAMPLES).values()} == {1}
    again = json.loads(told[told.rindex('{\n  "apiVersion"') :])["jobs"]
    assert all(job["replaced"] == [] for job in again)


def test_a_bucket_that_refuses_is_a_sentence_and_no_empty_store(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong credentials: no user is told that there are no samples, and no secret is shown."""
    sample = world().sample(0)
    assert TableLog(bucket).exists(SAMPLES) is False
    assert SampleStore(bucket).write(sample)
    assert TableLog(bucket).exists(SAMPLES)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(Unavailable) as told:
        TableLog(bucket).exists(SAMPLES)
    assert bucket in str(told.value)
    with pytest.raises(Unavailable) as told:
        SampleStore(bucket).write(sample)
    assert bucket in str(told.value)
    assert "another" not in str(told.value)
