"""What every compiled loop of the search is given of a ``World``: its arrays by name, without any compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags, Ints, SmallInts


class Arrays(NamedTuple):
    """A world as the loops see it; numba sees each field with its own type."""

    start: Ints
    """Slots of partition p are ``start[p]:start[p + 1]``, the leader's first."""
    cur: SmallInts
    """By slot: the broker now, -1 for none."""
    row: SmallInts
    """By slot: the partition."""
    old_start: Ints
    """Homes of partition p are ``old[old_start[p]:old_start[p + 1]]``, the leader's first."""
    old: SmallInts
    leave: Flags
    """By mask: no replica may stay."""
    rack: SmallInts
    """By broker."""
    rack_limit: SmallInts
    """By partition: the most replicas in one rack."""
    takes: Flags
    """By mask: may receive a replica."""
    leads: Flags
    """By mask: may become preferred leader."""
    size: Ints
    """By partition, in scaled bytes."""
    room: Ints
    """By broker: the most that ``held`` may be."""
    held: Ints
    """By broker: scaled bytes that it holds at the worst moment."""
    unlead: Flags
    """By mask: must give leadership up."""
    gives: Flags
    """By broker: may lose what is at home there."""
    movable: Flags
    """By partition: may change."""
    budget: Ints
    """Scaled bytes and copies that are still allowed."""
    masks: SmallInts
    """By partition: where the masks of its class begin; those of broker b are at ``masks[p] + b``."""
    counted: SmallInts
    """By partition: the row of its topic in ``tally``, -1 where no rule counts its replicas."""
    tally: Ints
    """By topic and broker: replicas; the last column is the most that there may be."""
    hard: npt.NDArray[np.int8]
    """By broker and resource: which ends of the range are hard limits."""
    rack_least: SmallInts
    """By partition: the fewest racks that hold it."""
