"""``ballast`` with a fault of its own, to see that the judges of a chaos run find it: ``CHAOS_FAULT`` names one of ``PLANTS``.

The product has no switch for any of this: functions of it are replaced in this process alone.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, NoReturn
from unittest.mock import patch

from tests.chaos.verdicts import Judge

DIES_AFTER_S: Final = 15.0
MOVED_SHARE: Final = 0.2
"""Of the readings after which a partition is moved."""
NOW_AND_THEN_S: Final = 40.0
"""Seldom enough for the cluster to count as balanced in between."""


def put(where: str, instead: Callable[..., Any]) -> None:
    """Have this in the place of a function of the product, as long as the process lives."""
    patch(where, instead).start()


def throttle_left() -> None:
    """A rate that it set it restores in its ledger alone: the change of the broker is not sent, and counts as done."""
    from ballast.executor.journal.ledger import Throttler

    send = Throttler._alter

    def alter(self: Throttler, ops: Mapping[Any, Any]) -> Any:
        return send(self, {s: op for s, op in ops.items() if (s.kind, op.operation) != ("broker", "delete")})

    put("ballast.executor.journal.ledger.Throttler._alter", alter)


def setting_changed() -> None:
    """With each throttle list it also sets a setting of that topic."""
    from ballast.adapters.kafka.cluster import KafkaCluster
    from ballast.ports.cluster import ConfigChange

    send = KafkaCluster.alter_configs

    def alter(self: KafkaCluster, changes: Collection[ConfigChange]) -> Any:
        topics = {c.resource for c in changes if c.resource.kind == "topic"}
        more = [ConfigChange(topic, "segment.ms", "set", "86400001") for topic in topics]
        return send(self, [*changes, *more])

    put("ballast.adapters.kafka.cluster.KafkaCluster.alter_configs", alter)


def replica_dropped() -> None:
    """Each move loses the last replica of its list, and the brokers are told that this is wanted."""
    from ballast.adapters.kafka import reassignments

    send = reassignments.alter_reassignments

    def alter(wire: Any, targets: Mapping[Any, Any], *, allow_replication_factor_change: bool) -> Any:
        del allow_replication_factor_change
        shorter = {name: target and target[:-1] for name, target in targets.items()}
        return send(wire, shorter, allow_replication_factor_change=True)

    put("ballast.adapters.kafka.reassignments.alter_reassignments", alter)


def lock_taken_early() -> None:
    """A lease of another process counts as over at once."""
    put("ballast.ports.journal_lease.LeaseWatch.may_take", lambda *_: True)


def moves_unjournaled() -> None:
    """Now and then it moves a partition of which no journal knows, whether it holds the lock or not."""
    from ballast.adapters.kafka.cluster import KafkaCluster
    from ballast.errors import BallastError

    read, rng = KafkaCluster.snapshot, Random(1)

    def snapshot(self: KafkaCluster, **what: bool) -> Any:
        state = read(self, **what)
        rows = [row for row in range(len(state.partitions)) if state.name(row).topic.startswith("bulk")]
        if rows and rng.random() < MOVED_SHARE:
            row = rng.choice(rows)
            target = rng.sample(sorted(state.alive), len(state.replicas(row)))
            with suppress(BallastError):
                self.alter_reassignments({state.name(row): tuple(target)})
        return state

    put("ballast.adapters.kafka.cluster.KafkaCluster.snapshot", snapshot)


def never_balances() -> None:
    """Plans are made, and none is ever begun."""
    put("ballast.daemon.acting.propose.Proposals.start", lambda _self, proposal: f"Would execute {proposal.id}.")


def moves_every(seconds: float) -> Callable[[], None]:
    """Where nothing is to be done it moves some partition all the same, as often as this."""

    def install() -> None:
        from ballast.core.plan import Move, Plan
        from ballast.core.planner import Balance
        from ballast.daemon.planning.plans import PlanMaker

        make, rng, last = PlanMaker.make, Random(1), [time.monotonic()]

        def restless(self: PlanMaker, state: Any, intent: Any) -> Plan:
            plan = make(self, state, intent)
            if not isinstance(intent, Balance) or plan.moves or time.monotonic() - last[0] < seconds:
                return plan
            last[0] = time.monotonic()
            names = [(row, state.name(row)) for row in range(len(state.partitions))]
            elsewhere = {row: state.alive - set(state.replicas(row)) for row, n in names if n.topic.startswith("bulk")}
            row = rng.choice([row for row, brokers in elsewhere.items() if brokers])
            name, old = state.name(row), tuple(state.replicas(row))
            fresh = rng.choice(sorted(elsewhere[row]))
            move = Move(name.topic, name.partition, old, (*old[:-1], fresh))
            return replace(plan, moves=(move,), status="meets-all-goals")

        put("ballast.daemon.planning.plans.PlanMaker.make", restless)

    return install


def run_never_ends() -> None:
    """Whatever has become of its moves, a run stays open."""
    put("ballast.executor.machine.decide._end", lambda run, _now: run)


def bug() -> None:
    """A look at the leaders divides by zero."""
    put("ballast.daemon.planning.leaders.LeaderCheck.check", lambda _self: str(1 // 0))


def dies() -> None:
    """It ends by itself."""

    def end() -> NoReturn:
        time.sleep(DIES_AFTER_S)
        os._exit(3)

    threading.Thread(target=end, daemon=True).start()


def deaf() -> None:
    """It does not end when it is told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    put("signal.signal", lambda *_: None)


@dataclass(frozen=True, slots=True)
class Plant:
    """One fault of Ballast's own."""

    install: Callable[[], None]
    found_by: Judge


PLANTS: Final[dict[str, Plant]] = {
    "throttle-left": Plant(throttle_left, Judge.THROTTLES),
    "setting-changed": Plant(setting_changed, Judge.SETTINGS),
    "replica-dropped": Plant(replica_dropped, Judge.REPLICAS),
    "lock-taken-early": Plant(lock_taken_early, Judge.ONE_WRITER),
    "moves-unjournaled": Plant(moves_unjournaled, Judge.UNASKED),
    "never-balances": Plant(never_balances, Judge.BALANCED),
    "moves-on-and-on": Plant(moves_every(0.0), Judge.BALANCED),
    "moves-now-and-then": Plant(moves_every(NOW_AND_THEN_S), Judge.STILL),
    "run-never-ends": Plant(run_never_ends, Judge.BALANCED),
    "bug": Plant(bug, Judge.BUGS),
    "dies": Plant(dies, Judge.LIFE),
    "deaf": Plant(deaf, Judge.LIFE),
}
"""Every fault, and the judge that has to find it."""


if __name__ == "__main__":
    PLANTS[os.environ["CHAOS_FAULT"]].install()
    from ballast.__main__ import run

    run()
