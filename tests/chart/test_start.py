"""What the images start: Ballast's command, Spark's driver and executor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.chart.conftest import ROOT

START = ROOT / "deploy" / "start.py"
TELL = "#!{python}\nimport json, sys\nprint(json.dumps(sys.argv))\n"
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078", "SPARK_EXECUTOR_ID": "2", "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "1g", "SPARK_APPLICATION_ID": "spark-1", "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_RESOURCE_PROFILE_ID": "0", "SPARK_EXECUTOR_POD_NAME": "shop-exec-2",
}  # fmt: skip
"""What Spark puts into an executor's environment."""


@pytest.fixture
def spark(tmp_path: Path) -> dict[str, str]:
    """An environment whose Java and spark-submit only tell how they were called."""
    for program in ("java/bin/java", "spark/bin/spark-submit"):
        path = tmp_path / program
        path.parent.mkdir(parents=True)
        path.write_text(TELL.format(python=sys.executable))
        path.chmod(0o755)
    return {"JAVA_HOME": str(tmp_path / "java"), "SPARK_HOME": str(tmp_path / "spark")}


def start(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The entry point as the image calls it."""
    return subprocess.run(
        [sys.executable, str(START), *arguments], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "operator"), **environment},
    )  # fmt: skip


def test_anything_else_is_ballasts_arguments(spark: dict[str, str]) -> None:
    """With and without Spark in the image."""
    for environment in ({}, spark):
        done = start(environment, "--version")
        assert (done.returncode, done.stdout.split(",")[0]) == (0, "ballast")


def test_without_spark_driver_is_no_word(tmp_path: Path) -> None:
    """The daemon's image answers as the command does."""
    assert start({}, "driver").returncode == 2


def test_a_driver_is_bound_to_its_pod(spark: dict[str, str]) -> None:
    """What Spark's operator passes on comes last, as it came."""
    address = {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"}
    words = json.loads(
        start(spark | address, "driver", "--class", "org.apache.spark.deploy.PythonRunner", "local:///a.py", "x").stdout
    )
    assert words[1:7] == [
        "--conf", "spark.driver.bindAddress=10.0.0.7", "--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.7",
        "--deploy-mode", "client",
    ]  # fmt: skip
    assert words[7:] == ["--class", "org.apache.spark.deploy.PythonRunner", "local:///a.py", "x"]


def test_an_executor_reports_to_its_driver(spark: dict[str, str]) -> None:
    """Java's options in Spark's numbering (ten comes after two), heap, class path, and who it is."""
    options = {f"SPARK_JAVA_OPT_{n}": f"-Doption={n}" for n in (10, 2, 0)}
    words = json.loads(start(spark | EXECUTOR | options, "executor").stdout)
    assert words[1:6] == ["-Doption=0", "-Doption=2", "-Doption=10", "-Xms1g", "-Xmx1g"]
    at = words.index("-cp")
    assert words[at + 1].split(":")[-1] == f"{spark['SPARK_HOME']}/jars/*"
    told = dict(zip(words[at + 3 :: 2], words[at + 4 :: 2], strict=True))
    assert told == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"], "--executor-id": "2", "--cores": "1", "--app-id": "spark-1",
        "--hostname": "10.0.0.9", "--resourceProfileId": "0", "--podName": "shop-exec-2",
    }  # fmt: skip


def test_the_bill_of_materials_is_the_environment(tmp_path: Path) -> None:
    """Every package that is installed, by name and version."""
    target = tmp_path / "sbom.json"
    subprocess.run([sys.executable, str(ROOT / "deploy" / "sbom.py"), str(target)], check=True)
    bill = json.loads(target.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {c["name"]: c["version"] for c in bill["components"] if "purl" in c}
    assert {name: version(name) for name in ("numpy", "click", "kafka-python")}.items() <= listed.items()
    assert any(c["name"].startswith("spark-core") and c["hashes"] for c in bill["components"])
