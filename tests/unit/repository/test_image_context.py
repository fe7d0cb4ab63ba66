"""What ``docker build`` is given of the checkout."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from docker.utils.build import exclude_paths

ROOT: Final = Path(__file__).resolve().parents[3]
DOCKERFILE: Final = ROOT / "deploy" / "Dockerfile"
COPIED: Final = [
    source
    for words in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE.read_text(), re.MULTILINE)
    for source in words.split()[:-1]
    # Packages are there only for builds without an index.
    if not source.endswith("*")
]
"""What the Dockerfile takes from the checkout."""


@pytest.fixture(name="context", scope="module")
def build_context() -> set[str]:
    """Files that ``.dockerignore`` lets through."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    found: set[str] = exclude_paths(str(ROOT), [line for line in lines if line and not line.startswith("#")])
    return found


@pytest.mark.parametrize("source", COPIED)
def test_every_file_that_an_image_is_made_of_is_given_to_the_builder(context: set[str], source: str) -> None:
    """A file that is kept from it ends the build of a user, who has no other copy."""
    assert source in context


def test_nothing_else_is(context: set[str]) -> None:
    """No environment, no cache, no test, no secret that lies beside the code."""
    outside = {
        path for path in context if (ROOT / path).is_file() and not path.startswith(("operator/", "locks/", "deploy/"))
    }
    assert outside <= {".dockerignore"}
