"""One writer at a time for the admin znodes of a cluster, proven at the moment of writing.

The lock is an ephemeral znode beside the ones it guards, so that nothing of it outlives the session that holds it.  A session
can expire without its owner's knowledge; therefore the lock comes with a token, a second ephemeral znode under a name of its
own, and a guarded znode is created in one transaction with a check of the token: an owner that lost the lock cannot write,
however late it wakes up.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency

from ballast.adapters.clock import Deadline
from ballast.errors import Fenced, LockHeld

LOCK: Final = "/admin/ballast_writer"


class ZooKeeperLock:
    """The right to write one-at-a-time admin znodes."""

    def __init__(self, client: Callable[[], KazooClient], owner: str, *, wait_s: float = 10.0) -> None:
        self._client = client
        self._owner = owner
        self._wait_s = wait_s

    @contextmanager
    def hold(self) -> Iterator[GuardedWriter]:
        """Hold the lock for the block; raises ``LockHeld`` naming the other when it is not given up in time."""
        client = self._client()
        token = f"{LOCK}.{uuid.uuid4().hex}"
        self._take(client, token)
        try:
            yield GuardedWriter(client, token)
        finally:
            # Both or neither: without the token the lock that stands there is another process's.
            leaving = client.transaction()
            leaving.delete(token)
            leaving.delete(LOCK)
            leaving.commit()

    def _take(self, client: KazooClient, token: str) -> None:
        body = json.dumps({"owner": self._owner}).encode()
        for last_try in (False, True):
            taking = client.transaction()
            taking.create(LOCK, body, ephemeral=True)
            taking.create(token, b"", ephemeral=True)
            failures = _failures(taking.commit())
            if not failures:
                return
            if not isinstance(failures[0], NodeExistsError):
                raise failures[0]
            other = _read_owner(client)
            if last_try or not wait_until_gone(client, LOCK, self._wait_s):
                raise LockHeld(
                    f"{other or 'Another process'} is writing to this cluster's ZooKeeper.",
                    holder=other,
                    hint="Wait for it, or stop it.",
                )


class GuardedWriter:
    """Creates znodes that only the lock's holder may create."""

    def __init__(self, client: KazooClient, token: str) -> None:
        self.client = client
        self._token = token

    def create(self, path: str, value: bytes) -> bool:
        """Create a persistent znode; False when it is there already, ``Fenced`` when the lock is no longer ours."""
        writing = self.client.transaction()
        writing.check(self._token, 0)
        writing.create(path, value)
        failures = _failures(writing.commit())
        if not failures:
            return True
        if isinstance(failures[0], NodeExistsError):
            return False
        if isinstance(failures[0], NoNodeError):
            raise Fenced("The ZooKeeper session ended and with it the right to write.", hint="Nothing was written.")
        raise failures[0]


def _failures(results: Sequence[Any]) -> list[Exception]:
    """What went wrong in a transaction, without the operations that only shared its fate."""
    return [
        r for r in results if isinstance(r, Exception) and not isinstance(r, (RolledBackError, RuntimeInconsistency))
    ]


def wait_until_gone(client: KazooClient, path: str, wait_s: float) -> bool:
    """Wait, by a watch and not by asking again, until a znode is deleted; False when it still stands after that time."""
    gone = threading.Event()

    def notice(_event: Any) -> None:
        gone.set()

    end = Deadline(wait_s)
    while client.exists(path, watch=notice) is not None:
        if not gone.wait(end.left_s):
            return False
        gone.clear()
    return True


def _read_owner(client: KazooClient) -> str | None:
    with suppress(NoNodeError, ValueError, KeyError, TypeError):
        return str(json.loads(client.get(LOCK)[0])["owner"])
    return None
