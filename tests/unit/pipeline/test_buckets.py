"""What Spark needs for a store in a bucket, and how the tables that samplers write are maintained there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.spark.series import run
from tests.spark.test_jobs import grow, world

from ballast.adapters.samples.store import SampleStore
from ballast.core.samples import BROKERS, LOG_DIRS, SAMPLES
from ballast.pipeline.buckets import S3_LOCK, jar_locks, with_bucket
from ballast.pipeline.maintenance import maintain_beside_writers
from ballast.pipeline.session import DELTA_LOCK, SparkPolicy
from ballast.pipeline.table_log import TableLog
from ballast.sandbox.jars import read_lock

BUCKET = "s3a://bucket/store"
ENVIRONMENT = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:7070",
    "AWS_REGION": "eu-central-1",
    "AWS_S3_ADDRESSING_STYLE": "path",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
}
ENDPOINT = "spark.hadoop.fs.s3a.endpoint"


def test_spark_finds_the_bucket_where_delta_rs_does() -> None:
    """By the same variables; secrets stay where they are, and what the user says wins."""
    told = dict(with_bucket(SparkPolicy(), BUCKET, ENVIRONMENT).conf)
    assert told == {
        ENDPOINT: "http://127.0.0.1:7070",
        f"{ENDPOINT}.region": "eu-central-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    own = SparkPolicy(conf={ENDPOINT: "https://elsewhere"})
    assert with_bucket(own, BUCKET, ENVIRONMENT).conf[ENDPOINT] == "https://elsewhere"


@pytest.mark.parametrize(
    ("policy", "store", "environment"),
    [
        (SparkPolicy(), "/var/lib/ballast", ENVIRONMENT),
        (SparkPolicy(master="sc://host:15002"), BUCKET, ENVIRONMENT),
        (SparkPolicy(), BUCKET, {}),
    ],
)
def test_a_folder_a_connect_server_and_amazon_s_own_buckets_need_no_address(
    policy: SparkPolicy, store: str, environment: dict[str, str]
) -> None:
    """Nothing is added."""
    assert with_bucket(policy, store, environment) == policy


def test_the_connector_comes_with_a_bucket_unless_the_user_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is large: neither for a folder, nor where a property or Spark's own folder has one."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    assert jar_locks(SparkPolicy(), BUCKET) == (DELTA_LOCK, S3_LOCK)
    assert jar_locks(SparkPolicy(), "/store") == (DELTA_LOCK,)
    named = SparkPolicy(conf={"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"})
    assert jar_locks(named, BUCKET) == (DELTA_LOCK,)
    (tmp_path / "jars" / "hadoop-aws-3.4.2.jar").touch()
    assert jar_locks(SparkPolicy(), BUCKET) == (DELTA_LOCK,)


def test_the_connector_is_of_the_hadoop_that_pyspark_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop's own parts refuse another version, in words that name a missing class."""
    from ballast.pipeline.session import spark_jars

    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert any(spark_jars().glob(f"hadoop-client-api-{S3_LOCK.removeprefix('hadoop-aws-')}.jar"))
    assert len({jar.file_name for jar in read_lock(S3_LOCK)}) == 4
    assert all(len(jar.sha256) == 64 for jar in read_lock(S3_LOCK))


def test_tables_that_samplers_write_are_maintained_without_spark(tmp_path: Path) -> None:
    """Old hours go, closed ones become one file each, the open one stays as it is, and no row changes."""
    store, w = str(tmp_path / "store"), world()
    sink, log, told = SampleStore(store), TableLog(store), list[str]()
    for sample in run(w, range(57, 62), grow(w)):
        sink.write(sample)
    before = sorted(log.ensure(SAMPLES).to_pyarrow_table().to_pylist(), key=str)
    closed, current = log.parts(SAMPLES)
    for table in (SAMPLES, BROKERS, LOG_DIRS):
        maintain_beside_writers(log, table, closed, current, told.append)
        assert [part.files for part in log.parts(table).values()] == [1, 2], table.name
    assert sorted(log.ensure(SAMPLES).to_pyarrow_table().to_pylist(), key=str) == before
    assert told == []
    maintain_beside_writers(log, SAMPLES, closed + timedelta(hours=1), current, told.append)
    assert list(log.parts(SAMPLES)) == [current]
    assert told == ["samples: kept from 2026-11-21T14"]
