"""The simulated cluster as one more form of the contract suite, so that what is proven on it holds for real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.contract.cluster_forms import ClusterForm

from ballast.core.cluster import TopicPartition
from ballast.sim import Physics, SimBroker, SimClock, SimCluster, SimWorld


class SimHands:
    """Disturbs a simulated world."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world

    def produce(self, name: TopicPartition, total_bytes: int) -> None:
        """Write at a rate that takes one second."""
        partition = self._world.partition(*name)
        partition.inbound_bytes_per_s = total_bytes
        self._world.clock.sleep(1.0)
        partition.inbound_bytes_per_s = 0

    def delete_topic(self, topic: str) -> None:
        """Delete it at once."""
        self._world.delete_topic(topic)

    def kill(self, broker: int) -> None:
        """End a broker without a goodbye."""
        self._world.kill(broker)

    def pause(self, broker: int) -> None:
        """Freeze a broker."""
        self._world.freeze(broker)

    def stop(self, broker: int) -> None:
        """A controlled shutdown."""
        self._world.stop(broker)

    def fail_dir(self, broker: int, log_dir: int) -> None:
        """Take a log dir offline."""
        self._world.fail_dir(broker, log_dir)

    def start(self, broker: int) -> None:
        """Bring a broker back, with whole log dirs."""
        if self._world.brokers[broker].failed:
            self._world.repair_dirs(broker)
        self._world.start(broker)


@contextmanager
def simulated() -> Iterator[ClusterForm]:
    """Brokers 1, 2, 3 in three racks, two log dirs each."""
    brokers = [SimBroker(id=i, rack=f"rack-{i}", dir_bytes=(1e11, 1e11)) for i in (1, 2, 3)]
    # As long as on the real forms: a broker that does not answer is fenced before the wait for it is given up.
    world = SimWorld(SimClock(), brokers, physics=Physics(session_timeout_s=4.0, timeout_s=10.0))
    yield ClusterForm("sim", SimCluster(world), world.clock, SimHands(world))
