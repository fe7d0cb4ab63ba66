"""Runs in order: each move fits once those before it have ended, and takes no room that they need (``Plan.in_order``)."""

from __future__ import annotations

from collections.abc import Mapping

from ballast.core import guards
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.guards import Verdict, verdict
from ballast.core.plan import Move, Place
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.run import Run
from ballast.executor.machine.scheduling.room import size_of
from ballast.executor.machine.stages import Planned


def out_of_turn(
    run: Run, picture: Picture, state: ClusterState, room: Mapping[Place, int]
) -> dict[TopicPartition, Verdict]:
    """In a run in order, the waiting moves that would take room that waiting moves before them need.

    What is left fits beside them all, however many of it start at once.  So no two moves ever wait for each other: the first that
    waits has its room as soon as those before it have ended, whatever has gone before its turn.  Repairs never wait for others.
    """
    out: dict[TopicPartition, Verdict] = {}
    needed: dict[Place, int] = {}
    for m in run.moves_in(Planned) if run.in_order else ():
        size = max(size_of(m, picture), 0)
        for broker, place in ((b, place) for b in m.move.adding for place in m.move.places(b)):
            if place not in room:
                continue
            needed[place] = needed.get(place, 0) + size
            if size <= room[place] < needed[place] and size and not _mends(m.move, state):
                out[m.move.name] = verdict("room-reserved", broker, broker=broker, partition=m.move.name)
    return out


def _mends(move: Move, state: ClusterState) -> bool:
    row = state.index.get(move.name)
    return row is not None and guards.repairs(move, state, row)
