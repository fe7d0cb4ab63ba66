"""Makes a fresh machine ready: ``python3 bootstrap setup|check|demo|test|lock``.

Runs on a bare Python 3.11 with nothing but its standard library; every step says what it does, finds what an earlier run
left, and can be interrupted.  What a goal needs beyond the environment (Java, Kafka's jars, system packages) is brought for
that goal only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from compiled_loops import build_kernels
from environment import DEV, RUNTIME, VENV, Environment
from story import Trouble, say
from system_packages import install_missing

GOALS = ("setup", "check", "demo", "test", "lock")
KAFKA = ["--kafka-version", "4.3.1", "--kafka-version", "3.9.2", "--kafka-version", "2.3.1", "--tools"]
"""Which Kafka versions the tests run, brought before they start so that none waits for a download."""


def main(argv: list[str]) -> int:
    """Prepare one goal."""
    if len(argv) != 1 or argv[0] not in GOALS:
        say(f"usage: python3 bootstrap {'|'.join(GOALS)}")
        return 2
    goal = argv[0]
    try:
        environment = Environment(RUNTIME if goal == "demo" else DEV)
        if goal == "lock":
            environment.relock()
            return 0
        if goal == "test":
            install_missing()
        environment.ensure()
        if goal not in {"check", "demo"}:
            # The demo brings Kafka by itself, and has numba compile the loops of its one plan meanwhile.
            build_kernels()
        if goal == "test":
            subprocess.run([str(VENV / "bin" / "ballast"), "sandbox", "prepare", *KAFKA], check=True)
    except Trouble as trouble:
        say(str(trouble))
        return 1
    except subprocess.CalledProcessError as failed:
        return failed.returncode or 1
    except KeyboardInterrupt:
        say("interrupted; the next run goes on from here")
        return 130
    return 0


sys.exit(main(sys.argv[1:]))
