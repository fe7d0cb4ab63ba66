"""Where the Kafka client library's own lines go: a logger, and never past it to stderr."""

from __future__ import annotations

import concurrent.futures
import gc
import io
import json
import logging
import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

import ballast
from ballast.adapters.auth.security import Security
from ballast.adapters.journal import loss
from ballast.adapters.journal.loss import TopicMark, delete_topic
from ballast.adapters.journal.producer import transaction_timeout_ms
from ballast.adapters.kafka import librdkafka
from ballast.adapters.kafka.confluent import new_client
from ballast.cli.main import hear_client
from ballast.daemon.policy import LogPolicy
from ballast.daemon.process.logs import configure
from ballast.errors import AuthenticationFailed, UsageError

NO_BROKER = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Loggers as they were before the test."""
    kept = [
        (log, log.handlers[:], log.level, log.propagate)
        for log in map(logging.getLogger, ("", "ballast", librdkafka.LOGGER))
    ]
    yield
    for log, handlers, level, propagate in kept:
        log.handlers[:], log.propagate = handlers, propagate
        log.setLevel(level)


def speak() -> None:
    """Have a client say that no broker is there."""
    heard: list[logging.LogRecord] = []
    logger = logging.getLogger(librdkafka.LOGGER)
    logger.addFilter(lambda record: heard.append(record) or True)  # type: ignore[func-returns-value]
    client = ck.Producer(librdkafka.with_logging(NO_BROKER))
    end = time.monotonic() + 20
    try:
        while not any("Connect" in r.getMessage() for r in heard):
            assert time.monotonic() < end, "the client said nothing"
            client.poll(0.05)
    finally:
        logger.filters.clear()


def test_a_polled_client_speaks_to_our_logger(capfd: pytest.CaptureFixture[str]) -> None:
    """At the command line an error is a line of the story."""
    hear_client()
    speak()
    said = capfd.readouterr().err
    assert "ballast: Kafka client: FAIL" in said
    assert "%3|" not in said


def test_below_errors_it_is_quiet_unless_asked(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word in the environment asks for more, and a wrong one is refused."""
    logger = logging.getLogger(librdkafka.LOGGER)
    hear_client()
    logger.warning("GETPID: retrying")
    monkeypatch.setenv("BALLAST_CLIENT_LOG", "warning")
    hear_client()
    logger.warning("asked for")
    assert capfd.readouterr().err == "ballast: Kafka client: asked for\n"
    monkeypatch.setenv("BALLAST_CLIENT_LOG", "loud")
    with pytest.raises(UsageError, match="loud"):
        hear_client()


def test_in_the_daemon_it_is_json(capfd: pytest.CaptureFixture[str]) -> None:
    """One object a line, once, even where the command line was set up before; chatter is left out."""
    hear_client()
    stream = io.StringIO()
    configure(LogPolicy(format="json", level="debug"), stream)
    logging.getLogger(librdkafka.LOGGER).info("chatter")
    speak()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {(line["logger"], line["level"]) for line in lines} == {(librdkafka.LOGGER, "error")}
    assert any("Connect" in line["message"] for line in lines)
    assert capfd.readouterr().err == ""


def test_a_client_that_is_only_asked_writes_no_lines(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its failure comes back from the call."""
    client = AdminClient(librdkafka.without_logging(NO_BROKER))
    with pytest.raises(ck.KafkaException):
        client.list_topics(timeout=1)
    client.poll(0)
    assert capfd.readouterr().err == ""
    assert not caplog.records


@pytest.mark.parametrize("settings", [librdkafka.with_logging, librdkafka.without_logging])
def test_a_token_that_cannot_be_had_is_our_own_error_at_once(settings: object) -> None:
    """The client would wait for ten seconds and then not say why."""

    def refuse(_: str) -> tuple[str, float]:
        raise AuthenticationFailed("The token endpoint refused us.")

    assert callable(settings)
    with pytest.raises(AuthenticationFailed, match="refused us"):
        settings(NO_BROKER | {"oauth_cb": refuse})


ENDS_THE_PROCESS = re.compile(r"\.(describe_cluster|describe_topics)\(")
"""In 2.16.1 each ends the process by an assertion where the broker asked has just started and names no broker and no topic."""
NAMES_ONE = {"adapters/journal/loss.py"}
"""It asks for one topic by its name, and a broker answers for that one always, if only with an error."""


def test_no_call_that_can_end_the_process_is_made() -> None:
    """Seen under a daemon, from a broker of KRaft that had just come back: racks are read otherwise."""
    rooms = Path(ballast.__file__).parent
    makes = {str(file.relative_to(rooms)) for file in rooms.rglob("*.py") if ENDS_THE_PROCESS.search(file.read_text())}
    assert makes == NAMES_ONE


@pytest.mark.parametrize("timeout_s", [0.001, 30.0, 300.0, 301.0, 86_400.0])
def test_any_timeout_makes_a_client(timeout_s: float) -> None:
    """The client takes socket time-outs of at most 300 s; a caller that waits longer is bounded by its own clock."""
    assert new_client("127.0.0.1:1", Security(), timeout_s=timeout_s) is not None
    assert librdkafka.socket_timeout_ms(timeout_s) == min(max(timeout_s * 1000, 1000), 300_000)
    assert 10_000 <= transaction_timeout_ms(timeout_s) <= 900_000  # Brokers refuse more by default.


ASKED: dict[str, Callable[[AdminClient], object]] = {
    "the topic's id": lambda client: TopicMark("t")._find_id(client),
    "its end": lambda client: TopicMark("t")._high_watermark(client),
    "its deletion": lambda client: delete_topic(client, "t", timeout_s=1.0),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_client_that_was_not_answered_is_gone_when_it_is_closed(
    ask: Callable[[AdminClient], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: a daemon's collector of garbage may come hours later, and each client has threads and connections."""
    monkeypatch.setattr(loss, "ASK_S", 0.2)
    client = AdminClient(librdkafka.without_logging(NO_BROKER))
    left = weakref.ref(client)
    gc.disable()
    try:
        with suppress(ck.KafkaException):
            ask(client)
        del client
        assert left() is None
    finally:
        gc.enable()


def test_a_client_that_keeps_no_limit_of_its_own_has_not_answered() -> None:
    """As where it keeps it: who translates the client's errors translates this one, too."""
    with pytest.raises(ck.KafkaException) as failed:
        librdkafka.answer_of(concurrent.futures.Future[None](), 0.01)
    assert failed.value.args[0].code() == ck.KafkaError._TIMED_OUT
