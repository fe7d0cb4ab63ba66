"""Brings everything that a cluster of some Kafka version needs, so that starting one needs no network and no patience."""

from __future__ import annotations

from ballast.core.wording import ShowLine
from ballast.sandbox.cluster import Sandbox
from ballast.sandbox.folders import cache_root, hold_lock
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import java_for
from ballast.sandbox.spec import NEWEST, SandboxSpec
from ballast.sandbox.warm import archive_path

OLDEST_JAVA_WITH_ARCHIVES = 13


def prepare(version: str = NEWEST, *, on_line: ShowLine = lambda _: None) -> None:
    """Java, verified jars, first records and a class archive for one Kafka version; what is there already is kept."""
    java = java_for(version, on_line=on_line)
    ensure_jars(f"kafka-{version}", on_line=on_line)
    archive = archive_path(version, java)
    with hold_lock(cache_root() / f".archive-{version}.lock"):
        impossible = archive.with_suffix(".none")
        if archive.exists() or impossible.exists() or java.major < OLDEST_JAVA_WITH_ARCHIVES:
            return
        on_line(f"starting Kafka {version} once to archive its classes (later starts take about half as long)")
        archive.parent.mkdir(parents=True, exist_ok=True)
        spec = SandboxSpec(brokers=1, racks=0, kafka_version=version, archive_classes=True)
        with Sandbox.up(spec) as sandbox:
            sandbox.stop_broker(1)
        try:
            archive.with_suffix(".new").replace(archive)
        except FileNotFoundError:
            # This Java writes none, which only costs time at each start; asked once is enough.
            impossible.touch()
