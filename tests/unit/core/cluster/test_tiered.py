"""Which brokers begin a new replica of a tiered topic at the last tiered offset."""

from __future__ import annotations

from ballast.core.cluster import Broker, ConfigValue, build
from ballast.core.cluster.tiered import LAST_TIERED_OFFSET, begin_at_last_tiered


def test_a_brokers_own_setting_counts_before_the_cluster_wide_default() -> None:
    """Each broker once, by id; without a default only those that say so, also where one told no configs at all."""
    on, off = ({LAST_TIERED_OFFSET: ConfigValue(value, "DYNAMIC_BROKER_CONFIG")} for value in ("true", "false"))
    brokers = tuple(Broker(b) for b in (1, 2, 3, 4))
    own = {1: off, 2: {}, 3: on}
    default = build("c", brokers, (), [], broker_configs=own, cluster_configs=on)
    none = build("c", brokers, (), [], broker_configs=own)
    assert begin_at_last_tiered(default, [4, 3, 2, 1, 3]) == (2, 3, 4)
    assert begin_at_last_tiered(default, [1, 2]) == (2,)
    assert begin_at_last_tiered(none, [4, 3, 2, 1]) == (3,)
