"""What the images start: Ballast's command; in ``ballast-spark`` also the driver and the executor that Spark asks for on Kubernetes.

``driver …`` and ``executor`` are the two words with which Spark starts its pods; what they need is in the environment, under
Spark's own names.  Anything else is Ballast's arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JAVA_OPTION = "SPARK_JAVA_OPT_"


def driver(environment: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """Spark's driver in a pod of its own: ``spark-submit`` in client mode, bound to the pod's address."""
    address = environment["SPARK_DRIVER_BIND_ADDRESS"]
    return [
        f"{environment['SPARK_HOME']}/bin/spark-submit",
        "--conf", f"spark.driver.bindAddress={address}",
        "--conf", f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}",
        "--deploy-mode", "client",
        *arguments,
    ]  # fmt: skip


def executor(environment: Mapping[str, str]) -> list[str]:
    """An executor: a JVM that reports to the driver, with the options in the order in which Spark numbered them."""
    numbered = sorted(
        (int(k.removeprefix(JAVA_OPTION)), v) for k, v in environment.items() if k.startswith(JAVA_OPTION)
    )
    home, memory = environment["SPARK_HOME"], environment["SPARK_EXECUTOR_MEMORY"]
    places = (
        environment.get("SPARK_CLASSPATH", ""), environment.get("SPARK_EXTRA_CLASSPATH", ""),
        environment.get("SPARK_CONF_DIR", f"{home}/conf"), f"{home}/jars/*",
    )  # fmt: skip
    return [
        f"{environment['JAVA_HOME']}/bin/java",
        *(option for _, option in numbered),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp", ":".join(place for place in places if place),
        BACKEND,
        "--driver-url", environment["SPARK_DRIVER_URL"],
        "--executor-id", environment["SPARK_EXECUTOR_ID"],
        "--cores", environment["SPARK_EXECUTOR_CORES"],
        "--app-id", environment["SPARK_APPLICATION_ID"],
        "--hostname", environment["SPARK_EXECUTOR_POD_IP"],
        "--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"],
        "--podName", environment["SPARK_EXECUTOR_POD_NAME"],
    ]  # fmt: skip


def command(environment: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """The process that takes this one's place."""
    if "SPARK_HOME" in environment and arguments[:1] == ["driver"]:
        return driver(environment, arguments[1:])
    if "SPARK_HOME" in environment and arguments[:1] == ["executor"]:
        return executor(environment)
    return [sys.executable, "-m", "ballast", *arguments]


def main() -> None:
    """Become the command."""
    words = command(os.environ, sys.argv[1:])
    os.execv(words[0], words)  # noqa: S606 — this process becomes the command, which then gets the kubelet's signals


if __name__ == "__main__":
    main()
