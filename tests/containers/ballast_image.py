"""Builds the targets of ``deploy/Dockerfile``; where no registry answers, on bases put together from this machine's Python and Java."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

from docker.errors import ImageNotFound

from ballast.pipeline.session import DELTA_LOCK
from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import SPARK_WRAPPER, SPARKS_MODULE, ensure_java

ROOT: Final = Path(__file__).resolve().parents[2]
BASE_NAMED: Final = "BALLAST_TEST_PYTHON_IMAGE"
"""Set to an image's name, that image is the base; otherwise one is put together here."""
JAVA_NAMED: Final = "BALLAST_TEST_JAVA_IMAGE"
"""The same for the image that Java is taken from."""
LOCKS: Final = {
    "ballast": ("runtime", "loops"),
    "ballast-history": ("runtime", "loops", "history"),
    "ballast-spark": ("runtime", "loops", "history", "build", "spark"),
}
"""What each target installs, and the stages before it, which Docker's own builder makes as well."""
WHEELS: Final = "deploy/wheels"
"""The Dockerfile's folder of packages, with one for each lock: what targets have in common is built once."""
PREFIX: Final = "/usr/local"
JAVA_HOME: Final = "/opt/java/openjdk"
_OFTEN: Final = (
    "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1",
)  # fmt: skip
"""What wheels are linked to: every Linux that manylinux names has these."""
_SHELL: Final = (
    "bash",
    "sh",
    "dirname",
    "basename",
    "ls",
    "cat",
    "id",
    "uname",
    "sed",
    "tr",
    "rm",
    "mkdir",
    "chmod",
)
"""What Spark's scripts call; Debian's slim image has these."""


def build(client: Any, folder: Path, target: str = "ballast") -> str:
    """The image's name; dependencies are taken from the package index that pip is set up for, hashes checked twice."""
    context = folder / "context"
    for part in ("operator/ballast", "locks", "deploy"):
        shutil.copytree(ROOT / part, context / part, ignore=shutil.ignore_patterns("__pycache__"))
    # What it keeps from the builder, a user's build lacks as well.
    shutil.copy(ROOT / ".dockerignore", context)
    arguments = {"BASE": os.environ.get(BASE_NAMED) or _own_base(client), "PIP_NO_INDEX": "1"}
    if target == "ballast-spark":
        arguments["JAVA"] = os.environ.get(JAVA_NAMED) or _java_base(client)
        _lay_spark(context)
    # The checkout's environment is made by uv and has no pip.
    venv.EnvBuilder(with_pip=True, symlinks=True).create(folder / "pip")
    for lock in LOCKS[target]:
        path = folder / f"{lock}.txt"
        path.write_text(_without((ROOT / "locks" / path.name).read_text(), "pyspark"))
        subprocess.run(
            [str(folder / "pip" / "bin" / "python"), "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary", ":all:",
             "--no-deps", "--requirement", str(path), "--dest", str(context / WHEELS / lock)],
            check=True,
        )  # fmt: skip
    image, _ = client.images.build(
        path=str(context),
        dockerfile="deploy/Dockerfile",
        target=target,
        tag=f"{target}-test:latest",
        buildargs=arguments,
        rm=True,
        network_mode="none",
    )
    shutil.rmtree(context)
    return str(image.tags[0])


def _lay_spark(context: Path) -> None:
    """PySpark as a wheel of what is installed here, since its source package takes minutes to build, and Delta's jars."""
    wheel = context / WHEELS / "spark" / "pyspark-{}-py2.py3-none-any.whl".format(distribution("pyspark").version)
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in distribution("pyspark").files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                archive.write(str(file.locate()), str(file))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock = context / "locks" / "spark.txt"
    lock.write_text(
        f"{_without(lock.read_text(), 'pyspark')}pyspark=={distribution('pyspark').version} --hash=sha256:{digest}\n"
    )
    jars = context / "deploy" / "jars" / DELTA_LOCK
    jars.mkdir(parents=True)
    for jar in ensure_jars(DELTA_LOCK):
        shutil.copy(jar, jars)


def _without(lock: str, name: str) -> str:
    """A lock without one package."""
    return re.sub(rf"(?m)^{name}==.*\\\n(?:    --hash=.*\n)+", "", lock)


