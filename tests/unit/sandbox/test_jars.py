"""Jars against their lock: fetched once, and none that is not the one that is named there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ballast.errors import UsageError
from ballast.sandbox import jars

CONTENT = b"not really a jar"
LOCK = f"# a lock\norg.example:thing:1.0 {hashlib.sha256(CONTENT).hexdigest()}\n"


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one jar and an empty cache; returns where the jar belongs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    (tmp_path / "kafka-0.1.lock").write_text(LOCK)
    return tmp_path / "cache" / "ballast" / "jars" / "kafka-0.1" / "thing-1.0.jar"


def serve(content: bytes, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for the repository: every asked-for jar has this content; returns the paths asked for, as they come."""
    asked: list[str] = []

    def download(files: Mapping[str, Path], _every_s: float) -> Iterator[list[str]]:
        for path, into in files.items():
            asked.append(path)
            into.write_bytes(content)
            yield [path]

    monkeypatch.setattr(jars, "download", download)
    return asked


def test_a_jar_is_fetched_once(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the cache and sound is not asked for again."""
    asked = serve(CONTENT, monkeypatch)
    assert jars.ensure_jars("kafka-0.1") == (locked,)
    assert jars.ensure_jars("kafka-0.1") == (locked,)
    assert asked == ["org/example/thing/1.0/thing-1.0.jar"]


def test_a_damaged_jar_is_fetched_again(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the cache that is not what the lock says is replaced."""
    serve(CONTENT, monkeypatch)
    jars.ensure_jars("kafka-0.1")
    locked.write_bytes(CONTENT[:5])
    jars.ensure_jars("kafka-0.1")
    assert locked.read_bytes() == CONTENT


def test_a_foreign_file_is_refused(locked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is served with another sha256 never gets its name in the cache."""
    serve(b"something else", monkeypatch)
    with pytest.raises(UsageError, match="not the file that the lock names"):
        jars.ensure_jars("kafka-0.1")
    assert not locked.exists()


def test_every_lock_can_be_read() -> None:
    """Each names its jars with a full sha256, none twice."""
    for name in [f"kafka-{version}" for version in jars.versions()] + [jars.TOOLS]:
        rows = jars.read_lock(name)
        assert len({row.file_name for row in rows}) == len(rows) > 20
        assert all(len(row.sha256) == 64 for row in rows)
