"""Follows every file that credentials come from: what is renewed in one is used without an operator's restart of the daemon.

These are the client properties, the files that they name (authorities, certificates, keys) and those that they refer to
(a mounted password).  Clients take their credentials when they are made, and three libraries hold clients here.  So the whole
process is started anew in its own place: it leaves as on SIGTERM (lock released, moves in progress left to the next process)
and comes back with every connection made from the new files.  New credentials are tried first: while they have a mistake, or a
broker refuses them, nothing changes.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from ballast.adapters.auth.security import Security
from ballast.errors import AuthenticationFailed, Unavailable


class CredentialsWatch:
    """Looks whether a file changed; ``renew`` when one did and brokers take what it holds.

    It is made before the clients are: what is renewed while they are made is found at the first look.
    """

    def __init__(
        self,
        load: Callable[[], Security],
        try_them: Callable[[Security], None],
        *,
        properties: Path | None = None,
    ) -> None:
        self._load = load
        self._try = try_them
        self._properties = frozenset() if properties is None else frozenset({properties})
        # The properties first: they may change while they are read, and name other files then.
        before = _digests(self._properties)
        self._digests = _digests(load().files) | before
        self.renew = False
        """The process is to be started anew once it has left."""

    def check(self) -> str:
        """One check; raises where the new files have a mistake or brokers refuse them, which changes nothing."""
        if _digests(self._digests) == self._digests:
            return "The credentials are the same."
        security = self._load()
        security.tls_context()
        try:
            self._try(security)
        except AuthenticationFailed:
            raise
        except Unavailable as away:
            return f"The credentials changed and cannot be tried now: {away.message}"
        self._digests = _digests(security.files | self._properties)
        self.renew = True
        return "The credentials changed: every connection is made anew with them."

    def cancel_renewal(self) -> None:
        """The process ends for good, also where it is leaving to come back."""
        self.renew = False


def _digests(files: Collection[Path]) -> dict[Path, str]:
    """Of contents and not of times: a Secret's swap keeps odd times, and a touched file is no news."""
    return {path: _digest(path) for path in files}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "missing"


def start_anew(arguments: Sequence[str]) -> None:
    """Become a fresh process with the same id and arguments; does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "ballast", *arguments])  # noqa: S606 — no shell is wanted


def end_now() -> None:
    """End as asked, without what an orderly end waits for; does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
