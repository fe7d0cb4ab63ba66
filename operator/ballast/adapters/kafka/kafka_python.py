"""The request layer over kafka-python: one request to one broker, any broker, the controller, or many side by side.

It uses kafka-python's connections and messages and not its admin client, which hides what safety needs: the
replication-factor flag of AlterPartitionReassignments, the brokers' own error sentences, and a bound on each wait.
kafka-python is pinned to 3.0.x for it, and the contract suite guards what is used.

Every wait is bounded.  A connection manager remembers down brokers and old addresses, so it is thrown away and rebuilt
whenever something goes wrong; a rebuild costs about 0.03 s.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from ballast.adapters.auth.oauth import TokenSource
from ballast.adapters.auth.security import Security
from ballast.adapters.kafka.diagnosis import first_to_answer, login_refused, no_such_mechanism, parse_servers
from ballast.adapters.kafka.identity import ClusterIdentity
from ballast.adapters.kafka.kafka_python_parts import (
    AbstractTokenProvider,
    KafkaConnectionManager,
    MetadataRequest,
    NetworkSelector,
    kafka_errors,
)
from ballast.adapters.kafka.retry import RetryPolicy
from ballast.adapters.kafka.rights import explain_denial
from ballast.errors import AuthenticationFailed, AuthorizationFailed, BallastError, Refused, Unavailable

# kafka-python logs every failed connection as an error of its own; Ballast reports failures once, in its own words.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

MakeRequest = Callable[[], Any]
"""A request is used up by sending it (the client writes the version into it), so each send makes its own."""

_NOT_CONTROLLER: Final = 41
_QUORUM: Final = 55
"""DescribeQuorum, which only brokers of KRaft clusters know."""
_KAFKAS_OWN_NAMES: Final = {
    -1: "UNKNOWN_SERVER_ERROR",
    6: "NOT_LEADER_OR_FOLLOWER",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
}
"""Where kafka-python's name of an error is not the one in Kafka's ``Errors``."""


def split_failures(told: Mapping[int, Any | BallastError]) -> tuple[dict[int, Any], dict[int, BallastError]]:
    """Who answered, and why the others did not: of what ``Wire.ask_each`` gives."""
    failures = {b: answer for b, answer in told.items() if isinstance(answer, BallastError)}
    return {b: answer for b, answer in told.items() if b not in failures}, failures


class Link:
    """kafka-python's connections and the one thread that serves them."""

    def __init__(self, configuration: Mapping[str, Any], server: tuple[str, int], bootstrap_timeout_s: float) -> None:
        self._net = NetworkSelector(**configuration)
        self._manager = KafkaConnectionManager(self._net, **configuration)
        self._server: tuple[str, int] = server
        self._favourite: int | None = None
        self._net.start()
        try:
            self._manager.bootstrap(bootstrap_timeout_s * 1000)
        except BaseException:
            self.close()
            raise

    @property
    def versions(self) -> Any:
        """What the bootstrap broker said it speaks."""
        return self._manager.broker_version_data

    @property
    def cluster_id(self) -> str | None:
        """What the bootstrap broker said its cluster is."""
        told: str | None = self._manager.cluster.cluster_id
        return told

    def run(self, attempt: Callable[[Link], Any]) -> Any:
        """Run a coroutine function on the serving thread and wait for it; callable from any other thread."""
        return self._manager.run(attempt, self)

    def start(self, attempt: Callable[..., Any], *args: object) -> Any:
        """Start a coroutine without waiting; the future can be awaited in another coroutine."""
        return self._manager.call_soon(attempt, *args)

    async def send(self, request: Any, node: int | None, wait_s: float) -> Any:
        """One request, one bounded wait.

        What any broker may answer is always asked of the same one, so that a later answer is never an older picture.
        """
        if node is None:
            node = self._any_broker()
        return await self._manager.wait_for(
            self._manager.send(request, node_id=node, request_timeout_ms=wait_s * 1000), wait_s * 1000
        )

    def _any_broker(self) -> int | None:
        """The broker that let us in, which surely answers; where it goes by another address, one of the others."""
        if self._favourite is None:
            brokers = self._manager.cluster.brokers()
            same = [b.node_id for b in brokers if (b.host, b.port) == self._server]
            self._favourite = same[0] if same else self._manager.least_loaded_node()
        return self._favourite

    async def refresh(self, wait_s: float) -> None:
        """Learn which brokers there are and where, so that a restarted one is found at its new address."""
        await self._manager.wait_for(
            self.start(self._manager.cluster.refresh_metadata, self._any_broker()), wait_s * 1000
        )

    def close(self) -> None:
        """Close every connection and end the thread."""
        # Sockets belong to the serving thread, so it closes them before it is told to stop.  Where that thread has died,
        # no thread can close them properly, and nothing of it is used again.
        with suppress(Exception):
            self._manager.run(self._manager.close)
        with suppress(Exception):
            self._net.close()


