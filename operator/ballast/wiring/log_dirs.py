"""Stopping copies between the log dirs of a broker that no run of ours has started."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from ballast.core.cluster import TopicPartition
from ballast.ports.cluster import Outcome
from ballast.ports.journal import Record
from ballast.wiring.runs import Writer


def keep_in_place(
    own: Writer, places: Mapping[tuple[TopicPartition, int], str]
) -> dict[tuple[TopicPartition, int], Outcome]:
    """Order replicas to the log dir where they lie, which ends their copies elsewhere; the intent is journaled first."""
    key = f"hand/{secrets.token_hex(4)}"
    lines = [[n.topic, n.partition, broker, path] for (n, broker), path in places.items()]
    own.journal.append([Record(key, {"version": 1, "log_dirs": lines})])
    own.journal.check()
    outcomes = dict(own.opened.cluster.alter_log_dirs(places))
    own.journal.append([Record(key, None)])
    return outcomes
