"""Scores an assignment without knowing any planner: bands, rules, bytes, from plain replica lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from bench.forms import Case

Lists = Mapping[tuple[str, int], tuple[int, ...]]


def score(case: Case, new: Lists) -> dict[str, Any]:
    """Figures of the assignment that results when these partitions get new lists."""
    brokers = [b.id for b in case.state.brokers]
    at = {b: i for i, b in enumerate(brokers)}
    alive = np.array([b.alive for b in case.state.brokers])
    rack = [b.rack for b in case.state.brokers]
    loads = case.loads
    columns = {
        "disk": (loads.size_bytes, loads.size_bytes),
        "bytes-in": (loads.bytes_in_per_s, loads.bytes_in_per_s),
        "bytes-out": (loads.bytes_out_per_s, 0 * loads.bytes_out_per_s),
        "cpu": (loads.cpu_leader, loads.cpu_follower),
        "replicas": (np.ones(len(loads), np.int64), np.ones(len(loads), np.int64)),
        "preferred-leaders": (np.ones(len(loads), np.int64), np.zeros(len(loads), np.int64)),
    }
    old_lists = [case.state.target(row) for row in range(len(loads))]
    names = [case.state.name(row) for row in range(len(loads))]
    new_lists = [new.get((n.topic, n.partition), o) for n, o in zip(names, old_lists, strict=True)]
    lengths = np.array([len(m) for m in new_lists])
    row = np.repeat(np.arange(len(new_lists)), lengths)
    flat = np.array([at[b] for members in new_lists for b in members])
    first = np.zeros(len(flat), np.bool_)
    first[np.concatenate(([0], np.cumsum(lengths)))[:-1]] = True
    bands = {}
    for name, (lead, follow) in columns.items():
        load = np.bincount(flat, weights=np.where(first, lead[row], follow[row]), minlength=len(brokers))[alive]
        mean = float(load.mean())
        if mean > 0:
            bands[name] = (round(float(load.min()) / mean, 5), round(float(load.max()) / mean, 5))
    changed = [i for i, (o, n) in enumerate(zip(old_lists, new_lists, strict=True)) if o != n]
    added = [len(set(new_lists[i]) - set(old_lists[i])) for i in changed]
    return {
        "bands": bands,
        "rack_breaches": sum(len({rack[at[b]] for b in m}) < min(len(m), len(set(rack))) for m in new_lists),
        "twins": sum(len(set(m)) < len(m) for m in new_lists),
        "on_down": sum(not alive[at[b]] for m in new_lists for b in m),
        "factor_changed": sum(len(old_lists[i]) != len(new_lists[i]) for i in changed),
        "partitions_changed": len(changed),
        "replica_moves": sum(added),
        "bytes_moved": sum(a * int(loads.size_bytes[i]) for a, i in zip(added, changed, strict=True)),
        "leader_changes": sum(old_lists[i][0] != new_lists[i][0] for i in changed),
        "topic_spread": (round(_spread(case, old_lists, at, alive), 4), round(_spread(case, new_lists, at, alive), 4)),
    }


def crude_bound(case: Case, band: float) -> int:
    """The bytes that disk alone asks for: what is over the band, what is under it, whichever is more."""
    alive = {b.id for b in case.state.brokers if b.alive}
    held = dict.fromkeys((b.id for b in case.state.brokers), 0)
    p = case.state.partitions
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    for broker, size in zip(p.replica.tolist(), case.loads.size_bytes[rows].tolist(), strict=True):
        held[broker] += size
    mean = sum(held.values()) / len(alive)
    down = sum(size for b, size in held.items() if b not in alive)
    over = sum(max(held[b] - mean * (1 + band), 0) for b in alive) + down
    under = sum(max(mean * (1 - band) - held[b], 0) for b in alive)
    return int(max(over, under))


def busiest(case: Case, new: Lists) -> int:
    """The most bytes that one broker receives, or sends as the leader of what others copy."""
    through: Counter[tuple[str, int]] = Counter()
    for row in range(len(case.loads)):
        name = case.state.name(row)
        size = int(case.loads.size_bytes[row])
        for b in set(new.get((name.topic, name.partition), ())) - set(case.state.target(row)):
            through["in", b] += size
            through["out", int(case.state.partitions.leader[row])] += size
    return max((size for (_, b), size in through.items() if b >= 0), default=0)


def busiest_floor(case: Case, new: Lists, band: float, reached: Mapping[int, float] | None = None) -> float:
    """What the busiest broker has at least: what the emptiest lacks on its disk, or an equal part of all bytes.

    A broker is filled to the lower end of its range, which is that of equal brokers unless ``reached`` says by broker how far.
    """
    alive = [b.id for b in case.state.brokers if b.alive]
    p = case.state.partitions
    rows = np.repeat(np.arange(len(p)), np.diff(p.start))
    held = np.bincount(p.replica, weights=case.loads.size_bytes[rows], minlength=max(alive) + 1)
    moved = 0
    for row in range(len(case.loads)):
        name = case.state.name(row)
        added = set(new.get((name.topic, name.partition), ())) - set(case.state.target(row))
        moved += len(added) * int(case.loads.size_bytes[row])
    equal = float(held.sum()) / len(alive) * (1 - band)
    lack = max((reached[b] if reached else equal) - float(held[b]) for b in alive)
    return max(lack, moved / len(alive))


def _spread(case: Case, lists: list[tuple[int, ...]], at: dict[int, int], alive: Any) -> float:
    """Mean over topics of the standard deviation of replicas over live brokers."""
    counts = np.zeros((len(case.state.topics), len(at)), np.int32)
    topic = case.state.partitions.topic
    rows = np.repeat(np.arange(len(lists)), [len(m) for m in lists])
    np.add.at(counts, (topic[rows], np.array([at[b] for m in lists for b in m])), 1)
    return float(counts[:, alive].std(axis=1).mean())
