"""Writes ``docs/schemas``: the JSON Schema of every document that ``--output json`` prints or the daemon's HTTP API answers, from its type.

``make schemas`` after a change of ``ballast.cli.documents``, ``ballast.daemon.web.answers`` or what ``ballast.daemon.context`` publishes; a
test holds the files to the types.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ballast.cli.documents import DOCUMENTS
from ballast.core.document_types import schema_of
from ballast.daemon.web.answers import ANSWERS

SCHEMAS: Final = Path(__file__).resolve().parents[1] / "docs" / "schemas"


def files() -> dict[str, str]:
    """The text of every file, by name."""
    return {
        f"{kind}.json": json.dumps(schema_of(document), indent=2, ensure_ascii=False) + "\n"
        for kind, document in (DOCUMENTS | ANSWERS).items()
    }


def main() -> None:
    """Write them, and remove those of documents that are gone."""
    SCHEMAS.mkdir(exist_ok=True)
    wanted = files()
    for old in SCHEMAS.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
