"""The policy of a run in the journal."""

from __future__ import annotations

import pytest
from pydantic_core import to_json

from ballast.core.document import parse
from ballast.errors import UsageError
from ballast.executor.machine.policy import ExecutionPolicy


def test_policy_round_trip_and_refusals() -> None:
    """A policy is journaled as what differs from the defaults; nonsense is refused, and unknown settings are named."""
    policy = ExecutionPolicy(throttle_per_broker={1: 5}, moves_in_per_broker=9)
    assert policy.dump() == {"throttle_per_broker": {"1": 5}, "moves_in_per_broker": 9}
    assert parse(ExecutionPolicy, to_json(policy.dump())) == policy
    with pytest.raises(UsageError, match="zero or less"):
        ExecutionPolicy(throttle=0)
    with pytest.raises(UsageError, match="zero or less"):
        parse(ExecutionPolicy, b'{"throttle": 0}')
    assert ExecutionPolicy.unknown({"warp": 9}) == ("warp",)
