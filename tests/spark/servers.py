"""Spark's servers as processes of the suite, on loopback: a Spark Connect server, and a master with two workers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.ports import free_ports

from ballast.pipeline.session import QUICK_JVM

ROOT = Path(__file__).resolve().parents[2]
WATCHDOG = Path(__file__).with_name("watchdog.py")
READY_WITHIN_S = 180
QUICK = {
    # Tiny data: the time goes into compiling Spark itself, and into its planning of every query again.
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


def free_port() -> int:
    """A port of loopback that no process listens on now, and that no client is given for its own end before the server has it."""
    (port,) = free_ports(1)
    return port


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until a server listens; its log is the failure's text."""
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"nothing listens on {port}: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def server(
    name: str, folder: Path, port: int, java_class: str, *arguments: str, submit: bool = False, bare: bool = False
) -> Iterator[None]:
    """A part of Spark as a process of its own, with Ballast importable for the Python workers it starts unless it is ``bare``."""
    import pyspark

    home = Path(pyspark.__file__).parent
    program = "spark-submit" if submit else "spark-class"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    if bare:
        del environment["PYTHONPATH"], environment["PYSPARK_PYTHON"]
    command = [str(home / "bin" / program), *(["--class", java_class] if submit else [java_class]), *arguments]
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(WATCHDOG), str(os.getpid()), *command],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    try:
        wait_for(port, process, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def connect_server(folder: Path, jars: list[Path]) -> Iterator[str]:
    """A Spark Connect server with Delta; the session's own static settings are the server's."""
    port = free_port()
    conf = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.jars": ",".join(str(j) for j in jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **QUICK,
    }
    flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with server("connect", folder, port, name, *flags, "spark-internal", submit=True):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def standalone(folder: Path, *, workers: int = 2, memory: str = "1g", bare: bool = False) -> Iterator[str]:
    """A master and workers of one core each; ``bare`` ones know nothing of Ballast."""
    port, deploy = free_port(), "org.apache.spark.deploy"
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        here = ("--host", "127.0.0.1", "--webui-port", "0")
        stack.enter_context(
            server("master", folder, port, f"{deploy}.master.Master", *here, "--port", str(port), bare=bare)
        )
        for number in range(workers):
            mine = free_port()
            size = ("--cores", "1", "--memory", memory, "--port", str(mine))
            stack.enter_context(
                server(f"worker{number}", folder, mine, f"{deploy}.worker.Worker", *here, *size, url, bare=bare)
            )
        yield url


def packed_environment(folder: Path) -> Path:
    """The archive that docs/pipeline.md tells to make, Ballast inside; its libraries are linked, since copying them takes long."""
    environment, archive = folder / "environment", folder / "ballast.tar.gz"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    shutil.copytree(ROOT / "operator" / "ballast", packages / "ballast", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(environment, arcname=".")
    return archive
