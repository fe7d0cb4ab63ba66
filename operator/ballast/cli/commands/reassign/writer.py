"""How ``ballast reassign`` gets the lock from the process that an earlier ``--execute`` has started.

Such a follower releases the lock when it is asked.  It may also be just starting, or just ending: then it does not answer the request,
and the next holder of the lock answers it, so that it does not send away a later follower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from ballast.cli.commands.reassign.options import COMMAND, print_own_line
from ballast.errors import LockHeld

if TYPE_CHECKING:
    from ballast.executor.driver.events import Listener
    from ballast.wiring.cluster import OpenCluster
    from ballast.wiring.runs import Writer

TRIES: Final = 3
WAIT_S: Final = 20.0
"""How long each try waits for the lock: longer than a lease, so that a follower that was killed is found out."""


@contextmanager
def writer_from_follower(opened: OpenCluster, action: str, listener: Listener | None = None) -> Iterator[Writer]:
    """The lock for the block, from a follower where one has it; raises ``LockHeld`` where another process keeps it."""
    from ballast.executor.journal.answers import RequestAnswer
    from ballast.wiring.runs import open_writer

    asked: list[str] = []
    with ExitStack() as stack:
        for left in reversed(range(TRIES)):
            asked += _ask(opened, action)
            try:
                writer = stack.enter_context(
                    open_writer(opened, command=f"{COMMAND} {action}", listener=listener, lock_wait_s=WAIT_S)
                )
            except LockHeld as held:
                if not left or (held.holder is not None and not held.is_follower):
                    raise
            else:
                break
        for request in writer.journal.requests():
            if request.id in asked and request.answer is None:
                writer.journal.answer(request.id, str(RequestAnswer("lock-free")))
        yield writer


def _ask(opened: OpenCluster, action: str) -> list[str]:
    """Ask a follower to release the lock; the request's id where there is one to be asked."""
    from ballast.wiring.journal import journal_of, this_process
    from ballast.wiring.runs import request_release

    log = journal_of(opened)
    try:
        holder = log.holder()
        if holder is None or not holder.is_follower:
            return []
        request = request_release(log, this_process(f"{COMMAND} {action}").description, wait_s=WAIT_S)
        print_own_line(f"Requested the lock from {holder.description}.")
        return [request] if request is not None else []
    finally:
        log.close()
