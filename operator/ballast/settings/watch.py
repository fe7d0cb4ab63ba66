"""Notices that a settings file changed, whatever way it changed: edited, replaced, or a ConfigMap's symlink swapped."""

from __future__ import annotations

import hashlib
from pathlib import Path


class FileWatch:
    """Compares content, not times: a ConfigMap's swap keeps odd times, and a touched file is no news."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = self._read()

    def changed(self) -> bool:
        """Has the content changed since the last call?  A file that is missing for a moment has not."""
        digest = self._read()
        if digest is None or digest == self._digest:
            return False
        self._digest = digest
        return True

    def _read(self) -> bytes | None:
        try:
            return hashlib.sha256(self._path.read_bytes()).digest()
        except OSError:
            return None
