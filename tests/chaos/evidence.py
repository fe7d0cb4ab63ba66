"""What is kept when something that must hold did not: enough to see it without running it again."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.cluster import ChaosSandbox
from tests.chaos.schedule import Step, as_json
from tests.chaos.verdicts import Violation

from ballast.core.planner import Loads
from ballast.core.snapshot.file import Snapshot
from ballast.core.snapshot.file import dumps as snapshot_text
from ballast.errors import BallastError
from ballast.ports.cluster import Cluster, ConfigResource


@dataclass(frozen=True)
class Evidence:
    """Everything that is known of one run."""

    name: str
    seed: int
    steps: tuple[Step, ...]
    violations: Sequence[Violation]
    story: list[str]
    journal: Sequence[tuple[int, int, str, Any]]
    sandbox: ChaosSandbox
    cluster: Cluster
    person: Mapping[str, Mapping[str, str]]
    figures: Mapping[str, Any]


def keep(found: Evidence, root: Path) -> Path:
    """Write it into a folder of its own."""
    folder = root / f"{found.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder.mkdir(parents=True)
    (folder / "violations.txt").write_text("".join(f"{violation}\n" for violation in found.violations))
    (folder / "story.txt").write_text("\n".join(found.story) + "\n")
    (folder / "schedule.json").write_text(as_json(found.seed, found.steps))
    (folder / "figures.json").write_text(json.dumps(dict(found.figures), indent=1) + "\n")
    (folder / "person.json").write_text(json.dumps(dict(found.person), indent=1) + "\n")
    lines = [
        json.dumps(dict(zip(("journal", "offset", "key", "value"), record, strict=True))) for record in found.journal
    ]
    (folder / "journal.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "cluster.json").write_text(cluster_text(found.cluster))
    logs = folder / "logs"
    logs.mkdir()
    for source in (*(found.sandbox.folder / "logs").glob("*.log"), *found.sandbox.daemons_folder.glob("*.log")):
        with suppress(OSError):
            shutil.copy(source, logs)
    return folder


def cluster_text(cluster: Cluster) -> str:
    """The cluster as it stands: its snapshot, and every setting that is set."""
    try:
        state = cluster.snapshot()
        resources = [ConfigResource("topic", t.name) for t in state.topics]
        resources += [ConfigResource("broker", str(b)) for b in sorted(state.alive)]
        settings = {
            f"{r.kind} {r.name}": {k: v.value for k, v in entries.items() if v.source.startswith("DYNAMIC")}
            for r, entries in cluster.configs(resources).items()
        }
        moving = {str(name): repr(r) for name, r in cluster.reassignments().items()}
        return json.dumps(
            {
                "settings": settings,
                "moving": moving,
                "snapshot": json.loads(snapshot_text(Snapshot(state, Loads.from_state(state)))),
            },
            indent=1,
        )
    except BallastError as failure:
        return json.dumps({"failure": str(failure)})
