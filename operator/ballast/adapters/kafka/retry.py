"""The one retry policy: which failures are worth another try, for how long in all, and who hears of it.

Only failures marked ``retryable`` are tried again; a wrong password or a missing permission is not.  Waits grow
exponentially with full jitter, so that many processes do not connect in step.  The whole of the tries is bounded, not their
number: an operation ends within its time whatever happens.  Operations that belong together share a deadline (``one_deadline``).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import tenacity

from ballast.adapters.kafka.diagnosis import NotServed
from ballast.errors import BallastError, Unavailable

T = TypeVar("T")
log: Final = logging.getLogger(__name__)


_ends_at_s: ContextVar[float] = ContextVar("ends_at_s", default=math.inf)
_not_served_s: ContextVar[float] = ContextVar("not_served_s", default=math.inf)


@contextmanager
def one_deadline(seconds: float, *, not_served_s: float = math.inf) -> Iterator[None]:
    """Within the block nothing is asked, or asked again, once this time is up; an answer that is waited for then still counts.

    Nor is anything asked again once no server has let us in for ``not_served_s``.  Threads see it that run in a copy of the
    context (``contextvars.copy_context``).
    """
    end = _ends_at_s.set(min(_ends_at_s.get(), time.monotonic() + seconds))
    not_served = _not_served_s.set(min(_not_served_s.get(), not_served_s))
    try:
        yield
    finally:
        _ends_at_s.reset(end)
        _not_served_s.reset(not_served)


class RetryObserver(Protocol):
    """Hears of every try that failed and will be repeated; metrics and tests listen here."""

    def __call__(self, operation: str, attempt: int, failure: BallastError, wait_s: float) -> None:
        """``attempt`` counts from 1; ``wait_s`` is the pause before the next."""
        ...


def _log_retry(operation: str, attempt: int, failure: BallastError, wait_s: float) -> None:
    log.warning("%s failed (attempt %d), next try in %.1f s: %s", operation, attempt, wait_s, failure.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patient an adapter is."""

    total_s: float = 30.0
    """No new try starts after this many seconds; 0 means a single try."""
    first_wait_s: float = 0.1
    """Upper limit of the first pause; it doubles with each failure."""
    longest_wait_s: float = 3.0
    """No pause is longer."""
    observer: RetryObserver = _log_retry
    """Told of each failure that is tried again."""
    only: type[BallastError] = BallastError
    """Nothing but this kind of failure is tried again, and only where it is retryable at all."""

    def call(self, operation: str, function: Callable[[], T], *, recover: Callable[[], None] | None = None) -> T:
        """Run the function until it succeeds, fails for good or time is up; ``recover`` runs before each new try."""

        def before_sleep(state: tenacity.RetryCallState) -> None:
            failure = state.outcome.exception() if state.outcome else None
            assert isinstance(failure, BallastError)
            pause = state.next_action.sleep if state.next_action else 0.0
            self.observer(operation, state.attempt_number, failure, pause)
            if recover is not None:
                recover()

        left_s = _ends_at_s.get() - time.monotonic()
        if left_s <= 0:
            raise Unavailable(
                f"There was no time left to ask for {operation}: earlier answers took it all.",
                hint="See whether brokers are down or overloaded, or give a longer --timeout.",
            )
        total_s = min(self.total_s, left_s)
        outage = _Outage(_not_served_s.get())

        def attempt() -> T:
            with outage:
                return function()

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda failure: self._is_worth_it(failure) and not outage.for_long),
            stop=tenacity.stop_before_delay(total_s) if total_s > 0 else tenacity.stop_after_attempt(1),
            wait=tenacity.wait_random_exponential(multiplier=self.first_wait_s, max=self.longest_wait_s),
            before_sleep=before_sleep,
            reraise=True,
        )
        return retrying(attempt)

    def _is_worth_it(self, failure: BaseException) -> bool:
        return isinstance(failure, self.only) and failure.retryable


class _Outage:
    """For how long no server has let us in: from the beginning of the first try in a row that found none."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._began_s = 0.0
        self._since_s: float | None = None
        self.for_long = False

    def __enter__(self) -> None:
        self._began_s = time.monotonic()

    def __exit__(self, _kind: object, failure: BaseException | None, _traceback: object) -> None:
        if not isinstance(failure, NotServed):
            self._since_s = None
            return
        if self._since_s is None:
            self._since_s = self._began_s
        self.for_long = time.monotonic() - self._since_s >= self._longest_s
