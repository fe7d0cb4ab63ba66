"""Which log dir an arriving replica goes to, on brokers that have several.

Kafka itself puts a new replica into the log dir with the fewest partitions, whatever they weigh: a broker with room to spare can
fill one disk while another is empty.  Here each replica, the largest first, goes to the dir with the most room left.  Where a
broker has one dir, or does not tell how full they are, nothing is asked for and Kafka chooses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ballast.core.cluster import Broker, ClusterState
from ballast.core.plan import Move, Obstacle
from ballast.core.planner.report.sentences import more, obstacle

ANY: Final = "any"
"""Kafka's word for leaving the choice to the broker."""
MOST: Final = 20
"""Replicas without a log dir that are named."""


def with_dirs(state: ClusterState, moves: tuple[Move, ...]) -> tuple[tuple[Move, ...], tuple[Obstacle, ...]]:
    """The same moves in the same order, with log dirs where there is a choice; and what fits into none of them."""
    rooms = {b.id: room for b in state.brokers if (room := room_by_dir(b)) is not None}
    if not rooms:
        return moves, ()
    tight: list[Obstacle] = []
    places: dict[int, dict[int, str]] = {}
    for at in sorted(range(len(moves)), key=lambda i: (-moves[i].size_bytes, i)):
        for broker in moves[at].adding:
            room = rooms.get(broker)
            if room is not None:
                path = max(room, key=lambda d: (room[d], d))
                size = max(moves[at].size_bytes, 0)
                room[path] -= size
                if size and room[path] < 0:
                    tight.append(obstacle("log-dir", moves[at].name, broker=broker, bytes=moves[at].size_bytes))
                places.setdefault(at, {})[broker] = path
    placed = tuple(
        replace(m, log_dirs=tuple(places[at].get(b, ANY) for b in m.new)) if at in places else m
        for at, m in enumerate(moves)
    )
    return placed, (*tight[:MOST], *more("log-dir", len(tight), MOST, "replicas"))


def room_by_dir(broker: Broker) -> dict[str, int] | None:
    """Free bytes by path over the dirs that take replicas; None where there is no choice, or it cannot be made."""
    usable = [d for d in broker.log_dirs if not d.cordoned and d.error is None]
    if len(broker.log_dirs) < 2 or not usable or min(d.usable_bytes for d in usable) < 0:
        return None
    return {d.path: d.usable_bytes for d in usable}
