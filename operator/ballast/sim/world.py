"""The simulated cluster's physics: what happens while time passes, and the levers of scenarios and faults.

``SimWorld`` knows everything at once; what a client may see of it, and when, is ``cluster.SimCluster``'s affair.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from ballast.core.cluster import TopicPartition
from ballast.core.cluster.tiered import LAST_TIERED_OFFSET
from ballast.errors import UsageError
from ballast.ports.cluster import PartitionState
from ballast.sim.clock import SimClock
from ballast.sim.controller import SimController
from ballast.sim.model import BrokerHealth, Copy, Physics, SimBroker, SimPartition, SimTopic
from ballast.sim.traffic import FOLLOWER_RATE, LEADER_RATE, LOG_DIRS_RATE, Pipe, fair_rates, pipes_of, rate_of

Seen = tuple[float, PartitionState | None]


class SimWorld:
    """Brokers, topics and a controller, moved on by a ``SimClock``."""

    def __init__(
        self, clock: SimClock, brokers: Iterable[SimBroker], *, physics: Physics | None = None, seed: int = 0
    ) -> None:
        self.clock = clock
        self.physics = physics or Physics()
        self.random = Random(seed)
        self.brokers = {b.id: b for b in sorted(brokers, key=lambda b: b.id)}
        self.topics: dict[str, SimTopic] = {}
        self.cluster_configs: dict[str, str] = {}
        """The cluster-wide dynamic broker default."""
        self.controller_up = True
        """While false, every change times out and reading goes on."""
        self.cut: set[tuple[int, int]] = set()
        """Pairs of a follower and a leader that it cannot fetch from, while both answer all others."""
        self._cut_since_s: dict[tuple[int, int], float] = {}
        self.seen: dict[TopicPartition, deque[Seen]] = {}
        """Per partition, from which moment on metadata shows which state; the first entry is what it shows now."""
        self.received: defaultdict[int, float] = defaultdict(float)
        """By broker: bytes that its lagging replicas have copied since the world began."""
        self.sent: defaultdict[int, float] = defaultdict(float)
        """By broker: the same bytes where they came from."""
        self.controller = SimController(self.brokers, self.topics, self.physics, self._publish)
        self._topics_made = 0
        self._tick_at_s: float | None = None
        clock.subscribe(self._advance)
        if self.physics.auto_leader_rebalance_s is not None:
            self._rebalance_leaders_each(self.physics.auto_leader_rebalance_s)

    # Levers

    def add_topic(
        self,
        name: str,
        assignment: Mapping[int, tuple[int, ...]],
        *,
        size_bytes: float = 0.0,
        inbound_bytes_per_s: float = 0.0,
        configs: Mapping[str, str] | None = None,
        lag_s: float = 0.0,
    ) -> SimTopic:
        """Create a topic with its data already in place; sizes and rates are per partition.

        Metadata knows of it after ``lag_s``.
        """
        self._topics_made += 1
        topic = SimTopic(name, topic_id=f"sim-{self._topics_made:018d}", configs=dict(configs or {}))
        self.topics[name] = topic
        self.add_partitions(
            name, assignment, size_bytes=size_bytes, inbound_bytes_per_s=inbound_bytes_per_s, lag_s=lag_s
        )
        return topic

    def add_partitions(
        self,
        name: str,
        assignment: Mapping[int, tuple[int, ...]],
        *,
        size_bytes: float = 0.0,
        inbound_bytes_per_s: float = 0.0,
        lag_s: float = 0.0,
    ) -> None:
        """Grow a topic; metadata knows of it after ``lag_s``."""
        for number, replicas in sorted(assignment.items()):
            live = [b for b in replicas if self.brokers[b].registered] or list(replicas[:1])
            partition = SimPartition(
                topic=name,
                number=number,
                replicas=list(replicas),
                isr=live,
                leader=live[0] if self.brokers[live[0]].registered else -1,
                copies={
                    b: Copy(log_dir=number % len(self.brokers[b].dir_bytes), end_bytes=size_bytes) for b in replicas
                },
                end_bytes=size_bytes,
                acked_bytes=size_bytes,
                inbound_bytes_per_s=inbound_bytes_per_s,
            )
            self.topics[name].partitions[number] = partition
            self._show(partition.name, self._state(partition), lag_s=lag_s)
        self.controller.topics_changed()

    def adopt(
        self,
        name: str,
        partitions: Iterable[SimPartition],
        *,
        configs: Mapping[str, str],
        topic_id: str | None = None,
    ) -> None:
        """Take a topic as it is said to be, with its id where it is known: replicas in sync or not, moves in progress or not."""
        self._topics_made += 1
        topic = SimTopic(name, topic_id=topic_id or f"sim-{self._topics_made:018d}", configs=dict(configs))
        self.topics[name] = topic
        for partition in partitions:
            topic.partitions[partition.number] = partition
            self._show(partition.name, self._state(partition), lag_s=0.0)
        self.controller.topics_changed()

    def delete_topic(self, name: str) -> None:
        """Delete a topic, whatever is in progress on it."""
        topic = self.topics.pop(name)
        self.controller.topics_changed()
        for partition in topic.partitions.values():
            self._show(partition.name, None, lag_s=self.physics.metadata_lag_s)

    def set_load(self, name: str, inbound_bytes_per_s: float) -> None:
        """Producers write this much to each partition of the topic from now on."""
        for partition in self.topics[name].partitions.values():
            partition.inbound_bytes_per_s = inbound_bytes_per_s

    def kill(self, broker: int) -> None:
        """``kill -9``."""
        self._silence(broker, BrokerHealth.DOWN)

    def freeze(self, broker: int) -> None:
        """Stop the process without ending it; its connections stay open."""
        self._silence(broker, BrokerHealth.FROZEN)

    def stop(self, broker: int) -> None:
        """A controlled shutdown: it hands its leaderships over and leaves the ISRs before it ends."""
        record = self._broker(broker)
        self.kill(broker)
        if not record.fenced:
            record.fenced = True
            self.controller.fence(broker)

    def fail_dir(self, broker: int, log_dir: int) -> None:
        """A log dir is full or broken: the broker takes it offline with the replicas in it.

        It ends with the dir of its metadata log, the first one.
        """
        record = self._broker(broker)
        record.failed.add(log_dir)
        if not record.can_run:
            self.kill(broker)
        elif record.registered:
            self.controller.take_offline(broker, log_dir)

    def repair_dirs(self, broker: int) -> None:
        """Room is made, or the disk is mounted again, and the broker restarted: what lay in its failed log dirs is there."""
        record = self._broker(broker)
        record.failed.clear()
        self.stop(broker)
        self.start(broker)

    def start(self, broker: int) -> None:
        """Bring a down or frozen broker back; it does not start without the log dir of its metadata log."""
        record = self._broker(broker)
        if not record.can_run:
            return
        record.health, record.silent_since_s = BrokerHealth.UP, None
        if record.fenced:
            record.fenced = False
            self.controller.unfence(broker)

    def add_broker(self, broker: SimBroker) -> None:
        """A new, empty broker registers."""
        self.brokers[broker.id] = broker

    def partition(self, topic: str, number: int) -> SimPartition:
        """The true state of a partition, which metadata may not show yet."""
        return self.topics[topic].partitions[number]

    def partitions(self) -> Sequence[SimPartition]:
        """The true state of every partition, by topic and number."""
        return self.controller.partitions()

    def used_bytes(self, broker: int, log_dir: int) -> float:
        """What stands in one log dir, copies in the making included."""
        return self.disks()[broker, log_dir]

    def disks(self) -> dict[tuple[int, int], float]:
        """What stands in every log dir, by broker and index, copies in the making included."""
        used = {(b.id, i): b.others(i) for b in self.brokers.values() for i in range(len(b.dir_bytes))}
        for partition in self.partitions():
            for broker, copy in partition.copies.items():
                used[broker, copy.log_dir] += copy.size_bytes
                if copy.future_dir is not None:
                    used[broker, copy.future_dir] += copy.future_bytes
        return used

    # Physics

    def _advance(self, elapsed: float) -> None:
        """Work off a piece of time in ticks; one long tick where nothing is being copied."""
        end = self.clock.monotonic_s()
        while elapsed > 1e-9:
            step = min(elapsed, self.physics.tick_s) if self._busy() else elapsed
            elapsed -= step
            # What happens in a tick is dated at its end, however long the sleep is that the tick is part of.
            self._tick_at_s = end - elapsed
            self._fence_silent_brokers()
            self._produce(step)
            self._delete_tiered()
            self._drop_laggards()
            self._replicate(step)
            self._copy_within_brokers(step)
        self._tick_at_s = None

    def _now_s(self) -> float:
        return self.clock.monotonic_s() if self._tick_at_s is None else self._tick_at_s

    def _busy(self) -> bool:
        silent = any(b.silent_since_s is not None and not b.fenced for b in self.brokers.values())
        return (
            silent
            or bool(self.cut)
            or any(
                len(p.isr) < len(p.replicas) or any(c.future_dir is not None for c in p.copies.values())
                for p in self.partitions()
            )
        )

    def _fence_silent_brokers(self) -> None:
        now = self._now_s()
        for broker in self.brokers.values():
            silent = broker.silent_since_s
            if silent is not None and not broker.fenced and now - silent >= self.physics.session_timeout_s:
                broker.fenced = True
                self.controller.fence(broker.id)

    def _produce(self, step: float) -> None:
        """Writers with ``acks=all`` go on where the leader and the whole ISR answer and the ISR is large enough."""
        for topic in self.topics.values():
            for partition in topic.partitions.values():
                if not partition.inbound_bytes_per_s or not partition.led:
                    continue
                least = min(topic.min_isr, len(partition.replicas))
                if len(partition.isr) < least:
                    partition.refused_s += step
                    continue
                if not all(self.brokers[b].up for b in partition.isr):
                    continue
                if self.cut and any((b, partition.leader) in self.cut for b in partition.isr):
                    continue
                partition.end_bytes += partition.inbound_bytes_per_s * step
                partition.acked_bytes = partition.end_bytes
                for broker in partition.isr:
                    partition.copies[broker].end_bytes = partition.end_bytes

    def _delete_tiered(self) -> None:
        """Tiered topics: the local segments that every broker's local retention deletes, and where new followers begin.

        A follower that asks for what its leader has no longer on disk is sent to the leader's local log start (KIP-405), an empty one
        with ``follower.fetch.last.tiered.offset.enable`` to the end of what is in remote storage (KIP-1023).
        """
        for topic in self.topics.values():
            if not topic.tiered:
                continue
            for partition in topic.partitions.values():
                for broker in partition.isr:
                    copy = partition.copies[broker]
                    copy.drop_before(topic.local_start_bytes(copy.end_bytes))
                if not partition.led or not self.brokers[partition.leader].up:
                    continue
                local_start = partition.copies[partition.leader].start_bytes
                uploaded = topic.uploaded_bytes(partition.end_bytes)
                for broker, copy in partition.lagging():
                    at_last = not copy.end_bytes and self._begins_at_last_tiered(broker)
                    begin = uploaded if at_last else local_start
                    if self.brokers[broker].up and copy.end_bytes < begin:
                        copy.start_bytes = copy.end_bytes = begin

    def _begins_at_last_tiered(self, broker: int) -> bool:
        return self.brokers[broker].setting(LAST_TIERED_OFFSET, self.cluster_configs) == "true"

    def _drop_laggards(self) -> None:
        """A leader drops followers that stopped fetching, be it before the controller has fenced them."""
        now = self._now_s()
        self._drop_unreachable_followers(now)
        if all(b.silent_since_s is None for b in self.brokers.values()):
            return
        quiet = {
            b.id
            for b in self.brokers.values()
            if b.silent_since_s is not None and now - b.silent_since_s >= self.physics.replica_lag_s
        }
        if not quiet:
            return
        for partition in self.partitions():
            if partition.led and self.brokers[partition.leader].up:
                for broker in quiet.intersection(partition.isr):
                    self.controller.leave_isr(partition, broker)

    def _drop_unreachable_followers(self, now: float) -> None:
        self._cut_since_s = {pair: self._cut_since_s.get(pair, now) for pair in self.cut}
        gone = {pair for pair, since in self._cut_since_s.items() if now - since >= self.physics.replica_lag_s}
        for partition in self.partitions() if gone else ():
            if partition.led and self.brokers[partition.leader].up:
                for broker in [b for b in partition.isr if (b, partition.leader) in gone]:
                    self.controller.leave_isr(partition, broker)

    def _replicate(self, step: float) -> None:
        """Copy to every lagging replica at its fair rate; who has caught up joins the ISR."""
        lagging = [
            (partition, broker, copy)
            for partition in self.partitions()
            if partition.led and self.brokers[partition.leader].up
            for broker, copy in partition.lagging()
            if self.brokers[broker].up
            and self.brokers[broker].serves(copy)
            and (broker, partition.leader) not in self.cut
        ]
        if not lagging:
            return
        flows = [pipes_of(p, b, self.topics[p.topic].configs, leader=p.leader) for p, b, _ in lagging]
        rates = fair_rates(flows, {pipe: self._capacity(pipe) for flow in flows for pipe in flow})
        used = self.disks()
        full: set[tuple[int, int]] = set()
        for (partition, broker, copy), rate in zip(lagging, rates, strict=True):
            place = (broker, copy.log_dir)
            room = self.brokers[broker].dir_bytes[copy.log_dir] - used[place]
            missing = partition.end_bytes - copy.end_bytes
            copied = max(min(rate * step, missing, room), 0.0)
            if copied < min(rate * step, missing):
                full.add(place)
            copy.end_bytes += copied
            used[place] += copied
            self.received[broker] += copied
            self.sent[partition.leader] += copied
            if copied >= missing:
                copy.end_bytes = partition.end_bytes
                self.controller.join_isr(partition, broker)
        for broker, log_dir in sorted(full):
            self.fail_dir(broker, log_dir)

    def _capacity(self, pipe: Pipe) -> float:
        kind, broker = pipe
        record = self.brokers[broker]
        if kind in {LEADER_RATE, FOLLOWER_RATE}:
            return rate_of(record, self.cluster_configs, kind)
        return record.nic_bytes_per_s

    def _copy_within_brokers(self, step: float) -> None:
        """Log-dir moves share the broker's copying rate evenly."""
        by_broker: dict[int, list[Copy]] = {}
        for partition in self.partitions():
            for broker, copy in partition.copies.items():
                record = self.brokers[broker]
                if copy.future_dir is not None and record.up and not {copy.log_dir, copy.future_dir} & record.failed:
                    by_broker.setdefault(broker, []).append(copy)
        for broker, copies in by_broker.items():
            record = self.brokers[broker]
            rate = min(rate_of(record, self.cluster_configs, LOG_DIRS_RATE), record.nic_bytes_per_s)
            for copy in copies:
                copy.future_bytes += rate * step / len(copies)
                if copy.future_bytes >= copy.size_bytes and copy.future_dir is not None:
                    copy.log_dir, copy.future_dir, copy.future_bytes = copy.future_dir, None, 0.0

    # Metadata

    def metadata(self, name: TopicPartition) -> PartitionState | None:
        """What the brokers' metadata says of a partition now; None when it does not know it."""
        history = self.seen.get(name)
        if history is None:
            return None
        now = self.clock.monotonic_s()
        while len(history) > 1 and history[1][0] <= now:
            history.popleft()
        return history[0][1] if history[0][0] <= now else None

    def _publish(self, partition: SimPartition) -> None:
        self._show(partition.name, self._state(partition), lag_s=self.physics.metadata_lag_s)

    def _show(self, name: TopicPartition, state: PartitionState | None, *, lag_s: float) -> None:
        visible = self._now_s() + lag_s
        self.seen.setdefault(name, deque()).append((visible, state))

    # Small things

    def _silence(self, broker: int, health: BrokerHealth) -> None:
        record = self._broker(broker)
        record.health = health
        if record.silent_since_s is None:
            record.silent_since_s = self.clock.monotonic_s()

    def _broker(self, broker: int) -> SimBroker:
        if broker not in self.brokers:
            raise UsageError(f"The simulated cluster has no broker {broker}.")
        return self.brokers[broker]

    def _rebalance_leaders_each(self, period_s: float) -> None:
        def turn() -> None:
            self.controller.rebalance_leaders()
            self.clock.after(period_s, turn)

        self.clock.after(period_s, turn)

    def _state(self, partition: SimPartition) -> PartitionState:
        id_ = self.topics[partition.topic].topic_id
        return PartitionState(partition.leader, tuple(partition.replicas), tuple(partition.isr), id_)
