"""What the loops of the daemon show at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ballast.daemon.context.view import Answer, Board, CheckReport, CheckResult, LockView, View

MEANWHILE_S = 0.2
"""In which the other thread surely begins; where it does not, the test passes without showing anything."""
TOLD = Answer(request="first", detail="yes", ok=True, at_ms=1)
REPORT = CheckReport(result=CheckResult.OK, detail="Fine.", at_ms=1, duration_s=0.1)


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (
            {"answers": (TOLD,)},
            lambda board: board.tell("second", "no", ok=False, at_ms=2),
            lambda view: [a.request for a in view.answers] == ["first", "second"],
        ),
        (
            {"checks": {"observe": REPORT}},
            lambda board: board.tell_check("balance", REPORT),
            lambda view: view.checks.keys() == {"observe", "balance"},
        ),
        (
            {"lock": LockView(held=True, holder="us")},
            lambda board: board.tell_journal(),
            lambda view: view.lock == LockView(held=True, holder="us", journal_readable=True),
        ),
    ],
)
def test_two_loops_that_tell_at_once_lose_neither(
    first: dict[str, Any], second: Callable[[Board], None], both: Callable[[View], bool]
) -> None:
    """An answer that a person waits for, a check, and that this process holds the lock."""
    board = Board()
    other = threading.Thread(target=second, args=(board,))

    def slowly(_: View) -> dict[str, Any]:
        other.start()
        other.join(MEANWHILE_S)
        return first

    board.update(slowly)
    other.join()
    assert both(board.view), board.view
