"""A Kafka image made of the verified jars: found, pulled where a name is given, else put together here.

It holds a Java from its wheel, Kafka's jars, and the few libraries that both need of the system; no shell, no package manager.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from docker.errors import DockerException, ImageNotFound

from ballast.sandbox.jars import ensure_jars
from ballast.sandbox.java import LOCKS, wheel_java

NAMED: Final = "BALLAST_TEST_IMAGE"
"""Set to an image's name, that image is pulled and used; ``build`` makes one worth pushing."""
JAVA: Final = "/java"
JARS: Final = "/kafka"


def java_of(version: str) -> int:
    """The Java that goes in: before 3.0 Kafka does not run on a newer one than 11."""
    return 11 if version.startswith("2.") else 25


def tag(version: str) -> str:
    """A name that changes with what goes in."""
    java = LOCKS / f"java-{java_of(version)}.txt"
    digest = hashlib.sha256((LOCKS / f"kafka-{version}.lock").read_bytes() + java.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return f"ballast-test-kafka:{version}-{digest.hexdigest()[:12]}"


def ensure_image(client: Any, version: str) -> str:
    """The name of an image that is there."""
    name = os.environ.get(NAMED) or tag(version)
    try:
        client.images.get(name)
    except ImageNotFound:
        if NAMED in os.environ:
            try:
                client.images.pull(name)
            except DockerException as failure:
                raise RuntimeError(f"{NAMED}={name} cannot be pulled: {failure}") from failure
        else:
            build(client, version, name)
    return name


def build(client: Any, version: str, name: str) -> None:
    """Put the image together and hand it to the daemon."""
    java = wheel_java(java_of(version))
    jars = ensure_jars(f"kafka-{version}")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "image.tar"
        with tarfile.open(path, "w") as tar:
            tar.add(java.home, arcname=JAVA)
            for jar in jars:
                tar.add(jar, arcname=f"{JARS}/{jar.name}")
            for library in libraries_of(java.home):
                # Under the path by which the loader looks for it, as a file and not as a link.
                tar.addfile(_as_file(library), io.BytesIO(library.read_bytes()))
            for folder, mode in (("tmp", 0o1777), ("data", 0o755), ("etc", 0o755)):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                tar.addfile(entry)
            users = b"root:x:0:0:root:/:/none\n"
            passwd = tarfile.TarInfo("etc/passwd")
            passwd.size, passwd.mode = len(users), 0o644
            tar.addfile(passwd, io.BytesIO(users))
        repository, _, label = name.partition(":")
        client.api.import_image_from_file(str(path), repository=repository, tag=label)


def libraries_of(home: Path) -> list[Path]:
    """Every system library that a Java's own files are linked to, the loader among them."""
    ours = [home / "bin" / "java", *home.glob("lib/**/*.so")]
    found: set[Path] = set()
    for binary in ours:
        listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
        for path in re.findall(r"(/\S+\.so[.\d]*) ", listed):
            if not path.startswith(str(home)):
                found.add(Path(path))
    return sorted(found)


def _as_file(library: Path) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(library).lstrip("/"))
    entry.size, entry.mode = library.stat().st_size, 0o755
    return entry
