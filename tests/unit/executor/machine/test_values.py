"""The run as a value: its records, the table of transitions, the choice of moves, the guards, the drift of plans."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.adapters.clock import SystemClock
from ballast.core.cluster import UNKNOWN, Broker, ClusterState, ConfigValue, PartitionRow, Topic, TopicPartition, build
from ballast.core.cluster.fingerprint import fingerprint, with_topic_ids
from ballast.core.guards import judge
from ballast.core.guards.drift import drift, keep_valid, mismatches
from ballast.core.plan import Move, Plan
from ballast.core.plan.batches import Caps, Load, choose
from ballast.core.plan.file import dumps
from ballast.core.plan.file import loads as read_plan
from ballast.daemon.acting.run_views import ParsedJournal, journal_view_of
from ballast.errors import Refused, UsageError
from ballast.executor.journal.history import expire, load_summaries, summarise
from ballast.executor.journal.records import STRIPPED, changes, dump_run, load_open_runs, load_runs, read_runs
from ballast.executor.machine.notes import journaled_note
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import ElectionStage, Now, Phase, new_run, with_moves
from ballast.executor.machine.stages import STAGES, Failed, RolledBack, Submitted, Unthrottled, Verified
from ballast.executor.machine.transitions import ELECTION_TRANSITIONS, TRANSITIONS, EffectKind, elect_to, move_to
from ballast.ports.journal import Journal, Record
from ballast.wiring.runs import find_run

NOW = Now(1000, 1.0)
CAPS = Caps(moves_in_per_broker=2, moves_out_per_broker=2, moves_in_cluster=4)


def test_records_round_trip() -> None:
    """What a run writes is what the next process reads, in the plan's order."""
    run = new_run(
        "r",
        Plan("balance", "c", "f", tuple(Move("t", i, (1, 2), (3, 2), i) for i in (5, 2, 9))),
        ExecutionPolicy(throttle=5, throttle_per_broker={3: 7}),
        NOW,
    )
    read = load_runs(reversed(dump_run(run)), NOW)["r"]
    assert read == run
    assert list(read.moves) == list(run.moves)


def test_changes_are_only_what_changed_and_the_header_goes_last() -> None:
    """A stage that changed is one record; a run that ends writes its header after its moves."""
    run = new_run(
        "r", Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)), Move("t", 1, (1,), (2,)))), ExecutionPolicy(), NOW
    )
    name = TopicPartition("t", 1)
    moved = with_moves(run, {name: move_to(run.moves[name], Submitted(), NOW)})
    assert [r.key for r in changes(run, moved)] == ["move/r/t-1"]
    assert changes(moved, with_moves(moved, {name: replace(moved.moves[name], copied_bytes=5)})) == []
    ended = replace(moved, ended_ms=5)
    assert [r.key for r in changes(run, ended)] == ["move/r/t-1", "run/r"]


def test_newer_records_are_refused() -> None:
    """A record of a version that this program does not know is refused, never guessed."""
    run = new_run("r", Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),)), ExecutionPolicy(), NOW)
    records = [Record(r.key, {**(r.value or {}), "version": 2}) for r in dump_run(run)]
    with pytest.raises(Refused, match="version 2"):
        load_runs(records, NOW)


def test_half_read_run_is_not_there_yet() -> None:
    """A reader that sees the header before the moves does not take the run for an empty one."""
    run = new_run("r", Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),)), ExecutionPolicy(), NOW)
    assert load_runs(dump_run(run)[:1], NOW) == {}


def test_old_runs_expire_whole_and_open_ones_never() -> None:
    """Beyond the newest few, runs that have ended leave the journal with all their records."""
    plan = Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),))
    runs = {str(i): new_run(str(i), plan, ExecutionPolicy(), Now(i, 0.0)) for i in range(4)}
    runs |= {i: replace(runs[i], phase=Phase.ENDED) for i in ("0", "1", "2")}
    records = [r for run in runs.values() for r in dump_run(run)]
    assert {(r.key, r.value) for r in expire(records, 2)} == {("run/0", None), ("ended/0", None)}


