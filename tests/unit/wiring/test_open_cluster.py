"""What is refused before any connection is tried."""

from __future__ import annotations

import math

import pytest

from ballast.errors import UsageError
from ballast.wiring.cluster import LONGEST_TIMEOUT_S, open_cluster


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, math.nan, math.inf, LONGEST_TIMEOUT_S + 1.0])
def test_a_timeout_that_bounds_nothing_is_a_wrong_flag(timeout_s: float) -> None:
    """And not a cluster that cannot be reached: trying again would not help."""
    with pytest.raises(UsageError, match="--timeout"):
        open_cluster(bootstrap_server="127.0.0.1:1", timeout_s=timeout_s)
