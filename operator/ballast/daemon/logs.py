"""Structured logs: JSON lines in a pod, readable lines on a terminal; the same facts in both.

A decision is one line: a sentence for people and fields for machines (``say(log, "…", run="…", move="…")``).
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from ballast.adapters.librdkafka import LOGGER
from ballast.daemon.policy import LogPolicy

_FIELDS = "ballast_fields"
SAME_LINE_S: Final = 60.0
"""How often a client library may say the same."""
KEPT_LINES: Final = 200
"""Lines that are remembered; the oldest is forgotten first."""
_VARYING: Final = re.compile(r"rdkafka#[a-z]+-\d+|\d+ ?ms\b|\d+ identical|\(after [^)]*\)")


def say(log: logging.Logger, sentence: str, /, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log one sentence with its fields; ``None`` fields are left out."""
    log.log(level, "%s", sentence, extra={_FIELDS: {k: v for k, v in fields.items() if v is not None}})


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, sentence, then the fields."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class Readable(logging.Formatter):
    """Time, level, sentence, fields as ``key=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback of a bug below it."""
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = getattr(record, _FIELDS, {})
        tail = "".join(f"  {k}={v}" for k, v in fields.items())
        line = f"{at} {record.levelname:<7} {record.getMessage()}{tail}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class Sparing(logging.Filter):
    """Lets a line that says the same again and again through once a minute, with the number of those left out.

    A broker that is down or a password that is refused makes the client libraries say so at each attempt, for hours.  What
    differs only in the client's number, in durations and in counts says the same; what names another broker does not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Is it to be written?"""
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


def configure(policy: LogPolicy, stream: TextIO | None = None) -> None:
    """Send every logger of this process to one stream (stderr); client libraries only from warnings upward."""
    stream = stream or sys.stderr
    wants_json = policy.format == "json" or (policy.format == "auto" and not stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if wants_json else Readable())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("ballast").setLevel(policy.level.upper())
    client = logging.getLogger(LOGGER)
    client.handlers.clear()
    client.propagate = True
    client.filters[:] = [Sparing()]
    client.setLevel(max(logging.WARNING, logging.getLogger("ballast").level))
