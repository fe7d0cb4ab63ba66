"""What a topic may be called (Kafka's ``Topic.validate`` and ``Topic.hasCollision``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ballast.errors import UsageError

LONGEST: Final = 249
"""Characters; the name of a folder of the log ends with the partition's number."""

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


class InvalidTopicName(UsageError):
    """No cluster would take a new topic of that name (Kafka: InvalidTopicException)."""

    id = "invalid-topic-name"


def check_new_topic(name: str, present: Iterable[str]) -> None:
    """Refuse what the controller would refuse, so that a dry run promises nothing that cannot be made."""
    if name in {"", ".", ".."}:
        raise InvalidTopicName(f"A topic cannot be called {name!r}.")
    if len(name) > LONGEST:
        raise InvalidTopicName(f"A topic's name has {LONGEST} characters at most, and this one has {len(name)}.")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopicName(
            f"A topic cannot be called {name!r}.",
            hint="Use letters and digits of ASCII, dots, underscores and hyphens.",
        )
    # Metric names cannot tell dots from underscores.
    alike = sorted(other for other in present if other.replace(".", "_") == name.replace(".", "_"))
    if alike:
        raise InvalidTopicName(
            f"Topic {name} would collide with {', '.join(alike)}: Kafka takes dots and underscores for the same.",
            hint="Choose a name that differs in more than that.",
        )
