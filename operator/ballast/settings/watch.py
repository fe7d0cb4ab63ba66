"""Notices that a settings file changed, whatever way it changed: edited, replaced, or a ConfigMap's symlink swapped."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

MISSED_LOOKS: Final = 3
"""A file that cannot be read at so many looks in a row is gone; a ConfigMap's swap takes a moment."""


class FileWatch:
    """Compares content, not times: a ConfigMap's swap keeps odd times, and a touched file is no news.

    It is made before the file is read for the first time: what is written in between is found at the first look.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = self._read()
        self._missed = 0

    def changed(self) -> bool:
        """Has the content changed since the last call?  A file that is missing for a moment has not, one that stays away has."""
        digest = self._read()
        self._missed = 0 if digest is not None else self._missed + 1
        if digest == self._digest or 0 < self._missed < MISSED_LOOKS:
            return False
        self._digest = digest
        return True

    def _read(self) -> bytes | None:
        try:
            return hashlib.sha256(self.path.read_bytes()).digest()
        except OSError:
            return None
