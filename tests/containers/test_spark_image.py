"""The pipeline's image runs as the chart's pod would: uid 65532, a read-only root, no network, the store and /tmp alone to write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from tests.chart.conftest import EVERYTHING, merged, one, render
from tests.containers.pod import Objects, as_container
from tests.containers.test_pod import Run, objects_of, run
from tests.spark.series import Log, World
from tests.spark.series import run as run_world

from ballast.adapters.samples.store import SampleStore, table_url

pytestmark = [pytest.mark.containers, pytest.mark.spark, pytest.mark.timeout(1200)]
"""The first test also waits for its image to be built."""

__all__ = ["render", "run"]
USER: Final = 65532
CLAIM: Final = "samples"
ENDS_WITHIN_S: Final = 600
"""Spark starts and plans for half a minute of a quiet machine."""


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    """A volume with three minutes of samples, owned by the pod's user."""
    folder = tmp_path / "claim"
    world, sink = World({("orders", 0): Log()}), SampleStore(str(folder / "samples"))
    for sample in run_world(world, range(3), lambda _: world.logs["orders", 0].append(100)):
        assert sink.write(sample)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER)
    return folder


def pipeline_pod(render: Callable[..., Any], image: str, claim: Path, folder: Path) -> dict[str, Any]:
    """The CronJob's pod as a container without any network."""
    over: dict[str, Any] = {
        "auth": {"properties": {"secret": ""}, "strimzi": {"userSecret": "", "clusterCaSecret": ""}, "files": []},
        "web": {"token": {"secret": ""}},
        "pipeline": {"image": image, "args": ["pipeline", "run", "--output", "json"]},
    }
    rendered = render(merged(EVERYTHING, over))
    spec = one(rendered, "CronJob", "-pipeline")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    objects = Objects(configs=objects_of(rendered).configs, claims={CLAIM: claim})
    return as_container(spec, pod_name="shop-pipeline-0", objects=objects, folder=folder) | {
        "network_mode": "none", "hostname": "localhost",
    }  # fmt: skip


def test_the_pipeline_makes_the_load_model(
    run: Run, spark_image: str, render: Callable[..., Any], claim: Path, tmp_path: Path
) -> None:
    """From the samples in the claim, with the jars in Spark's own folder; nothing is fetched."""
    arguments = pipeline_pod(render, spark_image, claim, tmp_path / "objects")
    assert arguments["user"] == f"{USER}:{USER}"
    assert arguments["read_only"]
    container = run(**arguments)
    try:
        code = container.wait(timeout=ENDS_WITHIN_S)["StatusCode"]
        told = container.logs(stdout=False, stderr=True).decode()
        assert code == 0, told
        assert "fetching" not in told
        done = {job["table"]: job["rows"] for job in json.loads(container.logs(stdout=True, stderr=False))["jobs"]}
        assert done["load_model"] == 1
        model = DeltaTable(table_url(str(claim / "samples"), "load_model"))
        assert model.to_pyarrow_table().num_rows == 1
    finally:
        container.remove(force=True)


def test_an_executor_gets_as_far_as_its_driver(docker_client: Any, spark_image: str) -> None:
    """Started as Spark starts it, the backend runs and fails for want of a driver, not of a class, a user or a folder."""
    environment = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1", "SPARK_EXECUTOR_ID": "1", "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "256m", "SPARK_APPLICATION_ID": "spark-1", "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_RESOURCE_PROFILE_ID": "0", "SPARK_EXECUTOR_POD_NAME": "shop-exec-1", "SPARK_JAVA_OPT_0": "-Dspark.rpc.askTimeout=5s",
    }  # fmt: skip
    container = docker_client.containers.create(
        spark_image, ["executor"], environment=environment, read_only=True, cap_drop=["ALL"], network_mode="none",
        hostname="localhost", tmpfs={"/tmp": "size=64m,mode=1777,exec"},  # noqa: S108
    )  # fmt: skip
    try:
        container.start()
        assert container.wait(timeout=ENDS_WITHIN_S)["StatusCode"] != 0
        told = container.logs().decode()
        assert "127.0.0.1:1" in told
        assert "ClassNotFound" not in told
        assert "LoginException" not in told
    finally:
        container.remove(force=True)
