"""Parameters of codes as JSON has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ballast.core.catalogue import plain
from ballast.core.cluster import UNKNOWN, TopicPartition


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(UNKNOWN, None, id="unknown"),
        pytest.param(-1.0, -1.0, id="a-broker-without-its-share"),
        pytest.param(np.int64(3), 3, id="numpy"),
        pytest.param((TopicPartition("t", 0), np.float32(0.5)), ["t-0", 0.5], id="inside"),
    ],
)
def test_a_parameter_is_what_json_can_say(value: object, expected: Any) -> None:
    """A count that is not known is null, a ratio of -1 is one, and numbers are Python's own."""
    found = plain(value)
    assert (found, type(found)) == (expected, type(expected))
