"""The reference of all settings, as text for a terminal and as the page ``docs/settings.md``."""

from __future__ import annotations

import types as builtin_types
from collections.abc import Iterable
from dataclasses import MISSING, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Lt

from ballast.errors import UsageError
from ballast.settings.fields import FieldDoc, walk
from ballast.settings.kafka_names import KAFKA_NAMES
from ballast.settings.load import nearest
from ballast.settings.model import NEED_RESTART, Settings
from ballast.settings.show import text

_KAFKA = {place: name for name, place in KAFKA_NAMES.items()}

_HEAD = """\
# Settings

This page is generated (`ballast config reference`) from the docstrings beside the settings; edit those.

One YAML file, given as `ballast daemon --config FILE`, and environment variables, which override it:
`leaders.imbalance_percentage` is `BALLAST__LEADERS__IMBALANCE_PERCENTAGE`. In the file, sections nest or are written with
dots; Kafka's own names work where Kafka has one. An unknown name is refused with the nearest known one. The default `—` is
empty: the setting is not set. `ballast config check FILE` prints the active settings. Changes are picked up while the daemon
runs, except in the sections marked *restart*. A file with a mistake is not used: the settings before it stay active, and the
page, the log and `ballast_settings_valid` say so.

```yaml
cluster:
  bootstrap_server: kafka-1:9092,kafka-2:9092
mode: approve
leader.imbalance.per.broker.percentage: 10
auto.leader.rebalance.enable: true
actions:
  moves:
    windows:
      - opens: "0 1 * * 1-5"
        lasts_minutes: 240
        timezone: Europe/Berlin
```
"""


def page() -> str:
    """``docs/settings.md``."""
    docs = list(walk(Settings))
    parts = [_HEAD, "\n## Top level\n\n", _table([d for d in docs if len(d.path) == 1 and not d.section])]
    for section in (d for d in docs if d.section):
        restart = " — *restart*" if section.path[0] in NEED_RESTART else ""
        inner = [d for d in docs if d.path[:-1] == section.path and not d.section]
        parts.append(f"\n## `{section.name}`{restart}\n\n{section.doc}\n")
        if inner:
            parts.append("\n" + _table(inner))
    for title, cls in _members(docs):
        parts.append(f"\n## Each of `{title}`\n\n" + _table(list(walk(cls))))
    return "".join(parts)


def explain(name: str | None) -> str:
    """One setting, one section or everything, as plain text."""
    docs = list(walk(Settings))
    if name is None:
        return "\n\n".join(_plain(d) for d in docs)
    path = KAFKA_NAMES.get(name, tuple(name.split(".")))
    chosen = [d for d in docs if d.path[: len(path)] == path]
    if not chosen:
        near = nearest(name, [*KAFKA_NAMES, *(d.name for d in docs)])
        raise UsageError(f"There is no setting {name!r}.", hint=f"Did you mean {near}?" if near else None)
    return "\n\n".join(_plain(d) for d in chosen)


def _plain(doc: FieldDoc) -> str:
    kafka = f" (Kafka: {_KAFKA[doc.path]})" if doc.path in _KAFKA else ""
    default = "" if doc.section else f"\n  default: {text(doc.default)}; {type_of(doc.type)}"
    return f"{doc.name}{kafka}{default}\n  {' '.join(doc.doc.split())}"


def _table(docs: list[FieldDoc]) -> str:
    rows = ["| setting | default | type | meaning |\n|---|---|---|---|\n"]
    for doc in docs:
        name = f"`{doc.path[-1]}`" + (f"<br>Kafka: `{_KAFKA[doc.path]}`" if doc.path in _KAFKA else "")
        default = "required" if doc.default is MISSING else f"`{_cell(text(doc.default))}`"
        rows.append(f"| {name} | {default} | {_cell(type_of(doc.type))} | {_cell(doc.doc)} |\n")
    return "".join(rows)


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")


def _members(docs: list[FieldDoc]) -> list[tuple[str, type]]:
    """Sections that stand in lists: described once."""
    found: dict[type, str] = {}
    for doc in docs:
        for arg in get_args(doc.type):
            if isinstance(arg, type) and is_dataclass(arg):
                found.setdefault(arg, doc.path[-1])
    return [(title, cls) for cls, title in found.items()]


_BOUNDS = ((Gt, "gt", "above"), (Ge, "ge", "at least"), (Lt, "lt", "below"), (Le, "le", "at most"))
_KAFKA_TYPES: dict[Any, str] = {str: "string", int: "int", float: "double", bool: "boolean", Path: "string"}
"""What Kafka's own tables of settings call them; a file is named by a string."""


def type_of(kind: Any) -> str:
    """A type as Kafka's tables of settings name it, with its bounds and allowed values; that it may be empty its default shows."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return f"{type_of(args[0])}{_bounds(args[1:])}"
    if origin in {Union, builtin_types.UnionType}:
        # The one with a list of values comes last, so that what follows "or" is not read as another value.
        return " or ".join(sorted((type_of(a) for a in args if a is not type(None)), key=lambda said: "`" in said))
    if origin is Literal:
        return _one_of(args)
    if origin in {tuple, frozenset}:
        return f"list of {type_of(args[0])}"
    return f"map of {type_of(args[0])} to {type_of(args[1])}" if origin is not None else _plain_type(kind)


def _one_of(values: Iterable[str]) -> str:
    return f"string, one of {', '.join(f'`{value}`' for value in values)}"


def _plain_type(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _one_of(member.value for member in kind)
    if isinstance(kind, type) and is_dataclass(kind):
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind.__name__)
        return f"{words.strip()} (below)"
    return _KAFKA_TYPES.get(kind, getattr(kind, "__name__", str(kind)))


def _bounds(marks: tuple[Any, ...]) -> str:
    said = []
    for mark in marks:
        for cls, attribute, word in _BOUNDS:
            value = getattr(mark, attribute, None) if isinstance(mark, cls | Interval) else None
            if value is not None:
                said.append(f"{word} {value:g}")
    return f", {' and '.join(said)}" if said else ""
