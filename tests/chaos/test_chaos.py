"""A short run of chaos on real brokers, with the faults that come and go quickly."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.nemesis import Wanted, chaos

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1500)]

SEED = 1
MINUTES = 0.75
QUICK = (
    "broker-kill",
    "broker-pause",
    "ballast-kill",
    "ballast-pause",
    "topic-config",
    "throttle-rate",
    "foreign-reassignment",
    "pile-up",
)


def test_a_short_run_breaks_nothing(tmp_path: Path) -> None:
    """Brokers and Ballast die and freeze while a person works on the cluster: nothing is lost, and then it is balanced and still."""
    outcome = chaos(Wanted(seed=SEED, minutes=MINUTES, controllers=1, still_checks=3, kinds=QUICK, keep=tmp_path))
    assert outcome.violations == []
    assert sum(outcome.begun.values()) >= 5
