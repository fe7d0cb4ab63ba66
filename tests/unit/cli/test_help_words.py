"""Help is read with Kafka's documentation open beside it: it says what is meant, in the trade's words."""

from __future__ import annotations

import re
from typing import Final

import click
import pytest
from tests.unit.cli.test_shell import ALL

RIDDLES: Final = (
    "bound that nothing beats",
    "come home",
    "comes back",
    "go on with",
    "no byte moves",
    "racks of their own",
    "shall have",
    "so long after",
    "who acts",
    "stands",
    "that stand",
    "may be gone",
    "Distance of",
    "as in the settings",
    "as the settings say",
    "striped",
)


@pytest.mark.parametrize("context", ALL, ids=lambda c: c.command_path)
def test_help_has_no_riddles(context: click.Context) -> None:
    """Neither in what a command does nor in its options."""
    text = " ".join(context.get_help().split())
    assert [words for words in RIDDLES if re.search(rf"\b{words}\b", text)] == []


def test_a_default_from_the_settings_is_told_in_one_form() -> None:
    """What holds where neither an option nor the settings say anything comes last."""
    told = [
        (context.command_path, found)
        for context in ALL
        for found in re.findall(r"\[default: [^\]]*settings[^\]]*\]", " ".join(context.get_help().split()))
    ]
    assert len(told) > 20
    assert [t for t in told if not t[1].startswith("[default: settings")] == []


def test_topics_are_names_or_expressions() -> None:
    """As the metavar of each says."""
    wrong = [
        f"{context.command_path} {parameter.opts[0]}"
        for context in ALL
        for parameter in context.command.params
        if parameter.opts[0] in {"--topic", "--topics", "--exclude-topics", "--prefix", "topic", "topics_"}
        and not context.command_path.startswith("ballast sandbox")
        and parameter.make_metavar(context).strip("…") not in {"NAME", "REGEX"}
    ]
    assert wrong == []