class Wire:
    """Connections to one cluster; safe to use from several threads."""

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
        self._servers = parse_servers(bootstrap_servers)
        self._identity = identity
        self._security = security
        self.timeout_s = timeout_s
        """Longest wait for an answer of the cluster, all tries together."""
        self.broker_wait_s = min(broker_wait_s, timeout_s)
        """Longest wait for one broker's answer to one request."""
        self._retry = retry or RetryPolicy(total_s=timeout_s)
        self._lock = threading.RLock()
        self._link: Link | None = None
        self._closed = False

    def close(self) -> None:
        """Close every connection; the wire cannot be used again."""
        with self._lock:
            self._closed = True
            self.reconnect()

    def reconnect(self, failed: Link | None = None) -> None:
        """Forget the connections; the next request builds new ones, with fresh metadata.

        With ``failed``, only if they are still those: several threads may stumble over the same ones.
        """
        with self._lock:
            if self._link is None or failed not in {None, self._link}:
                return
            link, self._link = self._link, None
            # The bootstrap server used last may be what went wrong: it is asked last the next time.
            self._servers = [*self._servers[1:], self._servers[0]]
        link.close()

    def versions(self) -> Mapping[int, tuple[int, int]]:
        """Api key to the versions that the bootstrap broker speaks."""
        with self._translate_errors("api versions"):
            return dict(self._connect().versions.api_versions)

    def broker_version(self) -> str:
        """The release whose requests the bootstrap broker speaks, for example ``4.3``."""
        with self._translate_errors("api versions"):
            return str(self._connect().versions.broker_version_str)

    def ask(self, what: str, make: MakeRequest, *, retry: RetryPolicy | None = None) -> Any:
        """Send to one of the brokers, the same as before, and to another when it fails."""
        return self._ask_again(what, lambda link: link.send(make(), None, self.broker_wait_s), retry)

    def ask_controller(
        self, what: str, make: MakeRequest, *, retry: RetryPolicy | None = None, wait_s: float | None = None
    ) -> Any:
        """Send to the controller (on KRaft any broker forwards), finding it anew for each try."""
        bound_s = wait_s or self.broker_wait_s

        async def attempt(link: Link) -> Any:
            try:
                response = await link.send(make(), await self._controller(link), bound_s)
            except kafka_errors.KafkaTimeoutError:
                raise Unavailable(
                    f"Request for {what} failed: the controller did not answer in time.",
                    hint="See whether the controllers are down; the brokers answer.",
                ) from None
            if getattr(response, "error_code", 0) == _NOT_CONTROLLER:
                raise kafka_errors.NodeNotReadyError("the controller has moved")
            return response

        return self._ask_again(what, attempt, retry)

    async def _controller(self, link: Link) -> int | None:
        """Where to send what is for the controller: on KRaft to any broker, which passes it on."""
        if _QUORUM in link.versions.api_versions:
            return None
        metadata = await link.send(MetadataRequest(topics=[]), None, self.broker_wait_s)
        if metadata.controller_id < 0:
            raise kafka_errors.NodeNotReadyError("the cluster has no controller now")
        return int(metadata.controller_id)

    def ask_each(
        self,
        what: str,
        brokers: Collection[int],
        make: Callable[[int], Any],
        *,
        read: Callable[[Any], Any] = lambda response: response,
        wait_s: float | None = None,
        retry: RetryPolicy | None = None,
    ) -> dict[int, Any | BallastError]:
        """Ask many brokers at once; each has its own bound, and its own failure as its value.

        ``read`` makes what is wanted of an answer when it comes, so that those of a thousand brokers are not held together;
        a ``BallastError`` that it raises is that broker's failure.
        """
        bound_s = wait_s or self.broker_wait_s

        async def one(link: Link, broker: int) -> Any:
            with self._translate_errors(what, broker):
                return read(await link.send(make(broker), broker, bound_s))

        async def everyone(link: Link) -> dict[int, Any | BallastError]:
            await link.refresh(self.broker_wait_s)
            futures = {b: link.start(one, link, b) for b in brokers}
            answers: dict[int, Any | BallastError] = {}
            for broker, future in futures.items():
                try:
                    answers[broker] = await future
                except BallastError as failure:
                    answers[broker] = failure
            return answers

        if not brokers:
            return {}
        answers: dict[int, Any | BallastError] = self._ask_again(what, everyone, retry)
        return answers

    def _ask_again(self, what: str, attempt: Callable[[Link], Any], retry: RetryPolicy | None) -> Any:
        used: Link | None = None

        def once() -> Any:
            nonlocal used
            with self._translate_errors(what):
                used = self._connect()
                try:
                    return used.run(attempt)
                except RuntimeError:
                    if used is self._link:
                        raise
                    # Another thread gave these connections up while we were on them.
                    raise Unavailable(f"Request for {what} failed: the connection was lost.") from None

        return (retry or self._retry).call(what, once, recover=lambda: self.reconnect(used))

    def _connect(self) -> Link:
        if self._security.tokens is not None:
            # Renewed here where that is due: on the serving thread, every broker's answer would wait for the token endpoint.
            self._security.tokens.token()
        with self._lock:
            if self._closed:
                raise Unavailable("The connection to the cluster was closed.")
            if self._link is None:
                server = first_to_answer(self._servers, self._security, timeout_s=min(5.0, self.timeout_s))
                at = self._servers.index(server)
                self._servers = [*self._servers[at:], *self._servers[:at]]
                self._link = self._confirm(Link(self._configuration(server), server, self.timeout_s), server)
            return self._link

    def _confirm(self, link: Link, server: tuple[str, int]) -> Link:
        """The link, unless it leads to another cluster than this process works on."""
        try:
            if self._identity is not None:
                self._identity.confirm(link.cluster_id, f"The broker at {server[0]}:{server[1]}")
        except BaseException:
            link.close()
            raise
        return link

    def _configuration(self, server: tuple[str, int]) -> dict[str, Any]:
        # Only the server that has just answered: the manager would wait for a frozen one until its time is up.
        host, port = server
        wait_ms = round(self.broker_wait_s * 1000)
        configuration = self._security.for_kafka_python() | {
            "bootstrap_servers": [f"[{host}]:{port}" if ":" in host else f"{host}:{port}"],
            "client_id": "ballast",
            "request_timeout_ms": wait_ms,
            "socket_connection_setup_timeout_ms": wait_ms,
            "socket_connection_setup_timeout_max_ms": wait_ms,
            "reconnect_backoff_max_ms": 1000,
            "metadata_max_age_ms": 30_000,
            "receive_message_max_bytes": 1_000_000_000,
        }
        if self._security.tokens is not None:
            configuration["sasl_oauth_token_provider"] = _TokenProvider(self._security.tokens)
        return configuration

    @contextmanager
    def _translate_errors(self, what: str, broker: int | None = None) -> Iterator[None]:
        """Turn kafka-python's exceptions into Ballast's."""
        try:
            yield
        except kafka_errors.KafkaError as failure:
            raise self._translate(what, broker, failure) from None

    def _translate(self, what: str, broker: int | None, failure: kafka_errors.KafkaError) -> BallastError:
        who = "the cluster" if broker is None else f"broker {broker}"
        if isinstance(failure, kafka_errors.AuthorizationError):
            return denial_of(what)
        if isinstance(failure, kafka_errors.SaslAuthenticationFailedError | kafka_errors.UnsupportedSaslMechanismError):
            return self._authentication_failed(failure)
        if isinstance(failure, kafka_errors.UnsupportedVersionError):
            return Refused(f"The cluster's Kafka version does not support {what}.", hint="It needs Kafka 2.4 or newer.")
        if isinstance(failure, kafka_errors.KafkaTimeoutError | kafka_errors.RequestTimedOutError):
            sentence = f"Request for {what} failed: {who} did not answer in time."
            return Unavailable(sentence, hint="See whether brokers are down or overloaded, or give a longer --timeout.")
        detail = self._security.redact(plain(failure))
        if isinstance(failure, kafka_errors.RetriableError | kafka_errors.UnknownBrokerIdError):
            return Unavailable(
                f"Request for {what} failed: {who} cannot be reached ({detail}).",
                hint="Check that each broker's advertised.listeners can be reached from here.",
            )
        return Refused(f"Request for {what} failed: {who} answered {detail}.")

    def _authentication_failed(self, failure: kafka_errors.KafkaError) -> AuthenticationFailed:
        if isinstance(failure, kafka_errors.UnsupportedSaslMechanismError):
            return no_such_mechanism(self._security)
        return login_refused(self._security)


