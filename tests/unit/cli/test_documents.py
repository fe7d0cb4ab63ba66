"""Every JSON document that a command prints has one definition, a schema made from it, and a place in the documentation."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from tests.documents import SCHEMAS, commands, printing, validate
from tools.json_schemas import files

from ballast.cli.default_command import GroupWithDefault
from ballast.cli.documents import DOCUMENTS
from ballast.cli.documents.base import Part, TableTime
from ballast.cli.documents.cluster import Drains
from ballast.cli.main import cli
from ballast.core.cluster.drain import Drain
from ballast.core.cluster.topic_description import ReplicaDescription
from ballast.daemon.web.answers import ANSWERS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "json.md").read_text()


def has_json(command: click.Command) -> bool:
    """Whether the command can be asked for JSON."""
    return any(isinstance(p.type, click.Choice) and "json" in p.type.choices for p in command.params)


def typed(words: str) -> str:
    """The command as it is typed: where its group means it by default, by the group's name."""
    group = cli.get_command(click.Context(cli), words.split(maxsplit=1)[0])
    return words.removesuffix(f" {group.default}") if isinstance(group, GroupWithDefault) else words


OTHER_NAMES = {
    "capacityBytes": "diskTotalBytes",
    "diskBytes": "replicaBytes or diskTotalBytes",
    "diskFreeBytes": "diskUsableBytes",
    "imbalance": "imbalanceRatio",
    "leaderImbalanceThreshold": "leaderImbalanceThresholdRatio",
    "notLed": "preferredNotLed",
    "movesDone": "movesVerified",
    "movesFailed": "movesEndedOtherwise",
    "over": "overThreshold",
    "rateBytesPerS": "bytesPerS",
    "thresholdPercent": "thresholdRatio",
}
"""What commands and the daemon called the same thing otherwise, and its one name."""


def test_every_command_with_json_names_its_documents() -> None:
    """A new command cannot print JSON that has no schema."""
    asked = {words for words, command in commands() if has_json(command)}
    assert asked == set(printing())
    assert {kind for kinds in printing().values() for kind in kinds} == set(DOCUMENTS)


def test_schemas_are_those_of_the_types() -> None:
    """``make schemas`` has been run after the last change."""
    assert {path.name: path.read_text() for path in SCHEMAS.glob("*.json")} == files()


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_document_is_documented(kind: str) -> None:
    """The page names it with the commands that print it, and links its schema."""
    (line,) = re.findall(rf"^\| \[{kind}\]\(schemas/{kind}\.json\) \|.*", PAGE, re.MULTILINE)
    named = set(re.findall(r"`ballast ([a-z -]+)`", line))
    printed_by = {words for words, kinds in printing().items() if kind in kinds}
    plans = {words for words in printed_by if words.startswith("plan ")}
    assert named == {typed(w) for w in printed_by - plans} | ({"plan"} if plans else set())


def test_examples_are_documents() -> None:
    """Every example of the page is as its schema says."""
    examples = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert len(examples) >= 4
    for example in examples:
        validate(example)


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_answer_of_the_daemon_is_documented(kind: str) -> None:
    """The page links its schema, and its kind is no command's."""
    assert f"| [{kind}](schemas/{kind}.json) | " in PAGE
    assert kind not in DOCUMENTS


@pytest.mark.parametrize("kind", [*DOCUMENTS, *ANSWERS])
def test_one_style(kind: str) -> None:
    """``kind`` is the name of the type, keys are camelCase, and nothing is added to an object."""
    text = (SCHEMAS / f"{kind}.json").read_text()
    schema = json.loads(text)
    assert schema["properties"]["kind"]["const"] == kind
    assert {"apiVersion", "kind"} <= set(schema["required"])
    for found in (schema, *schema.get("$defs", {}).values()):
        assert found["additionalProperties"] is False
        assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", key) for key in found["properties"])
        if found["title"] != "Summary":
            assert set(found["required"]) == set(found["properties"]), "null, never missing"
        assert not set(found["properties"]) & set(OTHER_NAMES), "one thing has one name"


def test_times_have_their_zone_and_unknown_figures_are_null() -> None:
    """In UTC with milliseconds; what the inside marks with -1 is null."""
    at = datetime(2026, 11, 21, 14, 35, 25, 394_000, tzinfo=UTC)
    told = Drains(drains=(Drain(broker=4, by="Ada", since_ms=1_795_271_725_394),))
    printed = json.loads(told.model_dump_json())
    assert printed["drains"] == [{"broker": 4, "by": "Ada", "since": "2026-11-21T14:35:25.394Z"}]
    with pytest.raises(ValidationError):
        Drains.model_validate({"drains": [{"broker": 4, "by": "Ada", "since": "2026-11-21 14:35"}]})
    of_tables = TypeAdapter(TableTime)
    assert of_tables.dump_python(at) == "2026-11-21T14:35:25.394Z"
    with pytest.raises(ValidationError):
        of_tables.validate_python(at.replace(tzinfo=None))
    values: dict[str, Any] = dict.fromkeys(ReplicaDescription.__dataclass_fields__, False)
    values |= {"broker": 1, "log_dir": None, "log_end_offset": -1, "lag": -1, "size_bytes": 0, "future_size_bytes": -1}
    replica = TypeAdapter(ReplicaDescription).dump_python(ReplicaDescription(**values))
    assert [replica[key] for key in ("log_end_offset", "lag", "size_bytes", "future_size_bytes")] == [
        None,
        None,
        0,
        None,
    ]


def test_an_unknown_kind_has_no_schema() -> None:
    """A document that no schema defines is refused by the tests that read it."""
    with pytest.raises(FileNotFoundError):
        validate({"apiVersion": "ballast/v1", "kind": "Riddle"})
    assert issubclass(Part, BaseModel)