def test_a_run_that_ends_is_packed_into_two_records() -> None:
    """Its moves' own records are deleted in the append that ends it; it is listed in numbers and read whole as before."""
    name = TopicPartition("t", 1)
    plan = Plan(
        "balance", "c", "f", (Move("t", 0, (1,), (2,), 7), Move("t", 1, (1,), (2,), 5)), (TopicPartition("t", 0),)
    )
    run = new_run("r", plan, ExecutionPolicy(), NOW)
    done = with_moves(run, {name: replace(run.moves[name], stage=Verified(), note=journaled_note("x"))})
    ended = replace(done, phase=Phase.ENDED, ended_ms=5)
    view = {r.key: r.value for r in dump_run(run)} | {r.key: r.value for r in changes(run, ended)}
    left = [Record(key, value) for key, value in view.items() if value is not None]
    assert [r.key for r in left] == ["run/r", "ended/r"]
    assert changes(ended, ended) == []
    assert [r.key for r in changes(ended, replace(ended, stopped_by="Ada"))] == ["ended/r", "run/r"]
    assert load_runs(left, NOW) == {"r": ended}
    assert load_open_runs(left, NOW) == []
    (found,) = load_summaries(left, NOW).runs
    assert found == summarise(ended)
    assert (found.moves, found.elections) == ({"planned": 1, "verified": 1}, {"waiting": 1})
    assert (found.bytes_total, found.bytes_done, found.verified) == (12, 5, 1)


@pytest.mark.parametrize("packed", ["", "?", "bm8=", "eJyLrgUAAXUA+Q==", "eJyLNqkFAAH4APk=", 3])
def test_an_ended_run_that_cannot_be_unpacked_is_skipped(packed: object) -> None:
    """Another tool wrote into its record: nothing of it can be shown, that is told, and what is beside it is read."""
    plan = Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),))
    one, two = (replace(new_run(i, plan, ExecutionPolicy(), NOW), phase=Phase.ENDED) for i in "12")
    spoilt = Record("ended/1", {"version": 1, "packed": packed})
    read, skipped = read_runs([spoilt, *dump_run(one)[1:], *dump_run(two)], NOW)
    assert read == {"2": two}
    assert {i: why.code for i, why in skipped.items()} == {"1": "corrupt"}


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_without_its_moves_is_named(*, ended: bool) -> None:
    """Half a run is nothing to act upon or to show; that it was there is told, in lists as where it is asked for by name."""
    plan = Plan("balance", "c", "f", (Move("t", 0, (1,), (2,)),))
    runs = [new_run(i, plan, ExecutionPolicy(), NOW) for i in "12"]
    half, whole = (replace(r, phase=Phase.ENDED) if ended else r for r in runs)
    records = [*(r for r in dump_run(half) if r.key.startswith("run/")), *dump_run(whole)]
    found = load_summaries(records, NOW)
    assert [r.id for r in found.runs] == ["2"]
    assert found.skipped == read_runs(records, NOW)[1] == {"1": STRIPPED}
    journal_view = journal_view_of(records, SystemClock(), ParsedJournal())
    assert journal_view.skipped == {"1": STRIPPED}
    journal = cast("Journal", SimpleNamespace(read=lambda: records))
    with pytest.raises(Refused, match="1"):
        find_run(journal, "1")
    assert find_run(journal, "2").id == "2"


def test_policy_round_trip_and_refusals() -> None:
    """A policy is journaled as what differs from the defaults; nonsense and unknown settings are refused."""
    policy = ExecutionPolicy(throttle_per_broker={1: 5}, moves_in_per_broker=9)
    assert policy.dump() == {"throttle_per_broker": {"1": 5}, "moves_in_per_broker": 9}
    assert ExecutionPolicy.load(policy.dump()) == policy
    with pytest.raises(UsageError, match="zero or less"):
        ExecutionPolicy(throttle=0)
    with pytest.raises(UsageError, match="does not know: warp"):
        ExecutionPolicy.load({"warp": 9})


def test_table_of_transitions_is_whole() -> None:
    """Every stage but the first is reached, final stages are left by nothing, every effect carries something across."""
    assert {to for _, to in TRANSITIONS} == set(STAGES)
    final = {Verified, RolledBack, Failed}
    assert not {(a, b) for a, b in TRANSITIONS if a in final}
    assert {a for a, _ in TRANSITIONS} == set(STAGES) - final
    carried = {e for e in (*TRANSITIONS.values(), *ELECTION_TRANSITIONS.values()) if e is not None}
    assert carried == set(EffectKind)
    for stage in set(STAGES) - final:
        reached, front = {stage}, {stage}
        while front:
            front = {b for a, b in TRANSITIONS if a in front} - reached
            reached |= front
        assert reached & final, f"{stage} has a way out"


def test_transition_outside_the_table_is_a_bug() -> None:
    """Neither a move nor an election can take a step that the table does not have."""
    run = new_run(
        "r", Plan("x", "c", "f", (Move("t", 0, (1,), (2,)),), (TopicPartition("t", 0),)), ExecutionPolicy(), NOW
    )
    m, e = run.moves[TopicPartition("t", 0)], run.elections[TopicPartition("t", 0)]
    with pytest.raises(ValueError, match="no transition"):
        move_to(m, Unthrottled(), NOW)
    with pytest.raises(ValueError, match="no transition"):
        elect_to(e, ElectionStage.COMPLETED)


