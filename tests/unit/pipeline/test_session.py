"""Which Spark properties a session gets: for each kind of Spark, and under the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ballast.errors import Unavailable
from ballast.pipeline.session import (
    JAVA_OPTIONS,
    SparkPolicy,
    for_work_in_python,
    open_session,
    properties,
    stdout_on_stderr,
)

JAR = Path("/jars/delta.jar")


def test_the_jvm_of_a_cluster_is_its_owner_s_business() -> None:
    """Only the embedded one is tuned here; adaptive execution is left on everywhere."""
    assert JAVA_OPTIONS in properties(SparkPolicy(), [JAR])
    assert JAVA_OPTIONS not in properties(SparkPolicy(master="spark://host:7077"), [JAR])
    assert "spark.sql.adaptive.enabled" not in properties(SparkPolicy(), [JAR])


def test_the_user_s_properties_win() -> None:
    """Over every one of Ballast's."""
    found = properties(SparkPolicy(conf={JAVA_OPTIONS: "-Dx=1", "spark.sql.session.timeZone": "CET"}), [JAR])
    assert (found[JAVA_OPTIONS], found["spark.sql.session.timeZone"]) == ("-Dx=1", "CET")


def test_a_job_in_python_has_a_quick_jvm_where_it_is_ours() -> None:
    """Its compiler would take as long as the plans of a hundred clusters; a cluster's JVMs are not touched, and the user wins."""
    options = properties(for_work_in_python(SparkPolicy()), [])[JAVA_OPTIONS]
    assert "TieredStopAtLevel=1" in options
    # With the first compiler alone a JVM reserves 48 MB: the suite's session filled them, and Spark ended.
    assert "ReservedCodeCacheSize=240m" in options
    assert JAVA_OPTIONS not in properties(for_work_in_python(SparkPolicy(master="spark://h:7077")), [])
    asked = SparkPolicy(conf={JAVA_OPTIONS: "-Xint"})
    assert properties(for_work_in_python(asked), [])[JAVA_OPTIONS] == "-Xint"


def test_the_embedded_spark_listens_on_the_loopback_and_a_connect_server_keeps_its_own_jars() -> None:
    """Nothing of an embedded run is reachable from outside; what is static on a server is not asked for."""
    local = properties(SparkPolicy(), [JAR])
    assert {local["spark.driver.bindAddress"], local["spark.driver.host"]} == {"127.0.0.1"}
    assert local["spark.driver.extraClassPath"] == str(JAR)
    assert properties(SparkPolicy(master="spark://h:7077"), [JAR])["spark.jars"] == str(JAR)
    connect = properties(SparkPolicy(master="sc://127.0.0.1:15002"), [JAR])
    assert not {"spark.jars", "spark.driver.extraClassPath", "spark.sql.extensions", "spark.driver.memory"} & set(
        connect
    )


@pytest.mark.parametrize(
    ("conf", "python"), [({}, sys.executable), ({"spark.pyspark.python": "./env/bin/python"}, "./env/bin/python")]
)
def test_workers_run_this_python_or_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], python: str
) -> None:
    """PySpark reads the environment alone: a packed environment's Python would not be heard of from the property."""
    monkeypatch.setenv("PYSPARK_PYTHON", "to be restored")
    monkeypatch.delenv("PYSPARK_PYTHON")

    def refuse(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", refuse)
    with pytest.raises(Unavailable, match="did not start: RuntimeError"):
        open_session(SparkPolicy(conf=conf))
    assert os.environ["PYSPARK_PYTHON"] == python


@pytest.mark.parametrize(("master", "left"), [("local[2]", set()), ("sc://h", {"SPARK_REMOTE"})])
def test_a_connect_server_in_the_environment_is_not_taken_for_the_spark_that_was_named(
    monkeypatch: pytest.MonkeyPatch, master: str, left: set[str]
) -> None:
    """A shell, or an earlier session of the same process, leaves it there; PySpark would refuse the master for it."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    seen: list[set[str]] = []

    def refuse(*_: object) -> None:
        seen.append({"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & set(os.environ))
        raise RuntimeError

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", refuse)
    with pytest.raises(Unavailable):
        open_session(SparkPolicy(master=master))
    assert seen == [left]


@pytest.mark.parametrize("url", ["sc://h:15002/;token=hunter2%3D%3D", "sc://h/;use_ssl=true;token=hunter2=="])
def test_what_pyspark_says_of_an_address_is_told_without_its_token(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """It repeats the whole address, or one parameter of it."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def refuse(*_: object) -> None:
        raise RuntimeError(f"{url}: parameter '{url.rpartition(';')[2]}' should be a pair")

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", refuse)
    with pytest.raises(Unavailable, match=r"Spark at sc://h\S* did not start: sc://h.*: parameter '…' should") as told:
        open_session(SparkPolicy(master=url))
    assert "hunter2" not in str(told.value)


def test_without_jars_of_ours_spark_takes_its_own() -> None:
    """An empty list is none; Delta is switched on all the same."""
    found = properties(SparkPolicy(), [])
    assert not {"spark.jars", "spark.driver.extraClassPath"} & set(found)
    assert "spark.sql.extensions" in found


def test_what_a_jvm_prints_is_no_part_of_a_command_s_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """``--output json`` is read by programs, and Delta prints what its VACUUM freed."""
    with stdout_on_stderr():
        started = subprocess.Popen(["sh", "-c", "read line; echo freed"], stdin=subprocess.PIPE)
    os.write(1, b"{}\n")
    started.communicate(b"go\n")
    assert capfd.readouterr() == ("{}\n", "freed\n")
