"""What a permission depends on, gathered from the parts that know it; ``permission`` judges."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.daemon.acting.permission import Situation, permission, permissions
from ballast.daemon.acting.policy import ActionKind, LivePolicy
from ballast.daemon.acting.runs import Runs
from ballast.daemon.context.access import Access
from ballast.daemon.context.view import Board, Permission
from ballast.daemon.observing.reading import Reading
from ballast.ports.time import Clock


@dataclass(frozen=True, slots=True)
class Permissions:
    """What may start now and what may not, and why."""

    clock: Clock
    board: Board
    policy: LivePolicy
    reading: Reading
    access: Access
    runs: Runs

    def of(self, kind: ActionKind) -> Permission:
        """May this kind of action start now?"""
        return permission(kind, self.policy.now, self._situation())

    def publish(self) -> None:
        """Publish the permission of every kind of action."""
        policy = self.policy.now
        self.board.publish(permissions=permissions(policy, self._situation()), mode=policy.mode.value)

    def _situation(self) -> Situation:
        view, run = self.board.view, self.access.current()
        return Situation(
            now_ms=self.clock.now_ms(),
            role=view.role,
            lock_holder="" if view.lock.held else view.lock.holder,
            journal_problem=view.lock.journal_problem,
            reading_age_s=self.reading.age_s(),
            outage=view.outage,
            pause=view.pause,
            run=run.id if run else None,
            release_for=self.access.release_for,
            others=view.others,
            quiet_reason=self.reading.quiet_reason(),
            acts=self.runs.acts,
        )