loads = st.builds(
    lambda p, old, new, size: Load(Move("t", p, (old,), (new, old), size), old, size),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(5, 8),
    st.integers(0, 1000),
)


@given(waiting=st.lists(loads, max_size=30, unique_by=lambda x: x.move.name), active=st.lists(loads, max_size=2))
def test_choice_never_breaks_a_cap_and_never_idles(waiting: list[Load], active: list[Load]) -> None:
    """After any choice every cap holds, and nothing that was left would still have fitted."""
    chosen = choose(waiting, active, CAPS, rates={}, room={})
    names = {m.name for m in chosen}
    flight = [*(x.move for x in active), *chosen]
    into = [b for m in flight for b in m.adding]
    out = [x.leader for x in active] + [x.leader for x in waiting if x.move.name in names]
    over = [x for x in (*set(into),) if into.count(x) > 2 and into.count(x) > sum(x in a.move.adding for a in active)]
    assert not over
    assert len(flight) <= max(4, len(active))
    if len(flight) < 4:
        for x in waiting:
            if x.move.name not in names:
                assert into.count(x.move.adding[0]) >= 2 or out.count(x.leader) >= 2


def test_full_disks_first_then_the_busiest_link() -> None:
    """A move off a full disk goes before all others; then the moves of the link with the most work left."""
    waiting = [
        Load(Move("t", 0, (1,), (5,), 10), 1, 10),
        Load(Move("t", 1, (2,), (6,), 900), 2, 900),
        Load(Move("t", 2, (3,), (7,), 1), 3, 1),
    ]
    order = [m.partition for m in choose(waiting, [], CAPS, rates={}, room={}, full={3})]
    assert order == [2, 1, 0]


def test_large_moves_start_one_after_another_under_a_throttle() -> None:
    """Large moves that began together would end together; small ones that fit into two seconds may begin at once."""
    large = [Load(Move("t", i, (i + 1,), (5,), 100), i + 1, 100) for i in range(2)]
    small = [Load(Move("t", i, (i + 1,), (5,), 5), i + 1, 5) for i in range(2)]
    assert len(choose(large, [], CAPS, rates={5: 10}, room={})) == 1
    assert len(choose(small, [], CAPS, rates={5: 10}, room={})) == 2
    assert len(choose(large[1:], large[:1], CAPS, rates={5: 10}, room={})) == 1


def test_producers_share_of_the_throttle_bounds_what_runs_together() -> None:
    """Two moves whose intake together outruns the throttle run one after the other."""
    waiting = [Load(Move("t", i, (i + 1,), (5,), 10), i + 1, 10, inbound_bytes_per_s=5) for i in range(2)]
    assert len(choose(waiting, [], CAPS, rates={5: 10}, room={})) == 1
    assert len(choose(waiting, [], CAPS, rates={5: 20}, room={})) == 2


def cluster(*rows: PartitionRow, down: tuple[int, ...] = (), min_isr: int = 1) -> ClusterState:
    """Brokers 1 to 5 and topics a and b, in which every partition holds a few bytes."""
    brokers = tuple(Broker(i, alive=i not in down, host="h") for i in range(1, 6))
    sized = [replace(row, sizes=(9,) * len(row.replicas)) for row in rows]
    return build("c", brokers, (Topic("a", min_isr=min_isr), Topic("b", min_isr=min_isr)), sized)


def verdict(state: ClusterState, move: Move) -> str | None:
    """The code of the guards' verdict on this one move."""
    found = judge([move], state, ours={move.name: move}, room={})
    return found[move.name].code if found else None


def test_unrelated_problems_stop_nothing_but_min_isr_does() -> None:
    """A unhealthy partition on other brokers is none of our business, until it is down to its minimum."""
    a = PartitionRow("a", 0, 1, (1, 2), (1, 2))
    unhealthy = PartitionRow("b", 0, 4, (4, 5, 3), (4, 5))
    assert verdict(cluster(a, unhealthy, min_isr=1), Move("a", 0, (1, 2), (1, 2), 1)) == "already-there"
    assert verdict(cluster(a, PartitionRow("b", 0, 4, (4, 5), (4,)), min_isr=0), Move("a", 0, (1, 2), (3, 2))) is None
    assert verdict(cluster(a, unhealthy, min_isr=2), Move("a", 0, (1, 2), (3, 2))) == "at-min-isr"
    assert verdict(cluster(a, unhealthy, min_isr=1), Move("a", 0, (1, 2), (3, 2))) == "under-replicated"


