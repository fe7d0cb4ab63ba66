"""Runs in order: each move fits once those before it have ended, and takes no room that they need (``Plan.in_order``).

Disks are nearly full there, so room is counted with care: what a reading of the disks may not show counts as if it took all
of its room, until a later one shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ballast.core import guards
from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.guards import Verdict
from ballast.core.plan import Move, Place
from ballast.executor.machine.observation import Picture
from ballast.executor.machine.run import MoveRun, Run
from ballast.executor.machine.stages import HoldsThrottle, Planned


def not_in_reading(run: Run, picture: Picture) -> dict[Place, int]:
    """Bytes on the way to each disk, and those that have come there since it was read."""
    out: dict[Place, int] = {}
    for m in run.moves.values():
        if isinstance(m.stage, Planned):
            continue
        for broker, place in _places(m.move):
            if isinstance(m.stage, HoldsThrottle) or m.entered_s >= picture.disks_read_s.get(broker, m.entered_s):
                out[place] = out.get(place, 0) + _size(m, picture)
    return out


def out_of_turn(
    run: Run, picture: Picture, state: ClusterState, room: Mapping[Place, int]
) -> dict[TopicPartition, Verdict]:
    """In a run in order, the waiting moves that would take room that waiting moves before them need.

    What is left fits beside them all, however many of it start at once.  So no two moves ever wait for each other: the first that
    waits has its room as soon as those before it have ended, whatever has gone before its turn.  Repairs wait for nobody's sake.
    """
    out: dict[TopicPartition, Verdict] = {}
    needed: dict[Place, int] = {}
    for m in run.moves_in(Planned) if run.in_order else ():
        size = _size(m, picture)
        for broker, place in _places(m.move):
            if place not in room:
                continue
            needed[place] = needed.get(place, 0) + size
            if size <= room[place] < needed[place] and size and not _mends(m.move, state):
                out[m.move.name] = _reserved(m.move, broker)
    return out


def _mends(move: Move, state: ClusterState) -> bool:
    row = state.index.get(move.name)
    return row is not None and guards.repairs(move, state, row)


def _reserved(move: Move, broker: int) -> Verdict:
    return Verdict(
        "room-reserved",
        f"broker {broker}",
        f"The room left on broker {broker} is reserved for moves before {move.name} in the plan.",
        "It starts when they have ended.",
    )


def _places(move: Move) -> Iterator[tuple[int, Place]]:
    return ((b, place) for b in move.adding for place in move.places(b))


def _size(m: MoveRun, picture: Picture) -> int:
    """Bytes of one replica, by the plan or by the last that is known, whichever is more."""
    return max(
        m.move.size_bytes, (m.total_bytes or 0) // max(len(m.move.adding), 1), picture.sizes.get(m.move.name, 0), 0
    )
