"""Opens the one journal of a cluster, so that a pod, a laptop and a second pod always meet on the same lock.

The journal is a topic in the cluster.  A file is used only when a person says so, on the command line or in the settings that name
the cluster, because two processes of which one uses the file and the other the topic do not exclude each other.
"""

from __future__ import annotations

import getpass
import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ballast.adapters.journal.file import FileJournal
from ballast.adapters.journal.topic import TopicJournal
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.errors import UsageError
from ballast.ports.journal import Holder, Journal
from ballast.wiring.cluster import OpenCluster

FILE_PREFIX: Final = "file:"
LEASE_S: Final = 15.0


def open_journal(
    client_config: Mapping[str, Any],
    *,
    journal: str | None = None,
    timeout_s: float = 30.0,
    identity: ClusterIdentity | None = None,
) -> Journal:
    """The cluster's journal; ``client_config`` is librdkafka's, with the bootstrap servers and security in it.

    ``journal`` is what the person said: None for the cluster's own, ``file:PATH`` for a file.  Connects on first use.
    """
    if journal is None:
        return TopicJournal(client_config, timeout_s=timeout_s, identity=identity)
    path = journal.removeprefix(FILE_PREFIX)
    if path == journal or not path:
        raise UsageError(
            f"{journal!r} is not a journal.", hint="Leave --journal out for the cluster's own, or say file:PATH."
        )
    return FileJournal(Path(path).expanduser().absolute())


def journal_of(opened: OpenCluster, choice: str | None = None, *, timeout_s: float = 30.0) -> Journal:
    """The cluster's journal, not yet acquired; reading needs no lock."""
    config = {**opened.security.for_confluent(), "bootstrap.servers": opened.bootstrap_server}
    if choice is None and opened.journal_file is not None:
        choice = f"{FILE_PREFIX}{opened.journal_file}"
    return open_journal(config, journal=choice, timeout_s=timeout_s, identity=opened.identity)


def journal_to_look_at(opened: OpenCluster, choice: str | None = None) -> Journal:
    """The same for a person who looks first of all: what keeps the cluster from being reached is said at once."""
    if choice is None:
        opened.check_answers()
    return journal_of(opened, choice)


def this_process(command: str, *, lease_s: float = LEASE_S, is_follower: bool = False) -> Holder:
    """How this process start names itself to the others; a pod's name is its host name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        user = str(os.getuid())
    host = socket.gethostname()
    return Holder(
        id=f"{host}-{os.getpid()}-{uuid.uuid4().hex[:12]}",
        description=f"{user}@{host} ({command})",
        lease_s=lease_s,
        is_follower=is_follower,
    )
