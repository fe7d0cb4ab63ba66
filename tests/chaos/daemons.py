"""Ballast's daemons on the hurt cluster: each may die and be started again, and each life has a log of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos.cluster import ChaosSandbox
from tests.chaos.verdicts import Judge, Violation
from tests.real.daemon_process import Daemon, start

MODULE: Final = "tests.chaos.stepped"
CLOCK: Final = "CHAOS_CLOCK"
PLANTED: Final = "tests.chaos.planted"
"""The same with a fault of its own, which ``CHAOS_FAULT`` names."""
FAULT: Final = "CHAOS_FAULT"
SETTINGS: Final[dict[str, Any]] = {
    "mode": "auto",
    "intervals": {
        "observe_s": 2, "log_dirs_s": 4, "balance_s": 10, "repair_s": 5, "act_s": 1, "lock_s": 1, "journal_s": 5,
    },
    "leaders": {"check_interval_s": 5, "with_controller_rebalance": "act"},
    "guards": {"membership_cool_down_s": 5, "down_broker_grace_s": 30},
    "repair": {"max_brokers_fraction": 0.5},
    "actions": {
        "replica_list_changes": {"cool_down_s": 1},
        "moves": {"cool_down_s": 1, "per_day": 100_000},
        "repair": {"cool_down_s": 1},
    },
    # Few and small things: one replica more or less is much of a broker's share, and what is written must not tip it.
    "balance": {"band": 0.3, "trigger": 0.35, "slack_bytes": 32 * 1024 * 1024},
    "execution": {"throttle": 1_500_000, "poll_s": 0.5, "progress_s": 1},
    "journal": {"lease_s": 6},
}  # fmt: skip
"""The daily decisions at short intervals, and moves that take long enough to be hurt."""


@dataclass
class Daemons:
    """Every life so far, and who lives now."""

    sandbox: ChaosSandbox
    client: Path | None
    module: str = MODULE
    """What Python runs as Ballast."""
    environment: Mapping[str, str] = field(default_factory=dict)
    live: dict[str, Daemon] = field(default_factory=dict)
    lives: list[Daemon] = field(default_factory=list)
    frozen: set[str] = field(default_factory=set)
    expected: dict[str, str] = field(default_factory=dict)
    """Name of a life to why it was ended; a process that ends without being in here ended by itself."""

    def begin(self, who: str) -> Daemon:
        """Start this daemon; on the main thread, whose end would end it too."""
        name = f"ballast-{who}-{len(self.lives) + 1}"
        folder = self.sandbox.daemons_folder
        clock = folder / f"clock-{who}"
        if not clock.exists():
            clock.write_text("0")
        daemon = start(
            name, folder, self.sandbox.bootstrap_server, SETTINGS,
            client=self.client, zookeeper=self.sandbox.zookeeper, environment={CLOCK: str(clock), **self.environment}, module=self.module,
        )  # fmt: skip
        self.live[who] = daemon
        self.lives.append(daemon)
        return daemon

    def kill(self, who: str) -> None:
        """``kill -9``."""
        daemon = self.live.pop(who)
        self.expected[daemon.name] = "killed"
        daemon.kill()

    def stop(self, who: str) -> list[Violation]:
        """SIGTERM; what was wrong with its end."""
        daemon = self.live.pop(who)
        self.expected[daemon.name] = "stopped"
        try:
            code = daemon.stop()
        except subprocess.TimeoutExpired as late:
            daemon.kill()
            return [Violation(Judge.LIFE, f"{daemon.name} had not ended {late.timeout:.0f} s after SIGTERM")]
        if code == -signal.SIGTERM and not daemon.log.stat().st_size:
            # Python itself was still starting, with nothing of Ballast's in it: the system ended it.
            return []
        return [Violation(Judge.LIFE, f"{daemon.name} ended with {code} after SIGTERM")] if code else []

    def freeze(self, who: str) -> None:
        """SIGSTOP."""
        self.frozen.add(who)
        self.live[who].process.send_signal(signal.SIGSTOP)

    def wake(self, who: str) -> None:
        """SIGCONT."""
        self.frozen.discard(who)
        self.live[who].process.send_signal(signal.SIGCONT)

    def step_clock(self, who: str, seconds: float) -> None:
        """From now on this daemon's wall clock is so far off."""
        (self.sandbox.daemons_folder / f"clock-{who}").write_text(str(seconds))

    def ended_by_themselves(self) -> list[Violation]:
        """Processes that ended though the test did not end them."""
        return [
            Violation(Judge.LIFE, f"{d.name} ended by itself with exit code {d.process.returncode}: {last_words(d)}")
            for d in self.lives
            if d.process.poll() is not None and d.name not in self.expected
        ]

    def bugs(self) -> list[Violation]:
        """What the daemons themselves call a bug, each once."""
        return [
            Violation(Judge.BUGS, f"{d.name}: {line}")
            for d in self.lives
            for line in dict.fromkeys(d.messages())
            if line.startswith("A bug")
        ]

    def leaders(self) -> list[Daemon]:
        """Those that say that they act."""
        return [d for who, d in self.live.items() if who not in self.frozen and d.role == "active"]

    def close(self) -> None:
        """End everybody."""
        for who in list(self.live):
            self.kill(who)


def last_words(daemon: Daemon) -> str:
    """The end of its log."""
    return json.dumps(daemon.log.read_text(errors="replace")[-400:])
