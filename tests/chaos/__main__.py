"""``python -m tests.chaos --seed 7 --minutes 10 --kind kraft``: what ``make chaos`` runs."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from tests.chaos.nemesis import KINDS_OF_CLUSTER, Wanted, chaos
from tests.chaos.planted import PLANTS
from tests.chaos.schedule import KINDS


def main() -> int:
    """Exit code 0 where everything held, 1 where something did not."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="draws the schedule; a fresh one by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long faults go on")
    parser.add_argument("--kind", choices=KINDS_OF_CLUSTER, default="kraft")
    parser.add_argument("--brokers", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=sorted(KINDS), default=sorted(KINDS), help="kinds of faults")
    parser.add_argument(
        "--plant", choices=sorted(PLANTS), default="", help="let Ballast itself do this wrong: it must be found"
    )
    parser.add_argument(
        "--balanced-within", type=float, default=600.0, help="patience after the last fault, in seconds"
    )
    parser.add_argument("--keep", type=Path, default=Path("build/chaos"), help="where a violation's evidence goes")
    given = parser.parse_args()
    seed = secrets.randbits(32) if given.seed is None else given.seed
    wanted = Wanted(
        seed=seed,
        minutes=given.minutes,
        kind=given.kind,
        brokers=given.brokers,
        kinds=tuple(given.only),
        plant=given.plant,
        balanced_within_s=given.balanced_within,
        keep=given.keep,
    )
    return 1 if chaos(wanted).violations else 0


if __name__ == "__main__":
    sys.exit(main())
