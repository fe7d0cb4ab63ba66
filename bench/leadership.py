"""How long leader imbalance and the balancing of preferred leaders take, and how good the result is.

    python bench/leadership.py [--partitions 200000] [--brokers 1000] [--seed 1] [--json]

Three replicas each, sizes log-normal.  On the given share of partitions the broker with the lowest id of the three is
preferred, which is what grows on a cluster whose brokers were added one by one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ballast.core.cluster import Ints, SmallInts
from ballast.core.leadership import tally
from ballast.core.leadership.reorder import Choices, Reordering, balance_counts, balance_weights, loads


def make(partitions: int, brokers: int, crooked: float, seed: int) -> tuple[Choices, Ints]:
    """A leadership problem and the size of each partition."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, max(brokers // 3, 2), (partitions, 3)).cumsum(axis=1)
    options = (rng.integers(0, brokers, (partitions, 1)) + steps) % brokers
    options = np.where(rng.random((partitions, 1)) < crooked, np.sort(options, axis=1), options)
    start = np.arange(partitions + 1, dtype=np.int64) * 3
    sizes = rng.lognormal(20, 1, partitions).astype(np.int64)
    columns: SmallInts = options.ravel().astype(np.int32)
    return Choices(np.arange(partitions), start, columns, start[:-1].copy(), np.arange(brokers)), sizes


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result, the best of three runs after one that compiles."""
    work()
    best, result = float("inf"), None
    for _ in range(3):
        began = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - began)
    return best, result


def measure(partitions: int, brokers: int, crooked: float, seed: int) -> dict[str, Any]:
    """One line of the table."""
    problem, sizes = make(partitions, brokers, crooked, seed)
    ones = np.ones(partitions, np.int64)
    preferred = problem.option[problem.home]
    leader = np.where(np.random.default_rng(seed).random(partitions) < 0.2, preferred + 1, preferred).astype(np.int32)
    ratio_s, _ = timed(lambda: tally(preferred, leader, range(brokers)))
    counts: Reordering
    count_s, counts = timed(lambda: balance_counts(problem))
    size_s, by_size = timed(lambda: balance_weights(problem, sizes))
    return {
        "partitions": partitions,
        "brokers": brokers,
        "crooked": crooked,
        "seed": seed,
        "ratio_s": round(ratio_s, 3),
        "count": {
            "seconds": round(count_s, 2),
            "max_before": int(loads(problem, problem.first, ones).max()),
            "max_after": counts.maximum,
            "least_possible": counts.bound,
            "changes": len(counts.changed),
        },
        "bytes": {
            "seconds": round(size_s, 2),
            "max_before": int(loads(problem, problem.first, sizes).max()),
            "max_after": by_size.maximum,
            "bound": by_size.bound,
            "gap_percent": round(100 * by_size.gap, 3),
            "changes": len(by_size.changed),
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [measure(given.partitions, given.brokers, crooked, given.seed) for crooked in (0.0, 0.5, 0.95)]
    if given.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    print(f"{given.partitions:,} partitions of 3 replicas on {given.brokers:,} brokers, seed {given.seed}\n")
    print("crooked  ratio     count: most   least   changes          bytes: most above bound   changes")
    for r in rows:
        c, b = r["count"], r["bytes"]
        print(
            f"{r['crooked']:>6.0%}  {r['ratio_s']:>5.3f} s  {c['max_before']:>5} -> {c['max_after']:<5} {c['least_possible']:>5}"
            f"  {c['changes']:>8,} {c['seconds']:>6.2f} s   {b['max_before'] / 1e9:>5.1f} -> {b['max_after'] / 1e9:.1f} GB"
            f"  {b['gap_percent']:>6.3f} %  {b['changes']:>8,} {b['seconds']:>6.2f} s"
        )


if __name__ == "__main__":
    main()
