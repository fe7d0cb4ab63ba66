"""What readings of one cluster in several threads share."""

from __future__ import annotations

import threading
from typing import Any, cast

from ballast.adapters.kafka.cluster import KafkaCluster
from ballast.core.cluster import TopicPartition
from ballast.core.cluster.assemble import Change

CHANGE = Change(union=(1, 2, 3), adding=(3,), removing=(1,))
EARLIER, LATER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_moves_that_one_thread_saw_end_are_not_forgotten_by_another() -> None:
    """A reading of the run's thread falls into one of the daemon's: both remember, and none changes what the other goes through."""
    cluster = KafkaCluster(cast("Any", None), cast("Any", None))
    cluster._recall_ended({EARLIER: CHANGE}, {})
    other = threading.Thread(target=lambda: cluster._recall_ended({LATER: CHANGE}, {}))

    class Listing(dict[TopicPartition, Change]):
        """Asked in the midst of one reading, it lets the other one in, if that can come in."""

        def __contains__(self, name: object) -> bool:
            if not other.ident:
                other.start()
                other.join(0.2)
            return super().__contains__(name)

    cluster._recall_ended({}, Listing())
    other.join()
    assert cluster._recall_ended({}, {}).keys() == {EARLIER, LATER}
