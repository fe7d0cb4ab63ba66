"""Which cluster this process works on: every source that names it must name the same one.

The brokers tell their cluster id in metadata, ZooKeeper in ``/cluster/id``, a person in ``cluster.id``.  Each new connection is
compared before anything else is sent over it: addresses can be mixed up in a command, and can come to lead to another
cluster while a process runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ballast.errors import Unavailable, WrongCluster


class ClusterIdentity:
    """The one cluster id of a process; safe to use from several threads."""

    def __init__(self, *, expected: str | None = None, zookeeper: Callable[[], str] | None = None) -> None:
        self._known: tuple[str, str] | None = None if expected is None else (expected, "cluster.id in the settings")
        self._zookeeper = zookeeper
        self._lock = threading.Lock()

    def confirm(self, told: str | None, who: str) -> None:
        """Take what ``who`` told; raises ``WrongCluster`` where another source names another cluster.

        ZooKeeper is asked once, before the first answer of a broker is believed.
        """
        if not told:
            raise Unavailable(f"{who} did not report its cluster id.", hint="Try again in a moment.")
        with self._lock:
            if self._zookeeper is not None:
                self._compare(self._zookeeper(), "ZooKeeper")
                self._zookeeper = None
            self._compare(told, who)

    def _compare(self, told: str, who: str) -> None:
        if self._known is None:
            self._known = (told, who)
        known, source = self._known
        if told != known:
            raise WrongCluster(
                f"{who} belongs to cluster {told}, and {source} names cluster {known}; nothing was sent.",
                hint="Check --bootstrap-server, --zookeeper and cluster.id: they must name one cluster. If it was replaced on "
                "purpose, start anew.",
            )
