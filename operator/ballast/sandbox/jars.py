"""Kafka's jars: named and pinned by sha256 in a lock file, fetched by Ivy or Maven, kept in the user's cache.

A lock line is ``group:artifact:version sha256``.  Nothing is resolved when fetching: exactly the listed files are asked for,
from whatever repository the build tool is configured with, and a file that is not what the lock says is never used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from ballast.errors import Unavailable, UsageError
from ballast.sandbox.folders import cache_root, locked
from ballast.sandbox.java import LOCKS, Say, ensure_java

TOOLS: Final = "kafka-tools-4.3.1"
"""The lock of Kafka's own command line tools."""

FETCH_LIMIT_S: Final = 1200


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name that Ivy and Maven both give it."""
        return f"{self.artifact}-{self.version}.jar"


def versions() -> tuple[str, ...]:
    """The Kafka versions that have a lock."""
    return tuple(
        sorted(path.name.removeprefix("kafka-").removesuffix(".lock") for path in LOCKS.glob("kafka-[0-9]*.lock"))
    )


def read_lock(name: str) -> tuple[Jar, ...]:
    """The jars of one lock file, in its order, which is the class path's."""
    path = LOCKS / f"{name}.lock"
    if not path.exists():
        raise UsageError(
            f"No Kafka of that version can be started: {name.removeprefix('kafka-')}.",
            hint=f"There are locks for {', '.join(versions())}.",
        )
    jars = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            coordinates, sha256 = line.split()
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(group, artifact, version, sha256))
    return tuple(jars)


def jar_folder(name: str) -> Path:
    """Where a lock's jars are kept."""
    return cache_root() / "jars" / name


def ensure_jars(name: str, *, say: Say = lambda _: None) -> tuple[Path, ...]:
    """Every jar of a lock, verified; fetches what is missing or broken and nothing else.

    Raises ``UsageError`` when nothing here can fetch, ``Unavailable`` when the fetching failed.
    """
    jars = read_lock(name)
    folder = jar_folder(name)
    with locked(cache_root() / f".{name}.lock"):
        wanted = [jar for jar in jars if not _is_sound(folder / jar.file_name, jar)]
        if wanted:
            have = len(jars) - len(wanted)
            say(
                f"fetching {len(wanted)} jars of {name}"
                + (f" ({have} of {len(jars)} are here already)" if have else "")
            )
            folder.mkdir(parents=True, exist_ok=True)
            _fetch(wanted, folder, say)
            say(f"{len(jars)} jars of {name} verified")
    return tuple(folder / jar.file_name for jar in jars)


def _is_sound(path: Path, jar: Jar) -> bool:
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


def _fetch(wanted: list[Jar], folder: Path, say: Say) -> None:
    """Fetch into a scratch folder, verify, and only then let each file take its name."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
        landing = Path(scratch) / "jars"
        landing.mkdir()
        fetcher = _ivy(wanted, landing, Path(scratch)) or _maven(wanted, landing, Path(scratch))
        if fetcher is None:
            raise UsageError(
                "Kafka's jars are not in the cache, and neither PySpark's Ivy nor Maven is here to fetch them.",
                hint="pip install 'kafka-ballast[spark]', or install Maven.",
            )
        _run(fetcher, wanted, landing, say)
        for jar in wanted:
            path = landing / jar.file_name
            if not path.exists():
                raise Unavailable(f"{jar.file_name} could not be fetched.", hint="Check the network and try again.")
            if not _is_sound(path, jar):
                raise UsageError(
                    f"{jar.file_name} is not the file that the lock names; it was thrown away.",
                    hint="Somebody on the way serves another file. Nothing of it was run.",
                )
            path.replace(folder / jar.file_name)


def _run(command: list[str], wanted: list[Jar], landing: Path, say: Say) -> None:
    log = landing.parent / "fetch.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            for waited_s in range(10, FETCH_LIMIT_S + 10, 10):
                try:
                    process.wait(timeout=10)
                    break
                except subprocess.TimeoutExpired:
                    # Ivy looks every module up before it fetches the first file; Maven says nothing when asked to be quiet.
                    said = log.read_text(errors="replace")
                    found, fetched = said.count("\tfound "), said.count("SUCCESSFUL")
                    say(f"… {found} looked up, {fetched} of {len(wanted)} fetched after {waited_s} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        last = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()][-5:]
        raise Unavailable(
            f"Fetching Kafka's jars failed (exit {process.returncode}): {' | '.join(last)}",
            hint="Check the network and try again; what was fetched is kept.",
        )


def ivy_jar() -> Path | None:
    """Apache Ivy, as PySpark carries it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


def _ivy(wanted: list[Jar], landing: Path, scratch: Path) -> list[str] | None:
    """Ivy's command line; its own cache lies in ours, so that an interrupted fetch resumes."""
    ivy = ivy_jar()
    if ivy is None:
        return None
    java = ensure_java()
    rows = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        'transitive="false" conf="default->master"/>'
        for jar in wanted
    )
    module = scratch / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="ballast" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{rows}</dependencies></ivy-module>"
    )
    settings = os.environ.get("BALLAST_IVY_SETTINGS")
    return [
        java.executable,
        *java.trust_options,
        f"-Divy.cache.dir={cache_root() / 'ivy'}",
        "-jar",
        str(ivy),
        *(["-settings", settings] if settings else []),
        "-ivy",
        str(module),
        "-retrieve",
        f"{landing}/[artifact]-[revision].[ext]",
    ]


def _maven(wanted: list[Jar], landing: Path, scratch: Path) -> list[str] | None:
    """Maven's command line, for a Ballast that was installed without PySpark."""
    maven = shutil.which("mvn")
    if maven is None:
        return None
    rows = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId><version>{jar.version}</version>"
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for jar in wanted
    )
    project = scratch / "pom.xml"
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>ballast</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{rows}</dependencies></project>"
    )
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={landing}", "-DincludeScope=runtime"]
    return [maven, "-q", "-B", "-f", str(project), *copy]
