"""Plans that a person asks for, approves or rejects; and what the page shows of one broker, topic or kind of partition."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.conftest import Running, bounce, not_led
from tests.daemon.rig import (
    Rig,
    a_rig,
    act,
    answer,
    answer_requests,
    check_leaders,
    give_run_controller,
    holder,
    keep_lock,
    lead,
    make_wanted,
    observe,
    propose,
    publish_proposals,
    read_journal_view,
)
from tests.daemon.test_api import sent, validator
from tests.page.conftest import a_plan

from ballast.core.cluster import UNKNOWN
from ballast.core.planner import Balance, Evacuate, plan
from ballast.daemon.acting.decisions import ANSWERS_KEY, ASKED_KEY, decisions_in
from ballast.daemon.acting.propose import ASKED_WAITS_S
from ballast.daemon.context.view import Board, PlanView, Role
from ballast.daemon.observing.series import MEASURED_MS, POINTS, Series
from ballast.daemon.policy import ActionKind, DaemonPolicy, Mode, WebPolicy
from ballast.daemon.web import api
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.journal import Record, Request
from ballast.sim.clock import SimClock
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld


@pytest.fixture(params=[Mode.APPROVE, Mode.AUTO])
def leader(context: Rig, world: SimWorld, request: pytest.FixtureRequest) -> Rig:
    """A daemon that holds the lock and has read a cluster of four brokers, the fourth of them empty."""
    world.add_broker(SimBroker(id=4, rack="a"))
    context.policy = DaemonPolicy(mode=request.param)
    lead(context, JournalStore())
    observe(context)
    return context


def ask(context: Rig, kind: str, **body: str) -> tuple[str, bool]:
    """Ask as the page does, let the work loop make what is wanted, and return what the page is told."""
    request = Request(id=f"r{context.clock.now_ms()}", kind=kind, by="Ada", at_ms=context.clock.now_ms(), body=body)
    answer(context, request)
    make_wanted(context)
    told = context.board.view.answers[-1]
    assert told.request == request.id
    return told.detail, told.ok


def only_plan(context: Rig) -> PlanView:
    """The one that is shown."""
    (plan,) = context.board.view.plans
    return plan


@pytest.mark.parametrize("intent", ["balance", "drain", "elect"])
def test_a_plan_that_was_asked_for_is_shown_and_waits(leader: Rig, world: SimWorld, intent: str) -> None:
    """In auto mode, too: nothing moves before a person has approved what is shown; then exactly that is done."""
    bounce(world, 1)
    observe(leader)
    before = {p.name: (tuple(p.replicas), p.leader) for p in world.partitions()}
    _, ok = ask(leader, "plan", intent=intent, broker="2")
    assert ok
    plan = only_plan(leader)
    assert plan.pending_approval
    assert plan.requested_by == "Ada"
    act(leader)
    assert {p.name: (tuple(p.replicas), p.leader) for p in world.partitions()} == before
    # A broker came back a moment ago: the wait for it is what keeps the plan from starting.
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    assert ask(leader, "approve", plan=plan.id)[1]
    if intent == "drain":
        assert not any(2 in p.replicas for p in world.partitions())
    elif intent == "elect":
        assert not_led(world, 1) == 0
    else:
        assert any(4 in p.replicas for p in world.partitions())


def test_what_cannot_be_planned_is_told_to_the_one_who_asked(leader: Rig) -> None:
    """An unknown broker, an unknown intent, and a cluster where nothing is to be done: words, and no plan."""
    assert not ask(leader, "plan", intent="drain", broker="99")[1]
    assert not ask(leader, "plan", intent="explode")[1]
    assert ask(leader, "plan", intent="elect")[1]
    assert leader.board.view.plans == ()


def test_a_plan_names_the_log_dirs_that_have_failed(leader: Rig, world: SimWorld, clock: SimClock) -> None:
    """On its card, and in the answer where nothing is to be done: the user learns what no plan repairs."""

    def read_anew() -> None:
        clock.sleep(leader.policy.intervals.log_dirs_s + leader.policy.intervals.observe_s)
        observe(leader)

    world.brokers[2].dir_bytes = (1e12, 1e12)
    read_anew()
    well, _ = ask(leader, "plan", intent="balance")
    assert not any("KAFKA_STORAGE_ERROR" in o for o in only_plan(leader).obstacles), well
    world.fail_dir(2, 1)
    read_anew()
    ask(leader, "plan", intent="balance")
    (said,) = (o for o in only_plan(leader).obstacles if "KAFKA_STORAGE_ERROR" in o)
    assert "roker 2" in said
    leader.policy = replace(leader.policy, balance=replace(leader.policy.balance, pinned_topics=".*"))
    said, _ = ask(leader, "plan", intent="balance")
    assert leader.board.view.plans == ()
    assert "KAFKA_STORAGE_ERROR" in said


def test_a_plan_that_was_asked_for_goes_by_the_cluster_of_now(leader: Rig, world: SimWorld) -> None:
    """Where the assignment changed meanwhile it is made anew, and waits again."""
    ask(leader, "plan", intent="balance")
    plan = only_plan(leader)
    world.add_topic("late", {0: (1, 2)}, size_bytes=1.0)
    observe(leader)
    word = Request(id="word", kind="approve", by="Ada", at_ms=leader.clock.now_ms(), body={"plan": plan.id})
    answer(leader, word)
    assert leader.parts.runs.running is None
    assert leader.board.view.plans == ()
    make_wanted(leader)
    assert only_plan(leader).pending_approval
    assert only_plan(leader).id != plan.id


def test_a_rejected_plan_is_not_proposed_again(context: Rig, world: SimWorld) -> None:
    """Not by the next check, not by the next process; another plan is."""
    context.policy = DaemonPolicy(mode=Mode.APPROVE)
    store = JournalStore()
    lead(context, store)
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    plan = only_plan(context)
    assert ask(context, "reject", plan=plan.id, reason="not today")[1]
    assert context.board.view.plans == ()
    check_leaders(context)
    assert context.board.view.plans == ()
    assert not ask(context, "reject", plan=plan.id)[1]
    context.parts.proposals.rejected.clear()
    context.board.set_role(Role.STANDBY)
    assert context.journal is not None
    context.journal.release()
    keep_lock(context, holder())
    check_leaders(context)
    assert context.board.view.plans == ()
    bounce(world, 2)
    observe(context)
    check_leaders(context)
    assert only_plan(context).id != plan.id


@pytest.mark.parametrize("intent", ["balance", "drain"])
def test_a_plan_that_was_asked_for_and_rejected_comes_back_from_no_check(leader: Rig, intent: str) -> None:
    """The checks make the same one: it is shown once, and gone once it is rejected; what else was rejected stays so."""
    assert ask(leader, "plan", intent="balance")[1]
    wanted = leader.parts.proposals.asked
    assert wanted is not None
    propose(leader, ActionKind.MOVES, wanted.plan)
    assert only_plan(leader).requested_by == "Ada"
    assert ask(leader, "reject", plan=wanted.id)[1]
    assert leader.board.view.plans == ()
    if intent == "drain":
        assert ask(leader, "plan", intent="drain", broker="2")[1]
        assert ask(leader, "reject", plan=only_plan(leader).id)[1]
    propose(leader, ActionKind.MOVES, wanted.plan)
    assert leader.board.view.plans == ()


def test_a_user_who_approves_a_plan_that_has_to_wait_hears_why(leader: Rig) -> None:
    """Not that there is nothing to do: here a broker that came back a moment ago."""
    reading = leader.parts.reading
    reading.presence = replace(reading.presence, changed_at_s=leader.clock.monotonic_s())
    assert ask(leader, "plan", intent="drain", broker="2")[1]
    plan = only_plan(leader).id
    told, ok = ask(leader, "approve", plan=plan)
    assert ok
    assert told.startswith(f"Ada approved {plan}. {plan} has to wait: Waiting for replicas to be in sync")
    assert "No pending action" not in told


def test_an_approved_drain_does_not_wait_for_the_cool_down_of_an_earlier_balance(leader: Rig, world: SimWorld) -> None:
    """That keeps the daemon from balancing too often by itself: the page shows the plan as free to start, and so it is."""
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    assert ask(leader, "plan", intent="balance")[1]
    assert ask(leader, "approve", plan=only_plan(leader).id)[1]
    leader.parts.proposals.notice_end()
    observe(leader)
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    leader.parts.permissions.publish()
    assert leader.parts.permissions.of(ActionKind.MOVES).code == "cooling-down"
    assert ask(leader, "plan", intent="drain", broker="2")[1]
    (shown,) = api.status(leader.board.view, now_ms=leader.clock.now_ms(), read_only="").plans
    assert (shown.pending_approval, shown.blocked) == (True, "")
    told, ok = ask(leader, "approve", plan=shown.id)
    assert ok
    assert "started" in told
    assert not any(2 in p.replicas for p in world.partitions())


def test_a_plan_asked_for_right_after_a_run_is_made_from_what_the_run_left(leader: Rig, world: SimWorld) -> None:
    """Before the loop has noticed the run's end: it is made once the cluster has been read again, and is not withdrawn."""
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    assert ask(leader, "plan", intent="balance")[1]
    assert ask(leader, "approve", plan=only_plan(leader).id)[1]
    assert not leader.parts.runs.in_flight()
    request = Request(
        id="drain", kind="plan", by="Ada", at_ms=leader.clock.now_ms(), body={"intent": "drain", "broker": "2"}
    )
    answer(leader, request)
    make_wanted(leader)
    assert leader.board.view.plans == ()
    observe(leader)
    make_wanted(leader)
    act(leader)
    assert only_plan(leader).pending_approval
    assert leader.board.view.answers[-1].ok
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    assert "started" in ask(leader, "approve", plan=only_plan(leader).id)[0]
    assert not any(2 in p.replicas for p in world.partitions())


