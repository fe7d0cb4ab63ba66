"""Waiting until brokers serve, asked the way a client would."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ballast.errors import Unavailable

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

POLL_S: Final = 0.2


def wait_for_brokers(
    bootstrap_server: str,
    wanted: Mapping[int, int],
    *,
    within_s: float,
    check: Callable[[], None],
) -> None:
    """Return when every wanted broker (id to port) accepts connections, metadata lists it, and it names a controller itself.

    Both of the first, because metadata goes on listing a killed broker until its session ends, and a restarted one opens its
    port only once it is unfenced.  The last, because a client that hears of no controller waits for one and asks no broker again.
    ``check`` is called between polls and may give up by raising.
    """
    admin = _client(bootstrap_server, {})
    uninformed = set(wanted)
    deadline = time.monotonic() + within_s
    while True:
        check()
        missing = {broker for broker, port in wanted.items() if not _accepts(port)}
        if not missing:
            missing = set(wanted) - _list_brokers(admin)
        if not missing:
            uninformed = missing = {broker for broker in uninformed if not _names_controller(wanted[broker])}
        if not missing:
            return
        if time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(missing)))
            raise Unavailable(f"After {within_s:.0f} s these brokers do not serve yet: {names}.")
        time.sleep(POLL_S)


def wait_until_in_sync(bootstrap_server: str, properties: Mapping[str, str], *, within_s: float) -> None:
    """Return when every replica of every partition is in sync and every partition has a leader."""
    admin = _client(bootstrap_server, properties)
    deadline = time.monotonic() + within_s
    while (lagging := _out_of_sync(admin)) != 0:
        if time.monotonic() > deadline:
            what = "metadata" if lagging is None else f"{lagging} partitions"
            raise Unavailable(f"After {within_s:.0f} s the sandbox still waits for {what}.")
        time.sleep(POLL_S)


def _out_of_sync(admin: AdminClient) -> int | None:
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        topics = admin.list_topics(timeout=5).topics.values()
    except KafkaException:
        return None
    partitions = [partition for topic in topics for partition in topic.partitions.values()]
    return sum(1 for p in partitions if len(p.isrs) < len(p.replicas) or p.leader < 0)


def _client(bootstrap_server: str, properties: Mapping[str, str]) -> AdminClient:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 — `ballast --help` must not load the client

    return AdminClient(
        {
            "bootstrap.servers": bootstrap_server,
            "socket.connection.setup.timeout.ms": 2000,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **properties,
        }
    )


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _names_controller(port: int) -> bool:
    """As this broker tells it: a client that has heard of no other asks it alone."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        answer = _client(f"127.0.0.1:{port}", {}).list_topics(timeout=2)
    except KafkaException:
        return False
    return answer.controller_id in answer.brokers


def _list_brokers(admin: AdminClient) -> set[int]:
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        return set(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return set()
