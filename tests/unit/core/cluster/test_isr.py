"""How long a follower that stopped fetching is still told as in sync."""

from __future__ import annotations

import pytest

from ballast.core.cluster import UNKNOWN, ConfigValue, build
from ballast.core.cluster.isr import REPLICA_LAG_TIME, leaves_every_isr_after_s, leaves_isr_after_s, leaving_sentence


@pytest.mark.parametrize(
    ("version", "seconds"),
    [("2.3.1", 15.0), ("2.4", 15.0), ("2.5", 45.0), ("4.3", 45.0), ("", 45.0), (None, 45.0)],
)
def test_a_leader_that_sets_nothing_waits_for_as_long_as_its_version_does(version: str | None, seconds: float) -> None:
    """30 s since Kafka 2.5, and 10 s before (KIP-537); a cluster of unknown version counts as a new one."""
    hidden = {REPLICA_LAG_TIME: ConfigValue(None, "STATIC_BROKER_CONFIG")}
    state = build("c", (), (), [], broker_configs={1: {}, 2: hidden}, kafka_version=version)
    assert (leaves_isr_after_s(state, 1), leaves_isr_after_s(state, 2)) == (seconds, seconds)


def test_of_all_leaders_the_slowest_counts() -> None:
    """By its own replica.lag.time.max.ms; where no leader told its configs it is unknown."""
    lags = {b: {REPLICA_LAG_TIME: ConfigValue(str(ms), "STATIC_BROKER_CONFIG")} for b, ms in ((1, 4000), (2, 8000))}
    assert leaves_every_isr_after_s(build("c", (), (), [], broker_configs=lags)) == 12.0
    assert leaves_every_isr_after_s(build("c", (), (), [])) == UNKNOWN


def test_people_are_told_how_long_it_takes_and_where_the_figure_is_from() -> None:
    """Half a second too; nothing is said where it is not known."""
    end = " s (1.5 times replica.lag.time.max.ms)."
    assert leaving_sentence(45.0) == f"A follower that stops fetching leaves the ISR after at most 45{end}"
    assert leaving_sentence(0.5) == f"A follower that stops fetching leaves the ISR after at most 0.5{end}"
    assert leaving_sentence(UNKNOWN) == ""
