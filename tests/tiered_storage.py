"""Clusters with tiered storage (KIP-405): Kafka's own ``LocalTieredStorage``, with a folder as the remote storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ballast.sandbox import SandboxSpec
from ballast.sandbox.jars import ensure_jars

MEBIBYTE: Final = 1 << 20
ENABLE: Final = {"remote.log.storage.system.enable": "true"}
TOPIC: Final = {
    "remote.storage.enable": "true",
    "segment.bytes": str(MEBIBYTE),
    "local.retention.bytes": str(3 * MEBIBYTE),
    "file.delete.delay.ms": "100",
}
"""The configs of a tiered topic: between three and five mebibytes of it stay on disk."""


def tiered_spec(kafka_version: str, remote: Path, **more: Any) -> SandboxSpec:
    """A cluster whose remote storage is this folder; rolled segments are uploaded and deleted within seconds."""
    (jar,) = ensure_jars(f"kafka-storage-test-{kafka_version}")
    configs = {
        **ENABLE,
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.class.path": str(jar),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": "500",
        "rsm.config.dir": str(remote),
        "rsm.config.delete.on.close": "false",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "2",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
    }
    return SandboxSpec(kafka_version=kafka_version, broker_configs=configs, controller_configs=ENABLE, **more)
