"""One ``ballast reassign``: what was asked, where it answers, and the lock, which the process that follows earlier moves may have.

Such a follower releases the lock when it is asked.  It may also be just starting, or just ending: then it does not answer the request,
and the next holder of the lock answers it, so that it does not send away a later follower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from ballast.core.stock.files import ReassignmentEntry
from ballast.core.wording import ShowLine
from ballast.errors import LockHeld
from ballast.executor.driver.events import Listener
from ballast.executor.journal.answers import RequestAnswer
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.journal import journal_of, this_process
from ballast.wiring.runs import Writer, open_writer, request_release

COMMAND: Final = "ballast reassign"
TRIES: Final = 3
WAIT_S: Final = 20.0
"""How long each try waits for the lock: longer than a lease, so that a follower that was killed is found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignOptions:
    """What was asked of ``--execute``, ``--verify`` or ``--cancel``."""

    entries: tuple[ReassignmentEntry, ...] = ()
    """What the file asks for."""
    source: str
    """The file's name."""
    throttle: int | Literal["auto", "none"] = "auto"
    """Bytes per second between brokers; ``auto`` where none is given, ``none`` only where that was asked for."""
    replica_alter_log_dirs_throttle: int | None = None
    """Bytes per second between log dirs of a broker."""
    additional: bool = False
    unknown_disk_space: Literal["refuse", "allow"] = "refuse"
    replicas_below_min_isr: Literal["refuse", "allow"] = "refuse"
    disallow_replication_factor_change: bool = False
    preserve_throttles: bool = False
    clear_throttles: bool = False
    """Take away what other tools, or a person, have set on the topics of the file as well."""


@dataclass(frozen=True, slots=True)
class ReassignSession:
    """The cluster, and who hears of it."""

    opened: OpenCluster
    answer: ShowLine
    """Prints what kafka-reassign-partitions prints."""
    show_line: ShowLine
    """Prints a line of Ballast's own beside that."""
    start_follower: Callable[[str], int | None] = lambda _: None
    """Leaves a process behind that follows this and every other open run to its end; its id, None where none may stay."""

    def follow(self, run_id: str = "runs") -> str:
        """Have every open run followed to its end; says by what."""
        pid = self.start_follower(run_id)
        return f"process {pid} follows it" if pid is not None else "follow it with ballast runs resume"

    @contextmanager
    def writer(self, action: str, listener: Listener | None = None) -> Iterator[Writer]:
        """The lock for the block, from a follower where one has it; raises ``LockHeld`` where another process keeps it."""
        asked: list[str] = []
        with ExitStack() as stack:
            for left in reversed(range(TRIES)):
                asked += self._ask_follower(action)
                try:
                    writer = stack.enter_context(
                        open_writer(self.opened, command=f"{COMMAND} {action}", listener=listener, lock_wait_s=WAIT_S)
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

    def _ask_follower(self, action: str) -> list[str]:
        """Ask a follower to release the lock; the request's id where there is one to be asked."""
        with closing(journal_of(self.opened)) as log:
            holder = log.holder()
            if holder is None or not holder.is_follower:
                return []
            request = request_release(log, this_process(f"{COMMAND} {action}").description, wait_s=WAIT_S)
            self.show_line(f"Requested the lock from {holder.description}.")
            return [request] if request is not None else []
