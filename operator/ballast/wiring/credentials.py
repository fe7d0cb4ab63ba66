"""Follows the file of client properties: a password that was changed in it is used without anybody restarting the daemon.

Clients take their credentials when they are made, and three libraries hold clients here.  So the whole process is started
anew in its own place: it leaves as on SIGTERM (lock released, moves in flight left to whoever comes next) and comes back
with every connection made from the new file.  A file with a mistake changes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ballast.adapters.security import Security
from ballast.settings.watch import FileWatch


class CredentialsWatch:
    """Looks whether the client properties changed, and asks for a new start when they did and can be read."""

    def __init__(self, path: Path, stop: Callable[[], None]) -> None:
        self._path = path
        self._watch = FileWatch(path)
        self._stop = stop
        self.renew = False
        """The process is to be started anew once it has left."""

    def look(self) -> str:
        """One tick; raises ``UsageError`` where the new file has a mistake, which changes nothing."""
        if not self._watch.changed():
            return "The client properties are the same."
        Security.from_file(self._path)
        self.renew = True
        self._stop()
        return "The client properties changed: every connection is made anew with them."


def start_anew(arguments: Sequence[str]) -> None:
    """Become a fresh process with the same id and arguments; does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "ballast", *arguments])  # noqa: S606 — no shell is wanted
