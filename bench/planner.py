"""Plans clusters on paper and says what it cost: ``python bench/planner.py`` prints the tables of ``docs/benchmarks.md``.

The first table is of equal brokers (``bench/cases.py``), the second of unlike ones (``bench/mixed.py``).  ``--mixed 0 1 2`` prints the
second alone, for these seeds; ``--brokers`` and ``--partitions`` say how large its clusters are.  ``--input DIR --band 0.05`` plans one
cluster from files and prints every figure.

CPU time is the process's own (user and system), so that a busy machine does not count.  Import, and the first call that
compiles the kernels or loads them from their cache, are timed apart from planning; so is the proof of the bound.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.cases import make, small
from bench.floor import proven_floor
from bench.forms import Case, read, written
from bench.mixed import mixed
from bench.score import busiest, busiest_floor, crude_bound, score

from ballast.core.plan import Plan
from ballast.core.plan.file import kafka_json
from ballast.core.planner import Balance, Expand, Intent, PlannerPolicy, plan

EQUAL: Final = (
    (20, 80, 1_667, (0.1, 0.05, 0.02)),
    (100, 800, 16_667, (0.1, 0.05, 0.02)),
    (500, 3_000, 66_667, (0.05,)),
)
"""Brokers, topics, partitions, and the bands of the first table."""
EQUAL_HEAD: Final = (
    "equal brokers",
    "status",
    "bytes over the bound",
    "over the disk bound",
    "replica moves",
    "leader changes",
    "busiest broker over its floor",
    "plan CPU s",
    "proof CPU s",
    "second plan, moves",
)
MIXED: Final = (0, 1, 6, 8, 11, 15, 20, 24, 26)
"""Seeds of the second table."""
WHOLE: Final = 2
"""Partitions, the largest, that the proven floor does not split."""
MIXED_HEAD: Final = (
    "unlike brokers",
    "bytes over the bound",
    "bound",
    "ranges missed",
    "obstacles besides",
    "rules broken",
    "replica moves",
    "leader changes",
    "busiest broker over its floor",
    "second plan, part of the bytes",
    "CPU s, with the proof",
    "peak MiB",
)


def main() -> None:
    """Plan, score, print, write."""
    options = _options()
    figures: dict[str, Any] = {"import_and_warm_up_cpu_s": _warm_up()}
    if options.input is None:
        _tables(options)
        print(f"\nImport and warm-up: {figures['import_and_warm_up_cpu_s']} CPU s. Load: {os.getloadavg()}")
        return
    case = read(options.input)
    policy = {"band": options.band, "trigger": options.band, "capacities": case.capacities}
    intent: Intent = Expand(brokers=frozenset(options.expand)) if options.expand else Balance()
    times, walls = [], []
    for _ in range(options.repeat):
        started, wall = time.process_time(), time.monotonic()
        made = plan(
            case.state, intent, loads=case.loads, policy=PlannerPolicy(**policy, prove=False), seed=options.seed
        )
        times.append(time.process_time() - started)
        walls.append(time.monotonic() - wall)
    figures |= {"plan_cpu_s": round(min(times), 2), "plan_wall_s": round(min(walls), 2), "load": os.getloadavg()}
    figures["peak_rss_mib_planning"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if not options.no_prove:
        started = time.process_time()
        made = plan(case.state, intent, loads=case.loads, policy=PlannerPolicy(**policy), seed=options.seed)
        figures["proof_cpu_s"] = round(time.process_time() - started - min(times), 2)
    figures |= _figures(case, made, options.band)
    if options.plan_csv:
        _write_csv(made, options.plan_csv)
    if options.kafka_json:
        options.kafka_json.write_text(kafka_json(made), encoding="utf-8")
    print(json.dumps(figures, indent=1))


def _tables(options: argparse.Namespace) -> None:
    """Equal brokers first, unlike ones below; a line as soon as it is measured."""
    if not options.mixed:
        _print_row(EQUAL_HEAD, "|" + "---|" * len(EQUAL_HEAD))
        for brokers, topics, partitions, bands in EQUAL:
            case = written(
                "equal", *make(brokers=brokers, racks=5, topics=topics, partitions=partitions, seed=1, factor=3)
            )
            for band in bands:
                _print_row(_equal(case, band))
        print()
    _print_row(MIXED_HEAD, "|" + "---|" * len(MIXED_HEAD))
    for seed in options.mixed or MIXED:
        _print_row(_mixed(seed, options))


def _print_row(cells: Sequence[object], below: str = "") -> None:
    print("| " + " | ".join(map(str, cells)) + " |" + ("\n" + below if below else ""), flush=True)


def _equal(case: Case, band: float) -> list[object]:
    policy = PlannerPolicy(band=band, trigger=band, capacities=case.capacities)
    started = time.process_time()
    crude = plan(case.state, Balance(), loads=case.loads, policy=replace(policy, prove=False))
    planned = time.process_time() - started
    started = time.process_time()
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    proof = max(time.process_time() - started - planned, 0.0)
    new = {(m.topic, m.partition): m.new for m in made.moves}
    found = score(case, new)
    return [
        f"{len(case.state.brokers):,} brokers, {len(case.state.partitions):,} partitions, ±{band:.0%}",
        made.status,
        _over(made),
        f"{made.bytes_moved / (crude.bound_bytes or 1):.3f}",
        f"{found['replica_moves']:,}",
        f"{found['leader_changes']:,}",
        f"{busiest(case, new) / max(busiest_floor(case, new, band), 1.0):.3f}",
        f"{planned:.1f}",
        f"{proof:.1f}",
        _again(case, new, band),
    ]


def _mixed(seed: int, options: argparse.Namespace) -> list[object]:
    """One cluster of unlike brokers: what its plan and its second plan cost."""
    case = mixed(seed, brokers=options.brokers, partitions=options.partitions)
    policy = PlannerPolicy(
        band=options.band, trigger=options.band, capacities=case.capacities, prove=not options.no_prove
    )
    started = time.process_time()
    made = plan(case.state, Balance(), loads=case.loads, policy=policy)
    spent = time.process_time() - started
    new = {(m.topic, m.partition): m.new for m in made.moves}
    after = case.moved(new)
    again = plan(after.state, Balance(), loads=after.loads, policy=policy)
    found = score(case, new)
    floor = max(
        busiest_floor(case, new, options.band, _filled(made, options.band)),
        proven_floor(case, new, policy, whole=WHOLE) or 0.0,
    )
    broken = sum(found[rule] for rule in ("rack_breaches", "twins", "on_down", "factor_changed"))
    return [
        f"seed {seed}: {len(case.state.brokers):,} brokers, {len(case.state.partitions):,} partitions",
        _over(made),
        made.bound_method,
        sum(r["after"]["out_of_range"] for r in made.summary["resources"]),
        ", ".join(sorted({o.code for o in made.obstacles} - {"band"})) or "none",
        broken,
        f"{found['replica_moves']:,}",
        f"{found['leader_changes']:,}",
        f"{busiest(case, new) / max(floor, 1.0):.3f}",
        f"{again.bytes_moved / max(made.bytes_moved, 1):.3f}",
        f"{spent:.1f}" + (" (limit)" if made.summary["search_ended_early"] else ""),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    ]


def _filled(made: Plan, band: float) -> dict[int, float]:
    """By broker the lower end of its range of disk, or what it has after the plan where that is less."""
    return {b["broker"]: min(b["share"]["disk"] * (1 - band), b["after"]["disk"]) for b in made.summary["brokers"]}


def _over(made: Plan) -> str:
    return f"{made.bytes_moved / made.bound_bytes:.3f}" if made.bound_bytes else "no bound"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--input", type=Path, help="a folder, or the prefix of NAME.partitions.csv.gz")
    what.add_argument(
        "--mixed", type=int, nargs="+", metavar="SEED", help="clusters of unlike brokers with these seeds"
    )
    parser.add_argument("--brokers", type=int, default=12, help="of each mixed cluster")
    parser.add_argument("--partitions", type=int, default=400, help="of each mixed cluster")
    parser.add_argument("--band", type=float, default=0.05, help="0.05 is ±5 %%")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1, help="plan so often and report the least CPU time")
    parser.add_argument("--expand", type=int, nargs="*", help="fill these brokers instead of balancing everything")
    parser.add_argument("--no-prove", action="store_true", help="crude bound only")
    parser.add_argument("--plan-csv", type=Path, help="write topic,partition,old_replicas,new_replicas")
    parser.add_argument("--kafka-json", type=Path, help="write Kafka's reassignment JSON")
    return parser.parse_args()


def _warm_up() -> float:
    """Plan a handful of partitions, so that every kernel is compiled or loaded; CPU seconds since the process began."""
    case = small()
    plan(case.state, Balance(), loads=case.loads, policy=PlannerPolicy(band=0.02, trigger=0.02))
    return round(time.process_time(), 2)


def _figures(case: Case, made: Plan, band: float) -> dict[str, Any]:
    new = {(m.topic, m.partition): m.new for m in made.moves}
    bound = made.bound_bytes or 0
    crude = crude_bound(case, band)
    return {
        "input": case.name,
        "brokers": len(case.state.brokers),
        "partitions": len(case.state.partitions),
        "replicas": int(case.state.partitions.start[-1]),
        "status": made.status,
        "obstacles": [f"{o.subject}: {o.detail}" for o in made.obstacles],
        "bound_method": made.bound_method,
        "bound_bytes": bound,
        "times_bound": round(made.bytes_moved / bound, 4) if bound else None,
        "crude_bound_bytes": crude,
        "times_crude": round(made.bytes_moved / crude, 4) if crude else None,
        **score(case, new),
        "times_busiest_floor": round(busiest(case, new) / max(busiest_floor(case, new, band), 1.0), 4),
        "second_plan_moves": _again(case, new, band),
    }


def _again(case: Case, new: dict[tuple[str, int], tuple[int, ...]], band: float) -> int:
    """Moves and elections of a second plan on the result; 0 when the planner is content with its own work."""
    after = case.moved(new)
    policy = PlannerPolicy(band=band, trigger=band, capacities=case.capacities, prove=False)
    made = plan(after.state, Balance(), loads=after.loads, policy=policy)
    return len(made.moves) + len(made.elections)


def _write_csv(made: Plan, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["topic", "partition", "old_replicas", "new_replicas"])
        for m in made.moves:
            out.writerow([m.topic, m.partition, ";".join(map(str, m.old)), ";".join(map(str, m.new))])


if __name__ == "__main__":
    main()
