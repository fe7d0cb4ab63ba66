#!/usr/bin/env python3
"""Judges the subjects of the last commits: in the imperative, at most 72 characters.

``make check`` runs it.  As a hook it judges a commit before it is made: ``ln -s ../../tools/commit_subjects.py .git/hooks/commit-msg``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LONGEST: Final = 72
NEWEST: Final = 20
IMPERATIVES: Final = frozenset(
    {"Bring", "Embed", "Exceed", "Feed", "Need", "Proceed", "Seed", "Shed", "Speed", "Spring", "String"}
)
"""Verbs that end as a past tense or a participle does."""


def wrong(subject: str) -> str | None:
    """What is wrong with a subject; None where nothing is."""
    first = subject.partition(" ")[0]
    if len(subject) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if subject.endswith("."):
        return "ends in a full stop"
    if not re.fullmatch(r"[A-Z][a-z-]+", first):
        return "does not begin with a capitalised verb"
    if first not in IMPERATIVES and re.search(r"(ed|ing|[^s]s)$", first):
        return "is not in the imperative"
    return None


def newest(root: Path) -> list[str]:
    """Subjects of the last commits, as far as there is a history: an archive has none, a shallow clone few."""
    if not (root / ".git").exists():
        return []
    line = ["git", "-C", str(root), "log", f"-{NEWEST}", "--no-merges", "--format=%s"]
    try:
        found = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        return []
    # A history that git refuses to read (the checkout of another user) cannot be judged here, nor can the absent one.
    return found.stdout.splitlines() if found.returncode == 0 else []


def main(arguments: list[str]) -> int:
    """Judge the message in a file, as a hook; without one the last commits."""
    subjects = [Path(arguments[0]).read_text(encoding="utf-8").partition("\n")[0]] if arguments else newest(ROOT)
    found = [f"{subject!r} {why}." for subject in subjects if (why := wrong(subject)) is not None]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
