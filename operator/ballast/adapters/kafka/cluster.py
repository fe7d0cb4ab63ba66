"""A real Kafka cluster behind ``ports.cluster.Cluster``.

Reads are bounded and honest: a broker that does not answer leaves a gap, and a replica list that was read while a move was
in progress is coloured as the union that it is (``core.cluster.assemble.reconcile``).  Writes are sent promptly or not at all, since
callers check their right to write just before (``adapters.kafka.reassignments.WRITE_ONCE``).

What a cluster can do is told by the requests its brokers answer: ``ClusterState.api`` holds ``reassign`` (KIP-455, Kafka
2.4), ``reassign-v1`` (the replication-factor flag), ``incremental-configs``, ``elections``, ``transactions``, and ``kraft``
or ``zookeeper``.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from ballast.adapters.kafka import collector
from ballast.adapters.kafka import configs as config_requests
from ballast.adapters.kafka import elections as election_requests
from ballast.adapters.kafka import log_dirs as log_dir_requests
from ballast.adapters.kafka import log_ends as log_end_requests
from ballast.adapters.kafka import reassignments as reassignment_requests
from ballast.adapters.kafka.confluent import Admin, no_cluster_yet
from ballast.adapters.kafka.kafka_python import Wire, denial_of, raise_for
from ballast.adapters.kafka.kafka_python_parts import DescribeClusterRequest, DescribeQuorumRequest, MetadataRequest
from ballast.adapters.kafka.responses import (
    Metadata,
    MetadataFacts,
    changes,
    join_facts,
    own_topic_entries,
    read_broker_logs,
    read_epochs,
    read_log_columns,
    read_metadata,
    read_metadata_facts,
    read_partition_states,
    set_entries,
)
from ballast.adapters.kafka.retry import one_deadline
from ballast.adapters.kafka.rights import QUORUM, TOPICS
from ballast.core.cluster import (
    CONFIGS,
    LOG_DIRS,
    UNKNOWN,
    Broker,
    ClusterState,
    ConfigValue,
    Gap,
    Topic,
    TopicPartition,
)
from ballast.core.cluster.assemble import Change, Facts, LogColumns, assemble, reconcile
from ballast.core.cluster.log_ends import LocalStarts, LogEnds
from ballast.errors import AuthenticationFailed, AuthorizationFailed, BallastError, Refused, Unavailable
from ballast.ports.cluster import (
    BrokerLogs,
    ConfigChange,
    ConfigResource,
    Epochs,
    Offsets,
    Outcome,
    PartitionState,
    Reassignment,
)
from ballast.ports.time import Clock

T = TypeVar("T")
log: Final = logging.getLogger(__name__)

TORN_READS: Final = 6
"""How often a metadata read that fits no listing of moves is repeated before it is used with a gap."""
TORN_PAUSE_S: Final = 0.1
"""Pause before the first repetition; it doubles."""
AFTERGLOW_S: Final = 20.0
"""How long a move that is no longer listed may still explain a union in the metadata, which can lag behind."""
NOT_SERVED_S: Final = 3.0
"""An impatient reading ends once none of the servers that were named has let us in for so long."""

_API_KEYS: Final = {"incremental-configs": 44, "elections": 43, "transactions": 22}
_QUORUM: Final = 55
_DESCRIBE_CLUSTER: Final = 60
_FENCED_SINCE: Final = 2
_TOPIC_FORBIDDEN: Final = 29
OWN_PREFIX: Final = "__ballast_"
"""Ballast's own topics, to which it has rights of its own."""


