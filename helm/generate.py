# ruff: noqa: INP001 — a script beside the chart, not a package
"""Makes ``values.schema.json`` and the table in ``README.md`` from the comments in ``values.yaml``.

``python helm/generate.py`` writes both; ``--check`` only says whether they are up to date.  A comment that begins with ``--``
documents the value below it.  ``(map)`` (of strings), ``(object)``, ``(quantity)``, ``(list of …)`` and ``(required)`` after the dashes say
what the default cannot.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).resolve().parent / "ballast"
BEGIN, END = "<!-- values: begin (generated) -->", "<!-- values: end -->"
_NOTE: Final = re.compile(r"^\((string|quantity|map|object|required[^)]*|list of (?:strings|objects|integers))\)\s*")
_LINE: Final = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_][\w.]*):(?: |$)")
_ENUMS: Final = {
    "settings.mode": ["observe", "approve", "auto"],
    "image.pullPolicy": ["Always", "IfNotPresent", "Never"],
    "auth.strimzi.authentication": ["tls", "scram-sha-512"],
    "antiAffinity": ["preferred", "required"],
    "pipeline.spark": ["", "k8s"],
    "service.type": ["ClusterIP", "NodePort", "LoadBalancer"],
}
_KINDS: Final[dict[str, dict[str, Any]]] = {
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "object": {"type": "object"},
    "quantity": {"type": ["string", "number"]},
}
_RESOURCES: Final = [
    f"{of}{part}" for of in ("resources", "pipeline.resources") for part in ("", ".requests", ".limits")
]
_OPEN: Final = {"settings", "settings.cluster", *_RESOURCES}
"""Sections that take further keys: Ballast checks its own settings, Kubernetes its resources."""


@dataclass(frozen=True, slots=True)
class Value:
    """One documented value."""

    path: str
    default: Any
    doc: str
    note: str


def read_values(text: str) -> list[Value]:
    """Every value with its comment, in the order of the file; a value without a comment is an error."""
    tree = yaml.safe_load(text)
    values: list[Value] = []
    comment: list[str] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            words = stripped.removeprefix("#").strip()
            comment = (
                [words.removeprefix("--").strip()] if words.startswith("--") else ([*comment, words] if comment else [])
            )
            continue
        found = _LINE.match(line)
        if found is None:
            comment = []
            continue
        indent = len(found["indent"])
        path = [(i, key) for i, key in path if i < indent] + [(indent, found["key"])]
        name = ".".join(key for _, key in path)
        default = tree
        for _, key in path:
            default = default[key]
        if not comment:
            if any(v.path == name.rpartition(".")[0] and v.note == "map" for v in values):
                continue
            raise SystemExit(f"values.yaml: {name} has no comment that begins with “# --”.")
        doc = " ".join(comment)
        note = _NOTE.match(doc)
        values.append(Value(name, default, doc[note.end() :] if note else doc, note[1] if note else ""))
        comment = []
    return values


def schema(values: list[Value]) -> dict[str, Any]:
    """A JSON schema that refuses unknown keys wherever Ballast owns the names."""
    by_path = {v.path: v for v in values}

    def section(prefix: str) -> dict[str, Any]:
        depth = prefix.count(".") + 1 if prefix else 0
        inner = [v for v in values if v.path.startswith(f"{prefix}." if prefix else "") and v.path.count(".") == depth]
        out: dict[str, Any] = {"type": "object", "properties": {v.path.rpartition(".")[2]: one(v) for v in inner}}
        if prefix not in _OPEN:
            out["additionalProperties"] = False
        return out

    def one(value: Value) -> dict[str, Any]:
        described = {"description": value.doc}
        if value.note.startswith("list of"):
            kind = {"strings": "string", "objects": "object", "integers": "integer"}[
                value.note.removeprefix("list of ")
            ]
            return {**described, "type": "array", "items": {"type": kind}}
        if value.note in _KINDS:
            return {**described, **_KINDS[value.note]}
        if isinstance(value.default, dict) and any(p.startswith(f"{value.path}.") for p in by_path):
            return {**described, **section(value.path)}
        if value.path in _ENUMS:
            return {**described, "enum": _ENUMS[value.path]}
        return {**described, "type": _json_type(value.default)}

    top = section("")
    # Helm hands these to every chart that may be a part of another one.
    top["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the ballast chart", **top}


def table(values: list[Value]) -> str:
    """The values as a Markdown table; sections stand as headings of their rows."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for v in values:
        is_section = isinstance(v.default, dict) and v.note not in {"map", "object"}
        default = "" if is_section else f"`{json.dumps(v.default)}`"
        name = f"**`{v.path}`**" if is_section else f"`{v.path}`"
        doc = f"Required. {v.doc}" if v.note.startswith("required") and v.note == "required" else v.doc
        rows.append(f"| {name} | {default} | {doc} |".replace("  ", " "))
    return "\n".join(rows)


def readme(current: str, values: list[Value]) -> str:
    """The README with its table renewed."""
    before, _, rest = current.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(values)}\n{END}{after}"


def outputs() -> dict[Path, str]:
    """What the files are to hold."""
    values = read_values((CHART / "values.yaml").read_text())
    return {
        CHART / "values.schema.json": json.dumps(schema(values), indent=2, ensure_ascii=False) + "\n",
        CHART / "README.md": readme((CHART / "README.md").read_text(), values),
    }


def _json_type(default: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (dict, "object"), (list, "array")):
        if isinstance(default, kind):
            return name
    raise SystemExit(f"values.yaml: no type for the default {default!r}.")


def main(arguments: list[str]) -> int:
    """Write, or check."""
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path.name} is out of date: python helm/generate.py\n")
        return 1 if stale else 0
    for path, text in outputs().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
