"""A decision is one line of the log: a sentence for people and fields for machines (``log_event(log, "…", run="…", move="…")``).

``process.logs`` decides how it looks.
"""

from __future__ import annotations

import logging
from typing import Any, Final

FIELDS: Final = "ballast_fields"
"""The attribute of a record that has its fields."""


def log_event(log: logging.Logger, sentence: str, /, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log one sentence with its fields; ``None`` fields are left out."""
    log.log(level, "%s", sentence, extra={FIELDS: {k: v for k, v in fields.items() if v is not None}})
