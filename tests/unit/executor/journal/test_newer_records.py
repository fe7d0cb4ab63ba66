"""A journal that a newer version has written to: going back to this one is possible once its runs have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.executor.scenes import scene

from ballast.core.plan import Move, Plan
from ballast.errors import Refused
from ballast.executor.journal.history import load_summaries
from ballast.executor.journal.records import Unreadable, dump_run, load_open_runs, load_runs, read_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, Phase, new_run
from ballast.ports.journal import Record
from ballast.wiring.cluster import OpenCluster
from ballast.wiring.runs import Writer

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
    ("ended/", lambda v: v.update(version=99), False),
]
OF_ENDED = [newer for newer in NEWER if newer[0] != "move/"]
OF_OPEN = [newer for newer in NEWER[1:] if newer[0] != "ended/"]


@pytest.mark.parametrize(("kind", "change", "shown"), OF_ENDED)
def test_an_ended_run_of_a_newer_version_stops_nothing(kind: str, change: Change, *, shown: bool) -> None:
    """What is unknown of it is skipped, or all of it, by name; the open run beside it is read."""
    newer = [*records("old", ended=True, change=change, kind=kind), *records("open", ended=False)]
    found, skipped = read_runs(newer, NOW)
    assert list(found) == (["old", "open"] if shown else ["open"])
    assert list(skipped) == ([] if shown else ["old"])


def test_a_list_of_runs_names_those_it_cannot_show() -> None:
    """The header alone decides, as lists read nothing else."""
    newer = records("old", ended=True, change=lambda v: v.update(version=99), kind="run/")
    found = load_summaries([*newer, *records("new", ended=True)], NOW)
    assert [r.id for r in found.runs] == ["new"]
    figures = {"record": "run/old", "version": 99, "reads": 1}
    assert found.skipped == {"old": Unreadable("other-version", figures)}


@pytest.mark.parametrize(("kind", "change", "shown"), OF_OPEN)
def test_an_open_run_of_a_newer_version_is_refused(kind: str, change: Change, *, shown: bool) -> None:
    """It would be executed otherwise than it was meant."""
    with pytest.raises(Refused):
        load_runs(records("open", ended=False, change=change, kind=kind), NOW)
    with pytest.raises(Refused):
        load_open_runs(records("open", ended=False, change=change, kind=kind), NOW)


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_from_before_cancels_were_signed_is_read(*, ended: bool) -> None:
    """No user is named as the one who stopped it."""
    (run,) = load_runs(records("old", ended=ended, change=lambda v: v.pop("stopped_by")), NOW).values()
    assert run.stopped_by == ""


def test_a_run_whose_policy_was_not_read_whole_is_not_rolled_back() -> None:
    """The rollback would run without the limits that the newer version's settings stand for; they are named."""
    newer = records("old", ended=True, change=lambda v: v.update(policy={"knob": 1, "measure_s": 0}))
    (run,) = load_runs(newer, NOW).values()
    s = scene({0: (3, 2)})
    before = s.journal.read()
    with pytest.raises(Refused, match="knob"):
        Writer(OpenCluster(s.cluster, "sim:1"), s.journal, s.driver, s.world.clock).rollback(run)
    assert s.journal.read() == before
    assert run.unknown_settings == ("knob",)
