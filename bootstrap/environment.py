"""The checkout's own ``.venv``: exactly what a lock names, every file checked, nothing fetched twice.

The demo needs ``locks/runtime.txt`` alone; whatever else is done needs ``locks/dev.txt``, which replaces it in the same
place and stays.  uv installs; it comes from the index that pip is configured with, pinned by hash, into an environment of
its own in the user's cache.  A stamp in ``.venv`` says which lock it holds, so that a second run takes a fraction of a second.
"""

from __future__ import annotations

import base64
import csv
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pip_settings import as_uv_environment
from story import Trouble, say

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCKS = ROOT / "locks"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ballast"
STAMP = VENV / "ballast-lock.sha256"
COMPILE = ["pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
COMPILE += ["--no-annotate", "--no-emit-index-url", "--custom-compile-command", "make lock"]
TARGETS = {
    "uv.txt": ["locks/uv.in"],
    "build.txt": ["locks/build.in"],
    "loops.txt": ["locks/loops.in"],
    "runtime.txt": ["pyproject.toml"],
    "history.txt": ["pyproject.toml", "--extra", "history"],
    "spark.txt": ["pyproject.toml", "--extra", "spark"],
    "dev.txt": ["pyproject.toml", "--extra", "spark", "--group", "dev"],
}


DEV, RUNTIME = "dev.txt", "runtime.txt"
FETCHED = {
    DEV: "about 600 MB the first time; PySpark takes a while",
    RUNTIME: "about 100 MB the first time",
}


class Environment:
    """Builds ``.venv``, repairs it, and leaves it alone when it is right."""

    def __init__(self, lock: str = DEV) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        # What has been set up for development is not taken away again by a demo.
        self.lock = DEV if STAMP.exists() and STAMP.read_text().startswith(DEV) else lock

    def ensure(self) -> None:
        """Make ``.venv`` hold the lock; one process at a time."""
        with (CACHE / ".setup.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if STAMP.exists() and STAMP.read_text() == stamp(self.lock) and _runs(VENV / "bin" / "python"):
                return
            self._build()
            STAMP.write_text(stamp(self.lock))
            say(f"ready: {VENV.relative_to(ROOT)}/bin/ballast")

    def _build(self) -> None:
        if not _runs(VENV / "bin" / "python"):
            say(f"creating {VENV}")
            shutil.rmtree(VENV, ignore_errors=True)
            venv.EnvBuilder(symlinks=True).create(VENV)
        STAMP.unlink(missing_ok=True)
        uv = self._uv()
        self._sync(uv)
        broken = sorted(damaged_packages(VENV))
        if broken:
            say(f"damaged in the cache: {', '.join(broken)}; fetching afresh")
            again = [word for name in broken for word in ("--reinstall-package", name, "--refresh-package", name)]
            self._run(uv, "cache", "clean", *broken)
            self._sync(uv, *again)
            if still := sorted(damaged_packages(VENV)):
                raise Trouble(f"These packages are damaged even when fetched afresh: {', '.join(still)}.")
        # Built from the checkout with the locked build tools, which the environment now holds.
        self._run(uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation", "--editable", ".")

    def _sync(self, uv: Path, *options: str) -> None:
        """From the cache alone when it has everything, so that no network is needed; else from the index."""
        build = str(LOCKS / "build.txt")
        locks = [str(LOCKS / self.lock), *([build] if self.lock == RUNTIME else [])]
        wanted = ["pip", "sync", "--require-hashes", "--build-constraints", build, *options, *locks]
        if not options and self._run(uv, *wanted, "--quiet", "--offline", check=False) == 0:
            say("installed from the cache")
            return
        say(f"fetching and installing the packages of locks/{self.lock} ({FETCHED[self.lock]})")
        if self._run(uv, *wanted, check=False) == 0:
            return
        say("that failed; trying once more without what is in the cache")
        self._run(uv, *wanted, "--refresh")

    def relock(self) -> None:
        """Resolve afresh what the ranges in pyproject.toml allow; existing pins stay unless UPGRADE=1 is set."""
        uv = self._uv()
        upgrade = ["--upgrade"] if os.environ.get("UPGRADE") == "1" else []
        for target, sources in TARGETS.items():
            say(f"locks/{target}")
            self._run(uv, *COMPILE, *upgrade, *sources, "-o", f"locks/{target}")

    def _uv(self) -> Path:
        """The locked uv, installed by pip into its own environment."""
        lock = LOCKS / "uv.txt"
        folder = CACHE / f"uv-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
        uv = folder / "bin" / "uv"
        if not _runs(uv) or list(damaged_packages(folder)):
            say("bringing uv, which installs the rest")
            shutil.rmtree(folder, ignore_errors=True)
            venv.EnvBuilder(with_pip=True, symlinks=True).create(folder)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            if subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(lock)], check=False).returncode:
                shutil.rmtree(folder, ignore_errors=True)
                raise Trouble("uv could not be installed; is there a way from here to the package index that pip uses?")
        return uv

    def _run(self, uv: Path, *words: str, check: bool = True) -> int:
        environment = {**os.environ, **as_uv_environment(uv.parent / "python"), "VIRTUAL_ENV": str(VENV)}
        environment["UV_CACHE_DIR"] = str(CACHE / "uv")
        quiet = subprocess.DEVNULL if "--offline" in words and not check else None
        code = subprocess.run([str(uv), *words], cwd=ROOT, env=environment, stderr=quiet, check=False).returncode
        if code and check:
            raise Trouble(f"uv {words[0]} {words[1]} failed; the lines above say why. Run the same command to go on.")
        return code


def stamp(lock: str) -> str:
    """What the environment depends on: the lock, by name and content, this package's metadata, the Python and the place."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {VENV}".encode())
    for path in (LOCKS / lock, LOCKS / "build.txt", ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return f"{lock} {digest.hexdigest()}"


def damaged_packages(folder: Path) -> Iterator[str]:
    """Names of the installed packages of which a file is missing or is not what the package's own record says."""
    records = [path for library in (folder / "lib").glob("python3*") for path in library.glob("site-packages/*/RECORD")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for record, sound in zip(records, pool.map(_is_sound, records), strict=True):
            if not sound:
                yield record.parent.name.split("-", maxsplit=1)[0]


def _is_sound(record: Path) -> bool:
    with record.open(newline="", encoding="utf-8") as rows:
        for name, expected, _size in csv.reader(rows):
            if not expected.startswith("sha256=") or name.endswith(".pyc"):
                continue
            try:
                with (record.parents[1] / name).open("rb") as content:
                    found = hashlib.file_digest(content, "sha256").digest()
            except OSError:
                return False
            if base64.urlsafe_b64encode(found).decode().rstrip("=") != expected.removeprefix("sha256="):
                return False
    return True


def _runs(program: Path) -> bool:
    try:
        return subprocess.run([str(program), "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
