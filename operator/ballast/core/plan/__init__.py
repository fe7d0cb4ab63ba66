"""A plan as a value, its file, and the assignment that it was made from."""

from __future__ import annotations

from ballast.core.plan.model import (
    ANY_LOG_DIR,
    OTHER_PURPOSE,
    LogDirError,
    Move,
    Obstacle,
    Place,
    Plan,
    Purpose,
    Reason,
)

__all__ = ["ANY_LOG_DIR", "OTHER_PURPOSE", "LogDirError", "Move", "Obstacle", "Place", "Plan", "Purpose", "Reason"]
