"""A topic's own rule as one argument: ``'gpu-.* brokers=7,8,9 most-per-broker=2 ignore-racks'``."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from ballast.core.planner import TopicRule
from ballast.errors import UsageError

_NAMES: Final = {f.name.replace("_", "-"): f for f in fields(TopicRule) if f.name != "topics"}
_HINT: Final = (
    "Write the topics' pattern and then one or more of "
    + ", ".join(name if f.type == "bool" else f"{name}=…" for name, f in _NAMES.items())
    + "."
)


def rule_of(text: str) -> TopicRule:
    """Words apart by spaces, which no topic's name holds: the pattern, then what is said of its topics."""
    pattern, *words = text.split() or [""]
    said: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        field = _NAMES.get(name)
        if field is None:
            raise UsageError(f"--topic-rule {text!r} says {word!r}, which is no rule.", hint=_HINT)
        if field.name in said:
            raise UsageError(f"--topic-rule {text!r} says {name} twice.", hint=_HINT)
        try:
            said[field.name] = _value(str(field.type), value, given=bool(sign))
        except ValueError:
            raise UsageError(f"--topic-rule {text!r} gives {name} no value that it can have.", hint=_HINT) from None
    return TopicRule(topics=pattern, **said)


def _value(kind: str, text: str, *, given: bool) -> Any:
    if kind == "bool":
        if given:
            raise ValueError
        return True
    members = [part for part in text.split(",") if part]
    if not members:
        raise ValueError
    if "frozenset[int]" in kind:
        return frozenset(int(part) for part in members)
    return frozenset(members) if "frozenset" in kind else int(text)
