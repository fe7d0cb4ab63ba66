"""What a test asks of the sentences of a kind of message."""

from __future__ import annotations

from string import Formatter

from ballast.core.catalogue import Key, Message, Template


def code_and_cause(key: Key) -> tuple[str, str]:
    """Both, where the table may have the code alone."""
    return (key, "") if isinstance(key, str) else key


def figures_of(kind: type[Message], key: Key) -> set[str]:
    """The figures that the sentences of this code take."""
    said = kind.sentences[key]
    templates = said if isinstance(said, Template) else (said,)
    return {name.partition(".")[0] for text in templates for _, name, _, _ in Formatter().parse(text) if name}
