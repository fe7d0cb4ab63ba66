"""What must hold before something starts, and whether the cluster is still what a plan was made for."""

from __future__ import annotations

from ballast.core.guards.checks import (
    cancel_is_safe,
    cancel_stops_writes,
    in_flight,
    judge,
    repairs,
    rooms,
    unhealthy_partitions,
)
from ballast.core.guards.verdicts import Verdict, verdict

__all__ = [
    "Verdict",
    "cancel_is_safe",
    "cancel_stops_writes",
    "in_flight",
    "judge",
    "repairs",
    "rooms",
    "unhealthy_partitions",
    "verdict",
]
