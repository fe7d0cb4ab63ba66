"""How the planner's time grows with the cluster: ``python bench/growth.py [--write] [--mixed]``.

Clusters of one kind (200 brokers, 5 racks, three replicas of each partition) and of rising size are planned at ±5 %; with ``--mixed``
clusters of unlike brokers (``bench/mixed.py``, 200 brokers, seed 1).  CPU time is the process's own, of one plan with its checker and the crude bound, kernels warm.  ``--write`` draws the
figures just measured into ``docs/pictures/planner-growth.svg``.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.cases import make, small
from bench.docs_figures import DOCS, svg, text
from bench.forms import Case, written
from bench.mixed import mixed

from ballast.core.planner import Balance, PlannerPolicy, plan

BROKERS, RACKS, PARTITIONS_OF_TOPIC = 200, 5, 30
SIZES = (10_000, 30_000, 100_000, 300_000, 933_334)
"""Partitions."""
WIDTH, HEIGHT, LEFT, BOTTOM = 560, 320, 64, 270


@dataclass(frozen=True)
class Point:
    """What one plan cost."""

    replicas: int
    cpu_s: float
    times_bound: float
    ranges_missed: int
    peak_mib: int


def measure(partitions: int, *, unlike: bool) -> Point:
    """One plan."""
    case = mixed(1, brokers=BROKERS, partitions=partitions) if unlike else _equal(partitions)
    policy = PlannerPolicy(band=0.05, trigger=0.05, capacities=case.capacities, prove=False)
    started = time.process_time()
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    spent = time.process_time() - started
    assert unlike or made.status == "meets-all-goals", made.obstacles
    return Point(
        int(case.state.partitions.start[-1]),
        spent,
        made.bytes_moved / (made.bound_bytes or 1),
        sum(r["after"]["out_of_range"] for r in made.summary["resources"]),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def _equal(partitions: int) -> Case:
    topics = partitions // PARTITIONS_OF_TOPIC
    return written("growth", *make(brokers=BROKERS, racks=RACKS, topics=topics, partitions=partitions, seed=1))


def picture(points: list[tuple[int, float]]) -> str:
    """Seconds over replicas, both axes logarithmic, with the line of proportional growth through the last point."""
    least, most = 10 ** math.floor(math.log10(points[0][0])), 10 ** math.ceil(math.log10(points[-1][0]))
    last_replicas, last_seconds = points[-1]
    floor = 10 ** math.floor(math.log10(min(points[0][1], last_seconds * least / last_replicas)))
    ceiling = 10 ** math.ceil(math.log10(last_seconds))

    def x(replicas: float) -> float:
        return LEFT + (WIDTH - LEFT - 24) * math.log(replicas / least) / math.log(most / least)

    def y(seconds: float) -> float:
        return BOTTOM - (BOTTOM - 40) * math.log(seconds / floor) / math.log(ceiling / floor)

    body = [text(LEFT, 22, "CPU seconds of one plan over replicas, 200 brokers, ±5 %", bold=True)]
    for n in range(round(math.log10(most / least)) + 1):
        at = x(least * 10**n)
        body.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="40" y2="{BOTTOM}" stroke="#dddddd"/>')
        body.append(text(at - 24, BOTTOM + 20, f"{least * 10**n:,}"))
    for n in range(round(math.log10(ceiling / floor)) + 1):
        at = y(floor * 10**n)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - 24}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
        body.append(text(16, at + 4, f"{floor * 10**n:g}"))
    ends = [(r, last_seconds * r / last_replicas) for r in (least, most)]
    ends = [(r, s) for r, s in ends if floor <= s <= ceiling] + [(last_replicas, last_seconds)]
    line = " ".join(f"{x(r):.1f},{y(s):.1f}" for r, s in sorted(ends))
    body.append(f'<polyline points="{line}" fill="none" stroke="#888888" stroke-dasharray="5 4"/>')
    path = " ".join(f"{x(r):.1f},{y(s):.1f}" for r, s in points)
    body.append(f'<polyline points="{path}" fill="none" stroke="#1f6f8b" stroke-width="2"/>')
    for r, s in points:
        body.append(f'<circle cx="{x(r):.1f}" cy="{y(s):.1f}" r="4" fill="#1f6f8b"/>')
        body.append(text(x(r) - 34, y(s) - 10, f"{s:.1f} s"))
    body.append(text(LEFT, HEIGHT - 8, "dashed: in proportion to the replicas"))
    return svg(WIDTH, HEIGHT, body)


def main() -> None:
    """Measure, print, and draw where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--mixed", action="store_true", help="clusters of unlike brokers")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="partitions of each cluster")
    options = parser.parse_args()
    warm = small()
    plan(warm.state, Balance(), loads=warm.loads, policy=PlannerPolicy(band=0.02, trigger=0.02))
    points = []
    print(
        "| replicas | CPU s | CPU µs a replica | bytes over the crude bound | ranges missed | peak MiB |\n"
        "|---|---|---|---|---|---|"
    )
    for partitions in options.sizes:
        p = measure(partitions, unlike=options.mixed)
        points.append((p.replicas, p.cpu_s))
        print(
            f"| {p.replicas:,} | {p.cpu_s:.2f} | {1e6 * p.cpu_s / p.replicas:.1f} | {p.times_bound:.4f} "
            f"| {p.ranges_missed} of {6 * BROKERS} | {p.peak_mib:,} |",
            flush=True,
        )
    if options.write and not options.mixed:
        (DOCS / "pictures" / "planner-growth.svg").write_text(picture(points))


if __name__ == "__main__":
    main()
