"""What is particular about the replicas of tiered topics (KIP-405): a new one copies what its leader holds on disk, or less.

DescribeLogDirs tells what lies on a broker's disk, so every size is that of the local log already.  Since Kafka 4.3 a broker may begin an
empty replica at the last tiered offset (KIP-1023): it then copies only what is not in remote storage yet, and its log grows to
the size of the others with time.  How much that is no broker tells in bytes: the size is then the most that is copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ballast.core.cluster.state import ClusterState

LAST_TIERED_OFFSET: Final = "follower.fetch.last.tiered.offset.enable"
"""The broker config with which its new replicas begin at the last tiered offset."""


def begin_at_last_tiered(state: ClusterState, brokers: Iterable[int]) -> tuple[int, ...]:
    """Those of these brokers whose new replicas begin at the last tiered offset, sorted."""
    default = state.cluster_configs.get(LAST_TIERED_OFFSET)

    def does(broker: int) -> bool:
        entry = state.broker_configs.get(broker, {}).get(LAST_TIERED_OFFSET, default)
        return entry is not None and entry.value == "true"

    return tuple(b for b in sorted(set(brokers)) if does(b))
