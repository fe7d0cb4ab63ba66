"""confluent-kafka's admin client, for what it does well: offsets, new topics and partitions.

It has no call for reassignments and log dirs, it cannot name the cluster-wide broker default, its elections take no time
limit, and its metadata leaves out topic ids, internal topics and offline replicas: those go through
``adapters.kafka_python``.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from ballast.adapters import librdkafka
from ballast.adapters.retry import RetryPolicy
from ballast.adapters.rights import forbidden
from ballast.adapters.security import Security
from ballast.core.cluster import UNKNOWN, TopicPartition
from ballast.errors import AuthenticationFailed, AuthorizationFailed, BallastError, Refused, Unavailable
from ballast.ports.cluster import Offsets

_SPARE_S: Final = 5.0
"""How much longer than the client itself we wait for its future."""

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


class _ControllerMoved(Unavailable):
    """The broker that was asked is no longer the controller."""


class Admin:
    """One admin client, made on first use; safe to use from several threads."""

    def __init__(
        self, bootstrap_servers: str, security: Security, *, timeout_s: float = 30.0, retry: RetryPolicy | None = None
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._security = security
        self._timeout_s = timeout_s
        # A request that may have been begun is not sent again from here; one that met no controller was not.
        self._retry = replace(retry or RetryPolicy(total_s=timeout_s), only=_ControllerMoved)
        self._lock = threading.Lock()
        self._client: AdminClient | None = None

    def close(self) -> None:
        """Let the client go; librdkafka ends its threads with it."""
        with self._lock:
            self._client = None

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
        self._retry.call(kind, lambda: self._wait(what, ask(self._admin(), limits)), recover=self.close)

    def _admin(self) -> AdminClient:
        with self._lock, self._translated("a connection"):
            if self._client is None:
                self._client = AdminClient(
                    librdkafka.silent(self._security.for_confluent())
                    | {
                        "bootstrap.servers": self._bootstrap_servers,
                        "client.id": "ballast",
                        "socket.timeout.ms": max(1000, round(self._timeout_s * 1000)),
                        "topic.metadata.refresh.interval.ms": 30_000,
                    }
                )
            self._client.poll(0)  # Error events that nobody takes would pile up in it.
            return self._client

    def _wait(self, what: str, future: concurrent.futures.Future[Any]) -> Any:
        with self._translated(what):
            return future.result(self._timeout_s + _SPARE_S)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Turn confluent-kafka's exceptions into Ballast's."""
        try:
            yield
        except concurrent.futures.TimeoutError:
            raise Unavailable(f"Asked for {what}, the cluster did not answer in time.") from None
        except KafkaException as failure:
            raise self._translate(what, failure.args[0]) from None

    def _translate(self, what: str, error: KafkaError) -> BallastError:
        if error.code() in _SILENT:
            return Unavailable(
                f"Asked for {what}, the cluster did not answer in time.",
                hint="See whether brokers are down or overloaded, or give a longer --timeout.",
            )
        if error.code() in _NOT_LET_IN:
            return AuthenticationFailed(
                f"The cluster did not let us in: {self._security.redact(error.str())}.",
                hint="Check the client properties (--command-config).",
            )
        if error.code() in _FORBIDDEN:
            sentence, hint = forbidden(what)
            return AuthorizationFailed(sentence, hint=hint)
        if error.code() == KafkaError.NOT_CONTROLLER:
            return _ControllerMoved(f"Asked for {what}, the cluster is electing a controller.")
        sentence = f"Asked for {what}, the cluster answered {error.name()}: {self._security.redact(error.str())}"
        return Unavailable(sentence) if error.retriable() else Refused(sentence)
