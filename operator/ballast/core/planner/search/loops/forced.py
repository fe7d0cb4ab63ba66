"""Compiled loops for what no band excuses: replicas without a broker, on one they must leave, or too many of a topic on one."""

from __future__ import annotations

# ruff: noqa: FBT001 — compiled loops take no keyword arguments.
from typing import Any

from ballast.core.compiled import kernel, part
from ballast.core.planner.search.loops.arrays import Arrays
from ballast.core.planner.search.loops.kernels import NONE, add_gain, fits, put


@kernel
def place_forced(
    arrays: Arrays,
    load: Any,
    lead: Any,
    follow: Any,
    low: Any,
    high: Any,
    near: Any,
    repair_racks: bool,
    roam: bool,
    unplaced: Any,
) -> int:
    """Find a broker for every replica that has none, must leave, or shares a rack; marks those for whom there is none.

    Where replicas may ``roam``, so must a leader that its topic's rules do not want, once no follower may take over.
    """
    start, cur, row, rack, size = arrays.start, arrays.cur, arrays.row, arrays.rack, arrays.size
    gives, movable, budget, masks = arrays.gives, arrays.movable, arrays.budget, arrays.masks
    leave, unlead, rack_limit = arrays.leave, arrays.unlead, arrays.rack_limit
    placed = 0
    for slot in range(len(cur)):
        p = row[slot]
        if not movable[p]:
            continue
        source = cur[slot]
        must_step_down = roam and slot == start[p] and source >= 0 and unlead[masks[p] + source] and not unlead[source]
        if source >= 0 and not leave[masks[p] + source] and not must_step_down:
            if not repair_racks:
                continue
            together, fixed = 0, 0
            for j in range(start[p], start[p + 1]):
                if cur[j] >= 0 and rack[cur[j]] == rack[source]:
                    together += 1
                    fixed += not gives[cur[j]]
            if together <= rack_limit[p]:
                continue
            if not gives[source]:
                # Others in the rack go instead; those that may not are too many by themselves.
                unplaced[slot] = fixed > rack_limit[p]
                continue
        best = -1
        if budget[0] >= size[p] and budget[1] >= 1:
            best = best_place(arrays, load, lead, follow, low, high, slot, near)
        if best >= 0:
            put(arrays, load, lead, follow, slot, best)
            placed += 1
        elif source < 0 or not must_step_down:
            unplaced[slot] = True
    return placed


@part
def best_place(arrays: Arrays, load: Any, lead: Any, follow: Any, low: Any, high: Any, slot: int, near: Any) -> int:
    """The broker that a replica which cannot stay serves best; of equals, the emptiest; -1 where none may have it."""
    p, source = arrays.row[slot], arrays.cur[slot]
    cost = lead if slot == arrays.start[p] else follow
    best, best_gain, best_fill = -1, NONE, 0
    for n in range(len(near)):
        target = near[n]
        if target == source:
            continue
        gain = add_gain(load, low, high, target, cost, p, 1)
        if gain < best_gain:
            continue
        fill = 0
        for k in range(load.shape[1]):
            fill += load[target, k] >> 8
        if (gain > best_gain or fill < best_fill) and fits(arrays, p, slot, target):
            best, best_gain, best_fill = target, gain, fill
    return best


@kernel
def thin_out(arrays: Arrays, load: Any, lead: Any, follow: Any, low: Any, high: Any, near: Any) -> int:
    """Move replicas, the smallest first, off brokers that hold more of a topic than its rule allows."""
    cur, row, size, counted, tally = arrays.cur, arrays.row, arrays.size, arrays.counted, arrays.tally
    gives, movable, budget = arrays.gives, arrays.movable, arrays.budget
    most = tally[:, tally.shape[1] - 1]
    placed = 0
    for slot in range(len(cur) - 1, -1, -1):
        p, source = row[slot], cur[slot]
        topic = counted[p]
        if topic < 0 or source < 0 or not movable[p] or not gives[source] or tally[topic, source] <= most[topic]:
            continue
        if budget[0] >= size[p] and budget[1] >= 1:
            best = best_place(arrays, load, lead, follow, low, high, slot, near)
            if best >= 0:
                put(arrays, load, lead, follow, slot, best)
                placed += 1
    return placed
