"""Reads the one-line login entry that Kafka clients carry in ``sasl.jaas.config``.

``<module class> required key="value" … ;`` Values may be quoted either way, with backslash escapes, or bare.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ballast.errors import UsageError

_ENTRY: Final = re.compile(
    r"^\s*(?P<module>[\w.$]+)\s+(?P<flag>required|requisite|sufficient|optional)\b(?P<options>.*)$",
    re.DOTALL | re.IGNORECASE,
)
_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module and its options; the options hold secrets, so they stay out of ``repr``."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry(module={self.module!r}, options=<{len(self.options)} hidden>)"


def parse_jaas(text: str) -> JaasEntry:
    """The entry in a ``sasl.jaas.config`` value; errors never repeat the value, which holds a password."""
    entry = _ENTRY.match(text)
    if entry is None:
        raise UsageError(
            "sasl.jaas.config does not start with a login module and 'required'.",
            hint='It reads: org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";',
        )
    rest = entry["options"]
    options: dict[str, str] = {}
    at = 0
    while match := _OPTION.match(rest, at):
        options[match[1]] = _unquote(match[2])
        at = match.end()
    if rest[at:].strip() not in ("", ";"):
        raise UsageError(
            f"sasl.jaas.config cannot be read after its option number {len(options)}.",
            hint='Quote each value and end the entry with a semicolon: key="value" key="value";',
        )
    return JaasEntry(entry["module"], options)


def _unquote(value: str) -> str:
    if value[0] not in "\"'":
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
