"""What the set-up says, and how it stops."""

from __future__ import annotations

import sys


class Trouble(Exception):
    """The set-up cannot go on; the message says what to do."""


def say(line: str) -> None:
    """One line of the story, on stderr and at once."""
    print(f"[setup] {line}", file=sys.stderr, flush=True)