def plain(failure: kafka_errors.KafkaError) -> str:
    """What the client library says, without names of its classes and with the system's words for an errno."""
    if isinstance(failure, kafka_errors.NodeNotReadyError):
        return "there is no connection to it"
    name = type(failure).__name__
    text = str(failure).strip().removeprefix(f"{name}:").strip()
    if found := re.search(r"\b(\d+) (E[A-Z0-9]+)\b", text):
        return os.strerror(int(found[1])).lower()
    return text or name


def denial_of(what: str) -> AuthorizationFailed:
    """The cluster knows us and forbids this."""
    sentence, hint = explain_denial(what)
    return AuthorizationFailed(sentence, hint=hint)


def code_name(code: int) -> str:
    """Kafka's name of an error code, in capitals."""
    return _KAFKAS_OWN_NAMES.get(code) or str(kafka_errors.for_code(code).message or f"ERROR_{code}")


def raise_for(code: int, what: str, message: str | None = None) -> None:
    """Raise what a response's own error code means; 0 passes."""
    if code == 0:
        return
    kind = kafka_errors.for_code(code)
    if issubclass(kind, kafka_errors.AuthorizationError):
        raise denial_of(what)
    sentence = f"Request for {what} failed: the cluster answered {code_name(code)}{f': {message}' if message else ''}."
    if issubclass(kind, kafka_errors.RetriableError):
        raise Unavailable(sentence)
    raise Refused(sentence)


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Hands the shared tokens to kafka-python."""

    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source

    def token(self) -> str:
        """A token that is valid at this moment."""
        return self._source.token().value
