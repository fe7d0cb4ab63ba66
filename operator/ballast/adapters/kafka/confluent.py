"""confluent-kafka's admin client, the main one: metadata, configs, elections, offsets, new topics and partitions.

Its ``describe_cluster`` is not called: where a broker that has just started answers without brokers and topics, librdkafka
(2.16) fails an assertion, which ends the process.  What librdkafka has no call for goes through ``adapters.kafka.kafka_python``; docs/clients.md has the table of calls.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import ElectionType, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewPartitions, NewTopic, OffsetSpec, ResourceType
from confluent_kafka.admin import ConfigResource as AdminResource

from ballast.adapters.auth.security import Security
from ballast.adapters.kafka import librdkafka
from ballast.adapters.kafka.diagnosis import first_to_answer, parse_servers
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.adapters.kafka.rights import ELECTIONS, configs_of, explain_denial
from ballast.core.cluster import UNKNOWN, ConfigValue, TopicPartition
from ballast.errors import AuthenticationFailed, AuthorizationFailed, BallastError, Refused, Unavailable
from ballast.ports.cluster import ConfigResource, Offsets

_SILENT: Final = (
    KafkaError._TIMED_OUT,  # noqa: SLF001 — confluent-kafka's names of its local errors begin like this
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
)
_NOT_LET_IN: Final = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
)
_FORBIDDEN: Final = (KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


SAME_BROKER_TRIES: Final = 4
"""How often metadata is asked for again when another broker answered than the last time."""
CATCH_UP_S: Final = 1.0
"""A broker fetches metadata at least twice in this time: after it, it knows what another one told us before."""

KEPT_PARTITIONS: Final = 50_000
"""A client that has read more than these is closed: librdkafka keeps its own copy of metadata, 0.4 KiB for each partition."""

CONFIG_SOURCES: Final[Mapping[int, str]] = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
"""``ConfigSource`` by its number in the protocol."""

_KINDS: Final = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}

Entries = dict[ConfigResource, dict[str, ConfigValue]]


class _ControllerMoved(Unavailable):
    """The broker that was asked is no longer the controller."""


class _Missing(Refused):
    """There is no such topic."""


def new_client(servers: str, security: Security, *, timeout_s: float) -> AdminClient:
    """An admin client, silent; every one that reads or changes a cluster is made here."""
    with translate_errors("a connection", security):
        return AdminClient(
            librdkafka.without_logging(security.for_confluent())
            | {
                "bootstrap.servers": servers,
                "client.id": "ballast",
                "socket.timeout.ms": librdkafka.socket_timeout_ms(timeout_s),
                "topic.metadata.refresh.interval.ms": 30_000,
            }
        )


class Admin:
    """One admin client for questions, made on first use; safe to use from several threads.

    What changes the cluster goes through a client of its own, which knows only the brokers of the cluster that has been read:
    the servers that a person named might belong to two.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        security: Security,
        *,
        timeout_s: float = 30.0,
        broker_wait_s: float = 8.0,
        retry: RetryPolicy | None = None,
        identity: ClusterIdentity | None = None,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._security = security
        self._timeout_s = timeout_s
        self.broker_wait_s = min(broker_wait_s, timeout_s)
        """Longest wait for one broker's answer to one request."""
        self._patience = retry or RetryPolicy(total_s=timeout_s)
        # A request that may have been begun is not sent again from here; one that met no controller was not.
        self._retry = replace(self._patience, only=_ControllerMoved)
        self._lock = threading.Lock()
        self._client: AdminClient | None = None
        self.metadata = MetadataReader(
            parse_servers(bootstrap_servers),
            security,
            wait_s=self.broker_wait_s,
            retry=self._patience,
            identity=identity,
        )
        """Reads ``list_topics``, on a client of its own."""

    def close(self) -> None:
        """Let the clients go; librdkafka ends its threads with them."""
        self.metadata.forget()
        self._forget()

    def _forget(self) -> None:
        with self._lock:
            self._client = None

    def entries(self, resources: Collection[ConfigResource]) -> tuple[Entries, dict[ConfigResource, BallastError]]:
        """Every config entry of each resource, defaults included, and why a resource has none; each broker is asked itself.

        A resource that does not exist is in neither.  The cluster-wide default of brokers cannot be asked for: librdkafka
        takes no empty name.
        """
        topics = [r for r in resources if r.kind == "topic"]
        # At most one broker in a call; the calls are out side by side.
        waiting = [self._describe([r], self._admin()) for r in resources if r.kind == "broker"]
        entries: Entries = {}
        failures: dict[ConfigResource, BallastError] = {}
        if topics:
            # Any broker could tell, but the client asks the controller.
            self._patience.call(
                "configs",
                lambda: self._ask_controller(topics, entries, failures),
                recover=self._forget,
            )
        for futures in waiting:
            try:
                self._collect(futures, entries, failures)
            except Unavailable as silence:
                failures |= dict.fromkeys(futures, silence)
        return entries, failures

    def _ask_controller(
        self, topics: Sequence[ConfigResource], entries: Entries, failures: dict[ConfigResource, BallastError]
    ) -> None:
        client = self._admin()
        self._collect(self._describe(topics, client), entries, failures, controller=client)

    def _describe(
        self, resources: Sequence[ConfigResource], client: AdminClient
    ) -> dict[ConfigResource, concurrent.futures.Future[Any]]:
        asked = {AdminResource(_KINDS[r.kind], r.name): r for r in resources}
        futures = client.describe_configs(list(asked), request_timeout=self.broker_wait_s)
        return {asked[r]: future for r, future in futures.items()}

    def _collect(
        self,
        futures: Mapping[ConfigResource, concurrent.futures.Future[Any]],
        entries: Entries,
        failures: dict[ConfigResource, BallastError],
        *,
        controller: AdminClient | None = None,
    ) -> None:
        """Take what was answered; raises ``Unavailable`` where no broker answers."""
        for resource, future in futures.items():
            try:
                answer = self._wait(configs_of(resource), future, controller=controller)
            except _Missing:
                continue
            except Unavailable:
                raise
            except BallastError as failure:
                failures[resource] = failure
            else:
                entries[resource] = {e.name: _config_value(e) for e in answer.values()}

    def elect_leaders(
        self, names: Collection[TopicPartition], *, unclean: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Hold elections; what the controller said about each partition.

        The call fails with any time limit (2.16.1), and an election must not be sent late: a client of its own bounds it
        by its socket timeout.
        """
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        wanted = [KafkaPartition(n.topic, n.partition) for n in names]

        def once() -> dict[Any, Any]:
            client = self._writer(self.broker_wait_s)
            with translate_errors(ELECTIONS, self._security):
                asked = client.elect_leaders(kind, wanted)
                answer: dict[Any, Any] = librdkafka.answer_of_controller(client, asked, self._timeout_s)
            return answer

        answered = self._retry.call(ELECTIONS, once)
        return {TopicPartition(p.topic, p.partition): error for p, error in answered.items()}

    def offsets(self, names: Collection[TopicPartition]) -> dict[TopicPartition, Offsets]:
        """Earliest offset and high watermark; ``UNKNOWN`` for a partition whose leader did not say."""
        earliest = self._offsets(names, OffsetSpec.earliest())
        latest = self._offsets(names, OffsetSpec.latest())
        return {n: Offsets(earliest.get(n, UNKNOWN), latest.get(n, UNKNOWN)) for n in names}

    def _offsets(self, names: Collection[TopicPartition], spec: Any) -> dict[TopicPartition, int]:
        if not names:
            return {}
        futures = self._admin().list_offsets(
            {KafkaPartition(n.topic, n.partition): spec for n in names}, request_timeout=self._timeout_s
        )
        answers: dict[TopicPartition, int] = {}
        for partition, future in futures.items():
            try:
                answer = self._wait("offsets", future)
            except (AuthenticationFailed, AuthorizationFailed):
                raise
            except BallastError:
                continue  # This partition has no leader that answers; the others may.
            answers[TopicPartition(partition.topic, partition.partition)] = int(answer.offset)
        return answers

    def create_topic(
        self, topic: str, assignment: Mapping[int, tuple[int, ...]], configs: Mapping[str, str] | None
    ) -> None:
        """Create a topic with an explicit assignment."""
        new = NewTopic(
            topic,
            num_partitions=len(assignment),
            replica_assignment=[list(assignment[i]) for i in range(len(assignment))],
            config=dict(configs or {}),
        )
        self._at_controller(
            "a new topic", f"the new topic {topic}", lambda admin, limits: admin.create_topics([new], **limits)[topic]
        )

    def create_partitions(self, topic: str, total: int, assignment: Mapping[int, tuple[int, ...]]) -> None:
        """Grow a topic; the new partitions are the highest numbers of ``assignment``."""
        new = NewPartitions(topic, total, replica_assignment=[list(assignment[i]) for i in sorted(assignment)])
        self._at_controller(
            "new partitions",
            f"new partitions of {topic}",
            lambda admin, limits: admin.create_partitions([new], **limits)[topic],
        )

    def _at_controller(
        self, kind: str, what: str, ask: Callable[[AdminClient, dict[str, float]], concurrent.futures.Future[Any]]
    ) -> None:
        """Ask again, with a client that looks for the controller anew, while it is another; ``kind`` names no topic, for metrics."""
        limits = {"operation_timeout": self._timeout_s, "request_timeout": self._timeout_s}

        def once() -> None:
            client = self._writer(self._timeout_s)
            with translate_errors(what, self._security):
                librdkafka.answer_of_controller(client, ask(client, limits), self._timeout_s)

        self._retry.call(kind, once)

    def _writer(self, timeout_s: float) -> AdminClient:
        """A new client for requests to the controller; it reaches only brokers of the cluster that has been read."""
        return new_client(self.metadata.addresses(), self._security, timeout_s=timeout_s)

    def _admin(self) -> AdminClient:
        with self._lock:
            if self._client is None:
                self._client = new_client(self._bootstrap_servers, self._security, timeout_s=self._timeout_s)
            self._client.poll(0)  # Error events that are not taken would pile up in it.
            return self._client

    def _wait(self, what: str, future: concurrent.futures.Future[Any], *, controller: AdminClient | None = None) -> Any:
        with translate_errors(what, self._security):
            if controller is not None:
                return librdkafka.answer_of_controller(controller, future, self.broker_wait_s)
            return librdkafka.answer_of(future, self._timeout_s + librdkafka.SPARE_S)


def _config_value(entry: Any) -> ConfigValue:
    return ConfigValue(
        None if entry.is_sensitive else entry.value, CONFIG_SOURCES.get(int(entry.source), "UNKNOWN_CONFIG")
    )


@contextmanager
def translate_errors(what: str, security: Security) -> Iterator[None]:
    """Turn confluent-kafka's exceptions into Ballast's."""
    try:
        yield
    except KafkaException as failure:
        raise _translate(what, failure.args[0], security) from None


def no_cluster_yet() -> Unavailable:
    """A broker that has just started answers before the controller has told it of the cluster."""
    return Unavailable("The broker that was asked does not know its cluster yet.", hint="Try again in a moment.")


def _translate(what: str, error: KafkaError, security: Security) -> BallastError:
    if error.code() in _SILENT:
        return Unavailable(
            f"Request for {what} failed: the cluster did not answer in time.",
            hint="See whether brokers are down or overloaded, or give a longer --timeout.",
        )
    if error.code() == KafkaError._PARTIAL:  # noqa: SLF001 — metadata without brokers and topics
        return no_cluster_yet()
    if error.code() in _NOT_LET_IN:
        return AuthenticationFailed(
            f"Authentication failed: {security.redact(error.str())}.",
            hint="Check the client properties (--command-config).",
        )
    if error.code() in _FORBIDDEN:
        sentence, hint = explain_denial(what)
        return AuthorizationFailed(sentence, hint=hint)
    if error.code() == KafkaError.NOT_CONTROLLER:
        return _ControllerMoved(f"Request for {what} failed: the cluster is electing a controller.")
    sentence = f"Request for {what} failed: the cluster answered {error.name()}: {security.redact(error.str())}"
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        kind: type[BallastError] = _Missing
    else:
        kind = Unavailable if error.retriable() else Refused
    return kind(sentence)


class MetadataReader:
    """``list_topics`` of all topics, always from the same broker while that one answers.

    Brokers learn of changes one after another, so that another broker's answer may be older than the one before it.
    librdkafka asks any broker that it is connected to: this client is told of one broker and is used for nothing else, which
    keeps it there; ``orig_broker_id`` tells when it went elsewhere all the same.  ``list_topics`` is never asked for one topic
    by name, since that may create it.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        security: Security,
        *,
        wait_s: float,
        retry: RetryPolicy,
        identity: ClusterIdentity | None = None,
    ) -> None:
        self._servers = list(servers)
        self._identity = identity
        self._security = security
        self._wait_s = wait_s
        self._retry = retry
        self._lock = threading.Lock()
        self._client: AdminClient | None = None
        self._source = UNKNOWN
        self._addresses = ""

    def addresses(self) -> str:
        """The brokers that the newest answer names, as ``bootstrap.servers`` takes them; asks when there was none yet."""
        if not self._addresses:
            self.read()
        return self._addresses

    def forget(self) -> None:
        """Let the client go; the next reading begins at the next server."""
        with self._lock:
            if self._client is not None:
                self._client = None
                self._servers = [*self._servers[1:], self._servers[0]]

    def read(self) -> ClusterMetadata:
        """Brokers, controller, topics, partitions, leaders, replicas and ISRs in one answer; needs no controller."""
        answer: ClusterMetadata = self._retry.call("metadata", self._read, recover=self.forget)
        if sum(len(t.partitions) for t in answer.topics.values()) > KEPT_PARTITIONS:
            with self._lock:
                self._client = None  # The next one begins at the same server.
        return answer

    def _read(self) -> ClusterMetadata:
        for attempt in range(SAME_BROKER_TRIES):
            answer = self._ask()
            before = self._source
            if answer.orig_broker_id in {before, UNKNOWN} or before == UNKNOWN:
                break
            if before not in answer.brokers or attempt == SAME_BROKER_TRIES - 2:
                # It has left: by the next answer the other broker knows what it knew.
                self._source = answer.orig_broker_id
                time.sleep(CATCH_UP_S)
        if answer.orig_broker_id != UNKNOWN:
            self._source = answer.orig_broker_id
        return answer

    def _ask(self) -> ClusterMetadata:
        client = self._connect()
        with translate_errors("metadata", self._security):
            answer: ClusterMetadata = client.list_topics(timeout=self._wait_s)
        if self._identity is not None:
            self._identity.confirm(answer.cluster_id, f"The broker at {_address(*self._servers[0])}")
        self._addresses = ",".join(_address(b.host, b.port) for _, b in sorted(answer.brokers.items()))
        return answer

    def _connect(self) -> AdminClient:
        with self._lock:
            if self._client is None:
                server = first_to_answer(self._servers, self._security, timeout_s=min(5.0, self._wait_s))
                at = self._servers.index(server)
                self._servers = [*self._servers[at:], *self._servers[:at]]
                self._client = new_client(_address(*server), self._security, timeout_s=self._wait_s)
            self._client.poll(0)
            return self._client


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
