"""What a code and its figures say: decisions make codes with parameters, a package's table has one template for each.

Where one code has several causes, each has a template of its own, by ``(code, cause)``.  A template is a format string whose specs are *forms*: ``{size:bytes}``, ``{replicas:list}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from string import Formatter
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.core.wording import human_brokers, human_bytes, human_many, human_percent, human_replicas, human_time

Form = Callable[[Any], str]

FORMS: Final[Mapping[str, Form]] = {
    "bytes": human_bytes,
    "list": human_replicas,
    "times": lambda count: human_many(count, "time"),
    "partitions": lambda count: human_many(count, "partition"),
    "replicas": lambda count: human_many(count, "replica"),
    "time": human_time,
    "percent": human_percent,
    "names": ", ".join,
    "brokers": human_brokers,
    "reason": lambda reason: f": {reason}" if reason else "",
    "failed": lambda paths: f" Failed there: {', '.join(paths)}." if paths else "",
}
"""Forms that every catalogue has."""


class Template(NamedTuple):
    """The two templates of a code: what is wrong, and what to do about it."""

    detail: str
    remedy: str = ""


Key = str | tuple[str, str]
"""A code, or a code with one of its causes."""
Table = Mapping[Key, str | Template]


def key_of(code: str, cause: str = "") -> Key:
    """By which a table has a code; the cause is empty for the one that goes without saying."""
    return (code, cause) if cause else code


def codes_of(table: Iterable[Key]) -> tuple[str, ...]:
    """Its codes in their order, each once."""
    return tuple(dict.fromkeys(key if isinstance(key, str) else key[0] for key in table))


class Catalogue(Formatter):
    """Writes figures as the sentences of this project do."""

    def __init__(self, forms: Mapping[str, Form] | None = None) -> None:
        self._forms = {**FORMS, **(forms or {})}

    def render(self, template: str, values: Mapping[str, object]) -> str:
        """The template with these values in it."""
        return self.vformat(template, (), values)

    def format_field(self, value: Any, spec: str) -> str:
        """One value in the form that the template asks for."""
        write = self._forms.get(spec)
        return str(super().format_field(value, spec)) if write is None else write(value)


@dataclass(frozen=True, slots=True)
class Message:
    """A code with its figures; each kind of message has its own sentences, and its own forms where it needs them."""

    code: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    cause: str = ""
    """Which of the code's causes; empty for the one that goes without saying."""

    sentences: ClassVar[Table] = {}
    catalogue: ClassVar[Catalogue] = Catalogue()

    def __post_init__(self) -> None:
        """A code without a sentence is found where it is made, not where it is shown."""
        if (key := key_of(self.code, self.cause)) not in self.sentences:
            raise ValueError(f"{key} is not a code of {type(self).__name__}")

    @property
    def parameters(self) -> dict[str, Any]:
        """Its figures as JSON has them."""
        return dict(plain(self.values))

    @property
    def detail(self) -> str:
        """The sentence for people."""
        return self.catalogue.render(self._said.detail, self.values)

    @property
    def remedy(self) -> str:
        """What to do; empty where there is nothing."""
        return self.catalogue.render(self._said.remedy, self.values)

    @property
    def _said(self) -> Template:
        found = self.sentences[key_of(self.code, self.cause)]
        return Template(found) if isinstance(found, str) else found

    def __str__(self) -> str:
        return self.detail


class Messages(tuple[Message, ...]):
    """What is said together, one sentence after another."""

    __slots__ = ()

    def __str__(self) -> str:
        return " ".join(map(str, self))


Said = Message | Messages


_NAMES: Final = {"values": "parameters"}


def plain(value: object) -> Any:
    """A parameter as JSON has it: partitions by their names, values as objects of their fields, what is not known as null."""
    value = value.item() if isinstance(value, np.generic) else value
    match value:
        case int() if value == UNKNOWN:
            return None
        case TopicPartition():
            return str(value)
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case tuple():
            return [plain(v) for v in value]
    if is_dataclass(value):
        return {_NAMES.get(f.name, f.name): plain(getattr(value, f.name)) for f in fields(value)}
    return value
