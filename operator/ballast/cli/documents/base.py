"""What all documents share: the style of their keys, of times and of figures that are not known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core.core_schema import CoreSchema, literal_schema

from ballast.core.cluster import TopicPartition

API_VERSION: Final = "ballast/v1"


def moment(at_ms: int) -> datetime:
    """A time as the inside counts it, in milliseconds since 1970."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def milliseconds(seconds: float) -> int | None:
    """A time span as the inside counts it, in seconds, negative where it is not known."""
    return None if seconds < 0 else round(seconds * 1000)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _known(figure: object) -> object:
    return None if isinstance(figure, int | float) and figure < 0 else figure


Moment = Annotated[AwareDatetime, PlainSerializer(_text), WithJsonSchema({"type": "string", "format": "date-time"})]
"""Printed in UTC as ISO 8601, with milliseconds."""
Known = Annotated[int | None, BeforeValidator(_known)]
"""A whole number that the inside marks with a negative one where it is not known; printed as null."""
Seconds = Annotated[float, AfterValidator(lambda seconds: round(seconds, 1))]
Bytes = Annotated[int, BeforeValidator(lambda size: round(size) if isinstance(size, float) else size)]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text that is one of a few words: ``Annotated[str, OneOf("kraft", "zookeeper")]``."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def __get_pydantic_core_schema__(self, _: object, __: object) -> CoreSchema:
        return literal_schema(list(self.words))


class Part(BaseModel):
    """An object of a document: snake_case here, camelCase in JSON, and nothing else in it."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
    )


class Document(Part):
    """A whole answer; a subclass sets ``kind`` to the name of its class."""

    api_version: Literal["ballast/v1"] = API_VERSION
    kind: str


class Partition(Part):
    """The name of a partition."""

    topic: str
    partition: int

    @classmethod
    def of(cls, name: TopicPartition) -> Partition:
        """The same name."""
        return cls(topic=name.topic, partition=name.partition)
