"""Delta's jars come from Spark's own folder where they are, whole, and are fetched otherwise."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ballast.cli.commands.pipeline import jars_of
from ballast.sandbox import jars


@pytest.mark.parametrize(("content", "fetched"), [(b"delta", False), (b"another", True), (None, True)])
def test_spark_s_own_folder_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, *, fetched: bool
) -> None:
    """A file of the right name with other content is none."""
    jar = jars.Jar("io.delta", "delta-spark", "1", hashlib.sha256(b"delta").hexdigest())
    monkeypatch.setattr(jars, "read_lock", lambda _: (jar,))
    monkeypatch.setattr(jars, "ensure_jars", lambda *_, **__: (tmp_path / "fetched.jar",))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    if content is not None:
        (tmp_path / "jars" / jar.file_name).write_bytes(content)
    assert bool(jars_of("delta")) is fetched
