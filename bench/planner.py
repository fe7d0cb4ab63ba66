"""Plans a cluster on paper and says what it cost: ``python bench/planner.py --input DIR --band 0.05``.

``--mixed 0 1 2`` plans clusters of unlike brokers instead (``bench/mixed.py``, these seeds) and prints a line for each: the second
table of ``docs/benchmarks.md``.  ``--brokers`` and ``--partitions`` say how large they are.

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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.cases import small
from bench.forms import Case, read
from bench.mixed import mixed
from bench.score import busiest, busiest_floor, crude_bound, score

from ballast.core.plan import Plan
from ballast.core.plan.file import kafka_json
from ballast.core.planner import Expand, Intent, Level, PlannerPolicy, plan


def main() -> None:
    """Plan, score, print, write."""
    options = _options()
    figures: dict[str, Any] = {"import_and_warm_up_cpu_s": _warm_up()}
    if options.mixed:
        for seed in options.mixed:
            print(json.dumps(_mixed(seed, options)), flush=True)
        return
    case = read(options.input)
    policy = {"band": options.band, "trigger": options.band, "capacities": case.capacities}
    intent: Intent = Expand(brokers=frozenset(options.expand)) if options.expand else Level()
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


def _mixed(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One cluster of unlike brokers: what its plan and its second plan cost."""
    case = mixed(seed, brokers=options.brokers, partitions=options.partitions)
    policy = PlannerPolicy(
        band=options.band, trigger=options.band, capacities=case.capacities, prove=not options.no_prove
    )
    started = time.process_time()
    made = plan(case.state, Level(), loads=case.loads, policy=policy)
    spent = time.process_time() - started
    new = {(m.topic, m.partition): m.new for m in made.moves}
    after = case.moved(new)
    again = plan(after.state, Level(), loads=after.loads, policy=policy)
    found = score(case, new)
    return {
        "seed": seed,
        "brokers": len(case.state.brokers),
        "replicas": int(case.state.partitions.start[-1]),
        "status": made.status,
        "ranges_missed": sum(r["after"]["outside"] for r in made.summary["resources"]),
        "rules_broken": sum(found[rule] for rule in ("rack_breaches", "twins", "on_dead", "factor_changed")),
        "times_bound": round(made.bytes_moved / (made.bound_bytes or 1), 4) if made.bound_bytes else None,
        "bound_method": made.bound_method,
        "second_plan": round(again.bytes_moved / max(made.bytes_moved, 1), 5),
        "larger_than_any_range": any("alone is" in o.detail for o in made.obstacles),
        "plan_cpu_s": round(spent, 2),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "load": os.getloadavg(),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--input", type=Path, help="a folder, or the prefix of NAME.partitions.csv.gz")
    what.add_argument(
        "--mixed", type=int, nargs="+", metavar="SEED", help="clusters of unlike brokers with these seeds"
    )
    parser.add_argument("--brokers", type=int, default=12, help="of each mixed cluster")
    parser.add_argument("--partitions", type=int, default=400, help="of each mixed cluster")
    parser.add_argument("--band", type=float, default=0.05, help="0.05 is ±5 %%")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1, help="plan so often and report the least CPU time")
    parser.add_argument("--expand", type=int, nargs="*", help="fill these brokers instead of levelling everything")
    parser.add_argument("--no-prove", action="store_true", help="crude bound only")
    parser.add_argument("--plan-csv", type=Path, help="write topic,partition,old_replicas,new_replicas")
    parser.add_argument("--kafka-json", type=Path, help="write stock reassignment JSON")
    return parser.parse_args()


def _warm_up() -> float:
    """Plan a handful of partitions, so that every kernel is compiled or loaded; CPU seconds since the process began."""
    case = small()
    plan(case.state, Level(), loads=case.loads, policy=PlannerPolicy(band=0.02, trigger=0.02))
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
    made = plan(after.state, Level(), loads=after.loads, policy=policy)
    return len(made.moves) + len(made.elections)


def _write_csv(made: Plan, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["topic", "partition", "old_replicas", "new_replicas"])
        for m in made.moves:
            out.writerow([m.topic, m.partition, ";".join(map(str, m.old)), ";".join(map(str, m.new))])


if __name__ == "__main__":
    main()
