"""Follows a settings file, whatever way it changes: edited, replaced, or a ConfigMap's symlink swapped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ballast.daemon.policy import SettingsChange
from ballast.settings.load import load_settings
from ballast.settings.show import differences, flat, need_restart

MISSED_LOOKS: Final = 3
"""A file that cannot be read at so many looks in a row is gone; a ConfigMap's swap takes a moment."""


class SettingsWatch:
    """The settings of a process that follows their file.

    It compares content, not times: a ConfigMap's swap keeps odd times, and a touched file is no news.
    """

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path, self._environment = path, environment
        # Before the file is read for the first time: what is written in between is found at the first look.
        self._digest = self._read()
        self._missed = 0
        self.settings = load_settings(path, environment)
        self._mistaken = False

    def look(self) -> SettingsChange | None:
        """Look whether the file changed; hand over what may change while running and name what may not."""
        if not self._changed():
            return None
        # A mistake is told once, and so is its end: also where the file then says what it said before.
        mended, self._mistaken = self._mistaken, True
        before, self.settings = self.settings, load_settings(self._path, self._environment)
        self._mistaken = False
        changed = differences(self.settings, before)
        if not changed:
            same = "The settings file is valid again, and its settings are active."
            return (self.settings.daemon, tuple(flat(self.settings)), same) if mended else None
        later = need_restart(before, self.settings)
        names = ", ".join(f"{name} = {value}" for name, value, _ in changed if name not in later)
        sentence = f"Settings changed: {names}." if names else "Settings changed."
        if later:
            sentence += f" Picked up at the next start only: {', '.join(later)}."
        return self.settings.daemon, tuple(flat(self.settings)), sentence

    def _changed(self) -> bool:
        """Has the content changed since the last call?  A file that is missing for a moment has not, one that stays away has."""
        digest = self._read()
        self._missed = 0 if digest is not None else self._missed + 1
        if digest == self._digest or 0 < self._missed < MISSED_LOOKS:
            return False
        self._digest = digest
        return True

    def _read(self) -> bytes | None:
        try:
            return hashlib.sha256(self._path.read_bytes()).digest()
        except OSError:
            return None