def _own_base(client: Any) -> str:
    """This Python at /usr/local, a shell, and the libraries that they and common wheels link to."""
    home = Path(sysconfig.get_config_var("prefix"))
    programs = [Path(found) for name in _SHELL if (found := shutil.which(name))]

    def fill(tar: tarfile.TarFile) -> None:
        _add_python(tar, home)
        for program in programs:
            _add_file(tar, program, f"bin/{program.name}")
        _add_file(tar, Path("/usr/bin/env"), "usr/bin/env")
        for library in sorted(_libraries(home, programs)):
            _add_file(tar, library, str(library).lstrip("/"))
        _add_folders(tar, ("tmp", 0o1777), ("etc", 0o755), ("opt", 0o755))

    changes = [f"ENV PATH={PREFIX}/bin:/usr/bin:/bin", f"ENV LD_LIBRARY_PATH={PREFIX}/lib"]
    return _imported(client, "ballast-test-python", sys.version, fill, changes)


def _java_base(client: Any) -> str:
    """A Java of this machine where Temurin's image has it; one that lacks Spark's module gets the wrapper that does without."""
    java = ensure_java()
    listed = subprocess.run([java.executable, "--list-modules"], capture_output=True, text=True, check=True).stdout
    whole = SPARKS_MODULE in listed
    inside = JAVA_HOME if whole else f"{JAVA_HOME}/whole"

    def fill(tar: tarfile.TarFile) -> None:
        # Debian keeps parts of it elsewhere and leads there with links, some of them to what is not installed.
        for folder, _, names in os.walk(java.home, followlinks=True):
            for path in (Path(folder) / name for name in sorted(names)):
                within = path.relative_to(java.home)
                if path.is_file() and not {"man", "docs", "demo", "jmods"} & set(within.parts):
                    _add_file(tar, path, f"{inside}/{within}".lstrip("/"))
        if not whole:
            wrapper = SPARK_WRAPPER.format(java=shlex.quote(f"{inside}/bin/java")).encode()
            entry = tarfile.TarInfo(f"{JAVA_HOME}/bin/java")
            entry.size, entry.mode = len(wrapper), 0o755
            tar.addfile(entry, io.BytesIO(wrapper))

    return _imported(client, "ballast-test-java", str(java.home), fill, [])


def _imported(client: Any, repository: str, content: str, fill: Any, changes: list[str]) -> str:
    """An image of what a function lays into a tar; made once."""
    label = hashlib.sha256(f"{content}{Path(__file__).read_bytes()!r}".encode()).hexdigest()[:12]
    name = f"{repository}:{label}"
    try:
        client.images.get(name)
    except ImageNotFound:
        path = ROOT / ".pytest_cache" / f"{repository}-{label}.tar"
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w") as tar:
            fill(tar)
        client.api.import_image_from_file(str(path), repository=repository, tag=label, changes=changes)
        path.unlink()
    return name


def _add_file(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """A program or library under the name by which it is looked for, as a file and not as a link."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = path.stat().st_size, 0o755
    tar.addfile(entry, io.BytesIO(path.read_bytes()))


def _add_folders(tar: tarfile.TarFile, *folders: tuple[str, int]) -> None:
    for folder, mode in folders:
        entry = tarfile.TarInfo(folder)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)


def _add_python(tar: tarfile.TarFile, home: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    tar.add(home / "bin" / version, arcname=f"{PREFIX}/bin/python3")
    for library in home.glob("lib/libpython*.so*"):
        tar.add(library, arcname=f"{PREFIX}/lib/{library.name}", recursive=False)

    def lean(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if re.search(r"/(__pycache__|test|idlelib|tkinter|site-packages)(/|$)", entry.name) else entry

    tar.add(home / "lib" / version, arcname=f"{PREFIX}/lib/{version}", filter=lean)
    headers = Path(sysconfig.get_path("include"))
    tar.add(headers, arcname=f"{PREFIX}/include/{version}")
    # Debian keeps what differs between architectures beside them, and includes it by this path.
    if (multiarch := sysconfig.get_config_var("MULTIARCH")) and (headers.parent / multiarch / version).is_dir():
        tar.add(headers.parent / multiarch / version, arcname=f"{PREFIX}/include/{version}/{multiarch}/{version}")
    # Debian keeps the wheels that a new environment begins with in a folder of their own.
    if wheels := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        tar.add(wheels, arcname=str(Path(wheels)))


def _libraries(home: Path, programs: Iterable[Path]) -> Iterator[Path]:
    found = {Path(p) for n in _OFTEN for p in _where(n)}
    for binary in [home / "bin" / "python3", *programs, *home.glob("lib/python3*/lib-dynload/*.so")]:
        listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
        found |= {Path(p) for p in re.findall(r"(/\S+\.so[.\d]*) ", listed) if not p.startswith(str(home))}
    yield from found


def _where(name: str) -> list[str]:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return re.findall(rf"{re.escape(name)} .* => (\S+)", listed)[:1]