def test_what_no_person_approved_waits_for_the_cool_down(leader: Rig) -> None:
    """In auto mode by itself; in approve mode the plan is offered, and approved it starts."""
    leader.parts.reading.presence = replace(leader.parts.reading.presence, changed_at_s=None)
    leader.parts.runs.note_start(ActionKind.MOVES, "run-0", leader.clock.now_ms())
    leader.parts.runs.note_end(ActionKind.MOVES, leader.clock.now_ms())
    leader.parts.runs.running = None
    state = leader.parts.reading.state
    assert state is not None
    leader.parts.permissions.publish()
    said = str(propose(leader, ActionKind.MOVES, plan(state, Balance())))
    act(leader)
    assert leader.parts.runs.running is None
    (shown,) = api.status(leader.board.view, now_ms=leader.clock.now_ms(), read_only="").plans
    if leader.policy.mode is Mode.AUTO:
        assert "cool-down" in said
        assert "cool-down" in shown.blocked
    else:
        assert said.startswith("Waiting for approval")
        assert (shown.pending_approval, shown.blocked) == (True, "")
        assert "started" in ask(leader, "approve", plan=shown.id)[0]


@pytest.mark.parametrize("jumps_s", [0, -7200])
def test_a_run_without_approval_waits_for_the_plan_that_a_user_asked_for(
    context: Rig, world: SimWorld, clock: SimClock, jumps_s: int
) -> None:
    """Who was told that a plan is ready finds it there when they press Approve; for ten minutes, and not for ever.

    Nor for two hours more where the clock was ahead when the plan was made.
    """
    world.add_broker(SimBroker(id=4, rack="a"))
    context.policy = DaemonPolicy(mode=Mode.AUTO)
    lead(context, JournalStore())
    clock.sleep(3600)
    observe(context)
    bounce(world, 1)
    observe(context)
    context.parts.reading.presence = replace(context.parts.reading.presence, changed_at_s=None)
    assert ask(context, "plan", intent="drain", broker="2")[1]
    asked = context.board.view.plans[0]
    check_leaders(context)
    act(context)
    assert context.parts.runs.running is None
    assert context.board.view.plans[0].id == asked.id
    assert not_led(world, 1) > 0
    # The user did not come back to it.
    clock.sleep(ASKED_WAITS_S)
    clock.step(jumps_s)
    observe(context)
    check_leaders(context)
    act(context)
    assert not_led(world, 1) == 0
    told = context.board.view.answers[-1]
    assert asked.id in told.detail
    assert not told.ok