def test_the_last_replicas_in_sync_are_not_given_up_for_one_that_is_not() -> None:
    """Fewer replicas cost no copy, and must not cost what is in sync; dropping the unhealthy one is right at any time."""
    three = PartitionRow("a", 0, 1, (1, 2, 3), (1, 3))
    for state in (cluster(three), cluster(PartitionRow("a", 0, 1, (1, 2, 3), (1, 2, 3)), down=(2,))):
        assert verdict(state, Move("a", 0, (1, 2, 3), (1, 2))) == "drops-in-sync"
        assert verdict(state, Move("a", 0, (1, 2, 3), (2,))) == "drops-in-sync"
        assert verdict(state, Move("a", 0, (1, 2, 3), (1, 3))) is None
        assert verdict(state, Move("a", 0, (1, 2, 3), (3, 2, 1))) is None
    well = cluster(PartitionRow("a", 0, 1, (1, 2, 3), (1, 2, 3)))
    assert verdict(well, Move("a", 0, (1, 2, 3), (2,))) is None
    going = PartitionRow("a", 0, 1, (1, 2, 3), (1, 3), removing=(3,))
    assert verdict(cluster(going), Move("a", 0, (1, 2, 3), (1, 2))) is None


@pytest.mark.parametrize(("told", "within_s"), [({}, 45.0), ({"replica.lag.time.max.ms": "4000"}, 6.0), (None, -1)])
def test_a_refusal_over_an_isr_says_when_that_is_settled(told: dict[str, str] | None, within_s: float) -> None:
    """1.5 times what the leader of the unhealthy partition has set; nothing where it did not report its configs."""
    a = PartitionRow("a", 0, 1, (1, 2, 3), (1, 2, 3))
    entries = {} if told is None else {4: {k: ConfigValue(v, "STATIC_BROKER_CONFIG") for k, v in told.items()}}
    elsewhere = PartitionRow("b", 0, 4, (4, 5, 3), (4, 5))
    for min_isr, code in ((2, "at-min-isr"), (1, "under-replicated")):
        state = replace(cluster(a, elsewhere, min_isr=min_isr), broker_configs=entries)
        move = Move("a", 0, (1, 2, 3), (1, 2, 4))
        (found,) = judge([move], state, ours={move.name: move}, room={}).values()
        assert (found.code, found.isr_within_s) == (code, within_s)
        assert ("45 s" in str(found)) is (within_s == 45)
    # A broker that has died and still stands in the ISR.
    state = cluster(PartitionRow("a", 0, 4, (4, 2, 3), (4, 2, 3)), down=(2,))
    move = Move("a", 0, (4, 2, 3), (4, 2))
    (found,) = judge([move], replace(state, broker_configs=entries), ours={move.name: move}, room={}).values()
    assert (found.code, found.isr_within_s) == ("drops-in-sync", within_s)


def test_an_unknown_minimum_isr_is_not_taken_for_none() -> None:
    """A partition that lacks a replica may be down to it: nothing but a repair begins beside it."""
    a = PartitionRow("a", 0, 1, (1, 2), (1, 2))
    unhealthy = PartitionRow("b", 0, 4, (4, 5), (4,))
    state = cluster(a, unhealthy, min_isr=UNKNOWN)
    assert verdict(state, Move("a", 0, (1, 2), (3, 2))) == "min-isr-unknown"
    assert verdict(state, Move("b", 0, (4, 5), (4, 3))) is None
    assert verdict(cluster(a, min_isr=UNKNOWN), Move("a", 0, (1, 2), (3, 2))) is None


def test_a_plan_is_not_for_another_topic_of_the_same_name() -> None:
    """Deleted and made again with the same replicas: the fingerprint is the same, the topic is not."""

    def picture(id_: str | None) -> ClusterState:
        state = cluster(PartitionRow("a", 0, 1, (1, 2), (1, 2)), PartitionRow("b", 0, 1, (1, 2), (1, 2)))
        return replace(state, topics=tuple(replace(t, topic_id=id_ if t.name == "a" else "B") for t in state.topics))

    before, after = picture("A1"), picture("A2")
    plan = Plan("balance", "c", fingerprint(before), (Move("a", 0, (1, 2), (3, 2)), Move("b", 0, (1, 2), (3, 2))))
    plan = with_topic_ids(plan, before)
    assert plan.topic_ids == {"a": "A1", "b": "B"}
    assert read_plan(dumps(plan)) == plan
    assert not drift(plan, before).touches_plan
    found = drift(plan, after)
    assert (found.same_fingerprint, found.touches_plan) == (True, True)
    assert found.recreated == {"a": ("A1", "A2")}
    assert [m.topic for m in keep_valid(plan, found, after).moves] == ["b"]
    assert not drift(plan, picture(None)).recreated
    assert with_topic_ids(plan, picture(None)).topic_ids == {"b": "B"}


