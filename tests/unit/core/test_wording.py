"""How figures are said."""

from __future__ import annotations

import pytest

from ballast.core.wording import human_brokers, human_time


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "1 s"),
        (89, "89 s"),
        (90, "2 min"),
        (89 * 60, "89 min"),
        (3725 + 3600, "2 h 02 min"),
        (49 * 3600, "2.0 days"),
    ],
)
def test_a_time_is_said_in_the_unit_that_fits_it(seconds: float, said: str) -> None:
    """Seconds up to a minute and a half, minutes as far, hours up to two days."""
    assert human_time(seconds) == said


def test_brokers_begin_a_sentence_with_a_capital() -> None:
    """One and several."""
    assert human_brokers([3], start=True) == "Broker 3"
    assert human_brokers([3, 4], start=True) == "Brokers 3, 4"
    assert human_brokers([3, 4]) == "brokers 3, 4"
