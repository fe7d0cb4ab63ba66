"""Thousands of seeded runs: random clusters, plans, faults, other people and deaths; the same claims every time.

``BALLAST_CRASH_SEEDS=N`` runs N seeds instead of the default; ``BALLAST_CRASH_SEED=S`` replays one.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.sim.nemesis import Fault
from tests.sim.seeds import replay, tell

SEEDS = int(os.environ.get("BALLAST_CRASH_SEEDS", "2000"))
ONE = os.environ.get("BALLAST_CRASH_SEED")
BATCH = 100
BATCHES = [range(first, min(first + BATCH, SEEDS)) for first in range(0, SEEDS, BATCH)]
# A cancel once took away the replicas that kept a partition above its min ISR.
BATCHES.append(range(40907, 40908))
if ONE is not None:
    BATCHES = [range(int(ONE), int(ONE) + 1)]


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda seeds: f"from-{seeds[0]}")
def test_whatever_happens_the_run_ends_and_nothing_is_left(seeds: range) -> None:
    """Every claim holds for each of these seeds, and the kinds of faults that are not rare come in a hundred of them."""
    faults: Counter[str] = Counter()
    for seed in seeds:
        faults += replay(seed)
    # A reassignment can be cancelled by another user only while one goes on.
    assert len(seeds) < BATCH or all(faults[fault] for fault in Fault if fault is not Fault.FOREIGN_CANCEL), tell(
        faults
    )
