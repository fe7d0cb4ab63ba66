"""What every librdkafka client is told besides its own business: where its lines go, and that a token can be had.

Left alone, librdkafka writes ``%4|…`` to stderr, past every log format.  With a Python logger its lines wait in the client
until it is polled, as its error events do with any client.  The owner of a client must therefore poll it now and then, or
what it has to say piles up in memory while a broker is down.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

    import confluent_kafka as ck
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")

LOGGER: Final = "ballast.librdkafka"
SAME_LINE_S: Final = 60.0
"""How often a client library may say the same."""
KEPT_LINES: Final = 200
"""Lines that are remembered; the oldest is forgotten first."""
FIRST_METADATA_S: Final = 1.0
"""How long the controller may take before newer metadata is asked for; twice as long each time."""
METADATA_S: Final = 5.0
"""Longest wait for metadata."""
SPARE_S: Final = 5.0
"""How much longer than the client itself we wait for what it says."""
_SOCKET_TIMEOUT_MS: Final = (1_000, 300_000)
"""The least that is useful, and the most that librdkafka takes; a longer wait is bounded by the caller."""
_VARYING: Final = re.compile(r"rdkafka#[a-z]+-\d+|\d+ ?ms\b|\d+ identical|\(after [^)]*\)")


def with_logging(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a client that works in the background: it writes to our logger when it is polled."""
    return {**_with_token(config), "logger": logging.getLogger(LOGGER)}


def without_logging(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a client that only answers calls: it logs nothing, since each call raises its own failure."""
    return {**_with_token(config), "log_level": 0}


def answer_of(future: Future[T], timeout_s: float | None = None) -> T:
    """What the cluster answered; raises what it failed with.

    The client library holds on to its futures in circles.  An exception that a future raises itself keeps the frames it went
    through, and with them their client, its threads and connections, until the garbage collector comes round: in a daemon
    that may be hours.  Therefore a new one is raised.
    """
    import confluent_kafka as ck  # noqa: PLC0415 — `ballast --help` must not load the client

    try:
        failure = future.exception(timeout_s)
    except concurrent.futures.TimeoutError:
        # The client kept no limit of its own.
        raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT)) from None  # noqa: SLF001
    if failure is None:
        return future.result()
    raise type(failure)(*failure.args)


def answer_of_controller(client: AdminClient, future: Future[T], timeout_s: float) -> T:
    """``answer_of`` for a request to the controller, whose own limit is ``timeout_s``.

    The client waits for the controller that its metadata names, and by itself asks for other metadata once in ten seconds at most: a
    broker that has just started names none, and during a fail-over brokers name the one that is gone.  So it is asked for here.
    """
    import confluent_kafka as ck  # noqa: PLC0415 — `ballast --help` must not load the client

    ends, pause_s = time.monotonic() + timeout_s, FIRST_METADATA_S
    while not concurrent.futures.wait((future,), pause_s).done and (left_s := ends - time.monotonic()) > 0:
        with contextlib.suppress(ck.KafkaException):
            client.list_topics(timeout=min(left_s, METADATA_S))
        pause_s = max(min(2 * pause_s, ends - time.monotonic()), 0.0)
    return answer_of(future, max(ends - time.monotonic(), 0.0) + SPARE_S)


def socket_timeout_ms(timeout_s: float) -> int:
    """``socket.timeout.ms`` of a client whose questions may take this long."""
    least, most = _SOCKET_TIMEOUT_MS
    return min(max(round(timeout_s * 1000), least), most)


def produce(
    producer: ck.Producer, topic: str, key: str, data: bytes | None, *, placed: list[int] | None = None
) -> None:
    """Hand a record to the client; its offset is put into ``placed`` once the broker has told it."""

    def on_delivery(error: ck.KafkaError | None, message: ck.Message) -> None:
        offset = message.offset()
        if error is None and placed is not None and offset is not None:
            placed.append(offset)

    while True:
        try:
            producer.produce(topic, key=key.encode(), value=data, partition=0, on_delivery=on_delivery)
        except BufferError:
            # The local queue is full; serving it makes room.
            producer.poll(0.1)
        else:
            return


def _with_token(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration; raises our own error now where there is no token to log in with.

    A client fetches its first token while it is made and renews it on a thread of its own, polled or not.  What goes wrong
    there is lost: it gives up after ten seconds with "token not set".  Asked here, the source keeps the token for the client.
    """
    fetch = config.get("oauth_cb")
    if fetch is not None:
        fetch("")
    return dict(config)


class RepeatFilter(logging.Filter):
    """Lets a line that says the same again and again through once a minute, with the number of those left out.

    A broker that is down or a password that is refused makes the client libraries say so at each attempt, for hours.  What
    differs only in the client's number, in durations and in counts says the same; what names another broker does not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Is this line to be logged?"""
        text = record.getMessage()
        key = _VARYING.sub("#", text)
        now_s = self._clock()
        since_s, left_out = self._said.get(key, (None, 0))
        if since_s is not None and now_s - since_s < SAME_LINE_S:
            self._said[key] = (since_s, left_out + 1)
            return False
        self._said[key] = (now_s, 0)
        self._said.move_to_end(key)
        while len(self._said) > KEPT_LINES:
            self._said.popitem(last=False)
        if left_out:
            record.msg, record.args = f"{text} ({left_out} more like it since)", ()
        return True
