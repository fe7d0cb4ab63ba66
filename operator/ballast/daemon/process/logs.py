"""Structured logs: JSON lines in a pod, readable lines on a terminal; the same facts in both."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from ballast.adapters.kafka.librdkafka import LOGGER, RepeatFilter
from ballast.daemon.context.log import FIELDS
from ballast.daemon.policy import LogPolicy


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, sentence, then the fields."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, default=str, ensure_ascii=False)
        # A lone surrogate cannot be written; as an escape it can.
        return text.encode("utf-8", "backslashreplace").decode()


def _plain(text: str) -> str:
    """On one line and without a character that would command a terminal: what others named may hold any."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Readable(logging.Formatter):
    """Time, level, sentence, fields as ``key=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback of a bug below it."""
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = getattr(record, FIELDS, {})
        tail = "".join(f"  {k}={v}" for k, v in fields.items())
        line = f"{at} {record.levelname:<7} {_plain(record.getMessage())}{_plain(tail)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


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
    client.filters[:] = [RepeatFilter()]
    client.setLevel(max(logging.WARNING, logging.getLogger("ballast").level))
