"""Kafka's own names for settings that Kafka has, and the places where Ballast keeps them."""

from __future__ import annotations

from typing import Final

KAFKA_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "bootstrap.servers": ("cluster", "bootstrap_server"),
    "leader.imbalance.per.broker.percentage": ("leaders", "imbalance_percentage"),
    "leader.imbalance.check.interval.seconds": ("leaders", "check_interval_s"),
    "auto.leader.rebalance.enable": ("leaders", "auto"),
}
