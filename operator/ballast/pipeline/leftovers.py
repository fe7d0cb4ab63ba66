"""Files that no version of a table names, or names no more: what was replaced, and what killed writers left behind."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

KEPT_S: Final = 7 * 86_400
"""Delta's own safe retention: a file younger than that may be read by somebody, or be about to be committed."""
_UNFINISHED: Final = re.compile(r"\.parquet#\d+$")
"""How delta-rs's store calls a file in a folder that is still being written; it never lists them, so nor does its vacuum."""


def free(table: Any) -> None:
    """Remove them all, once they are ``KEPT_S`` old; the table is opened with delta-rs."""
    table.vacuum(retention_hours=KEPT_S // 3600, dry_run=False, full=True)
    address = urlsplit(table.table_uri)
    if address.scheme in ("", "file"):
        _remove_unfinished(Path(unquote(address.path)), before_s=time.time() - KEPT_S)


def _remove_unfinished(folder: Path, *, before_s: float) -> None:
    """A bucket knows no such files: what was not finished there was never an object."""
    for path in folder.rglob("*.parquet#*"):
        # A writer at work may have finished it since the folder was listed: then it has its own name by now.
        with suppress(FileNotFoundError):
            if _UNFINISHED.search(path.name) and path.stat().st_mtime < before_s:
                path.unlink()
