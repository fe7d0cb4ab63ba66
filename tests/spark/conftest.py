"""One Spark session for all tests here; they share its JVM and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ballast.pipeline.session import DELTA_LOCK, SparkPolicy, open_session
from ballast.sandbox.jars import ensure_jars


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark on two local cores, with Delta's jars."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    policy = SparkPolicy(
        master="local[2]",
        driver_memory="1g",
        shuffle_partitions=2,
        conf={
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.local.dir": str(warehouse),
            # Tiny data: the time goes into compiling Spark itself, and into its planning of every query again.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.adaptive.enabled": "false",
        },
    )
    session = open_session(policy, ensure_jars(DELTA_LOCK))
    yield session
    session.stop()


@pytest.fixture
def store(tmp_path: Path) -> str:
    """An empty store."""
    return str(tmp_path / "store")
