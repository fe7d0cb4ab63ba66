"""Installs what a full test run needs of the system, as root on Debian or Ubuntu and only there; says so first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import missing
from story import say

POLICY = Path("/usr/sbin/policy-rc.d")
"""Debian asks this program before it starts a service on installation; 101 means no."""
OS_RELEASE = Path("/etc/os-release")
SERVICES = (
    "docker.service",
    "docker.socket",
    "containerd.service",
    "prometheus.service",
    "prometheus-alertmanager.service",
)


def install_missing() -> None:
    """Install the missing packages, or say why not; a test run without them still runs what it can."""
    lacking = {outside.package: outside.why for outside in missing() if outside.package}
    if not lacking:
        return
    names = " ".join(lacking)
    if os.environ.get("NO_SYSTEM_INSTALL") == "1":
        say(f"NO_SYSTEM_INSTALL=1: not installing {names}")
    elif os.geteuid() != 0 or not _is_debian():
        say(f"not root on Debian or Ubuntu: doing without {names}")
    else:
        say("installing these system packages (NO_SYSTEM_INSTALL=1 forbids it):")
        for package, why in lacking.items():
            say(f"  {package:26} for {why}")
        _install(list(lacking))


def _is_debian() -> bool:
    try:
        words = OS_RELEASE.read_text(encoding="utf-8")
    except OSError:
        return False
    return (
        shutil.which("apt-get") is not None
        and re.search(r"^ID(_LIKE)?=.*(debian|ubuntu)", words, re.MULTILINE) is not None
    )


def _install(packages: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    with _no_service_starts():
        subprocess.run(["apt-get", "update", "-qq"], env=environment, stdout=subprocess.DEVNULL, check=False)
        done = subprocess.run(install, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        say(f"apt-get ended with {done.returncode}; going on without what it could not install")
    _keep_from_boot()


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Let nothing that is installed meanwhile start listening."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def _keep_from_boot() -> None:
    """Nor at the next boot: the tests start what they need themselves."""
    if shutil.which("systemctl"):
        subprocess.run(["systemctl", "disable", "--quiet", *SERVICES], capture_output=True, check=False)
