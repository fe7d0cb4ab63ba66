"""What commands print with ``--output json`` on a real cluster is as the schemas say, for every command that prints any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.clusters import ClusterFactory
from tests.documents import printing, validated
from tests.real.execution_scene import Scene, scene

pytestmark = pytest.mark.kafka
TOPIC: Final = "told"
TURNS: Final[dict[str, tuple[str, ...]]] = {
    "topics create": (TOPIC, "--partitions", "4", "--replication-factor", "2", "--yes"),
    "topics add-partitions": (TOPIC, "--partitions", "6", "--yes"),
    "topics list": (),
    "topics describe": (TOPIC,),
    "status": (),
    "leaders": (),
    "plan balance": (),
    "throttles list": (),
    "simulate": ("--kill-broker", "4"),
    "apply": ("{plan}", "--yes", "--throttle", "10MB"),
    "verify": ("{plan}",),
    "runs list": (),
    "runs show": ("{run}",),
    "rollback": ("{run}", "--yes"),
    "cancel": ("--yes",),
    "runs resume": (),
    "elect": ("--all", "--yes"),
    "drains list": (),
    "sample": ("--store", "{folder}/store"),
    "decommission": ("4", "--yes", "--throttle", "10MB"),
    "uninstall": ("--yes",),
}
"""How each command is called, in an order in which each finds what it needs."""
PLANS: Final = {words for words in printing() if words.startswith("plan ") and words not in TURNS}
"""They print their plans as ``plan balance`` does."""
ELSEWHERE: Final = {
    "pipeline run": "spark/test_modes.py",
    "fleet report": "unit/pipeline/test_fleet_report.py",
    "sandbox status": "real/test_sandbox_cli.py",
    "sandbox versions": "real/test_sandbox_cli.py",
}
"""Commands that need something else than brokers: the tests that hold them to their schemas."""


@pytest.fixture
def at(own_cluster: ClusterFactory, tmp_path: Path) -> Iterator[Scene]:
    """Four brokers of its own, one of which can go."""
    with scene(own_cluster(brokers=4), tmp_path) as found:
        yield found


def test_every_command_that_prints_json_is_tried() -> None:
    """Here, or in a test that reads its documents with ``validated``."""
    assert {*TURNS, *ELSEWHERE} == {words for words in printing() if words not in PLANS}
    tests = Path(__file__).resolve().parents[1]
    assert all("validated" in (tests / name).read_text() for name in ELSEWHERE.values())


def test_what_is_printed_is_as_its_schema_says(at: Scene) -> None:
    """Each command prints documents of the kinds that it names, and no other line."""
    names = {"folder": str(at.folder)}
    for words, arguments in TURNS.items():
        if words == "apply":
            names["plan"] = str(at.plan(TOPIC, {0: (3, 1)}, elections=(1,)))
        if words == "runs show":
            names["run"] = next(r.id for r in at.runs().values() if r.intent == f"test {TOPIC}")
        line = (*words.split(), *(a.format(**names) for a in arguments))
        found = validated(at.finish(*line, "--output", "json"))
        assert {d["kind"] for d in found} <= set(printing()[words]), line
        if words not in {"cancel", "runs resume", "elect"}:
            assert found, line
