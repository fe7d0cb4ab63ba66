"""Writes a lock file of jars: resolves some roots as Maven would and writes down every file's coordinates and sha256.

Run by a maintainer (``make lock``) with the development environment's Python; what it writes is reviewed like code.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Final

from jgo.maven import MavenContext

from ballast.sandbox.java import LOCKS
from ballast.sandbox.repository import address

LOG_BINDING: Final = "org.slf4j:slf4j-simple:{}"
"""Kafka's jars name a logging interface and no logger; this one writes to stderr and needs no configuration."""

SETS: Final[dict[str, tuple[str, ...]]] = {
    "kafka-4.3.1": ("org.apache.kafka:kafka_2.13:4.3.1", LOG_BINDING.format("1.7.36")),
    "kafka-3.9.2": ("org.apache.kafka:kafka_2.13:3.9.2", LOG_BINDING.format("1.7.36")),
    "kafka-2.3.1": ("org.apache.kafka:kafka_2.12:2.3.1", LOG_BINDING.format("1.7.26")),
    "kafka-tools-3.9.2": ("org.apache.kafka:kafka-tools:3.9.2",),
    "kafka-tools-4.3.1": ("org.apache.kafka:kafka-tools:4.3.1", "org.apache.kafka:kafka_2.13:4.3.1"),
}
EXCLUDED: Final = ("log4j:log4j", "ch.qos.reload4j:reload4j", "org.slf4j:slf4j-log4j12", "org.slf4j:slf4j-reload4j")


def resolve(roots: tuple[str, ...], landing: Path) -> dict[str, Path]:
    """The roots and what they need to run: coordinates, and the file that the repository has under them."""
    context = MavenContext(repo_cache=landing, remote_repos={"the repository": address()}, timeout=60)
    excluded = [context.project(*name.split(":")) for name in EXCLUDED]
    asked, needed = context.resolver.resolve([context.create_dependency(root, excluded) for root in roots])
    return {f"{d.groupId}:{d.artifactId}:{d.version}": Path(d.artifact.resolve()) for d in [*asked, *needed]}


def lock(name: str) -> None:
    """Resolve one set and write its lock."""
    with tempfile.TemporaryDirectory() as scratch:
        found = sorted(resolve(SETS[name], Path(scratch)).items(), key=lambda row: row[0].split(":"))
        lines = [f"{coordinates} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for coordinates, path in found]
    (LOCKS / f"{name}.lock").write_text(f"# {' '.join(SETS[name])}, as make lock resolved them.\n" + "".join(lines))
    print(f"{name}: {len(lines)} jars")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SETS:
        lock(wanted)
