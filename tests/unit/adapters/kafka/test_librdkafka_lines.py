"""What the log leaves out, and what it never leaves out."""

from __future__ import annotations

import logging

from ballast.adapters.kafka.librdkafka import KEPT_LINES, SAME_LINE_S, RepeatFilter

REFUSED = "FAIL [rdkafka#{client}] [thrd:{broker}/bootstrap]: {broker}: SASL authentication error: Invalid (after {ms}ms in state AUTH)"


class Hours:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now_s


def line(client: str = "producer-1", broker: str = "kafka-1:9092", ms: int = 5) -> logging.LogRecord:
    """One line of the client library."""
    text = REFUSED.format(client=client, broker=broker, ms=ms)
    return logging.LogRecord("ballast.librdkafka", logging.ERROR, __file__, 1, "%s", (text,), None)


def test_a_refused_login_is_said_once_a_minute_with_a_count() -> None:
    """Whichever client tries and however long it took; after the minute one line tells how many were left out."""
    clock = Hours()
    repeat_filter = RepeatFilter(clock)
    assert repeat_filter.filter(line())
    for n in range(2, 12):
        clock.now_s += 5
        assert not repeat_filter.filter(line(client=f"consumer-{n}", ms=n))
    clock.now_s += SAME_LINE_S
    again = line(client="producer-9")
    assert repeat_filter.filter(again)
    assert again.getMessage().endswith("(10 more like it since)")
    clock.now_s += SAME_LINE_S
    quiet = line()
    assert repeat_filter.filter(quiet)
    assert "more like it" not in quiet.getMessage()


def test_another_broker_is_another_line() -> None:
    """A line that names another broker is news."""
    repeat_filter = RepeatFilter(Hours())
    assert repeat_filter.filter(line(broker="kafka-1:9092"))
    assert repeat_filter.filter(line(broker="kafka-2:9092"))
    assert not repeat_filter.filter(line(broker="kafka-2:9092"))


def test_what_is_remembered_is_bounded() -> None:
    """A year of different lines takes no more than the newest few."""
    repeat_filter = RepeatFilter(Hours())
    for n in range(KEPT_LINES * 3):
        repeat_filter.filter(line(broker=f"kafka-{n}:9092"))
    assert len(repeat_filter._said) == KEPT_LINES
