"""Everything that Ballast raises on purpose.

::

    BallastError
    ├── PlanRejected            the planner's checker said no          exit 1
    ├── UsageError              bad flag, file or setting            exit 2
    ├── NoPlanFound              no plan was found for the request      exit 4
    ├── Refused                 a guard said no                      exit 5
    │   ├── WrongCluster        two sources name different clusters
    │   ├── JournalLost         the journal is not what was written to it
    │   ├── LockHeld            another process is the writer
    │   └── Fenced              we were the writer and no longer are
    ├── Unavailable             the cluster cannot be reached        exit 6 (retryable)
    │   ├── AuthenticationFailed
    │   └── AuthorizationFailed
    ├── Incomplete              verify found a mismatch              exit 7
    ├── RolledBack              the run was undone                   exit 8
    └── Interrupted             a person stopped it                  exit 130

A refusal inside the core is a value, not an exception; a bug is any other exception.
"""

from __future__ import annotations

from typing import ClassVar


class BallastError(Exception):
    """A failure that has a name, a meaning for scripts and a sentence for people."""

    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False
    id: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What the person can do about it, as one sentence."""

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class PlanRejected(BallastError):
    """The planner's checker refused what the search had made; nothing left the planner."""

    id = "plan-rejected"


class UsageError(BallastError):
    """A flag, file or setting is wrong; nothing was done."""

    exit_code = 2
    id = "usage"


class NoPlanFound(BallastError):
    """No plan was found that does what was asked on this cluster."""

    exit_code = 4
    id = "no-plan-found"


class Refused(BallastError):
    """A guard refused to act; the cluster was not touched by the refused step."""

    exit_code = 5
    id = "refused"


class WrongCluster(Refused):
    """Brokers, ZooKeeper or the settings name different clusters; nothing was sent."""

    id = "wrong-cluster"


class JournalLost(Refused):
    """The journal was deleted, recreated or truncated: it is no longer what this process wrote to it or read from it."""

    id = "journal-lost"

    def __init__(self, how: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.how = how
        """``deleted``, ``recreated`` or ``truncated``."""


class LockHeld(Refused):
    """Another process is this cluster's writer."""

    id = "lock-held"

    def __init__(
        self, message: str, *, holder: str | None = None, is_follower: bool = False, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder
        """Who it is, as the holder describes itself; None where that is not known yet."""
        self.is_follower = is_follower
        """It only resumes open runs, and releases the lock when it is asked."""


class Fenced(Refused):
    """This process was the writer and is no longer; it must stop before its next write."""

    id = "fenced"


class Unavailable(BallastError):
    """The cluster (or ZooKeeper, Prometheus, a store) did not answer in time."""

    exit_code = 6
    retryable = True
    id = "unavailable"


class AuthenticationFailed(Unavailable):
    """The cluster rejected the credentials."""

    retryable = False
    id = "authentication"


class AuthorizationFailed(Unavailable):
    """The cluster accepted the credentials and does not authorize this."""

    retryable = False
    id = "authorization"


class Incomplete(BallastError):
    """The cluster is not in the state that the plan wanted."""

    exit_code = 7
    id = "incomplete"


class RolledBack(BallastError):
    """The run was undone and the cluster is as it was before it."""

    exit_code = 8
    id = "rolled-back"


class Interrupted(BallastError):
    """A person stopped the command."""

    exit_code = 130
    id = "interrupted"