def test_a_repair_does_not_wait_for_a_plan_that_a_user_asked_for(leader: Rig) -> None:
    """It takes the plan away, and the user who asked for it hears of that."""
    assert ask(leader, "plan", intent="balance")[1]
    (asked,) = leader.board.view.plans
    leader.policy = DaemonPolicy(mode=Mode.AUTO)
    state = leader.parts.reading.state
    assert state is not None
    made = plan(state, Evacuate(brokers=frozenset({1})))
    propose(leader, ActionKind.REPAIR, made)
    assert leader.parts.runs.running is not None or leader.parts.proposals.asked is None
    told = leader.board.view.answers[-1]
    assert (asked.id in told.detail, told.ok) == (True, False)


def test_a_standby_shows_the_plan_that_was_asked_for_and_what_was_answered(
    world: SimWorld, clock: SimClock, context: Rig
) -> None:
    """A load balancer shows either page: the plan has the same name on both, and goes from both."""
    world.add_broker(SimBroker(id=4, rack="a"))
    store, policy = JournalStore(), DaemonPolicy(mode=Mode.APPROVE)
    context.policy = policy
    lead(context, store)
    observe(context)
    standby = a_rig(context.cluster, clock, Board(), policy)
    give_run_controller(standby, store)
    standby.policy = policy
    assert ask(context, "plan", intent="balance")[1]
    answer_requests(context)
    keep_lock(standby, holder("other"))
    assert standby.board.view.role is Role.STANDBY
    observe(standby)
    shown, told = only_plan(standby), standby.board.view.answers
    assert (shown.id, shown.requested_by, shown.moves) == (only_plan(context).id, "Ada", only_plan(context).moves)
    assert told == context.board.view.answers
    view = standby.board.view
    validator("status").validate(sent(api.status(view, now_ms=clock.now_ms(), read_only="")))
    # Rejected on either page it is gone from both.
    assert ask(context, "reject", plan=shown.id)[1]
    answer_requests(context)
    keep_lock(standby, holder("other"))
    assert standby.board.view.plans == ()


