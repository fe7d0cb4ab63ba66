"""Builds ``deploy/Dockerfile``; where no registry answers, on a base put together from this machine's own Python."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from docker.errors import ImageNotFound

ROOT: Final = Path(__file__).resolve().parents[2]
BASE_NAMED: Final = "BALLAST_TEST_PYTHON_IMAGE"
"""Set to an image's name, that image is the base; otherwise one is put together here."""
PREFIX: Final = "/usr/local"
_OFTEN: Final = (
    "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1",
)  # fmt: skip
"""What wheels are linked to: every Linux that manylinux names has these."""


def build(client: Any, folder: Path) -> str:
    """The image's name; dependencies are taken from the package index that pip is set up for, hashes checked twice."""
    base = os.environ.get(BASE_NAMED) or _own_base(client)
    context = folder / "context"
    for part in ("operator/ballast", "locks/history.txt", "deploy/Dockerfile"):
        source, target = ROOT / part, context / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    wheels = context / "deploy" / "wheels"
    # The checkout's environment is made by uv and has no pip.
    venv.EnvBuilder(with_pip=True, symlinks=True).create(folder / "pip")
    subprocess.run(
        [str(folder / "pip" / "bin" / "python"), "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:",
         "--requirement", str(ROOT / "locks" / "history.txt"), "--dest", str(wheels)],
        check=True,
    )  # fmt: skip
    image, _ = client.images.build(
        path=str(context),
        dockerfile="deploy/Dockerfile",
        tag="ballast-test:latest",
        buildargs={"BASE": base, "PIP_NO_INDEX": "1"},
        rm=True,
    )
    shutil.rmtree(context)
    return str(image.tags[0])


def _own_base(client: Any) -> str:
    """This Python at /usr/local, with the libraries that it and common wheels link to."""
    home = Path(sysconfig.get_config_var("prefix"))
    digest = hashlib.sha256(f"{sys.version}{Path(__file__).read_bytes()!r}".encode()).hexdigest()[:12]
    name = f"ballast-test-python:{digest}"
    try:
        client.images.get(name)
    except ImageNotFound:
        path = ROOT / ".pytest_cache" / f"python-{digest}.tar"
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w") as tar:
            _add_python(tar, home)
            for library in sorted(_libraries(home)):
                entry = tarfile.TarInfo(str(library).lstrip("/"))
                entry.size, entry.mode = library.stat().st_size, 0o755
                tar.addfile(entry, io.BytesIO(library.read_bytes()))
            for folder, mode in (("tmp", 0o1777), ("etc", 0o755), ("opt", 0o755)):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                tar.addfile(entry)
        repository, _, label = name.partition(":")
        changes = [f"ENV PATH={PREFIX}/bin", f"ENV LD_LIBRARY_PATH={PREFIX}/lib"]
        client.api.import_image_from_file(str(path), repository=repository, tag=label, changes=changes)
        path.unlink()
    return name


def _add_python(tar: tarfile.TarFile, home: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    tar.add(home / "bin" / version, arcname=f"{PREFIX}/bin/python3")
    for library in home.glob("lib/libpython*.so*"):
        tar.add(library, arcname=f"{PREFIX}/lib/{library.name}", recursive=False)

    def lean(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if re.search(r"/(__pycache__|test|idlelib|tkinter|site-packages)(/|$)", entry.name) else entry

    tar.add(home / "lib" / version, arcname=f"{PREFIX}/lib/{version}", filter=lean)
    # Debian keeps the wheels that a new environment begins with in a folder of their own.
    if wheels := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        tar.add(wheels, arcname=str(Path(wheels)))


def _libraries(home: Path) -> Iterator[Path]:
    found = {Path(p) for n in _OFTEN for p in _where(n)}
    for binary in [home / "bin" / "python3", *home.glob("lib/python3*/lib-dynload/*.so")]:
        listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
        found |= {Path(p) for p in re.findall(r"(/\S+\.so[.\d]*) ", listed) if not p.startswith(str(home))}
    yield from found


def _where(name: str) -> list[str]:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return re.findall(rf"{re.escape(name)} .* => (\S+)", listed)[:1]
