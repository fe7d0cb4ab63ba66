"""``ballast reassign``: which options go with which action."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ballast.cli.commands.reassign import reassign

FLAG = "--disallow-replication-factor-change"


def run(tmp_path: Path, action: str) -> Result:
    """That action with the option, on a cluster that is not there."""
    file = tmp_path / "f.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}')
    needs = {
        "generate": ["--topics-to-move-json-file", str(file), "--broker-list", "1"],
        "list": [],
    }.get(action, ["--reassignment-json-file", str(file)])
    words = [f"--{action}", "-b", "127.0.0.1:1", FLAG, *needs]
    return CliRunner().invoke(reassign, words, standalone_mode=False)


@pytest.mark.parametrize("action", ["generate", "verify", "cancel", "list"])
def test_the_option_goes_with_execute_alone(tmp_path: Path, action: str) -> None:
    """As in the stock tool, which ends with 1 as well."""
    result = run(tmp_path, action)
    assert result.return_value == 1
    assert f"Option {FLAG} can't be used with action --{action}." in result.output
