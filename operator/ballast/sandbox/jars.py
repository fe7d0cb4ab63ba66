"""Kafka's jars: named and pinned by sha256 in a lock file, fetched from a Maven repository, kept in the user's cache.

A lock line is ``group:artifact:version sha256``, with ``:classifier`` behind the version of a jar that has one.  Nothing is resolved when fetching: exactly the listed files are asked for,
and a file that is not what the lock says is never used.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ballast.core.wording import ShowLine
from ballast.errors import UsageError
from ballast.sandbox.folders import cache_root, hold_lock
from ballast.sandbox.java import LOCKS
from ballast.sandbox.repository import download

TOOLS: Final = "kafka-tools-4.3.1"
"""The lock of Kafka's own command line tools."""

SAY_EVERY_S: Final = 10


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked file."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    """Which of several jars of one version, as ``test``; empty for the plain one."""

    @property
    def file_name(self) -> str:
        """Its name, in the repository and in the cache."""
        return f"{'-'.join(filter(None, (self.artifact, self.version, self.classifier)))}.jar"

    @property
    def path(self) -> str:
        """Where it lies in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


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
            group, artifact, version, *classifier = coordinates.split(":")
            jars.append(Jar(group, artifact, version, sha256, *classifier))
    return tuple(jars)


def jar_folder(name: str) -> Path:
    """Where a lock's jars are kept."""
    return cache_root() / "jars" / name


def ensure_jars(name: str, *, on_line: ShowLine = lambda _: None) -> tuple[Path, ...]:
    """Every jar of a lock, verified; fetches what is missing or broken and nothing else.

    Raises ``Unavailable`` when the fetching failed, ``UsageError`` when something else came than the lock names.
    """
    jars = read_lock(name)
    folder = jar_folder(name)
    with hold_lock(cache_root() / f".{name}.lock"):
        wanted = [jar for jar in jars if not _is_sound(folder / jar.file_name, jar)]
        if wanted:
            have = len(jars) - len(wanted)
            on_line(
                f"fetching {len(wanted)} jars of {name}"
                + (f" ({have} of {len(jars)} are here already)" if have else "")
            )
            folder.mkdir(parents=True, exist_ok=True)
            _fetch(wanted, folder, on_line)
            on_line(f"{len(jars)} jars of {name} verified")
    return tuple(folder / jar.file_name for jar in jars)


def has_jars(name: str, folder: Path) -> bool:
    """Does a folder hold every jar of a lock, each the file that the lock names?"""
    return all(_is_sound(folder / jar.file_name, jar) for jar in read_lock(name))


def _is_sound(path: Path, jar: Jar) -> bool:
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


def _fetch(wanted: list[Jar], folder: Path, on_line: ShowLine) -> None:
    """Fetch into a scratch folder; a file takes its name when it is the one that the lock names."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
        by_path = {jar.path: jar for jar in wanted}
        landing = {path: Path(scratch) / jar.file_name for path, jar in by_path.items()}
        arrived, began = 0, time.monotonic()
        told = began
        for paths in download(landing, SAY_EVERY_S):
            for path in paths:
                _take(by_path[path], landing[path], folder)
            arrived += len(paths)
            if arrived < len(wanted) and (now := time.monotonic()) - told >= SAY_EVERY_S:
                told = now
                on_line(f"… {arrived} of {len(wanted)} fetched after {now - began:.0f} s")


def _take(jar: Jar, path: Path, folder: Path) -> None:
    if not _is_sound(path, jar):
        raise UsageError(
            f"{jar.file_name} is not the file that the lock names; it was thrown away.",
            hint="A proxy or mirror serves another file. Nothing of it was run.",
        )
    path.replace(folder / jar.file_name)