WHOLE = json.loads(json.dumps(asdict(a_plan())))


def test_a_plan_comes_back_from_the_journal_as_it_was_written() -> None:
    """With everything that the page shows of it."""
    asked = decisions_in([Record(ASKED_KEY, WHOLE)]).asked
    assert asked is not None
    assert json.loads(json.dumps(asdict(asked))) == WHOLE


@pytest.mark.parametrize(
    "kept",
    [
        {"plan": 1},
        {"examples": 3},
        {"examples": [{"more": 1}]},
        {},
        {**WHOLE, "more": 1},
        {**WHOLE, "reasons": [["disk"]]},
        {**WHOLE, "resources": [{"name": "disk"}]},
        {**WHOLE, "brokers": [{"broker": 1}]},
    ],
)
def test_a_plan_that_another_version_wrote_is_not_shown(kept: dict[str, Any]) -> None:
    """Rather none than half of one, or a page that cannot be drawn."""
    found = decisions_in([Record(ASKED_KEY, kept), Record(ANSWERS_KEY, kept)])
    assert (found.asked, found.answers) == (None, ())
    assert found.not_shown == ("the plan that was asked for", "the answers to requests")
    assert decisions_in([Record(ASKED_KEY, WHOLE), Record(ANSWERS_KEY, {"answers": []})]).not_shown == ()


def test_what_another_version_wrote_is_said_by_who_reads_it(context: Rig, clock: SimClock) -> None:
    """In the sentence of the journal's tick, which stands on the page and, when it changes, in the log."""
    store = JournalStore()
    leader, standby = MemoryJournal(store, clock), context
    standby.reading_journal = MemoryJournal(store, clock)
    leader.acquire(holder("newer"))
    assert "Another version" not in read_journal_view(standby)
    leader.append([Record(ASKED_KEY, {**WHOLE, "more": 1})])
    told = read_journal_view(standby)
    assert "Another version wrote the plan that was asked for: only the page of the process that holds the lock" in told


MB = 1_000_000


