"""The leaders check: is a broker's share of lost leaderships over the threshold, and may elections be run now?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ballast.core.catalogue import Messages, Said
from ballast.core.cluster import ClusterState
from ballast.core.cluster.balancers import controller_interval_s, controller_rebalances
from ballast.core.leadership import imbalance
from ballast.core.leadership.elections import election_plan, elections
from ballast.core.leadership.limits import CLUSTER, check_interval_s, imbalance_percentage
from ballast.daemon.acting.propose import Proposals
from ballast.daemon.acting.runs import Runs
from ballast.daemon.observing.presence import Hysteresis
from ballast.daemon.observing.reading import Reading
from ballast.daemon.planning.notes import note
from ballast.daemon.policy import ActionKind, ControllerRebalance, LivePolicy
from ballast.ports.time import Clock


@dataclass(slots=True)
class LeaderCheck:
    """Judges, with a memory of how long each broker has been imbalanced."""

    clock: Clock
    policy: LivePolicy
    reading: Reading
    runs: Runs
    proposals: Proposals
    hysteresis: Hysteresis = field(default_factory=Hysteresis)

    def check(self) -> Said:
        """Measure leader imbalance and, where permitted, bring leaders home."""
        state = self.reading.fresh()
        if run := self.runs.in_flight():
            return note("leaders-not-judged", run=run)
        policy, now_s = self.policy.now.leaders, self.clock.monotonic_s()
        limit = imbalance_percentage(state, policy.imbalance_percentage)
        leaders = imbalance(state, limit.value)
        self.hysteresis = self.hysteresis.see(leaders, policy.recovery_percentage(limit.value), now_s)
        imbalanced = sorted(self.hysteresis.imbalanced.since_s)
        if not imbalanced:
            self.proposals.withdraw(ActionKind.ELECTIONS)
            return note("leaders-balanced", worst=leaders.worst_ratio)
        known = {b: leaders[b].ratio for b in imbalanced if np.isin(b, leaders.broker)}
        of_cluster = limit.origin == CLUSTER
        headline = note("leader-imbalance", percentage=limit.value, of_cluster=of_cluster, brokers=known)
        wait_s = self._controller_wait_s(state)
        if wait_s is None:
            return Messages((headline, note("left-to-controller")))
        lasting = self.hysteresis.imbalanced.lasting(wait_s, now_s)
        if not lasting:
            return Messages((headline, note("controller-first", wait_s=wait_s)))
        # Leaders that are elected on a draining broker would only leave it again.
        names = elections(state, lasting - self.reading.balance.draining)
        if not names:
            self.proposals.withdraw(ActionKind.ELECTIONS)
            return Messages((headline, note("none-electable")))
        plan = election_plan(state, names, created_at_ms=self.clock.now_ms())
        return Messages((headline, self.proposals.propose(ActionKind.ELECTIONS, plan)))

    def interval_s(self) -> float:
        """Seconds until the next check."""
        return check_interval_s(self.reading.state, self.policy.now.leaders.check_interval_s).value

    def _controller_wait_s(self, state: ClusterState) -> float | None:
        """How long imbalance must have lasted before Ballast elects; None when it is left to the controller."""
        how = self.policy.now.leaders.with_controller_rebalance
        if how is ControllerRebalance.ACT or not controller_rebalances(state):
            return 0.0
        if how is ControllerRebalance.DISABLE:
            return None
        return controller_interval_s(state)
