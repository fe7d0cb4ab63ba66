"""Fair shares where topics may not be everywhere: the most even split that their rules allow."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ballast.core.cluster import Flags

ROUNDS: Final = 2000
STILL: Final = 1e-12
"""Part of the whole by which no broker's load changes any more in a round that is the last."""
DIGITS: Final = 6
"""Decimals of a share: what whole numbers are compared with must not hang on the last bit."""

Floats = npt.NDArray[np.float64]


def pool(load: Floats, allowed: Flags, weight: Floats) -> Floats:
    """By broker its share, when ``load`` of each class may be split over the brokers that ``allowed`` (C x B) says.

    Of all splits the one whose fullest broker is least full by weight, then the next fullest, and so on.  Found by pouring
    one class after another afresh onto what the others have left there, until nothing changes; that ends at the optimum,
    since evenness is convex and no class's choice limits another's.  A class that may be nowhere counts everywhere.
    """
    split = np.zeros(allowed.shape)
    may = allowed & (weight > 0)
    may[~may.any(axis=1)] = weight > 0
    total = float(load.sum()) if bool((weight > 0).any()) else 0.0
    for _ in range(ROUNDS):
        before = split.sum(axis=0)
        for c in np.flatnonzero(load > 0).tolist() if total else ():
            others = split.sum(axis=0) - split[c]
            split[c] = _pour(float(load[c]), others, np.where(may[c], weight, 0.0))
        if float(np.abs(split.sum(axis=0) - before).max(initial=0.0)) <= STILL * total:
            break
    return np.asarray(np.round(split.sum(axis=0), DIGITS))


def _pour(load: float, ground: Floats, weight: Floats) -> Floats:
    """Pour into vessels of these widths that already hold ``ground``, to one level over the lowest of them."""
    out = np.zeros(len(weight))
    members = np.flatnonzero(weight > 0)
    order = members[np.argsort(ground[members] / weight[members], kind="stable")]
    held, width = np.cumsum(ground[order]), np.cumsum(weight[order])
    level = (load + held) / width
    heights = ground[order] / weight[order]
    # The level with the first n vessels stands when the next one's ground is above it.
    enough = np.append(level[:-1] <= heights[1:], values=True)
    n = int(np.argmax(enough)) + 1
    out[order[:n]] = np.maximum(level[n - 1] * weight[order[:n]] - ground[order[:n]], 0.0)
    return out
