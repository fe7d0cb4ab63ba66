"""Reads properties files in the form of ``java.util.Properties``, which is how Kafka's own clients are configured.

It knows comments, continued lines, the three separators and the escapes.  It knows nothing of what the keys mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ballast.errors import UsageError

_REFERENCE: Final = re.compile(r"\$\{(?P<kind>directory|file):(?P<place>[^:}]+):(?P<name>[^:}]+)\}")
_BLANK: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    """The entries of a file; a later entry of the same key wins, as in Java."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        # Java reads these files as Latin-1; a file that is not UTF-8 was written with that in mind.
        text = path.read_text(encoding="latin-1")
    except OSError as failure:
        raise UsageError(
            f"The properties file {path} cannot be read: {failure.strerror or failure}.",
            hint="Check the path and its permissions.",
        ) from None
    try:
        return parse_properties(text)
    except ValueError as mistake:
        raise UsageError(
            f"The properties file {path} is malformed: {mistake}.",
            hint="An escape is a backslash, a u and four hex digits.",
        ) from None


def follow_references(entries: Mapping[str, str]) -> tuple[dict[str, str], frozenset[Path]]:
    """Values with what they refer to in place, and the files that were read for it.

    In the form of Kafka's own config providers, which need not be named: ``${directory:PATH:FILE}`` is a file's whole content,
    as a Secret is mounted, and ``${file:PATH:KEY}`` an entry of another properties file.
    """
    files: set[Path] = set()

    def content(found: re.Match[str]) -> str:
        kind, place, name = found["kind"], Path(found["place"]).expanduser(), found["name"]
        if kind == "file":
            files.add(place)
            other = read_properties(place)
            if name not in other:
                raise UsageError(f"The properties file {place} has no entry {name}.", hint=f"{found[0]} refers to it.")
            return other[name]
        files.add(place / name)
        return _content(place / name, found[0])

    return {key: _REFERENCE.sub(content, value) for key, value in entries.items()}, frozenset(files)


def _content(path: Path, reference: str) -> str:
    try:
        # A password's file usually ends with a line break; no password ends with one.
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as failure:
        raise UsageError(
            f"The file {path} cannot be read: {failure.strerror or failure}.", hint=f"{reference} refers to it."
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"The file {path} is not UTF-8 text.", hint=f"{reference} refers to it.") from None


def parse_properties(text: str) -> dict[str, str]:
    r"""The entries of a text; raises ``ValueError`` on a broken ``\u`` escape."""
    entries: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        entries[_unescape(key)] = _unescape(value)
    return entries


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, with continuations joined."""
    pending = ""
    continued = False
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANK)
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        pending += line[:-1] if continued else line
        if not continued:
            yield pending
            pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """Key and value of a line: the first unescaped ``=``, ``:`` or blank ends the key."""
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANK:
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char != "\\":
            out.append(char)
            at += 1
            continue
        escaped = text[at + 1 : at + 2]
        if escaped == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) != 4 or any(d not in "0123456789abcdefABCDEF" for d in digits):
                raise ValueError(f"a \\u escape is followed by {digits!r}")
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            out.append(_ESCAPES.get(escaped, escaped))
            at += 2
    return "".join(out)
