"""What the command line says over what the settings say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.unit.planner.clusters import cluster

from ballast.cli.main import cli
from ballast.core.planner import Loads
from ballast.core.snapshot_file import Snapshot, dumps
from ballast.errors import Infeasible

SETTINGS = """
level:
  band: 0.3
  trigger: 0.4
  pinned_topics: "held.*"
  cordoned: [4]
  max_moves: 3
"""


def planned(folder: Path, *words: str, settings: str = SETTINGS) -> dict[str, Any]:
    """``ballast plan level`` on a snapshot of five brokers of which the first two hold everything."""
    state = cluster(*[(1, 2), (2, 1)] * 12, brokers=5, sizes=(1 << 24,) * 24)
    (folder / "case.json").write_text(dumps(Snapshot(state, Loads.from_state(state))))
    (folder / "ballast.yaml").write_text(settings)
    line = ["plan", "level", "--snapshot", str(folder / "case.json"), "--config", str(folder / "ballast.yaml")]
    done = CliRunner().invoke(cli, [*line, "--output", "json", *words], standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, Infeasible), done.exception
    return dict(json.loads(done.stdout))


def test_the_settings_hold_where_nothing_is_said(tmp_path: Path) -> None:
    """Band, cordon and budget come from the file."""
    made = planned(tmp_path)
    assert {r["band"] for r in made["summary"]["resources"]} == {0.3}
    assert made["summary"]["replica_moves"] <= 3
    assert not any(4 in m["new"] for m in made["moves"])


def test_the_command_line_wins_and_cordons_add_up(tmp_path: Path) -> None:
    """A band and a budget that are said replace the file's; brokers named in either take nothing."""
    made = planned(tmp_path, "--band", "0.1", "--max-moves", "1000")
    assert {r["band"] for r in made["summary"]["resources"]} == {0.1}
    assert made["summary"]["replica_moves"] > 3
    both = planned(tmp_path, "--cordon", "3")
    assert not any({3, 4} & set(m["new"]) for m in both["moves"])


def test_pinned_topics_of_the_settings_stay(tmp_path: Path) -> None:
    """The only topic is pinned, so nothing moves."""
    made = planned(tmp_path, settings=SETTINGS.replace("held.*", "t"))
    assert made["moves"] == []
