"""Events: what a person who looks at the platform should hear, beside the log; who carries it there is an adapter's business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """One thing that happened."""

    reason: str
    """One word for machines, such as ``RunStarted``; a small closed set."""
    sentence: str
    """For people; it names no secret."""
    warning: bool = False
    """An operator should look."""


class EventSink(Protocol):
    """Carries news; never waits and never fails: news that cannot be delivered is lost."""

    def __call__(self, news: ClusterEvent, /) -> None:
        """Take one piece of news."""
        ...


def null_sink(_: ClusterEvent) -> None:
    """A sink that drops every event."""
