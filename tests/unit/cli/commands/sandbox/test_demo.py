"""The demo ends well only where the cluster does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ballast.cli.commands.sandbox import demo
from ballast.errors import Incomplete
from ballast.sandbox.fill import assignments


def test_it_is_not_called_done_where_something_needs_attention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its last commands fail where a broker is out of range or a log dir has failed, and where a plan would still move something."""
    last = [list(words) for _, words in demo.STEPS[-2:]]
    assert last == [["status", "--check"], ["plan", "balance", "--check"]]
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 3))
    for words in last:
        with pytest.raises(Incomplete):
            demo.show(words, tmp_path)


def test_the_brokers_that_restart_side_by_side_share_no_partition() -> None:
    """Otherwise it would be offline meanwhile."""
    racks = {b: demo.SPEC.rack_of(b) for b in demo.SPEC.broker_ids}
    lists = [set(old) for rows in assignments(demo.FILLING, list(racks), racks).values() for old in rows]
    assert all(any(broker in old for old in lists) for broker in demo.RESTARTED)
    assert not any(set(demo.RESTARTED) <= old for old in lists)


def test_what_is_compiled_beside_the_brokers_is_a_plan_like_the_demo_s() -> None:
    """It copies and elects; where it did less, the demo's own plan would compile the rest in front of the person."""
    made = demo.plan_for_compiling()
    assert made.status == "meets-all-goals"
    assert any(m.adding for m in made.moves)
    assert made.elections


@pytest.mark.parametrize("has_library", [True, False])
def test_the_planner_is_compiled_beside_the_brokers_only_where_no_library_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, has_library: bool
) -> None:
    """The process has ended when the demo's plan is made, and at the demo's end at the latest."""
    done, library = tmp_path / "done", tmp_path / "library"
    if has_library:
        library.touch()
    monkeypatch.setattr(demo, "library_path", lambda: library)
    monkeypatch.setattr(demo, "COMPILE", f"open({str(done)!r}, 'w')")
    with demo.compile_in_background() as wait:
        wait()
        assert done.exists() is not has_library
    monkeypatch.setattr(demo, "COMPILE", "import time; time.sleep(3600)")
    with demo.compile_in_background():
        pass
