"""What ``--output json`` printed, held to the schemas in ``docs/schemas``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import jsonschema

from ballast.cli.main import cli
from ballast.cli.tables import OutputOption

SCHEMAS: Final = Path(__file__).resolve().parents[1] / "docs" / "schemas"


def validated(printed: str) -> list[dict[str, Any]]:
    """Every document of this output, one after another; raises where one is not as its schema says."""
    documents, decoder, rest = [], json.JSONDecoder(), printed.lstrip()
    while rest:
        found, end = decoder.raw_decode(rest)
        validate(found)
        documents.append(found)
        rest = rest[end:].lstrip()
    return documents


def validate(document: dict[str, Any]) -> None:
    """Raise where the document is not as the schema of its kind says."""
    schema = json.loads((SCHEMAS / f"{document['kind']}.json").read_text())
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(document)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by the words that it is called with."""

    def below(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        if not isinstance(command, click.Group):
            yield words, command
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from below(f"{words} {name}".strip(), found)

    yield from below("", cli)


def printing() -> dict[str, tuple[str, ...]]:
    """The kinds of documents that each command prints."""
    return {
        words: option.documents
        for words, command in commands()
        for option in command.params
        if isinstance(option, OutputOption)
    }
