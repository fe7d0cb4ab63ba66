"""A journal that a newer version has written to: going back to this one is possible once its runs have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ballast.core.plan import Move, Plan
from ballast.errors import Refused
from ballast.executor.policy import ExecutionPolicy
from ballast.executor.records import dump_run, load_runs
from ballast.executor.run import Now, Phase, new_run
from ballast.ports.journal import Record

NOW = Now(0, 0.0)
Change = Callable[[dict[str, Any]], object]


def records(run_id: str, *, ended: bool, change: Change | None = None, kind: str = "run/") -> list[Record]:
    """A run's records, some of them as a newer version would write them."""
    run = new_run(run_id, Plan("test", "c", "", (Move("t", 0, (1, 2), (3, 2), 1),)), ExecutionPolicy(), NOW)
    out = []
    for record in dump_run(replace(run, phase=Phase.ENDED) if ended else run):
        value = dict(record.value or {})
        if change is not None and record.key.startswith(kind):
            change(value)
        out.append(Record(record.key, value))
    return out


NEWER: list[tuple[str, Change, bool]] = [
    ("run/", lambda v: v.update(mood="new"), True),
    ("run/", lambda v: v.update(policy={"knob": 1}), True),
    ("run/", lambda v: v.update(version=99), False),
    ("run/", lambda v: v.update(status="new"), False),
    ("move/", lambda v: v.update(stage="new"), False),
]


@pytest.mark.parametrize(("kind", "change", "shown"), NEWER)
def test_an_ended_run_of_a_newer_version_stops_nothing(kind: str, change: Change, *, shown: bool) -> None:
    """What is unknown of it is skipped, or all of it; the open run beside it is read."""
    found = load_runs([*records("old", ended=True, change=change, kind=kind), *records("open", ended=False)], NOW)
    assert list(found) == (["old", "open"] if shown else ["open"])


@pytest.mark.parametrize(("kind", "change", "shown"), NEWER[1:])
def test_an_open_run_of_a_newer_version_is_refused(kind: str, change: Change, *, shown: bool) -> None:
    """It would be carried out otherwise than it was meant."""
    with pytest.raises(Refused):
        load_runs(records("open", ended=False, change=change, kind=kind), NOW)