class ZooKeeperView(Protocol):
    """What only ZooKeeper knows of a cluster that has it."""

    def reassignments(self, states: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, Reassignment]:
        """The moves that stand in ``/admin/reassign_partitions``."""
        ...

    def moving(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The targets that stand in ``/admin/reassign_partitions``."""
        ...

    def deleting(self) -> frozenset[str]:
        """The topics queued for deletion."""
        ...

    def close(self) -> None:
        """Close the session."""
        ...


class KafkaCluster:
    """One cluster, read and written; safe to use from several threads."""

    def __init__(self, wire: Wire, admin: Admin, *, zookeeper: ZooKeeperView | None = None) -> None:
        self._wire = wire
        self._admin = admin
        self._zookeeper = zookeeper
        self._ended: dict[TopicPartition, tuple[Change, float]] = {}
        self._ended_lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=6, thread_name_prefix="ballast-read")

    def close(self) -> None:
        """Close every connection and thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._wire.close()
        self._admin.close()
        if self._zookeeper is not None:
            self._zookeeper.close()

    # --- reading

    def snapshot(self, *, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        """Read the whole cluster; brokers that do not answer leave gaps, and all questions share one bound of time."""
        not_served_s = math.inf if patient else NOT_SERVED_S
        with one_deadline(self._wire.timeout_s, not_served_s=not_served_s), collector.pause_collection():
            return self._snapshot(log_dirs=log_dirs, configs=configs)

    def _snapshot(self, *, log_dirs: bool, configs: bool) -> ClusterState:
        taken_at_ms = time.time_ns() // 1_000_000
        api = self.api()
        metadata, moves, gaps = self._metadata_and_moves()
        brokers, controller = self._read_brokers(metadata, api)
        if controller == UNKNOWN:
            gaps = (*gaps, Gap("cluster", "the active controller", "there is none, or no broker reported it"))
        alive = [b.id for b in brokers if b.alive]
        topics = [t.name for t in metadata.columns.topics]
        # Four questions side by side, so that a frozen broker costs its bounded wait once.
        logs = self._ask_in_thread(log_dir_requests.describe, self._wire, alive if log_dirs else [], read_log_columns)
        broker_configs = self._ask_in_thread(self._broker_configs, alive if configs else [])
        topic_configs = self._ask_in_thread(self._topic_configs, topics if configs else [])
        deleting = self._ask_in_thread(self._deleting)
        columns = replace(metadata.columns, topics=_with_deleting(metadata.columns.topics, deleting.result()))
        own, default, config_gaps = broker_configs.result()
        if configs:
            entries, topic_gaps = topic_configs.result()
            columns = replace(columns, topics=[_with_configs(t, entries.get(t.name)) for t in columns.topics])
            config_gaps += topic_gaps
        down = sorted({*np.unique(columns.replica).tolist(), *(b.id for b in brokers)} - set(alive))
        answers, silent, log_gaps = self._logs(logs, down if log_dirs else ())
        return assemble(
            Facts(
                cluster_id=metadata.cluster_id,
                taken_at_ms=taken_at_ms,
                brokers=[replace(b, reachable=b.id not in silent) for b in brokers],
                broker_configs=own,
                cluster_configs=default,
                gaps=(*metadata.gaps, *gaps, *log_gaps, *config_gaps),
                api=api,
                kafka_version=self._wire.broker_version(),
                controller_id=controller,
            ),
            columns,
            moves=moves,
            logs=answers,
        )

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Every move in progress; on brokers before 2.4 those that stand in ZooKeeper's admin znode."""
        if reassignment_requests.LIST in self._wire.versions():
            return reassignment_requests.list_reassignments(self._wire)
        if self._zookeeper is None:
            raise Refused(
                "The cluster's Kafka is older than 2.4 and shows moves in progress through ZooKeeper only.",
                hint="Give --zookeeper HOST:PORT, or cluster.zookeeper in the settings.",
            )
        return self._zookeeper.reassignments(self.partitions(self._zookeeper.moving().keys()))

    def await_change(self, clock: Clock, seconds: float) -> bool:
        """Wait this long: the protocol has nothing that tells of changes."""
        clock.sleep(seconds)
        return False

    def partitions(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        """The present state of some partitions; those that do not exist are absent."""
        return read_partition_states(self._some_metadata(names), names) if names else {}

    def epochs(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Epochs]:
        """Leader epochs of some partitions."""
        return read_epochs(self._some_metadata(names), names) if names else {}

    def _some_metadata(self, names: Collection[TopicPartition]) -> Any:
        """Metadata of their topics, none of which is created by asking."""
        topics = sorted({n.topic for n in names})

        def make() -> Any:
            wanted = [MetadataRequest.MetadataRequestTopic(name=t) for t in topics]
            return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

        return self._wire.ask("partitions", make)

    def log_dirs(self, brokers: Collection[int]) -> Mapping[int, BrokerLogs]:
        """Log dirs of some brokers, asked in parallel; those that do not answer are absent."""
        answers, failures = log_dir_requests.describe(self._wire, brokers, read_broker_logs)
        for broker, failure in failures.items():
            log.warning("broker %d did not return log dirs: %s", broker, failure.message)
        return answers

    def log_ends(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LogEnds:
        """The log end of replicas, each told by its own broker; what is not told is absent."""
        answers, failures = log_end_requests.describe(self._wire, replicas)
        for broker, failure in failures.items():
            log.warning("broker %d did not return log end offsets: %s", broker, failure.message)
        return answers

    def local_starts(self, replicas: Mapping[int, Collection[TopicPartition]]) -> LocalStarts:
        """The first offset that each broker has on its own disk; what is not told is absent."""
        answers, failures = log_end_requests.describe(self._wire, replicas, log_end_requests.EARLIEST_LOCAL)
        for broker, failure in failures.items():
            log.warning("broker %d did not return local log start offsets: %s", broker, failure.message)
        return answers

    def offsets(self, names: Collection[TopicPartition]) -> Mapping[TopicPartition, Offsets]:
        """Earliest offset and high watermark."""
        return self._admin.offsets(names)

    def configs(self, resources: Collection[ConfigResource]) -> Mapping[ConfigResource, Mapping[str, ConfigValue]]:
        """The entries that are set on some resources; those that do not exist or do not answer are absent."""
        default = [r for r in resources if r.kind == "broker" and not r.name]
        entries, failures = self._admin.entries([r for r in resources if r not in default])
        if default:
            told, refused = config_requests.describe(self._wire, default)
            entries |= told
            failures |= refused
        for resource, failure in failures.items():
            log.warning("no configs of %s %s: %s", resource.kind, resource.name, failure.message)
        keep = {"topic": own_topic_entries, "broker": set_entries}
        return {r: keep[r.kind](found) for r, found in entries.items()}

    # --- writing

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> Mapping[TopicPartition, Outcome]:
        """Start moves, or cancel where the target is None."""
        return reassignment_requests.alter_reassignments(
            self._wire, targets, allow_replication_factor_change=allow_replication_factor_change
        )

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool = False
    ) -> Mapping[TopicPartition, Outcome]:
        """Hold elections; ``ELECTION_NOT_NEEDED`` counts as ok."""
        return election_requests.elect_leaders(self._admin, self._wire.versions(), names, unclean=unclean)

    def alter_configs(self, changes: Collection[ConfigChange]) -> Mapping[ConfigResource, Outcome]:
        """Apply incremental changes, all of one resource together."""
        return config_requests.alter(self._wire, changes)

    def alter_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Outcome]:
        """Move replicas to another log dir of the same broker."""
        return log_dir_requests.alter(self._wire, targets)

    def create_topic(
        self, topic: str, assignment: Mapping[int, tuple[int, ...]], configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with this explicit assignment."""
        self._admin.create_topic(topic, assignment, configs)

    def create_partitions(self, topic: str, total: int, assignment: Mapping[int, tuple[int, ...]]) -> None:
        """Grow a topic to ``total`` partitions, the new ones placed as given."""
        self._admin.create_partitions(topic, total, assignment)

    # --- the parts of a snapshot

    def _ask_in_thread(self, ask: Callable[..., T], *args: Any) -> Future[T]:
        """Ask in another thread, under the deadline of this one."""
        return self._pool.submit(copy_context().run, ask, *args)

    def api(self) -> frozenset[str]:
        """What the cluster can do, as ``ClusterState.api``; costs nothing once connected."""
        versions = self._wire.versions()
        able = {name for name, key in _API_KEYS.items() if key in versions}
        if reassignment_requests.ALTER in versions:
            able.add("reassign")
            if versions[reassignment_requests.ALTER][1] >= 1:
                able.add("reassign-v1")
        able.add("kraft" if _QUORUM in versions else "zookeeper")
        return frozenset(able)

    def _metadata_and_moves(self) -> tuple[Metadata, dict[TopicPartition, Change], tuple[Gap, ...]]:
        """Metadata between two listings of moves, read again while they contradict each other."""
        listed = self._list_moves()
        for attempt in range(TORN_READS):
            metadata = self._metadata()
            before, listed = listed, self._list_moves()
            if before is None or listed is None:
                gap = Gap(
                    "cluster", "reassignments in progress", "Kafka before 2.4 keeps them in ZooKeeper; give --zookeeper"
                )
                return metadata, {}, (gap,)
            ended = self._recall_ended(before, listed)
            lists = _replica_lists(metadata, ended.keys() | before.keys() | listed.keys())
            moves, torn = reconcile(before, listed, lists, ended=ended)
            if not torn:
                return metadata, moves, ()
            time.sleep(TORN_PAUSE_S * 2**attempt)
        gaps = tuple(
            Gap(f"partition {n}", "a settled replica list", "it changes faster than it can be read") for n in torn
        )
        return metadata, moves, gaps

    def _recall_ended(
        self, before: Mapping[TopicPartition, Change], listed: Mapping[TopicPartition, Change]
    ) -> dict[TopicPartition, Change]:
        """Moves that were listed a while ago and are not now; readings of several threads remember them together."""
        now = time.monotonic()
        with self._ended_lock:
            self._ended = {n: e for n, e in self._ended.items() if e[1] > now and n not in listed}
            ended = {n: change for n, (change, _) in self._ended.items()}
            self._ended |= {n: (change, now + AFTERGLOW_S) for n, change in ({**before, **listed}).items()}
        return ended

    def _metadata(self) -> Metadata:
        # The picture is in columns before its facts are asked for: both answers are large, and need not be held together.
        picture = read_metadata(self._admin.metadata.read())
        facts = self._facts()
        metadata = join_facts(picture, facts)
        if not metadata.brokers or not facts.racks:
            self._wire.reconnect()
            self._admin.metadata.forget()
            raise no_cluster_yet()
        if all(t.name.startswith(OWN_PREFIX) for t in metadata.columns.topics):
            metadata = replace(metadata, gaps=(*metadata.gaps, *self._hidden_topics()))
        return metadata

    def _facts(self) -> MetadataFacts:
        return read_metadata_facts(self._wire.ask("metadata", lambda: MetadataRequest(topics=None)))

    def _hidden_topics(self) -> tuple[Gap, ...]:
        """Is the cluster empty, or may we see none of its topics?

        What we may not describe is left out in silence; asked for by name it is refused, whether it exists or not.
        """
        name = f"ballast-{uuid.uuid4()}"

        def make() -> Any:
            wanted = [MetadataRequest.MetadataRequestTopic(name=name)]
            return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

        codes = {t.error_code for t in self._wire.ask(TOPICS, make).topics}
        return (Gap("cluster", "topics", denial_of(TOPICS).message),) if _TOPIC_FORBIDDEN in codes else ()

    def _list_moves(self) -> dict[TopicPartition, Change] | None:
        """The moves in progress; None where the cluster cannot say."""
        if reassignment_requests.LIST not in self._wire.versions() and self._zookeeper is None:
            return None
        return changes(dict(self.reassignments()))

    def _read_brokers(self, metadata: Metadata, api: frozenset[str]) -> tuple[tuple[Broker, ...], int]:
        """The brokers, fenced ones included where the cluster tells of them, and the active controller."""
        brokers = {b.id: b for b in metadata.brokers}
        if self._wire.versions().get(_DESCRIBE_CLUSTER, (0, -1))[1] >= _FENCED_SINCE:
            response = self._wire.ask("the cluster", lambda: DescribeClusterRequest(include_fenced_brokers=True))
            for b in response.brokers:
                if b.is_fenced and b.broker_id not in brokers:
                    # Its rack still matters: replicas that it holds count for it.
                    brokers[b.broker_id] = Broker(b.broker_id, rack=b.rack, alive=False)
        controller = metadata.controller_id
        if "kraft" in api:
            # Brokers of KRaft clusters name one of themselves; the quorum knows its real leader.
            controller = self._quorum_leader()
        ordered = (replace(brokers[i], controller=i == controller) for i in sorted(brokers))
        return tuple(ordered), controller

    def _quorum_leader(self) -> int:
        topic_type = DescribeQuorumRequest.TopicData
        partitions = [topic_type.PartitionData(partition_index=0)]
        try:
            response = self._wire.ask(
                QUORUM,
                lambda: DescribeQuorumRequest(
                    topics=[topic_type(topic_name="__cluster_metadata", partitions=partitions)]
                ),
            )
            raise_for(response.error_code, QUORUM)
            partition = response.topics[0].partitions[0]
            raise_for(partition.error_code, QUORUM)
        except AuthenticationFailed:
            raise
        except BallastError as failure:
            log.warning("the active controller is not known: %s", failure.message)
            return UNKNOWN
        return int(partition.leader_id)

    def _broker_configs(
        self, brokers: Collection[int]
    ) -> tuple[dict[int, dict[str, ConfigValue]], dict[str, ConfigValue], tuple[Gap, ...]]:
        if not brokers:
            return {}, {}, ()
        default = ConfigResource("broker", "")
        resources = [default, *(ConfigResource("broker", str(b)) for b in brokers)]
        entries, failures = config_requests.describe(self._wire, resources, config_requests.BROKER_KEYS)
        cluster_wide = set_entries(entries.pop(default, {}))
        own = {int(r.name): set_entries(found) for r, found in entries.items()}
        return own, cluster_wide, tuple(_config_gaps(failures))

    def _topic_configs(self, topics: Collection[str]) -> tuple[dict[str, dict[str, ConfigValue]], tuple[Gap, ...]]:
        resources = [ConfigResource("topic", t) for t in topics]
        entries, failures = config_requests.describe(self._wire, resources, config_requests.TOPIC_KEYS)
        return {r.name: found for r, found in entries.items()}, tuple(_config_gaps(failures))

    def _deleting(self) -> frozenset[str]:
        return frozenset() if self._zookeeper is None else self._zookeeper.deleting()

    @staticmethod
    def _logs(
        answer: Future[tuple[dict[int, LogColumns], dict[int, BallastError]]], down: Collection[int]
    ) -> tuple[dict[int, LogColumns], frozenset[int], tuple[Gap, ...]]:
        answers, failures = answer.result()
        # A broker that refuses us is there.
        silent = frozenset(
            b
            for b, f in failures.items()
            if isinstance(f, Unavailable) and not isinstance(f, (AuthenticationFailed, AuthorizationFailed))
        )
        gaps = [Gap.of_broker(b, LOG_DIRS, f.message) for b, f in failures.items()]
        gaps += [Gap.of_broker(b, LOG_DIRS, "the broker is down") for b in down]
        return answers, silent, tuple(gaps)


def _config_gaps(failures: Mapping[ConfigResource, BallastError]) -> list[Gap]:
    return [
        Gap.of_broker(int(r.name), CONFIGS, f.message)
        if r.kind == "broker" and r.name
        else Gap(f"{r.kind} {r.name}".strip(), CONFIGS, f.message)
        for r, f in failures.items()
    ]


def _with_deleting(topics: Collection[Topic], doomed: frozenset[str]) -> list[Topic]:
    return [replace(t, deleting=True) if t.name in doomed else t for t in topics]


def _with_configs(topic: Topic, entries: Mapping[str, ConfigValue] | None) -> Topic:
    """The topic with its own entries, and the min ISR in force wherever that was set."""
    if entries is None:
        return topic
    in_force = entries.get("min.insync.replicas")
    min_isr = int(in_force.value) if in_force is not None and in_force.value else UNKNOWN
    return replace(topic, configs=own_topic_entries(entries), min_isr=min_isr)


def _replica_lists(metadata: Metadata, names: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replica lists of a few partitions out of the columns."""
    if not names:
        return {}
    columns = metadata.columns
    wanted_topics = {n.topic for n in names}
    rank = {i: t.name for i, t in enumerate(columns.topics) if t.name in wanted_topics}
    ends = columns.replicas.cumsum()
    out: dict[TopicPartition, tuple[int, ...]] = {}
    for row, topic in enumerate(columns.topic.tolist()):
        if topic in rank:
            name = TopicPartition(rank[topic], int(columns.number[row]))
            if name in names:
                end = int(ends[row])
                out[name] = tuple(columns.replica[end - int(columns.replicas[row]) : end].tolist())
    return out
