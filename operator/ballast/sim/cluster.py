"""A simulated cluster behind ``ports.Cluster``: what a client may see of a ``SimWorld``, and what it may ask of it.

Every call costs simulated time.  Metadata (leaders, replicas, ISRs) shows changes late; the list of reassignments comes from
the controller and is never late.  Down brokers refuse, frozen ones cost the whole timeout; neither gives log dirs or takes
configs.  Outcomes carry Kafka's error names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from ballast.core.cluster import (
    LOG_DIRS,
    STORAGE_ERROR,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Gap,
    LogDir,
    PartitionRow,
    Topic,
    TopicPartition,
    build,
)
from ballast.core.cluster.assemble import Change, reconcile
from ballast.core.cluster.log_ends import LocalStarts, LogEnds
from ballast.errors import Refused, Unavailable
from ballast.ports.cluster import (
    OK,
    BrokerLogs,
    ConfigChange,
    ConfigResource,
    Epochs,
    Offsets,
    Outcome,
    PartitionState,
    Reassignment,
    ReplicaLog,
)
from ballast.ports.time import Clock
from ballast.sim.model import MESSAGE_BYTES, BrokerHealth, Copy, SimBroker, SimPartition
from ballast.sim.traffic import FOLLOWER_LIST, LEADER_LIST
from ballast.sim.world import SimWorld

TORN_READS: Final = 6
"""How often metadata that fits no listing of moves is read again."""
AFTERGLOW_S: Final = 20.0
THROTTLE_LIST: Final = re.compile(r"\*|(\d+:\d+(,\d+:\d+)*)?")
"""What Kafka's ``ThrottledReplicaListValidator`` lets pass."""


