"""Regular expressions that people write, in settings and on the command line."""

from __future__ import annotations

import re
import warnings

from ballast.errors import UsageError


def mistake_in(pattern: str) -> str | None:
    """What keeps it from being a regular expression; None where it is one."""
    try:
        with warnings.catch_warnings():
            # Python may read ``[[`` in another way one day; that is no news for the operator of a cluster.
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as wrong:
        return str(wrong)
    return None


def check_regex(pattern: str, place: str = "") -> None:
    """Refuse what is no regular expression, with its mistake and where it was written."""
    if wrong := mistake_in(pattern):
        raise UsageError(
            f"{pattern!r}{f' in {place}' if place else ''} is not a regular expression: {wrong}.",
            hint="Quote special characters with a backslash.",
        )
