"""Ten thousand partitions at once: what the controller is asked, and how often."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

import pytest
from tests.unit.executor.scenes import MB, Scene, T, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.executor.driver.driver import Driver
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.scheduling.batches import Caps, Load, choose
from ballast.ports.cluster import Outcome, Reassignment
from ballast.sim import SimCluster, SimWorld

MANY = 10_000
UNBOUNDED = 1_000_000
EVERYTHING_AT_ONCE = ExecutionPolicy(
    throttle=5 * MB,
    moves_in_per_broker=UNBOUNDED,
    moves_out_per_broker=UNBOUNDED,
    moves_at_once=UNBOUNDED,
    measure_s=0.0,
)
"""As ``ballast reassign --execute`` starts a file."""


class Counting(SimCluster):
    """Keeps what the controller was asked."""

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self.chunks: list[int] = []
        self.lists_at: Counter[int] = Counter()

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Count by second."""
        self.lists_at[int(self.world.clock.monotonic_s())] += 1
        return super().reassignments()

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Keep how many partitions came together."""
        self.chunks.append(len(targets))
        return super().alter_reassignments(targets, allow_replication_factor_change=allow_replication_factor_change)


def crowd(many: int) -> tuple[Scene, Counting]:
    """A topic with as many partitions, and little in each."""
    s = scene({n: (1 + n % 2, 2 - n % 2) for n in range(many)}, size_bytes=1000.0)
    cluster = Counting(s.world)
    s.cluster, s.driver = cluster, Driver(cluster, s.journal, s.world.clock, s.ears)
    return s, cluster


def moves_of(many: int) -> list[Move]:
    """One replica of each goes elsewhere."""
    return [Move(T, n, (1 + n % 2, 2 - n % 2), (1 + n % 2, 3 + n % 2), 1000) for n in range(many)]


@pytest.mark.slow
def test_all_of_a_large_file_is_submitted_in_pieces_and_followed() -> None:
    """Every move arrives; the controller gets pieces that it takes, and no more than a handful of questions a second."""
    s, cluster = crowd(2_500)
    result = s.driver.execute(s.plan(*moves_of(2_500)), EVERYTHING_AT_ONCE, run_id="r")
    assert (result.status, result.verified) == ("done", 2_500)
    assert cluster.chunks == [1000, 1000, 500]
    # Two for each look and each whole reading, one for each piece that is sent.
    assert max(cluster.lists_at.values()) <= 15
    assert s.throttles() == {}


def test_ten_thousand_moves_are_chosen_among_in_a_moment() -> None:
    """Without caps every choice is an admission, and an admission must not make all the others be judged again.

    The lease of a process that only computes lapses; CPU time is what is bounded here, a hundredfold above what it takes.
    """
    loads = [Load(m, m.old[0], 1000) for m in moves_of(MANY)]
    caps = Caps(moves_in_per_broker=UNBOUNDED, moves_out_per_broker=UNBOUNDED, moves_at_once=UNBOUNDED)
    began_s = time.process_time()
    chosen = choose(loads, [], caps, rates={}, room={})
    assert len(chosen) == MANY
    assert time.process_time() - began_s < 15