class SimCluster:
    """One client's view of a simulated cluster."""

    def __init__(
        self, world: SimWorld, *, api: frozenset[str] = frozenset({"reassign", "reassign-v1"}), version: str = "4.3"
    ) -> None:
        self.world = world
        self._ended: dict[TopicPartition, tuple[Change, float]] = {}
        """Moves that were listed a moment ago, and until when they may still explain a union in late metadata."""
        self._api = api
        self._version = version

    # Reading

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        """The whole cluster as a client can put it together; fenced brokers are known by id and rack."""
        world = self.world
        shown, moves = self._metadata_and_moves()
        # Before the log dirs are read, which takes time in which a topic may be deleted.
        topics = tuple(self._topic(name) for name in sorted({tp.topic for tp in shown}))
        known = list(world.brokers.values())
        live = [b for b in known if b.registered]
        logs = self.log_dirs([b.id for b in live]) if log_dirs else {}
        resources = [ConfigResource("broker", str(b.id)) for b in live]
        broker_configs = self.configs(resources) if configs else {}
        return build(
            "sim",
            tuple(
                replace(
                    self._broker(b, logs, controller=b in live[:1]),
                    reachable=not (log_dirs and b.registered) or b.id in logs,
                )
                for b in known
            ),
            topics,
            [replace(_row(tp, state, moves.get(tp), logs), offline=self._offline(tp)) for tp, state in shown.items()],
            taken_at_ms=world.clock.now_ms(),
            broker_configs={int(r.name): values for r, values in broker_configs.items()},
            cluster_configs={
                k: ConfigValue(v, "DYNAMIC_DEFAULT_BROKER_CONFIG") for k, v in world.cluster_configs.items()
            },
            gaps=tuple(
                Gap.of_broker(b.id, LOG_DIRS, "the broker did not answer")
                for b in known
                if log_dirs and b.id not in logs
            ),
            api=self._api,
            kafka_version=self._version,
        )

    def _offline(self, name: TopicPartition) -> tuple[int, ...]:
        """Brokers whose replica is offline: they are not registered, or its log dir has failed."""
        brokers = self.world.brokers
        topic = self.world.topics.get(name.topic)
        partition = topic.partitions.get(name.partition) if topic is not None else None
        copies = partition.copies if partition is not None else {}
        return tuple(b for b, copy in copies.items() if b in brokers and not brokers[b].serves(copy))

    def _metadata_and_moves(self) -> tuple[dict[TopicPartition, PartitionState], dict[TopicPartition, Change]]:
        """Metadata between two listings of moves, read again while they contradict each other; as the adapters do."""
        world = self.world
        listed = self._list_changes()
        for attempt in range(TORN_READS):
            shown = {
                name: state
                for name in sorted(world.seen)
                if name.topic in world.topics and (state := world.metadata(name)) is not None
            }
            before, listed = listed, self._list_changes()
            now = world.clock.monotonic_s()
            self._ended = {n: e for n, e in self._ended.items() if e[1] > now and n not in listed}
            ended = {n: change for n, (change, _) in self._ended.items()}
            self._ended |= {n: (change, now + AFTERGLOW_S) for n, change in (before | listed).items()}
            lists = {n: shown[n].replicas for n in ended.keys() | before.keys() | listed.keys() if n in shown}
            moves, torn = reconcile(before, listed, lists, ended=ended)
            if not torn:
                break
            world.clock.sleep(0.1 * 2**attempt)
        # A topic may have been deleted between the reading and now.
        return {n: s for n, s in shown.items() if n.topic in world.topics}, moves

    def _list_changes(self) -> dict[TopicPartition, Change]:
        return {n: Change(r.replicas, r.adding, r.removing) for n, r in self.reassignments().items()}

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Every move in progress, from the controller."""
        self._ask_controller()
        return {
            p.name: Reassignment(tuple(p.replicas), tuple(p.adding), tuple(p.removing))
            for p in self.world.partitions()
            if p.reassigning
        }

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """What metadata says, which may be a little old."""
        self._ask_anyone()
        states = ((name, self.world.metadata(name)) for name in names)
        return {name: state for name, state in states if state is not None}

    def await_change(self, clock: Clock, seconds: float) -> bool:
        """Wait this long; the simulated brokers tell nothing by themselves."""
        clock.sleep(seconds)
        return False

    def log_dirs(self, brokers: Collection[int]) -> Mapping[int, BrokerLogs]:
        """Log dirs of the brokers that answer."""
        asked = [self.world.brokers[b] for b in brokers if b in self.world.brokers]
        self._spend(waiting=any(b.health is BrokerHealth.FROZEN for b in asked))
        return {b.id: self._logs(b) for b in asked if b.up}

    def epochs(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Epochs]:
        """Leader epochs."""
        self._ask_anyone()
        found = ((name, self._find(name)) for name in names)
        return {name: Epochs(partition.leader_epoch) for name, partition in found if partition is not None}

    def log_ends(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """The true log ends, from the brokers that answer."""
        asked = [self.world.brokers[b] for b in replicas if b in self.world.brokers]
        self._spend(waiting=any(b.health is BrokerHealth.FROZEN for b in asked))
        return {
            b.id: {n: int(copy.end_bytes) // MESSAGE_BYTES for n, copy in self._copies(b, replicas[b.id])}
            for b in asked
            if b.up
        }

    def local_starts(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LocalStarts:
        """Where the logs on disk begin, from the brokers that answer."""
        asked = [self.world.brokers[b] for b in replicas if b in self.world.brokers]
        self._spend(waiting=any(b.health is BrokerHealth.FROZEN for b in asked))
        return {
            b.id: {n: int(copy.start_bytes) // MESSAGE_BYTES for n, copy in self._copies(b, replicas[b.id])}
            for b in asked
            if b.up
        }

    def _copies(self, broker: SimBroker, names: Collection[TopicPartition]) -> Iterator[tuple[TopicPartition, Copy]]:
        for name in names:
            partition = self._find(name)
            copy = None if partition is None else partition.copies.get(broker.id)
            if copy is not None and copy.log_dir not in broker.failed:
                yield name, copy

    def offsets(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Offsets]:
        """Offsets from the leaders that answer."""
        self._ask_anyone()
        answers = {}
        for name in names:
            partition = self._find(name)
            answered = partition is not None and partition.led and self.world.brokers[partition.leader].up
            end = int(partition.acked_bytes) // MESSAGE_BYTES if partition is not None else UNKNOWN
            answers[name] = Offsets(0, end) if answered else Offsets(UNKNOWN, UNKNOWN)
        return answers

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """Entries that are set; a broker that does not answer is absent, as is a topic that does not exist."""
        self._ask_anyone()
        answers = ((resource, self._configs_of(resource)) for resource in resources)
        return {resource: values for resource, values in answers if values is not None}

    def close(self) -> None:
        """Nothing is held open."""

    # Writing

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Start, override or cancel; each partition has its own outcome."""
        self._ask_controller()
        # The flag is part of version 1 of the request; a controller that is asked without it lets every count pass.
        allowed = allow_replication_factor_change or "reassign-v1" not in self._api
        return {
            name: self.world.controller.alter(name, target, allow_rf_change=allowed) for name, target in targets.items()
        }

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Hold elections."""
        self._ask_controller()
        return {name: self.world.controller.elect(name, unclean=unclean) for name in names}

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Apply incremental changes; a resource takes all of its changes or none."""
        self._ask_controller()
        grouped: dict[ConfigResource, list[ConfigChange]] = {}
        for change in changes:
            grouped.setdefault(change.resource, []).append(change)
        return {resource: self._alter_config(resource, group) for resource, group in grouped.items()}

    def alter_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Outcome]:
        """Start copying replicas to another log dir of their broker."""
        self._ask_anyone()
        return {key: self._alter_log_dir(*key, path) for key, path in targets.items()}

    def create_topic(
        self, topic: str, assignment: Mapping[int, tuple[int, ...]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create an empty topic."""
        self._ask_controller()
        if topic in self.world.topics:
            raise Refused(f"Topic {topic} exists already.")
        self._check_brokers(assignment)
        self.world.add_topic(topic, assignment, configs=configs, lag_s=self.world.physics.metadata_lag_s)

    def create_partitions(self, topic: str, total: int, assignment: Mapping[int, tuple[int, ...]]) -> None:
        """Grow a topic by empty partitions."""
        self._ask_controller()
        if topic not in self.world.topics:
            raise Refused(f"Topic {topic} does not exist.")
        present = len(self.world.topics[topic].partitions)
        if sorted(assignment) != list(range(present, total)):
            raise Refused(f"Topic {topic} has {present} partitions; the assignment must name {present} to {total - 1}.")
        self._check_brokers(assignment)
        self.world.add_partitions(topic, assignment, lag_s=self.world.physics.metadata_lag_s)

    # Answering

    def _spend(self, *, waiting: bool = False) -> None:
        self.world.clock.sleep(self.world.physics.timeout_s if waiting else self.world.physics.call_s)

    def _ask_anyone(self) -> None:
        answering = any(b.up for b in self.world.brokers.values())
        self._spend(waiting=not answering)
        if not answering:
            raise Unavailable("No broker answers.", hint="Check that the cluster is up.")

    def _ask_controller(self) -> None:
        self._ask_anyone()
        if not self.world.controller_up:
            self._spend(waiting=True)
            raise Unavailable("The controller did not answer in time.")

    def _find(self, name: TopicPartition) -> SimPartition | None:
        topic = self.world.topics.get(name.topic)
        return None if topic is None else topic.partitions.get(name.partition)

    def _topic(self, name: str) -> Topic:
        topic = self.world.topics[name]
        return Topic(
            name,
            topic_id=topic.topic_id,
            internal=name.startswith("__"),
            min_isr=topic.min_isr,
            configs={k: ConfigValue(v, "DYNAMIC_TOPIC_CONFIG") for k, v in sorted(topic.configs.items())},
        )

    def _broker(self, broker: SimBroker, logs: Mapping[int, BrokerLogs], *, controller: bool) -> Broker:
        answered = logs.get(broker.id)
        return Broker(
            broker.id,
            rack=broker.rack,
            host="sim" if broker.registered else "",
            port=9092 + broker.id if broker.registered else 0,
            alive=broker.registered,
            controller=controller,
            log_dirs=answered.dirs if answered else (),
            log_dirs_known=answered is not None,
        )

    def _logs(self, broker: SimBroker) -> BrokerLogs:
        replicas: dict[TopicPartition, tuple[ReplicaLog, ...]] = {}
        used = [broker.others(i) for i in range(len(broker.dir_bytes))]
        for partition in self.world.partitions():
            copy = partition.copies.get(broker.id)
            if copy is None:
                continue
            used[copy.log_dir] += copy.size_bytes
            if copy.future_dir is not None:
                used[copy.future_dir] += copy.future_bytes
            if told := _replica_logs(broker, copy):
                replicas[partition.name] = told
        dirs = tuple(
            LogDir(broker.dir_path(i), error=STORAGE_ERROR)
            if i in broker.failed
            else LogDir(
                broker.dir_path(i),
                total_bytes=int(total),
                usable_bytes=int(max(total - used[i], 0.0)),
                cordoned=i in broker.cordoned,
            )
            for i, total in enumerate(broker.dir_bytes)
        )
        return BrokerLogs(dirs, replicas)

    # Configs

    def _configs_of(self, resource: ConfigResource) -> dict[str, ConfigValue] | None:
        world = self.world
        if resource.kind == "topic":
            topic = world.topics.get(resource.name)
            if topic is None:
                return None
            return {k: ConfigValue(v, "DYNAMIC_TOPIC_CONFIG") for k, v in sorted(topic.configs.items())}
        layers = [(world.cluster_configs, "DYNAMIC_DEFAULT_BROKER_CONFIG")]
        if resource.name:
            broker = world.brokers.get(int(resource.name))
            if broker is None or not broker.up:
                return None
            layers.insert(0, (broker.static_configs, "STATIC_BROKER_CONFIG"))
            layers.append((broker.configs, "DYNAMIC_BROKER_CONFIG"))
        # The last layer that has a key wins, as in Kafka: static, then the cluster-wide default, then the broker's own.
        return {k: ConfigValue(v, source) for values, source in layers for k, v in sorted(values.items())}

    def _alter_config(self, resource: ConfigResource, changes: list[ConfigChange]) -> Outcome:
        values = self._store_of(resource)
        if isinstance(values, Outcome):
            return values
        changed = dict(values)
        for change in changes:
            refusal = _apply(changed, change)
            if refusal is not None:
                return refusal
        values.clear()
        values.update(changed)
        return OK

    def _store_of(self, resource: ConfigResource) -> dict[str, str] | Outcome:
        if resource.kind == "topic":
            topic = self.world.topics.get(resource.name)
            return Outcome(False, "UNKNOWN_TOPIC_OR_PARTITION") if topic is None else topic.configs
        if not resource.name:
            return self.world.cluster_configs
        broker = self.world.brokers.get(int(resource.name))
        if broker is None or not broker.up:
            # A broker's configs are changed through that broker, so its silence is ours to wait for.
            self._spend(waiting=broker is not None and broker.health is BrokerHealth.FROZEN)
            return Outcome(False, "REQUEST_TIMED_OUT", f"Broker {resource.name} did not answer.")
        return broker.configs

    # Log dirs and topics

    def _alter_log_dir(self, name: TopicPartition, broker: int, path: str) -> Outcome:
        record = self.world.brokers.get(broker)
        if record is None or not record.up:
            return Outcome(False, "REQUEST_TIMED_OUT", f"Broker {broker} did not answer.")
        paths = [record.dir_path(i) for i in range(len(record.dir_bytes))]
        if path in paths and paths.index(path) in record.failed:
            return Outcome(False, STORAGE_ERROR)
        if path not in paths:
            return Outcome(False, "LOG_DIR_NOT_FOUND", f"Broker {broker} has no log dir {path}.")
        partition = self._find(name)
        copy = None if partition is None else partition.copies.get(broker)
        if copy is None:
            return Outcome(False, "REPLICA_NOT_AVAILABLE", f"Broker {broker} has no replica of {name}.")
        if paths.index(path) == copy.log_dir:
            copy.future_dir, copy.future_bytes = None, 0.0
        else:
            copy.future_dir, copy.future_bytes = paths.index(path), 0.0
        return OK

    def _check_brokers(self, assignment: Mapping[int, tuple[int, ...]]) -> None:
        for number, replicas in assignment.items():
            unknown = [b for b in replicas if b not in self.world.brokers]
            if unknown or not replicas or len(set(replicas)) != len(replicas):
                raise Refused(f"Partition {number} cannot be placed on {list(replicas)}.")


def _apply(values: dict[str, str], change: ConfigChange) -> Outcome | None:
    """One incremental change; a list that loses its last entry stays set and empty, as Kafka leaves it."""
    key, value = change.key, change.value or ""
    if change.operation == "delete":
        values.pop(key, None)
        return None
    present = [entry for entry in values.get(key, "").split(",") if entry]
    if change.operation == "append":
        value = ",".join(present + [e for e in value.split(",") if e and e not in present])
    elif change.operation == "subtract":
        value = ",".join(e for e in present if e not in value.split(","))
    elif change.operation != "set":
        return Outcome(False, "INVALID_REQUEST", f"There is no operation {change.operation}.")
    if key in {LEADER_LIST, FOLLOWER_LIST} and not THROTTLE_LIST.fullmatch(value):
        return Outcome(False, "INVALID_CONFIG", f"Invalid value {value} for configuration {key}.")
    values[key] = value
    return None


def _replica_logs(broker: SimBroker, copy: Copy) -> tuple[ReplicaLog, ...]:
    # A broker measures a current replica against that replica's own high watermark: never behind, whatever the truth.
    logs = [ReplicaLog(broker.dir_path(copy.log_dir), int(copy.size_bytes), offset_lag=0)]
    if copy.log_dir in broker.failed:
        logs = []
    if copy.future_dir is not None and copy.future_dir not in broker.failed:
        behind = int(copy.size_bytes - copy.future_bytes) // MESSAGE_BYTES
        logs.append(ReplicaLog(broker.dir_path(copy.future_dir), int(copy.future_bytes), behind, is_future=True))
    return tuple(logs)


def _row(
    name: TopicPartition, state: PartitionState, move: Change | None, logs: Mapping[int, BrokerLogs]
) -> PartitionRow:
    """One partition as metadata, the controller's list and the log dirs together tell it."""
    sizes, places, futures, future_dirs = [], [], [], []
    for broker in state.replicas:
        answered = logs.get(broker)
        found = answered.replicas.get(name, ()) if answered else ()
        current = next((r for r in found if not r.is_future), None)
        future = next((r for r in found if r.is_future), None)
        paths = [d.path for d in answered.dirs] if answered else []
        sizes.append(current.size_bytes if current else UNKNOWN)
        places.append(paths.index(current.log_dir) if current else UNKNOWN)
        futures.append(future.size_bytes if future else UNKNOWN)
        future_dirs.append(paths.index(future.log_dir) if future else UNKNOWN)
    return PartitionRow(
        name.topic,
        name.partition,
        state.leader,
        state.replicas,
        state.isr,
        adding=move.adding if move else (),
        removing=move.removing if move else (),
        sizes=tuple(sizes),
        log_dirs=tuple(places),
        future_sizes=tuple(futures),
        future_dirs=tuple(future_dirs),
    )
