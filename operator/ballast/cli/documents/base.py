"""What all documents share: the style of their keys, of times and of figures that are not known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, PlainSerializer, WithJsonSchema

from ballast.core.cluster import TopicPartition
from ballast.core.document_types import Document, Part
from ballast.core.field_types import Known, Moment, OneOf, Parameters

__all__ = [
    "Bytes",
    "Document",
    "Known",
    "Moment",
    "OneOf",
    "Parameters",
    "Part",
    "Partition",
    "Seconds",
    "TableTime",
    "span_ms",
]


def span_ms(seconds: float) -> int | None:
    """A time span as the inside counts it, in seconds, negative where it is not known."""
    return None if seconds < 0 else round(seconds * 1000)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


TableTime = Annotated[AwareDatetime, PlainSerializer(_text), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time out of a table, printed like every ``Moment``."""
Seconds = Annotated[float, AfterValidator(lambda seconds: round(seconds, 1))]
Bytes = Annotated[int, BeforeValidator(lambda size: round(size) if isinstance(size, float) else size)]


class Partition(Part):
    """The name of a partition."""

    topic: str
    partition: int

    @classmethod
    def of(cls, name: TopicPartition) -> Partition:
        """The same name."""
        return cls(topic=name.topic, partition=name.partition)
