"""No replica is put on a drained broker."""

from __future__ import annotations

import pytest

from ballast.core.cluster.drain import refuse_drained
from ballast.errors import Refused


def test_what_fills_a_drained_broker_is_refused_with_a_way_out() -> None:
    """The first of them is named, whichever order they came in; brokers that are not drained, or not filled, are no reason."""
    with pytest.raises(Refused) as caught:
        refuse_drained([9, 5, 4, 1], [3, 9, 4, 5], "The plan puts replicas on", "Plan again")
    assert caught.value.message == "The plan puts replicas on broker 4, which is draining."
    assert caught.value.hint == (
        "Plan again, or end the drain first: ballast drains end 4 (or balance.draining of the settings)."
    )
    refuse_drained([1, 2], [3], "The plan puts replicas on", "Plan again")
