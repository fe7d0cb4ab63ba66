"""The simulated controller: reassignments (KIP-455), elections, ISR changes and fencing, with Kafka's outcomes.

The rules follow KRaft's ``ReplicationControlManager`` as its behaviour shows: a reassignment lists the target first and the
replicas to be removed after it; it completes when every target replica is in sync; a leader outside the target is replaced
by the first target replica in sync; a cancel drops what was being added and keeps the order the union had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ballast.core.cluster import NO_LEADER, TopicPartition
from ballast.ports.cluster import OK, Outcome
from ballast.sim.model import Copy, Physics, SimBroker, SimPartition, SimTopic

ELECTION_BATCH: Final = 1000
"""How many leaders the controller's own rebalancing moves in one pass."""


class SimController:
    """Owns every change to a partition's record; ``changed`` is called after each one."""

    def __init__(
        self,
        brokers: Mapping[int, SimBroker],
        topics: dict[str, SimTopic],
        physics: Physics,
        changed: Callable[[SimPartition], None],
    ) -> None:
        self._brokers = brokers
        self._topics = topics
        self._physics = physics
        self._changed = changed
        self._ordered: tuple[SimPartition, ...] | None = None

    # Reassignment

    def alter(self, name: TopicPartition, target: tuple[int, ...] | None, *, allow_rf_change: bool) -> Outcome:
        """Start, override or cancel one reassignment."""
        partition = self._find(name)
        if partition is None:
            return Outcome(False, "UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {name}.")
        if target is None:
            return self._cancel(partition)
        refusal = self._validate(partition, target, allow_rf_change=allow_rf_change)
        if refusal is not None:
            return refusal
        self._begin(partition, list(target))
        return OK

    def _validate(self, partition: SimPartition, target: tuple[int, ...], *, allow_rf_change: bool) -> Outcome | None:
        """Kafka's checks of a manual assignment, in its order."""
        prefix = "The manual partition assignment includes"
        if not target:
            return Outcome(False, "INVALID_REPLICA_ASSIGNMENT", f"{prefix} an empty replica list.")
        for broker in sorted(target):
            if broker not in self._brokers:
                sentence = f"{prefix} broker {broker}, but no such broker is registered."
                return Outcome(False, "INVALID_REPLICA_ASSIGNMENT", sentence)
            if target.count(broker) > 1:
                return Outcome(False, "INVALID_REPLICA_ASSIGNMENT", f"{prefix} the broker {broker} more than once.")
            down = broker not in partition.replicas and self._brokers[broker].fenced
            if down and self._physics.refuse_down_targets:
                sentence = f"Replica assignment has brokers that are not alive: {broker}."
                return Outcome(False, "INVALID_REPLICA_ASSIGNMENT", sentence)
        before = len(set(partition.replicas) - set(partition.removing))
        if not allow_rf_change and before != len(target):
            sentence = f"The replication factor is changed from {before} to {len(target)}"
            return Outcome(False, "INVALID_REPLICATION_FACTOR", sentence)
        return None

    def _begin(self, partition: SimPartition, target: list[int]) -> None:
        """Enter the union; what the union held before and the target lacks is to be removed."""
        leaving = sorted(set(partition.replicas) - set(target))
        coming = sorted(set(target) - set(partition.replicas))
        for broker in coming:
            partition.copies[broker] = Copy(log_dir=self._new_log_dir(broker))
        partition.replicas = target + leaving
        # As in KRaft, an empty half does not overwrite what an earlier move left there: the old list submitted as a target
        # in mid-move leaves a replica that is both added and removed, and the move hangs until it is cancelled.
        partition.adding, partition.removing = coming or partition.adding, leaving or partition.removing
        if not self.complete_if_done(partition):
            self._changed(partition)

    def _cancel(self, partition: SimPartition) -> Outcome:
        """Drop what is being added; refused where only new replicas are in sync (that would be an unclean election)."""
        if not partition.reassigning:
            return Outcome(False, "NO_REASSIGNMENT_IN_PROGRESS")
        isr = [b for b in partition.isr if b not in partition.adding]
        if not isr:
            sentence = "Cancelling would need an unclean leader election."
            return Outcome(False, "INVALID_REPLICA_ASSIGNMENT", sentence)
        self._settle(partition, [b for b in partition.replicas if b not in partition.adding], isr)
        return OK

    def complete_if_done(self, partition: SimPartition) -> bool:
        """End the reassignment if every target replica is in sync."""
        target = partition.target
        wanted = set(target) | set(partition.adding)
        if not partition.reassigning or not target or not wanted <= set(partition.isr) - set(partition.removing):
            return False
        self._settle(partition, target, [b for b in partition.isr if b in target])
        return True

    def _settle(self, partition: SimPartition, replicas: list[int], isr: list[int]) -> None:
        """Leave the union: stop the replicas that go, elect where the leader went with them."""
        partition.replicas, partition.isr = replicas, isr
        partition.adding, partition.removing = [], []
        if partition.leader not in replicas or partition.leader not in isr:
            self._lead(partition, self._first_in_sync(partition))
        else:
            partition.leader_epoch += 1  # Fences a broker that fetches as a replica and is none any more.
        for broker in [b for b in partition.copies if b not in replicas]:
            del partition.copies[broker]
        self._changed(partition)

    def _new_log_dir(self, broker: int) -> int:
        """Where a broker puts a new replica: the log dir with the fewest, cordoned ones last."""
        record = self._brokers[broker]
        if len(record.dir_bytes) == 1:
            # Nothing to choose, and counting for each of ten thousand moves would take minutes.
            return 0
        counts = dict.fromkeys((i for i in range(len(record.dir_bytes)) if i not in record.failed), 0)
        for partition in self.partitions():
            if broker in partition.copies and partition.copies[broker].log_dir in counts:
                counts[partition.copies[broker].log_dir] += 1
        return min(counts, key=lambda i: (i in record.cordoned, counts[i], i))

    # Elections

    def elect(self, name: TopicPartition, *, unclean: bool) -> Outcome:
        """Hold one election."""
        partition = self._find(name)
        if partition is None:
            return Outcome(False, "UNKNOWN_TOPIC_OR_PARTITION", f"No such partition as {name}.")
        if unclean:
            return self._elect_unclean(partition)
        preferred = partition.replicas[0]
        if partition.leader == preferred:
            return OK
        if preferred not in partition.isr or not self._serves(partition, preferred):
            return Outcome(False, "PREFERRED_LEADER_NOT_AVAILABLE")
        self._lead(partition, preferred)
        self._changed(partition)
        return OK

    def _elect_unclean(self, partition: SimPartition) -> Outcome:
        if partition.led:
            return OK
        live = [b for b in partition.replicas if self._serves(partition, b)]
        if not live:
            return Outcome(False, "ELIGIBLE_LEADERS_NOT_AVAILABLE")
        partition.isr = [live[0]]
        self._lead(partition, live[0])
        self._changed(partition)
        return OK

    def rebalance_leaders(self) -> None:
        """The controller's own preferred elections (``auto.leader.rebalance.enable``)."""
        drifted = [p.name for p in self.partitions() if p.leader != p.replicas[0]]
        for name in drifted[:ELECTION_BATCH]:
            self.elect(name, unclean=False)

    def _first_in_sync(self, partition: SimPartition) -> int:
        return next(
            (b for b in partition.replicas if b in partition.isr and self._serves(partition, b)),
            NO_LEADER,
        )

    def _lead(self, partition: SimPartition, leader: int) -> None:
        """Make this broker the leader; the log is then what it holds, and what it lacks of the acked is lost."""
        partition.leader_epoch += partition.leader != leader
        partition.leader = leader
        if leader == NO_LEADER:
            return
        end = partition.copies[leader].end_bytes
        if end < partition.acked_bytes:
            partition.lost_bytes += partition.acked_bytes - end
            partition.acked_bytes = end
        partition.end_bytes = end
        for copy in partition.copies.values():
            copy.end_bytes = min(copy.end_bytes, end)
            copy.start_bytes = min(copy.start_bytes, end)

    # Brokers and the ISR

    def fence(self, broker: int) -> None:
        """Fence a broker that is unreachable: it leaves every ISR that has another member, and leads nothing."""
        for partition in self.partitions():
            if broker in partition.isr or partition.leader == broker:
                self._give_up(partition, broker)

    def take_offline(self, broker: int, log_dir: int) -> None:
        """The replicas in a log dir that has failed: out of every ISR that has another member, and none of them leads."""
        for partition in self.partitions():
            copy = partition.copies.get(broker)
            if copy is not None and copy.future_dir == log_dir:
                copy.future_dir, copy.future_bytes = None, 0.0
            if copy is not None and copy.log_dir == log_dir:
                self._give_up(partition, broker)

    def _give_up(self, partition: SimPartition, broker: int) -> None:
        # The last member stays: only it is known to hold everything that was acked.
        partition.isr = [b for b in partition.isr if b != broker] or partition.isr
        if partition.leader == broker:
            self._lead(partition, self._first_in_sync(partition))
        self._changed(partition)

    def _serves(self, partition: SimPartition, broker: int) -> bool:
        return self._brokers[broker].serves(partition.copies[broker])

    def unfence(self, broker: int) -> None:
        """Register a broker again: it leads again what waited for it."""
        for partition in self.partitions():
            if not partition.led and broker in partition.isr and self._serves(partition, broker):
                self._lead(partition, broker)
                self._changed(partition)
            self.complete_if_done(partition)

    def join_isr(self, partition: SimPartition, broker: int) -> None:
        """A replica has caught up."""
        partition.isr = [b for b in partition.replicas if b in partition.isr or b == broker]
        if not self.complete_if_done(partition):
            self._changed(partition)

    def leave_isr(self, partition: SimPartition, broker: int) -> None:
        """The leader has dropped a follower that lags."""
        partition.isr = [b for b in partition.isr if b != broker]
        self._changed(partition)

    # Finding

    def partitions(self) -> Sequence[SimPartition]:
        """Every partition, by topic and number."""
        if self._ordered is None:
            self._ordered = tuple(
                topic.partitions[number]
                for _, topic in sorted(self._topics.items())
                for number in sorted(topic.partitions)
            )
        return self._ordered

    def topics_changed(self) -> None:
        """Partitions were created or deleted."""
        self._ordered = None

    def _find(self, name: TopicPartition) -> SimPartition | None:
        topic = self._topics.get(name.topic)
        return None if topic is None else topic.partitions.get(name.partition)
