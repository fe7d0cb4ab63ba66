"""Assembles ``CHANGELOG.md`` from the fragments in ``docs/changelog.d``, one file for each topic.

A fragment says what users notice, as list items.  What was released is never touched: only the newest section is written anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
ORDER: Final = ("sandbox", "status", "placement", "planning", "execution", "journal", "daemon", "pipeline")
"""As a reader meets the topics; others follow by name."""
OPENING: Final = "# Changelog\n\nWhat users notice, newest first.\n"
UNRELEASED: Final = "## 0.1.0 (unreleased)"


def assembled(released: str) -> str:
    """The whole text: the opening, the fragments, and what was released before."""
    fragments = {path.stem: path.read_text().strip() for path in (ROOT / "docs" / "changelog.d").glob("*.md")}
    names = [name for name in ORDER if name in fragments] + sorted(set(fragments) - set(ORDER))
    body = "\n".join(fragments[name] for name in names)
    return f"{OPENING}\n{UNRELEASED}\n\n{body}\n{released}"


def released_part(text: str) -> str:
    """Everything from the second version's heading on; nothing before the first release."""
    _, _, after = text.partition(UNRELEASED)
    heading = after.find("\n## ")
    return "" if heading < 0 else after[heading:]


if __name__ == "__main__":
    changelog = ROOT / "CHANGELOG.md"
    changelog.write_text(assembled(released_part(changelog.read_text())))
