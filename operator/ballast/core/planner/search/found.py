"""What the search found: where everything goes, and the moves that lead there."""

from __future__ import annotations

from dataclasses import dataclass

from ballast.core.cluster import Flags, Ints
from ballast.core.plan import Move
from ballast.core.planner.search.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A placement."""

    world: World
    moves: tuple[Move, ...]
    after: Ints
    """B x K: the scaled loads when all moves are made."""
    unplaced: Flags
    """By slot: no legal broker was found."""
    in_order: bool = False
    """The moves need room that moves before them free."""
    later: Flags | None = None
    """B x K: ranges missed because disks have no room until these moves are done; the next plan can meet them."""
    ended_early: bool = False
    """The search ended at its limit of work."""
