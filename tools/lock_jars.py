"""Writes a lock file of jars: resolves some roots with Ivy and writes down every file's coordinates and sha256.

Run by a maintainer (``make lock``) with the development environment's Python; what it writes is reviewed like code.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from ballast.sandbox.jars import ivy_jar
from ballast.sandbox.java import LOCKS, ensure_java

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


def resolve(roots: tuple[str, ...], landing: Path) -> None:
    """Let Ivy bring the roots and what they need to run, each under ``group/artifact/version``."""
    ivy = ivy_jar()
    if ivy is None:
        sys.exit("PySpark is not installed here, so there is no Ivy.")
    java = ensure_java()
    rows = ""
    for root in roots:
        group, artifact, version = root.split(":")
        rows += f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}/>"
    for excluded in EXCLUDED:
        group, artifact = excluded.split(":")
        rows += f"<exclude org={quoteattr(group)} module={quoteattr(artifact)}/>"
    module = landing / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="ballast" module="lock"/>'
        '<configurations defaultconfmapping="default->default"><conf name="default"/></configurations>'
        f"<dependencies>{rows}</dependencies></ivy-module>"
    )
    pattern = f"{landing}/[organisation]/[artifact]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
    cache = f"-Divy.cache.dir={landing / 'cache'}"
    command = [java.executable, *java.trust_options, cache, "-jar", str(ivy), "-ivy", str(module), "-retrieve", pattern]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])


def lock(name: str) -> None:
    """Resolve one set and write its lock."""
    with tempfile.TemporaryDirectory() as scratch:
        landing = Path(scratch)
        resolve(SETS[name], landing)
        lines = []
        for path in sorted(landing.glob("*/*/*/*.jar")):
            group, artifact, version = path.relative_to(landing).parts[:3]
            if group == "cache":
                continue
            assert path.name == f"{artifact}-{version}.jar", path
            lines.append(f"{group}:{artifact}:{version} {hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    (LOCKS / f"{name}.lock").write_text(f"# {' '.join(SETS[name])}, as make lock resolved them.\n" + "".join(lines))
    print(f"{name}: {len(lines)} jars")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SETS:
        lock(wanted)