def test_verdicts_on_the_partition_and_the_destination() -> None:
    """Gone, already there, changed or moved by another user, no leader, down destination: each has its code."""
    a = PartitionRow("a", 0, 1, (1, 2), (1, 2))
    assert verdict(cluster(a), Move("a", 7, (1, 2), (3, 2))) == "deleted"
    assert verdict(cluster(a), Move("a", 0, (2, 1), (1, 2))) == "already-there"
    assert verdict(cluster(a), Move("a", 0, (4, 5), (3, 5))) == "modified-externally"
    assert verdict(cluster(a, down=(3,)), Move("a", 0, (1, 2), (3, 2))) == "destination-down"
    moving = PartitionRow("a", 0, 1, (4, 2, 1), (1, 2), adding=(4,), removing=(1,))
    assert verdict(cluster(moving), Move("a", 0, (1, 2), (3, 2))) == "foreign-reassignment"
    leaderless = PartitionRow("a", 0, -1, (1, 2), ())
    assert verdict(cluster(leaderless), Move("a", 0, (1, 2), (3, 2))) == "no-leader"
    assert verdict(cluster(a), Move("a", 0, (1, 2), (2, 1))) is None


def test_a_plan_that_was_carried_out_has_nothing_left_to_do() -> None:
    """Every move is made and every election completed; where one is still to be completed, that is what is left."""
    before = cluster(PartitionRow("a", 0, 1, (1, 2), (1, 2)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
    elected = (TopicPartition("a", 0),)
    plan = Plan("balance", "c", fingerprint(before), (Move("a", 0, (1, 2), (3, 2)),), elections=elected)
    for leader, left in ((3, ()), (2, elected)):
        after = cluster(PartitionRow("a", 0, leader, (3, 2), (3, 2)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
        found = drift(plan, after)
        assert found.all_done
        assert (keep_valid(plan, found, after).moves, keep_valid(plan, found, after).elections) == ((), left)
    assert not drift(plan, before).all_done
    moving = cluster(
        PartitionRow("a", 0, 1, (3, 2, 1), (1, 2), adding=(3,), removing=(1,)), PartitionRow("a", 1, 1, (1, 2), (1, 2))
    )
    assert drift(plan, moving).done
    assert not drift(plan, moving).all_done, "what is still in flight has not arrived"


def test_drift_is_explained_and_the_rest_of_the_plan_kept() -> None:
    """A plan made for another picture says what changed; what still holds can be carried out."""
    before = cluster(PartitionRow("a", 0, 1, (1, 2), (1, 2)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
    after = cluster(PartitionRow("a", 0, 1, (1, 4), (1, 4)), PartitionRow("a", 1, 1, (1, 2), (1, 2)))
    moves = (Move("a", 0, (1, 2), (3, 2)), Move("a", 1, (1, 2), (3, 2)), Move("b", 0, (1, 2), (3, 2)))
    plan = Plan("balance", "c", fingerprint(before), moves)
    assert drift(plan, before).same_fingerprint
    found = drift(plan, after)
    assert found.changed == {TopicPartition("a", 0): (1, 4)}
    assert found.gone == (TopicPartition("b", 0),)
    assert [d.code for d in found.differences] == ["replicas-changed", "deleted"]
    assert [m.name for m in keep_valid(plan, found, after).moves] == [TopicPartition("a", 1)]


def test_verify_names_each_mismatch() -> None:
    """Gone, moving, elsewhere, in another order, out of sync: verify says which."""
    state = cluster(
        PartitionRow("a", 0, 1, (1, 2), (1, 2)),
        PartitionRow("a", 1, 1, (2, 1), (1, 2)),
        PartitionRow("a", 2, 1, (1, 2), (1,)),
        PartitionRow("a", 3, 1, (1, 2, 3), (1, 3), adding=(2,), removing=(3,)),
        PartitionRow("a", 4, 1, (4, 5), (4, 5)),
    )
    wanted = tuple(Move("a", i, (), (1, 2)) for i in range(6))
    found = mismatches(wanted[::-1], state)
    assert [(m.name.partition, m.difference.code) for m in found] == [
        (1, "order"),
        (2, "out-of-sync"),
        (3, "moving"),
        (4, "replicas"),
        (5, "gone"),
    ]
