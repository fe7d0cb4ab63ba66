"""The policy of a run in the journal."""

from __future__ import annotations

import pytest

from ballast.errors import UsageError
from ballast.executor.machine.policy import ExecutionPolicy


def test_policy_round_trip_and_refusals() -> None:
    """A policy is journaled as what differs from the defaults; nonsense and unknown settings are refused."""
    policy = ExecutionPolicy(throttle_per_broker={1: 5}, moves_in_per_broker=9)
    assert policy.dump() == {"throttle_per_broker": {"1": 5}, "moves_in_per_broker": 9}
    assert ExecutionPolicy.load(policy.dump()) == policy
    with pytest.raises(UsageError, match="zero or less"):
        ExecutionPolicy(throttle=0)
    with pytest.raises(UsageError, match="does not know: warp"):
        ExecutionPolicy.load({"warp": 9})
