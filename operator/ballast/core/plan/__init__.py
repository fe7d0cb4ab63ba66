"""A plan as a value, its batches and its file."""

from __future__ import annotations

from ballast.core.plan.model import ANY_LOG_DIR, LogDirError, Move, Obstacle, Place, Plan, Reason

__all__ = ["ANY_LOG_DIR", "LogDirError", "Move", "Obstacle", "Place", "Plan", "Reason"]
