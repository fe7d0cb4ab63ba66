"""A simulated cluster behind the same ports, and the scenarios that run on it.

``SimClock`` owns time, ``SimWorld`` the physics and the levers (kill, freeze, delete, load), ``SimCluster`` is what a client
sees of it, ``MemoryJournal`` the journal of a simulated process.
"""

from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import Physics, SimBroker
from ballast.sim.world import SimWorld

__all__ = ["JournalStore", "MemoryJournal", "Physics", "SimBroker", "SimClock", "SimCluster", "SimWorld"]
