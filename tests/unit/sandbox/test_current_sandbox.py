"""The sandbox that commands find."""

from __future__ import annotations

from pathlib import Path

import pytest

from ballast.sandbox import current_sandbox


def test_after_a_crash_down_clears_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose supervisor was killed along with its watcher goes at the next down; that nothing runs is no failure."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = current_sandbox.current_folder()
    folder.mkdir()
    (folder / "alive.lock").touch()
    assert not current_sandbox.end()
    assert not folder.exists()
    assert not current_sandbox.end()