@pytest.mark.parametrize(
    ("policy", "rate"),
    [
        (ExecutionPolicy(throttle=MB), MB),
        (ExecutionPolicy(), ExecutionPolicy().auto_start_bytes_per_s),
        (ExecutionPolicy(auto_max_bytes_per_s=4 * MB), 4 * MB),
        (ExecutionPolicy(throttle="none"), None),
    ],
)
def test_a_plan_says_how_long_it_takes_at_the_throttle_that_will_be_used(
    leader: Rig, policy: ExecutionPolicy, rate: int | None
) -> None:
    """A fixed rate, the rate at which auto starts, within its bounds, and none: by the run's own estimate."""
    leader.policy = replace(leader.policy, execution=policy)
    ask(leader, "plan", intent="balance")
    assert leader.parts.proposals.asked is not None
    plan, shown = leader.parts.proposals.asked.plan, only_plan(leader)
    busiest = plan.summary["busiest_bytes"]
    assert (shown.throttle_bytes_per_s, shown.seconds) == (rate, None if rate is None else busiest / rate)
    assert [b["broker"] for b in shown.brokers] == [1, 2, 3, 4]


def test_a_plan_with_an_unknown_size_names_no_time(leader: Rig) -> None:
    """Unknown is not short."""
    ask(leader, "plan", intent="balance")
    asked = leader.parts.proposals.asked
    assert asked is not None
    unknown = tuple(replace(move, size_bytes=UNKNOWN) for move in asked.plan.moves)
    leader.parts.proposals.asked = replace(asked, plan=replace(asked.plan, moves=unknown))
    publish_proposals(leader)
    assert (only_plan(leader).throttle_bytes_per_s, only_plan(leader).seconds) == (None, None)
    assert only_plan(leader).bytes_moved is None


def test_the_series_is_bounded_and_its_points_a_minute_apart(context: Rig, clock: SimClock) -> None:
    """A point a minute, however often the cluster is read; the oldest go first; growth is known from the second on."""
    for _ in range(9):
        observe(context)
        clock.sleep(15)
    points = context.board.view.series
    assert len(points) == 3
    assert points[0].bytes_in_per_s is None
    assert points[-1].bytes_in_per_s is not None
    state, figures = context.parts.reading.state, context.board.view.figures
    assert state is not None
    assert figures is not None
    series = Series()
    for minute in range(POINTS + 5):
        series.add(state, replace(figures, taken_at_ms=minute * 60_000))
    assert len(series.points) == POINTS
    assert series.points[0].at_ms == 5 * 60_000


def test_bytes_in_are_those_that_brokers_measure_where_they_do(context: Rig, clock: SimClock) -> None:
    """Of the time of the reading; where the metrics are away for long the growth of logs stands in, and each point says which."""
    series = context.parts.observer.series
    series.note_measured(clock.now_ms(), 5e6)
    for _ in range(2):
        observe(context)
        clock.sleep(60)
    series.note_measured(clock.now_ms() - MEASURED_MS - 1, 7e6)
    observe(context)
    points = api.series(context.board.view).points
    assert [(p.bytes_in_per_s, p.bytes_in_source) for p in points[:2]] == [(5e6, "measured")] * 2
    assert points[2].bytes_in_source == "growth"
    assert points[2].bytes_in_per_s == context.board.view.series[2].bytes_in_per_s


def test_one_broker_one_topic_and_the_partitions_in_one_state(serve: Callable[..., Running], tmp_path: Path) -> None:
    """Each answer is as described; what is not there is 404 with a sentence."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    daemon = serve(web=WebPolicy(port=0, token_file=token))
    daemon.until(lambda v: v.figures is not None and bool(v.series))

    def read(path: str, described: str) -> dict[str, Any]:
        code, body = daemon.get(f"/api/v1/{path}")
        assert code == 200
        found: dict[str, Any] = json.loads(body)
        validator(described).validate(found)
        return found

    broker = read("brokers/1", "brokers/{name}")
    assert broker["total"] == len(broker["replicas"]) == 12
    assert sum(r["leader"] for r in broker["replicas"]) == 4
    topic = read("topics/orders", "topics/{name}")
    assert [(p["partition"], p["lag"]) for p in topic["partitions"]] == [(n, 0) for n in range(12)]
    assert read("partitions/under-replicated", "partitions/{name}")["total"] == 0
    assert read("series", "series")["points"]
    for missing in ("brokers/9", "brokers/x", "topics/none", "partitions/odd"):
        assert daemon.get(f"/api/v1/{missing}")[0] == 404
    daemon.world.kill(3)
    daemon.until(lambda v: v.figures is not None and v.figures.under_replicated == 12)
    assert read("partitions/under-replicated", "partitions/{name}")["total"] == 12
