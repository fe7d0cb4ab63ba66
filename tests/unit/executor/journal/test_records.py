"""A run in the journal: all of it comes back, only what changed is written, and what is not whole is not guessed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Purpose, Reason
from ballast.errors import Refused
from ballast.executor.journal.records import (
    Parsed,
    Unreadable,
    changes,
    dump_run,
    load_open_runs,
    load_runs,
    names_in_flight,
    read_runs,
    run_ids,
    tally,
    unpack,
)
from ballast.executor.machine.notes import journaled_note, note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionRun, ElectionStage, MoveRun, Now, Phase, Run, Status
from ballast.executor.machine.stages import (
    STAGES,
    Cancelling,
    Ended,
    Failed,
    Moving,
    Planned,
    Relocating,
    RolledBack,
    Stage,
    Stalled,
    Submitted,
    Verified,
)
from ballast.ports.journal import Corrupt, OtherVersion, Record

NOW: Final = Now(2_000_000, 2_000.0)
NOTE: Final = journaled_note("said")


def name(n: int, topic: str = "t") -> TopicPartition:
    """A partition."""
    return TopicPartition(topic, n)


def run_of(*stages: Stage, elections: tuple[ElectionStage, ...] = (), **known: Any) -> Run:
    """A run with a move in each of these stages, numbered downwards, and these elections."""
    moves = [MoveRun(Move("t", len(stages) - i, (1, 2), (3, 2), 7), s).begin_waits(NOW) for i, s in enumerate(stages)]
    asked = {name(n, "e"): ElectionRun(s, n) for n, s in enumerate(elections)}
    known = {"policy": ExecutionPolicy(), "started_ms": 5, **known}
    return Run(
        **{"id": "r", "intent": "balance", "cluster_id": "c", **known},
        moves={m.move.name: m for m in moves},
        elections=asked,
    )


def back(run: Run) -> Run:
    """What another process reads of it, in whatever order."""
    (found,) = load_runs(list(reversed(dump_run(run))), NOW).values()
    return found


WHOLE: Final[dict[str, Any]] = {
    "policy": ExecutionPolicy(throttle=9, throttle_per_broker={3: 8}, max_attempts=2),
    "purpose": Purpose("evacuate", (3, 4), ("a",)),
    "phase": Phase.CANCELLING,
    "status": Status.REFUSED,
    "in_order": True,
    "unclean": True,
    "started_ms": 11,
    "ended_ms": 12,
    "rollback_of": "another",
    "rollback_when_cancelled": True,
    "stopped_by": "Ada",
}


@pytest.mark.parametrize("key", [*WHOLE, "id", "intent", "cluster_id"])
def test_each_fact_of_a_run_comes_back(key: str) -> None:
    """Alone, and with all the others."""
    value = WHOLE.get(key, f"other {key}")
    run = run_of(Planned(), **{key: value})
    assert getattr(back(run), key) == value
    assert back(run) == run
    assert back(run_of(Planned(), **WHOLE)) == run_of(Planned(), **WHOLE)


STAGED: Final = [kind() for kind in STAGES]


@pytest.mark.parametrize(
    "known",
    [
        pytest.param({}, id="bare"),
        pytest.param({"attempts": 3, "since_ms": 17, "note": NOTE, "topic_id": "T"}, id="all"),
        pytest.param({"note": note("destination-down", "log-dir", broker=3, path="/a")}, id="cause"),
        pytest.param({"move": Move("x", 4, (1,), (2, 3), -1, Reason("full", "why"), ("/a", "any"))}, id="move"),
        *(pytest.param({"stage": s}, id=s.code) for s in STAGED),
        pytest.param({"stage": Relocating(seen_on=frozenset({2, 1}))}, id="relocating-seen"),
        *(pytest.param({"stage": k(raced=True)}, id=f"{k.code}-raced") for k in (Moving, Stalled, Cancelling)),
        *(pytest.param({"stage": k("deleted")}, id=f"{k.code}-outcome") for k in (Failed, RolledBack, Verified)),
    ],
)
def test_each_fact_of_a_move_comes_back(known: dict[str, Any]) -> None:
    """With every wait begun when it is read."""
    run = run_of(Planned(), Submitted())
    m = replace(next(iter(run.moves.values())), **known).begin_waits(NOW)
    run = replace(run, moves={m.move.name: m, **dict(list(run.moves.items())[1:])})
    assert back(run) == run
    assert list(back(run).moves) == list(run.moves)


def test_each_fact_of_an_election_comes_back() -> None:
    """Its stage, its attempts and what was said of it."""
    run = run_of(elections=tuple(ElectionStage))
    run = replace(run, elections={n: replace(e, note=NOTE if e.attempts else None) for n, e in run.elections.items()})
    assert back(run) == run
    assert {e.stage for e in back(run).elections.values()} == set(ElectionStage)


def test_a_run_that_has_ended_is_told_in_numbers() -> None:
    """By stage, with the bytes of all moves and of those that arrived; an open run has none."""
    run = run_of(
        Verified(),
        Failed("deleted"),
        Verified(),
        elections=(ElectionStage.COMPLETED, ElectionStage.FAILED, ElectionStage.COMPLETED),
    )
    ended = replace(run, phase=Phase.ENDED)
    expected = {
        "moves": {"verified": 2, "failed": 1},
        "elections": {"completed": 2, "failed": 1},
        "bytes_total": 21,
        "bytes_done": 14,
    }
    assert tally(ended) == expected
    headers = [next(r.value or {} for r in dump_run(x) if r.key == "run/r") for x in (run, ended)]
    assert ["tally" in h for h in headers] == [False, True]
    assert (headers[1]["tally"], headers[1]["moves"], headers[1]["elections"]) == (expected, 3, 3)
    assert back(ended) == ended


# What is written of a change.


def changed(run: Run, n: int, **known: Any) -> Run:
    """The run with one move changed."""
    return replace(run, moves={**run.moves, name(n): replace(run.moves[name(n)], **known)})


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ({"attempts": 1}, True),
        ({"note": NOTE}, True),
        ({"topic_id": "T"}, True),
        ({"stage": Submitted()}, True),
        ({"stage": Moving(raced=True)}, True),
        ({"stage": Relocating(seen_on=frozenset({1}))}, True),
        ({"stage": Planned(retry_at_s=99.0)}, False),
        ({"copied_bytes": 5, "total_bytes": 9, "since_ms": 3, "entered_s": 1.0, "unconfirmed": True}, False),
    ],
)
def test_only_what_another_process_must_know_of_a_move_is_written(known: dict[str, Any], *, written: bool) -> None:
    """In the place that it has in the plan."""
    run = run_of(Planned(), Planned(), Planned())
    after = changed(run, 2, **known)
    whole = {r.key: r for r in dump_run(after)}
    assert changes(run, after) == ([whole["move/r/t-2"]] if written else [])
    assert (whole["move/r/t-2"].value or {})["order"] == 1


def test_a_raced_move_that_goes_on_is_written_by_what_is_kept_of_it() -> None:
    """A stage that carries other timers and the same facts is the same record."""
    run = run_of(Moving(raced=True))
    assert changes(run, changed(run, 1, stage=Moving(raced=True, cancel_at_s=7.0))) == []
    assert [r.key for r in changes(run, changed(run, 1, stage=Moving()))] == ["move/r/t-1"]


@pytest.mark.parametrize(
    ("known", "written"),
    [
        ({"stage": ElectionStage.REQUESTED}, True),
        ({"attempts": 9}, True),
        ({"note": NOTE}, True),
        ({"retry_at_s": 7.0}, False),
    ],
)
def test_only_what_another_process_must_know_of_an_election_is_written(known: dict[str, Any], *, written: bool) -> None:
    """When to ask again is known to the process that asked."""
    run = run_of(elections=(ElectionStage.WAITING,) * 3)
    after = replace(run, elections={**run.elections, name(1, "e"): replace(run.elections[name(1, "e")], **known)})
    assert [r.key for r in changes(run, after)] == (["election/r/e-1"] if written else [])


def test_the_header_is_written_when_it_differs_and_goes_last() -> None:
    """After moves and elections, so that what it says is in the journal."""
    run = run_of(Planned(), elections=(ElectionStage.WAITING,))
    after = replace(changed(run, 1, attempts=1), phase=Phase.CANCELLING)
    after = replace(after, elections={name(0, "e"): ElectionRun(ElectionStage.FAILED)})
    assert [r.key for r in changes(run, after)] == ["move/r/t-1", "election/r/e-0", "run/r"]
    assert changes(run, replace(run, rates={1: 5})) == []
    assert changes(run, after) == [
        r for k in ("move", "election", "run") for r in dump_run(after) if r.key.startswith(k)
    ]


def test_the_end_of_a_run_deletes_packs_and_then_says_so() -> None:
    """In one append; afterwards only what is new is written, whole."""
    run = run_of(Verified(), elections=(ElectionStage.COMPLETED,))
    ended = replace(run, phase=Phase.ENDED, ended_ms=9)
    written = changes(run, ended)
    assert [(r.key, r.value is None) for r in written] == [
        ("move/r/t-1", True),
        ("election/r/e-0", True),
        ("ended/r", False),
        ("run/r", False),
    ]
    assert changes(ended, ended) == []
    assert changes(ended, replace(ended, moves=dict(ended.moves))) == dump_run(ended)
    assert changes(ended, replace(ended, elections=dict(ended.elections))) == dump_run(ended)
    assert changes(ended, replace(ended, stopped_by="Ada")) == dump_run(replace(ended, stopped_by="Ada"))


# What is read.


def test_a_record_that_was_read_before_is_not_parsed_again() -> None:
    """The very same record; another of its key is, and one that a reading did not ask for is forgotten."""
    parsed = Parsed()
    asked: list[str] = []

    def text(of: Record) -> str:
        asked.append((of.value or {})["text"])
        return asked[-1]

    def read(record: Record) -> str:
        return parsed.read(record, text)

    one, two = (Record(k, {"version": 1, "text": k}) for k in "ab")
    assert [read(one), read(two)] == ["a", "b"]
    parsed.end_reading()
    assert read(one) == "a"
    assert asked == ["a", "b"]
    assert read(Record("a", {"version": 1, "text": "new"})) == "new"
    parsed.end_reading()
    assert [read(two), asked] == ["b", ["a", "b", "new", "b"]]


def test_open_runs_are_parsed_once_for_two_readings() -> None:
    """Their moves come back with the waits begun at the reading."""
    records, parsed = dump_run(run_of(Planned(), Moving())), Parsed()
    first = load_open_runs(records, NOW, parsed)
    later = load_open_runs(records, Now(3_000_000, 3_000.0), parsed)
    assert {m.entered_s for m in first[0].moves.values()} == {2_000.0}
    assert {m.entered_s for m in later[0].moves.values()} == {3_000.0}
    assert [m.move for m in first[0].moves.values()] == [m.move for m in later[0].moves.values()]
    assert all(m.move is first[0].moves[n].move for n, m in later[0].moves.items())


def test_runs_are_listed_by_when_they_began() -> None:
    """Oldest first, and by id where they began together; open ones and those that have ended apart."""
    open_runs = [run_of(Planned(), id=i, started_ms=at) for i, at in (("z", 3), ("b", 7), ("a", 7), ("y", 1))]
    ended = [replace(run_of(Verified(), id=i, started_ms=at), phase=Phase.ENDED) for i, at in (("old", 2), ("new", 9))]
    records = [
        Record("throttle/broker/1", {}),
        *(r for run in (*open_runs, *ended) for r in dump_run(run)),
        Record("pause", {}),
    ]
    assert list(load_runs(records, NOW)) == ["y", "old", "z", "a", "b", "new"]
    assert [r.id for r in load_open_runs(records, NOW)] == ["y", "z", "a", "b"]
    assert run_ids(records, ended=True) == {"old", "new"}
    assert run_ids(records, ended=False) == {"a", "b", "y", "z"}


@pytest.mark.parametrize("missing", ["run/", "move/r/t-2", "election/"])
def test_a_run_of_which_a_record_is_missing_is_not_there(missing: str) -> None:
    """Half a run is nothing to act upon; it is named."""
    records = dump_run(run_of(Planned(), Planned(), elections=(ElectionStage.WAITING,)))
    left = [r for r in records if not r.key.startswith(missing)]
    assert len(left) == len(records) - 1
    assert load_open_runs(left, NOW) == []
    assert read_runs(left, NOW)[0] == {}
    assert list(read_runs(left, NOW)[1]) == ["r"]
    more = [*records, Record("move/r/t-9", next(r.value for r in records if r.key.startswith("move/")))]
    assert load_open_runs(more, NOW) == []


def test_partitions_of_moves_that_have_not_ended_are_in_flight() -> None:
    """Whatever their stage; deleted records are of nothing."""
    records = dump_run(run_of(*STAGED, elections=(ElectionStage.REQUESTED,)))
    gone = Record("move/r/t-99", None)
    expected = {name(len(STAGED) - i) for i, s in enumerate(STAGED) if not isinstance(s, Ended)}
    assert names_in_flight([gone, Record("movement", {"x": 1}), *records]) == expected


def with_change(kind: str, change: Callable[[dict[str, Any]], object]) -> list[Record]:
    """An open run's records, some of them changed."""
    out = []
    for record in dump_run(run_of(Planned(), elections=(ElectionStage.WAITING,))):
        value = dict(record.value or {})
        if record.key.startswith(kind):
            change(value)
        out.append(Record(record.key, value))
    return out


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("move/", lambda v: v.update(stage="new"), "move/r/t-1: stage: .*'planned'"),
        ("move/", lambda v: v.update(size_bytes=-2), "move/r/t-1: size_bytes: "),
        ("move/", lambda v: v.update(reason=["only"]), r"move/r/t-1: reason\[1\]: "),
        ("move/", lambda v: v.pop("since_ms"), "move/r/t-1: since_ms: "),
        ("move/", lambda v: v.update(order="1"), "move/r/t-1: order: "),
        ("election/", lambda v: v.update(stage="new"), "election/r/e-0: stage: "),
        ("election/", lambda v: v.pop("detail"), "election/r/e-0: detail: "),
        ("run/", lambda v: v.update(phase="new"), "run/r: phase: "),
        ("run/", lambda v: v.pop("in_order"), "run/r: in_order: "),
    ],
)
def test_a_record_that_is_not_whole_is_refused_by_name(
    kind: str, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    """With the key that is wrong, never filled up with defaults."""
    for load in (load_open_runs, load_runs):
        with pytest.raises(Corrupt, match=says):
            load(with_change(kind, change), NOW)


@pytest.mark.parametrize("version", [2, None])
def test_a_record_of_another_version_is_refused_with_a_way_out(version: int | None) -> None:
    """Both versions are told."""
    with pytest.raises(OtherVersion) as refused:
        load_open_runs(with_change("run/", lambda v: v.update(version=version)), NOW)
    assert refused.value.values == {"record": "run/r", "version": version, "reads": 1}
    assert f"run/r has version {version}, and this Ballast reads 1" in refused.value.message
    assert "newer" in (refused.value.hint or "")


def test_a_run_that_has_ended_and_cannot_be_read_is_named_with_the_reason() -> None:
    """By a code with figures, in the words of the refusal."""
    records = dump_run(replace(run_of(Verified()), phase=Phase.ENDED))
    newer = [Record(r.key, {**(r.value or {}), "version": 2}) if r.key == "ended/r" else r for r in records]
    found, skipped = read_runs(newer, NOW)
    assert found == {}
    assert skipped == {"r": Unreadable("other-version", {"record": "ended/r", "version": 2, "reads": 1})}
    with pytest.raises(Refused) as refused:
        load_open_runs(with_change("run/", lambda v: v.update(version=2)), NOW)
    assert str(Unreadable.of(refused.value)) == str(refused.value)


def test_what_was_not_stopped_by_a_person_names_none() -> None:
    """Records of before the name was kept have none."""
    assert load_open_runs(with_change("run/", lambda v: v.pop("stopped_by")), NOW)[0].stopped_by == ""


def pack(parts: object) -> str:
    """Packed as the end of a run packs."""
    return base64.b64encode(zlib.compress(json.dumps(parts).encode())).decode()


def test_a_packed_record_is_its_parts() -> None:
    """And any other is itself."""
    parts = [{"key": "move/r/t-1", "value": {"a": 1}}, {"key": "x", "value": {}}]
    record = Record("ended/r", {"version": 1, "packed": pack(parts)})
    assert unpack(record) == [Record("move/r/t-1", {"a": 1}), Record("x", {})]
    other = Record("run/ended/", {"version": 1})
    assert unpack(other) == [other]
    ended = replace(run_of(Verified(), Verified()), phase=Phase.ENDED)
    assert [r.key for r in unpack(dump_run(ended)[0])] == ["move/r/t-2", "move/r/t-1"]


@pytest.mark.parametrize(
    "packed",
    [
        pack([{"value": {}}]),
        pack([{"key": "x"}]),
        pack([{"key": "x", "value": 3}]),
        pack(3),
        "eA==",
        f"{pack([])}?",
        "?" + pack([]),
    ],
)
def test_what_cannot_be_unpacked_is_refused_by_its_record(packed: str) -> None:
    """It is no record of Ballast's."""
    with pytest.raises(Corrupt, match="ended/r is not one of Ballast's") as refused:
        unpack(Record("ended/r", {"version": 1, "packed": packed}))
    assert refused.value.hint


def test_no_more_is_unpacked_than_a_run_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short record may unpack to more than there is memory for; it is refused instead."""
    record = Record("ended/r", {"version": 1, "packed": pack([{"key": "move/r/t-1", "value": {"a": "b" * 10_000}}])})
    monkeypatch.setattr("ballast.executor.journal.records.LONGEST_UNPACKED_BYTES", 10_000)
    with pytest.raises(Corrupt, match="ended/r is not one of Ballast's"):
        unpack(record)
    monkeypatch.setattr("ballast.executor.journal.records.LONGEST_UNPACKED_BYTES", 11_000)
    assert [r.key for r in unpack(record)] == ["move/r/t-1"]
