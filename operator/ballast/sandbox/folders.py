"""Where the sandbox keeps things: what is worth keeping (jars, Java) and what dies with a cluster (its folder)."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ballast.errors import UsageError

ALIVE_LOCK: Final = "alive.lock"
"""Held with ``flock`` by a cluster's supervisor for as long as it lives; the kernel releases it however the supervisor ends."""

NO_SUPERVISOR_AFTER_S: Final = 600
"""A cluster's folder that has no supervisor after this long will never get one."""


def cache_root() -> Path:
    """The user's cache folder for Ballast, created on first use."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(base) / "ballast"
    root.mkdir(parents=True, exist_ok=True)
    return root


def clusters_root() -> Path:
    """The folder under which every cluster of this user gets its own; in the temporary folder, so a reboot empties it.

    Created for the user alone, and refused when another user made it: what is in it is executed and deleted.
    """
    root = Path(tempfile.gettempdir()) / f"ballast-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    if not root.is_dir() or root.is_symlink() or found.st_uid != os.getuid():
        raise UsageError(f"{root} belongs to another user.", hint="Set TMPDIR to a folder of your own.")
    return root


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, so that two processes never prepare the same thing at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def has_supervisor(folder: Path) -> bool:
    """Whether the supervisor of a cluster's folder lives; asks the kernel, not a process id that may have been reused."""
    try:
        handle = (folder / ALIVE_LOCK).open("r")
    except OSError:
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def sweep() -> list[Path]:
    """Remove the folders of clusters whose supervisors are gone or never came; returns what was removed."""
    removed = []
    with hold_lock(clusters_root() / ".sweep.lock"):
        for folder in clusters_root().iterdir():
            if folder.is_dir() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


def _is_abandoned(folder: Path) -> bool:
    if (folder / ALIVE_LOCK).exists():
        return not has_supervisor(folder)
    try:
        return time.time() - folder.stat().st_mtime > NO_SUPERVISOR_AFTER_S
    except FileNotFoundError:
        return False
