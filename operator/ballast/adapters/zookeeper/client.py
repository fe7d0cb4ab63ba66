"""What only ZooKeeper knows of a Kafka cluster that still has it; this module never writes.

The znodes and their forms are Kafka's (``kafka.zk.ZkData``).  Brokers' metadata can lag behind them by up to a minute, so
the state znode of a partition is the truth about its leader and ISR there.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from ballast.adapters.auth.pem import as_file
from ballast.adapters.auth.security import Security, ZooKeeperSecurity
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.errors import AuthenticationFailed, AuthorizationFailed, Unavailable, UsageError
from ballast.ports.cluster import PartitionState, Reassignment

T = TypeVar("T")

CONTROLLER: Final = "/controller"
BROKER_IDS: Final = "/brokers/ids"
REASSIGN: Final = "/admin/reassign_partitions"
ELECTION: Final = "/admin/preferred_replica_election"
CLUSTER_ID: Final = "/cluster/id"
BROKER_CONFIGS: Final = "/config/brokers"
DELETIONS: Final = "/admin/delete_topics"
READS_IN_FLIGHT: Final = 500
"""State znodes are asked for in pipelines of this many."""

logging.getLogger("kazoo").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """A partition's state znode."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int
    controller_epoch: int


class ZooKeeper:
    """One session, opened on first use and again after it was lost; safe to use from several threads."""

    def __init__(self, hosts: str, security: Security, *, timeout_s: float = 10.0) -> None:
        self._hosts = hosts
        self._security = security.zookeeper
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._client: KazooClient | None = None
        self._files = ExitStack()

    def close(self) -> None:
        """End the session."""
        with self._lock:
            client, self._client = self._client, None
            self._files.close()
        if client is not None:
            client.stop()
            client.close()

    def client(self) -> KazooClient:
        """The connected client, for the modules that write znodes."""
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def controller(self) -> int:
        """The active controller's broker id, ``UNKNOWN`` while there is none."""
        node = self._json(CONTROLLER)
        return UNKNOWN if node is None else int(node["brokerid"])

    def broker_ids(self) -> frozenset[int]:
        """The brokers that are registered now."""
        return frozenset(int(name) for name in self._children(BROKER_IDS))

    def cluster_id(self) -> str:
        """The cluster's id; raises ``UsageError`` where no cluster has its znodes."""
        node = self._json(CLUSTER_ID)
        if node is None:
            raise UsageError(
                f"ZooKeeper at {self._hosts} has no {CLUSTER_ID}: no Kafka cluster has its znodes there.",
                hint="Give the chroot of the brokers' zookeeper.connect as well: --zookeeper HOST:PORT/CHROOT.",
            )
        return str(node["id"])

    def registrations(self) -> dict[int, Any]:
        """What each live broker has written of itself; raises ``UsageError`` where no cluster has its znodes."""
        self.cluster_id()
        names = sorted(self.broker_ids())
        raws = self._get_many([f"{BROKER_IDS}/{name}" for name in names])
        return {name: json.loads(raw) for name, raw in zip(names, raws, strict=True) if raw is not None}

    def moving(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The targets that stand in the reassignment znode; empty when there is none."""
        node = self._json(REASSIGN)
        if node is None:
            return {}
        return {TopicPartition(e["topic"], e["partition"]): tuple(e["replicas"]) for e in node["partitions"]}

    def electing(self) -> frozenset[TopicPartition]:
        """The partitions that stand in the election znode."""
        node = self._json(ELECTION)
        return (
            frozenset()
            if node is None
            else frozenset(TopicPartition(e["topic"], e["partition"]) for e in node["partitions"])
        )

    def deleting(self) -> frozenset[str]:
        """The topics queued for deletion."""
        return frozenset(self._children(DELETIONS))

    def reassignments(self, states: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, Reassignment]:
        """The pending moves, in the words of KIP-455.

        The znode holds targets only.  Shortly after it appears the controller makes the union of old and new the
        partition's list; here it is the union from the start.  What is in the union and not in the target is being removed,
        and what is in the target and not yet in the ISR is being added.
        """
        moves: dict[TopicPartition, Reassignment] = {}
        for name, target in self.moving().items():
            state = states.get(name)
            if state is None:
                continue  # The topic is gone; the controller drops the entry by itself.
            moves[name] = Reassignment(
                replicas=(*target, *(b for b in state.replicas if b not in target)),
                adding=tuple(b for b in target if b not in state.isr),
                removing=tuple(b for b in state.replicas if b not in target),
            )
        return moves

    def partition_states(self, names: Collection[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        """Leader and ISR as the controller wrote them; partitions without a state znode are absent."""
        ordered = list(names)
        found: dict[TopicPartition, LeaderAndIsr] = {}
        for at in range(0, len(ordered), READS_IN_FLIGHT):
            chunk = ordered[at : at + READS_IN_FLIGHT]
            for name, raw in zip(chunk, self._get_many([_state_path(n) for n in chunk]), strict=True):
                if raw is not None:
                    node = json.loads(raw)
                    found[name] = LeaderAndIsr(
                        int(node["leader"]),
                        tuple(node["isr"]),
                        int(node["leader_epoch"]),
                        int(node["controller_epoch"]),
                    )
        return found

    def assignments(self, topics: Collection[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """Replica lists as the topic znodes hold them; deleted topics are absent."""
        ordered = list(topics)
        out: dict[TopicPartition, tuple[int, ...]] = {}
        for at in range(0, len(ordered), READS_IN_FLIGHT):
            chunk = ordered[at : at + READS_IN_FLIGHT]
            for topic, raw in zip(chunk, self._get_many([f"/brokers/topics/{t}" for t in chunk]), strict=True):
                if raw is not None:
                    partitions = json.loads(raw)["partitions"]
                    out |= {TopicPartition(topic, int(p)): tuple(replicas) for p, replicas in partitions.items()}
        return out

    def broker_entries(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """The dynamic config entries of brokers by id; an empty name is the cluster-wide default."""
        ordered = list(names)
        raws = self._get_many([f"{BROKER_CONFIGS}/{name or '<default>'}" for name in ordered])
        return {name: json.loads(raw)["config"] for name, raw in zip(ordered, raws, strict=True) if raw is not None}

    def child_changes(self, path: str, watch: Callable[[object], None]) -> int | None:
        """How many children of a znode have come or gone so far, and a watch on the next; None (unwatched) without the znode.

        The watch is called once, in another thread, and also when its session is interrupted or ends.
        """

        def read(client: KazooClient) -> int | None:
            asked = client.get_children_async(path, watch=watch, include_data=True)
            try:
                return int(asked.get(timeout=self._timeout_s)[1].cversion)
            except NoNodeError:
                return None

        return self._call(read)

    def _json(self, path: str) -> Any:
        (raw,) = self._get_many([path])
        return None if raw is None else json.loads(raw)

    def _get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        """Values in the order of the paths, None where there is no node."""

        def read(client: KazooClient) -> list[bytes | None]:
            pending = [client.get_async(p) for p in paths]
            return [_value(p, self._timeout_s) for p in pending]

        return self._call(read)

    def _children(self, path: str) -> list[str]:
        def read(client: KazooClient) -> list[str]:
            try:
                return list(client.get_children(path))
            except NoNodeError:
                return []

        return self._call(read)

    def _call(self, read: Callable[[KazooClient], T]) -> T:
        client = self.client()
        with _translate_errors(self._hosts):
            return read(client)

    def _connect(self) -> KazooClient:
        with _translate_errors(self._hosts):
            client = KazooClient(hosts=self._hosts, timeout=self._timeout_s, **self._options())
            try:
                client.start(timeout=self._timeout_s)
            except BaseException:
                client.stop()
                client.close()
                raise
        return client

    def _options(self) -> dict[str, Any]:
        security = self._security or ZooKeeperSecurity()
        options: dict[str, Any] = {}
        if security.username is not None:
            options["auth_data"] = [("digest", f"{security.username}:{security.password or ''}")]
        if security.tls:
            options |= {"use_ssl": True, "verify_certs": True, "check_hostname": security.verify_hostname}
            if security.trusted is not None:
                options["ca"] = self._files.enter_context(as_file(security.trusted.read()))
            if security.certificate is not None:
                options["certfile"] = self._files.enter_context(as_file(security.certificate.read()))
                options["keyfile_password"] = security.key_password
        return options


def _state_path(name: TopicPartition) -> str:
    return f"/brokers/topics/{name.topic}/partitions/{name.partition}/state"


def _value(pending: Any, timeout_s: float) -> bytes | None:
    try:
        raw: bytes = pending.get(timeout=timeout_s)[0]
    except NoNodeError:
        return None
    return raw


@contextmanager
def _translate_errors(hosts: str) -> Iterator[None]:
    """Turn kazoo's exceptions into Ballast's."""
    try:
        yield
    except NoAuthError:
        raise AuthorizationFailed(
            "Not authorized to read one of the cluster's znodes.",
            hint="Set zookeeper.digest.username and zookeeper.digest.password in the client properties.",
        ) from None
    except AuthFailedError:
        raise AuthenticationFailed(
            "ZooKeeper authentication failed.", hint="Check zookeeper.* in the client properties."
        ) from None
    except (KazooTimeoutError, ConnectionClosedError, KazooException) as failure:
        raise Unavailable(
            f"ZooKeeper at {hosts} did not answer in time ({type(failure).__name__}).",
            hint="Check --zookeeper (HOST:PORT,…/CHROOT) and whether ZooKeeper runs.",
        ) from None
