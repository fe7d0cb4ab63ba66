"""Every command of docs/papers.md does what a reader would type: it runs on real brokers and ends well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.clusters import ClusterFactory

from ballast.cli.registry import COMMANDS
from ballast.sandbox import Sandbox

pytestmark = pytest.mark.kafka
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "papers.md").read_text()
KINDS: dict[str, dict[str, object]] = {
    "kraft": {"broker_configs": {"auto.leader.rebalance.enable": "false"}},
    "zookeeper 3.9": {"kafka_version": "3.9.2", "mode": "zookeeper"},
    "zookeeper 2.3": {"kafka_version": "2.3.1", "mode": "zookeeper"},
}
LIMIT_S = 240


def blocks(kind: str) -> list[str]:
    """The ``ballast`` lines that are to run on this kind of cluster, in order."""
    found = re.findall(r"<!-- run: ([a-z]+) -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
    return [line for where, text in found if where == kind for line in text.splitlines()]


def write_files(folder: Path) -> None:
    """The files that the page shows."""
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```[a-z]+\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text)


def run(line: str, sandbox: Sandbox, folder: Path) -> subprocess.CompletedProcess[str]:
    """One line, as typed in a folder of its own, on this cluster."""
    where = {"BALLAST__CLUSTER__BOOTSTRAP_SERVER": sandbox.bootstrap_server}
    if sandbox.zookeeper:
        where["BALLAST__CLUSTER__ZOOKEEPER"] = sandbox.zookeeper
    command, *arguments = line.split()
    assert command == "ballast"
    return subprocess.run(
        [sys.executable, "-m", "ballast", *arguments],
        cwd=folder,
        env={**os.environ, **where, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_runs(kind: str, own_cluster: ClusterFactory, tmp_path: Path) -> None:
    """From top to bottom, in one folder; nothing needs more than the page says."""
    sandbox = own_cluster(**KINDS[kind])
    write_files(tmp_path)
    lines = blocks(kind.split(maxsplit=1)[0])
    assert lines
    for line in lines:
        done = run(line, sandbox, tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_the_page_names_commands_that_exist() -> None:
    """Each begins with one of Ballast's, and none is left out of the test."""
    lines = [line for kind in ("kraft", "zookeeper") for line in blocks(kind)]
    assert {line.split()[1] for line in lines} <= set(COMMANDS)
    assert len(lines) == len(re.findall(r"^ballast ", PAGE, re.MULTILINE))
