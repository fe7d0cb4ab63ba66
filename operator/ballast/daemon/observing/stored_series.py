"""The page's charts across restarts: points of earlier processes come from the store, and new ones go there.

Reading and writing have threads of their own: a slow store holds up no loop.  What fails is shown beside the charts until it works.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ballast.core.samples import Point
from ballast.daemon.context.log import log_event
from ballast.daemon.context.view import Board, CheckResult
from ballast.daemon.observing.series import DAY_MS, Series
from ballast.errors import BallastError
from ballast.ports.time import Clock

log = logging.getLogger("ballast.daemon")

TRY_AGAIN_S: Final = 60.0
AT_ONCE: Final = 5
"""Points of one commit: a kill costs at most as many minutes of the charts."""
_LOOK_S: Final = 60.0


class Store(Protocol):
    """Where points are kept."""

    def read(self, cluster: str, since_ms: int) -> tuple[Point, ...]:
        """The points since then, oldest first."""
        ...

    def write(self, cluster: str, points: Sequence[Point]) -> None:
        """Add them."""
        ...


class StoredSeries:
    """One cluster's points between the ring and the store."""

    def __init__(
        self,
        board: Board,
        clock: Clock,
        series: Series,
        store: Store,
        failed: Callable[[CheckResult], None] = lambda _: None,
    ) -> None:
        self._board, self._clock, self._series, self._store = board, clock, series, store
        self._failed = failed
        self._kept_ms = clock.now_ms()
        self._problems = {"read": "", "write": ""}

    def begin(self) -> None:
        """Read what was before this process, on a thread of its own, until it succeeds."""
        threading.Thread(target=self._bring_back, name="charts", daemon=True).start()

    def keep(self) -> None:
        """Write what is new, once it is worth a commit; called where waiting for the store delays nothing else."""
        figures, points = self._board.view.figures, self._board.view.series
        if points and points[-1].at_ms < self._kept_ms:
            # The clock jumped back: what comes now is new all the same.
            self._kept_ms = points[-1].at_ms - 1
        fresh = [p for p in points if p.at_ms > self._kept_ms]
        if figures is None or len(fresh) < AT_ONCE:
            return
        if self._try("write", lambda: self._store.write(figures.cluster_id, fresh)):
            self._kept_ms = fresh[-1].at_ms

    def bring_back(self) -> bool:
        """One attempt to read; did it succeed?"""
        figures = self._board.view.figures
        if figures is None:
            return False

        def read() -> None:
            since_ms = self._clock.now_ms() - DAY_MS
            self._series.bring_back(self._store.read(figures.cluster_id, since_ms))

        return self._try("read", read)

    def _bring_back(self) -> None:
        board = self._board
        while board.view.figures is None:
            board.wait(board.view.version, _LOOK_S)
        while not self.bring_back():
            self._clock.sleep(TRY_AGAIN_S)

    def _try(self, what: str, attempt: Callable[[], None]) -> bool:
        before = self._problems[what]
        try:
            attempt()
        except BallastError as failure:
            self._problems[what] = str(failure)
            self._failed(CheckResult.FAILED)
        except Exception as bug:
            log.exception("A bug in Ballast keeps the charts from the store")
            self._problems[what] = f"A bug in Ballast: {type(bug).__name__}; see the log."
            self._failed(CheckResult.BUG)
        else:
            self._problems[what] = ""
        now = self._problems[what]
        if now and now != before:
            log_event(log, now, level=logging.WARNING)
        told = " ".join(filter(None, self._problems.values()))
        if told != self._board.view.series_problem:
            self._board.publish(series_problem=told)
        return not now
