"""Clusters that could be: a broker lost, a broker more, and what that does."""

from __future__ import annotations

from ballast.core.what_if.scenarios import (
    ADD_BROKERS,
    BALANCE,
    CHANGE_RF,
    GROW,
    KINDS,
    LOSE_BROKER,
    LOSE_RACK,
    POLICY,
    Member,
    Traffic,
    days_to_full,
    digest,
    lose_brokers,
    offline,
    plan_scenario,
    room,
    under_min_isr,
    with_brokers,
)

__all__ = [
    "ADD_BROKERS",
    "BALANCE",
    "CHANGE_RF",
    "GROW",
    "KINDS",
    "LOSE_BROKER",
    "LOSE_RACK",
    "POLICY",
    "Member",
    "Traffic",
    "days_to_full",
    "digest",
    "lose_brokers",
    "offline",
    "plan_scenario",
    "room",
    "under_min_isr",
    "with_brokers",
]
