"""Regular expressions that people write, in settings and on the command line."""

from __future__ import annotations

import re
import warnings


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
