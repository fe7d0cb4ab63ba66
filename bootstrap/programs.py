"""What tests need from outside Python: one table, from which the set-up installs and by which tests are skipped or fail."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

DAEMONS = "/usr/sbin:/sbin"
"""Where Debian keeps daemons, which an ordinary user's path leaves out."""


@dataclass(frozen=True)
class Outside:
    """A program, or a shared library that a program brought by a wheel needs."""

    name: str
    """The program's name in Debian, or the library's soname."""
    package: str
    """The Debian package that has it; empty where none does."""
    marker: str
    """The pytest marker of the tests that need it."""
    why: str
    also: tuple[str, ...] = ()
    """Its names elsewhere."""
    at_least: int | None = None
    """The oldest major version that does; asked of ``java`` alone."""
    built_by: str = ""
    """The command that builds it where no package has it.  The set-up does not run it, and tests do without it in CI too."""

    def find(self) -> str | None:
        """Where it is; None when it is not on this machine."""
        if ".so" in self.name:
            return _library(self.name)
        path = f"{os.environ.get('PATH', '')}:{DAEMONS}:{Path.home() / 'go' / 'bin'}"
        found = next(filter(None, (shutil.which(name, path=path) for name in (self.name, *self.also))), None)
        return found if found is None or self.at_least is None or _major(found) >= self.at_least else None

    @property
    def remedy(self) -> str:
        """The command that brings it."""
        return self.built_by or f"apt-get install {self.package}"


TABLE = (
    Outside("docker", "docker.io", "containers", "tests that freeze and cut off brokers in containers"),
    Outside("dockerd", "docker.io", "containers", "tests that freeze and cut off brokers in containers"),
    Outside("python3-config", "python3-dev", "containers", "Python's headers, with which the image's library is built"),
    Outside("c++", "g++", "containers", "the planner's compiled loops, here and in the image"),
    Outside("iptables", "iptables", "containers", "Docker's networks"),
    Outside("chromium", "chromium", "chromium", "the status page in a browser", ("chromium-browser", "google-chrome")),
    Outside("libatomic.so.1", "libatomic1", "chromium", "the Node that drives the browser"),
    Outside("prometheus", "prometheus", "prometheus", "tests of metrics, rules and alerts"),
    Outside("promtool", "prometheus", "prometheus", "tests of metrics, rules and alerts"),
    Outside("prometheus-alertmanager", "prometheus-alertmanager", "prometheus", "tests of alerts", ("alertmanager",)),
    Outside("openssl", "openssl", "openssl", "the keys of the tests' token server"),
    Outside("systemd-analyze", "systemd", "systemd", "the check of the unit file"),
    Outside(
        *("versitygw", "", "s3", "samples in a bucket"),
        built_by="go install github.com/versity/versitygw/cmd/versitygw@v1.8.0",
    ),
    Outside("java", "openjdk-17-jre-headless", "kafka", "Kafka and Spark (else a wheel brings one)", at_least=17),
)

ESSENTIAL = frozenset({"sh", "bash", "touch", "false", "true", "ldd", "ldconfig", "umount", "uname"})
"""What every Debian has, by its essential and required packages."""


def missing(marker: str | None = None) -> list[Outside]:
    """What this machine lacks, of everything or of what the tests of one marker need."""
    return [outside for outside in TABLE if marker in {None, outside.marker} and outside.find() is None]


def path_of(name: str) -> str:
    """The path of a program of the table; a test whose marker names its need may rely on it."""
    outside = next(outside for outside in TABLE if outside.name == name)
    if (found := outside.find()) is None:
        raise FileNotFoundError(f"{name} is not installed: {outside.remedy}")
    return found


def known() -> frozenset[str]:
    """Every program that tests may start, by all its names."""
    return ESSENTIAL | {name for outside in TABLE for name in (outside.name, *outside.also)}


def _library(soname: str) -> str | None:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return None
    return soname


def _major(java: str) -> int:
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    return int(version.group(1)) if version else 0
