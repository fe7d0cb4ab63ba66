"""What to look for among the events of a run (``--output json``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
Sign = Callable[[Event], bool]


def moves_to(stage: str, partition: int = 0) -> Sign:
    """A move that enters a stage."""
    return lambda event: event["kind"] == "MoveChanged" and (event["after"], event["partition"]) == (stage, partition)


def copies_more_than(done: int) -> Sign:
    """A copy that grows."""
    return lambda event: event["kind"] == "RunProgress" and event["bytesDone"] > done


def refuses(code: str, **parameters: object) -> Sign:
    """A guard that holds moves back, for this reason."""
    return lambda event: (
        event["kind"] == "RunWaiting"
        and any(v["code"] == code and parameters.items() <= v["parameters"].items() for v in event["refusals"])
    )


def stalls(*codes: str, **parameters: object) -> Sign:
    """A move that stands still for one of these reasons."""
    return lambda event: (
        moves_to("stalled")(event) and event["code"] in codes and parameters.items() <= event["parameters"].items()
    )


def ends(event: Event) -> bool:
    """The end of a run."""
    return bool(event["kind"] == "RunEnded")


def notes(event: Event) -> bool:
    """Something that is being tried again, or was left as it is."""
    return bool(event["kind"] == "RunNote")
