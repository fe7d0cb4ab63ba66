"""The demo ends well only where the cluster does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ballast.cli.commands.sandbox import demo
from ballast.errors import Incomplete


def test_it_is_not_called_done_where_something_needs_attention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its last command looks at the cluster and fails where a broker is out of range, or a log dir has failed."""
    words = demo.STEPS[-1][1]
    assert list(words) == ["status", "--check"]
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 3))
    with pytest.raises(Incomplete):
        demo.show(words, tmp_path)
