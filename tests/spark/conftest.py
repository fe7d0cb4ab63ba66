"""One Spark session for all tests here, on whichever kind of Spark ``BALLAST_TEST_SPARK`` names.

``local`` (default) is embedded; ``connect`` starts a Spark Connect server; ``standalone`` starts a master and two workers.
All of it on loopback, started and ended here; the tests do not know which it is.  An address is one of servers that are
up already, with the Spark properties of ``BALLAST_TEST_SPARK_CONF`` (JSON): so ``test_modes`` runs these tests on its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from tests.spark.servers import QUICK, ROOT, connect_server, standalone

from ballast.pipeline.session import DELTA_LOCK, SparkPolicy, open_session
from ballast.sandbox.jars import ensure_jars


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all tests."""
    folder, jars = tmp_path_factory.mktemp("spark"), list(ensure_jars(DELTA_LOCK))
    kind = os.environ.get("BALLAST_TEST_SPARK", "local")
    conf = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder), **QUICK}
    with ExitStack() as stack:
        if kind == "connect":
            master, conf = stack.enter_context(connect_server(folder, jars)), {}
        elif kind == "standalone":
            master = stack.enter_context(standalone(folder))
            conf |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": "1g",
                "spark.executor.memory": "700m",
                "spark.executorEnv.PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}",
            }
        elif "://" in kind:
            master, conf = kind, json.loads(os.environ["BALLAST_TEST_SPARK_CONF"])
        else:
            assert kind == "local", f"BALLAST_TEST_SPARK={kind} is not local, connect, standalone or an address"
            master = "local[2]"
        session = open_session(SparkPolicy(master=master, driver_memory="1g", conf=conf), jars)
        stack.callback(session.stop)
        yield session


@pytest.fixture
def spark(session: Any) -> Iterator[Any]:
    """The session that every test is handed; a JVM that ends is told in the test in which it did, and in each one after it."""
    yield session
    gateway = SparkContext._gateway
    code = None if gateway is None or not hasattr(gateway, "proc") else gateway.proc.poll()
    if code is not None:
        pytest.fail(f"Spark's JVM has ended with {code} (-9: killed, 52: out of memory, 134: crashed)")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """An empty store."""
    return str(tmp_path / "store")
