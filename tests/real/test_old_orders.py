"""Orders that were left in the journal's topics while no process was there to execute them, on real brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real.daemon_process import start, until

from ballast.ports.journal import CLOCKS_DIFFER_S, EXPIRES_S, TAKE_OVER_WAIT_S, Request
from ballast.sandbox import Sandbox
from ballast.wiring.cluster import open_cluster
from ballast.wiring.journal import journal_of
from ballast.wiring.runs import open_writer

EXPIRING = frozenset({"pause", "resume", "approve", "reject", "plan", "end-drain", "cancel", "rollback"})

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


def test_a_daemon_that_comes_in_the_morning_obeys_no_order_of_the_night(
    own_cluster: Callable[..., Sandbox], tmp_path: Path
) -> None:
    """Each is answered, and refused, as is a take-over that no process waits for.  The same given now is done."""
    sandbox = own_cluster(brokers=1)
    now_ms = time.time_ns() // 1_000_000
    old_ms = now_ms - round((EXPIRES_S + CLOCKS_DIFFER_S + TAKE_OVER_WAIT_S) * 1000)
    with open_cluster(bootstrap_server=sandbox.bootstrap_server) as opened:
        with open_writer(opened, command="ballast apply"):
            pass  # The cluster has a journal now: a daemon that finds requests without one pauses by itself.
        journal = journal_of(opened)
        for kind in sorted({*EXPIRING, "take-over"}):
            journal.request(Request(f"old-{kind}", kind, "Ada", old_ms, {}))
        daemon = start("pod-0", tmp_path, sandbox.bootstrap_server, {"mode": "approve"})
        try:

            def answers() -> dict[str, bool]:
                return {r.id: r.refused for r in journal.requests() if r.answer is not None}

            until("every order is answered", lambda: len(answers()) == len(EXPIRING) + 1, [daemon])
            refused = {id_ for id_, no in answers().items() if no}
            assert refused >= {f"old-{kind}" for kind in EXPIRING}
            assert daemon.role == "active"
            assert not daemon.status["pause"]
            assert not any(r.key == "pause" for r in journal.read())

            journal.request(Request("new-pause", "pause", "Ada", time.time_ns() // 1_000_000, {}))
            until("it is paused", lambda: daemon.status.get("pause"), [daemon])
            # Left by the clock of a machine that is behind, it still counts.
            behind_ms = time.time_ns() // 1_000_000 - round(CLOCKS_DIFFER_S * 1000)
            journal.request(Request("new-resume", "resume", "Ada", behind_ms, {}))
            until("it goes on", lambda: daemon.status.get("pause", "?") is None, [daemon])
        finally:
            daemon.kill()
            journal.close()
