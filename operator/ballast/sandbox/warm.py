"""What is prepared once per Kafka version and Java, and kept in the cache: first metadata records and a class archive.

Both come from Kafka and Java themselves: the storage tool writes the records that give a new KRaft cluster its features,
and a JVM that ends writes the classes it had loaded, so that the next one starts with them mapped (AppCDS).
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from ballast.core.wording import ShowLine
from ballast.errors import Unavailable
from ballast.sandbox import layout
from ballast.sandbox.folders import cache_root, hold_lock
from ballast.sandbox.java import Java
from ballast.sandbox.spec import FIRST_CONTROLLER

CHECKPOINT: Final = "bootstrap.checkpoint"
FORMAT_LIMIT_S: Final = 120


def first_records(version: str, java: Java, jars: tuple[Path, ...], *, on_line: ShowLine) -> bytes:
    """What Kafka's storage tool puts into a new metadata log dir; made by that tool, once per version."""
    kept = cache_root() / "checkpoints" / f"kafka-{version}.checkpoint"
    with hold_lock(cache_root() / f".checkpoint-{version}.lock"):
        if not kept.exists():
            on_line(f"asking Kafka {version} for the first records of a cluster")
            kept.parent.mkdir(parents=True, exist_ok=True)
            fresh = kept.with_suffix(".new")
            fresh.write_bytes(_format(java, jars))
            fresh.replace(kept)
        return kept.read_bytes()


def _format(java: Java, jars: tuple[Path, ...]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ballast-format-") as scratch:
        data = Path(scratch) / "data"
        config = Path(scratch) / "server.properties"
        config.write_text(
            layout.as_properties(
                {
                    "process.roles": "controller",
                    "node.id": str(FIRST_CONTROLLER),
                    "controller.quorum.voters": f"{FIRST_CONTROLLER}@{layout.LOOPBACK}:1",
                    "controller.listener.names": "CONTROLLER",
                    "listeners": f"CONTROLLER://{layout.LOOPBACK}:1",
                    "log.dirs": str(data),
                }
            )
        )
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id", layout.new_id(), "--config", str(config)]
        command = layout.java_command(java, jars, heap_mib=128, options=[], main=tool)
        done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_LIMIT_S, check=False)
        written = data / CHECKPOINT
        if done.returncode != 0 or not written.exists():
            raise Unavailable(f"Kafka's storage tool failed: {(done.stdout + done.stderr)[-800:].strip()}")
        return written.read_bytes()


def archive_path(version: str, java: Java) -> Path:
    """Where the class archive of a Kafka on a Java is kept; another Java, even of the same version, has another one."""
    runtime = java.home / "lib" / "modules"
    mark = f"{java.home} {runtime.stat().st_size if runtime.exists() else 0} {java.major}"
    return cache_root() / "classes" / f"kafka-{version}-{hashlib.sha256(mark.encode()).hexdigest()[:16]}.jsa"
