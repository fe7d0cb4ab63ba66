"""Writes what an image was made of, as a CycloneDX bill of materials: every Python package and every jar of its environment.

``python sbom.py FILE``.  The base image's own packages are in the base image's own bill.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any


def package(found: Distribution) -> dict[str, Any]:
    """A Python package by its name in the index."""
    name = re.sub(r"[-_.]+", "-", found.name).lower()
    component: dict[str, Any] = {
        "type": "library", "name": name, "version": found.version, "purl": f"pkg:pypi/{name}@{found.version}",
    }  # fmt: skip
    if "License-Expression" in found.metadata:
        component["licenses"] = [{"expression": found.metadata["License-Expression"]}]
    return component


def jar(path: Path) -> dict[str, Any]:
    """A jar by its file name and its content."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"type": "library", "name": path.stem, "hashes": [{"alg": "SHA-256", "content": digest}]}


def components() -> Iterator[dict[str, Any]]:
    """All of them, in the order of their names."""
    found = {component["purl"]: component for component in map(package, distributions())}
    yield from (found[purl] for purl in sorted(found))
    yield from map(jar, sorted(Path(sys.prefix).rglob("*.jar")))


def main(target: Path) -> None:
    """Write the file."""
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": list(components())}
    target.write_text(json.dumps(bill, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
