"""Kafka client properties are read as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.adapters.auth.properties import parse_properties, read_properties
from ballast.errors import UsageError


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("  \ta=b", {"a": "b"}),
        ("# a=b\n! c=d\n\ne=f", {"e": "f"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=back\\\\\nb=c", {"a": "back\\", "b": "c"}),
        (r"a\=b=c", {"a=b": "c"}),
        (r"a\ b : c", {"a b": "c"}),
        (r"a=\t\n\u00e9\q", {"a": "\t\n\u00e9q"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=x\\\n# no comment", {"a": "x# no comment"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=end\\", {"a": "end"}),
    ],
)
def test_a_text_is_read_as_java_reads_it(text: str, entries: dict[str, str]) -> None:
    """Comments, separators, continuations and escapes have the meaning of ``java.util.Properties.load``."""
    assert parse_properties(text) == entries


def store(entries: dict[str, str]) -> str:
    """Write as ``java.util.Properties.store`` does."""

    def escape(text: str, *, key: bool) -> str:
        out = []
        for at, char in enumerate(text):
            if char in "\\=:#!" or (char == " " and (key or at == 0)):
                out.append(f"\\{char}")
            elif char in "\t\n\r\f":
                out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
            elif not 0x20 <= ord(char) <= 0x7E:
                out.append("".join(f"\\u{u:04x}" for u in units(char)))
            else:
                out.append(char)
        return "".join(out)

    def units(char: str) -> list[int]:
        raw = char.encode("utf-16-be")
        return [int.from_bytes(raw[i : i + 2]) for i in range(0, len(raw), 2)]

    return "\n".join(f"{escape(k, key=True)}={escape(v, key=False)}" for k, v in entries.items())


basic = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))


@given(st.dictionaries(basic.filter(bool), basic))
def test_what_java_writes_is_read_back(entries: dict[str, str]) -> None:
    """Any entries survive Java's own way of writing them."""
    assert parse_properties(store(entries)) == entries


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    """The person learns which file cannot be read."""
    with pytest.raises(UsageError, match=r"nothing\.properties cannot be read"):
        read_properties(tmp_path / "nothing.properties")


def test_a_broken_escape_is_one_sentence(tmp_path: Path) -> None:
    """The person learns which file is malformed and how an escape is written."""
    path = tmp_path / "client.properties"
    path.write_text(r"a=\u12")
    with pytest.raises(UsageError, match="is malformed") as failure:
        read_properties(path)
    assert failure.value.hint is not None
