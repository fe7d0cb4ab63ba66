"""Ballast's user on a guarded cluster, whose password changes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.cluster import ChaosSandbox

from ballast.sandbox.layout import as_properties
from ballast.sandbox.security import ADMIN, create_scram_users


@dataclass
class Credentials:
    """The file that Ballast reads, and what stands in the cluster."""

    sandbox: ChaosSandbox
    file: Path

    def rotate(self) -> None:
        """A new password in the cluster; connections that stand are left alone, new ones need it."""
        assert self.sandbox.guard is not None
        word = secrets.token_urlsafe(12)
        create_scram_users(self.sandbox.inner_server, {ADMIN: word})
        self.sandbox.guard.users[ADMIN] = word

    def hand_over(self) -> None:
        """The password in force, in the file, in one step."""
        fresh = self.file.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(as_properties(self.sandbox.client_properties))
        fresh.replace(self.file)
