"""What people ask of the one that acts: each request has one who hears it, and is answered once and truthfully."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.daemon.conftest import Running, bounce, not_led
from tests.daemon.rig import (
    Rig,
    a_rig,
    answer,
    answer_requests,
    check_balance,
    check_leaders,
    codes,
    give_run_controller,
    guard,
    holder,
    keep_lock,
    observe,
    read_journal_view,
    show_run,
    submit,
)

from ballast.adapters.kafka.retry import RetryPolicy
from ballast.core.catalogue import Message, Said
from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.throttles import LEADER_RATE, LedgerEntry, Setting
from ballast.daemon.acting.driving import DriverRunController
from ballast.daemon.context.view import ANSWERS_KEPT, Board, Role, RunView
from ballast.daemon.metrics.catalog import Metrics
from ballast.daemon.policy import DaemonPolicy, Mode
from ballast.daemon.process.lock import RESERVED_S
from ballast.errors import Refused, Unavailable
from ballast.executor.driver.driver import Driver
from ballast.executor.journal.ledger import dump_held
from ballast.executor.journal.pause import PAUSE_KEY
from ballast.executor.journal.records import dump_run, load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.run import Now, new_run
from ballast.ports.journal import CLOCKS_DIFFER_S, EXPIRES_S, Record, Request
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore, MemoryJournal
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld
from ballast.wiring.daemon import Retries

AUTO = DaemonPolicy(mode=Mode.AUTO)


def daemon(world: SimWorld, clock: SimClock, store: JournalStore, api: frozenset[str] = frozenset({"reassign"})) -> Rig:
    """A replica in auto mode that has read the cluster and not yet asked for the lock."""
    context = a_rig(SimCluster(world, api=api), clock, Board(), AUTO)
    give_run_controller(context, store)
    observe(context)
    return context


def ask(context: Rig, kind: str, **body: object) -> Request:
    """A person's request in the journal."""
    request = Request(id=f"r-{kind}-{len(body)}", kind=kind, by="Ada", at_ms=context.clock.now_ms(), body=body)
    submit(context, request)
    return request


def answers(context: Rig) -> list[str | None]:
    """The answers in the journal."""
    assert context.reading_journal is not None
    return [r.answer for r in context.reading_journal.requests()]


def refused(context: Rig) -> list[bool]:
    """Which of them refuse."""
    assert context.reading_journal is not None
    return [r.refused for r in context.reading_journal.requests()]


def test_a_take_over_gives_the_lock_to_the_one_who_asked(world: SimWorld, clock: SimClock, store: JournalStore) -> None:
    """No replica snatches the lock that another gave up for a person, and all of them want it again afterwards."""
    first, second = daemon(world, clock, store), daemon(world, clock, store)
    assert "taken" in codes(keep_lock(first, holder("first")))
    ask(first, "take-over")
    answer_requests(first)
    assert answers(first) == ["The lock is released for Ada; Ballast acquires it again once it is free."]
    assert "released-for" in codes(keep_lock(first, holder("first")))
    assert "left-to" in codes(keep_lock(first, holder("first")))
    assert "released-again" in codes(keep_lock(second, holder("second"))), (
        "the other replica did not know before it had the lock"
    )
    assert second.board.view.role is Role.STANDBY
    assert "left-to" in codes(keep_lock(second, holder("second")))
    laptop = MemoryJournal(store, clock)
    laptop.acquire(holder("laptop"))
    laptop.release()
    clock.sleep(RESERVED_S + 1)
    assert "taken" in codes(keep_lock(second, holder("second")))


def test_a_request_that_cannot_be_read_is_told_once_and_counted(
    world: SimWorld, clock: SimClock, store: JournalStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be a person's cancel, sent by a newer version: the holder says that it does not obey, and a standby says nothing."""
    leader, standby = daemon(world, clock, store), daemon(world, clock, store)
    keep_lock(leader, holder("first"))
    answer_requests(leader)
    assert leader.board.view.requests_skipped == 0
    store.requests |= {"r-newer": b'{"version":99,"value":{}}', "r-none": b"?"}
    for _ in range(2):
        answer_requests(leader)
        answer_requests(standby)
    why = "The journal's record r-newer has version 99, and this Ballast reads 1."
    assert [r.getMessage() for r in caplog.records if "cannot be read" in r.getMessage()] == [
        f"2 requests in the journal cannot be read and will not be answered: r-newer, r-none. {why}"
    ]
    assert (leader.board.view.requests_skipped, standby.board.view.requests_skipped) == (2, None)
    counts = [Metrics(rig.board).registry.get_sample_value("ballast_requests_unreadable") for rig in (leader, standby)]
    assert counts == [2.0, None]
    store.requests.clear()
    answer_requests(leader)
    assert leader.board.view.requests_skipped == 0


def test_nothing_is_begun_while_the_lock_is_given_up(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work loop runs beside the one that reads requests and the one that keeps the lock: neither leaves it a moment."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    ask(context, "take-over")
    assert context.run_controller is not None
    beside: list[Said] = []
    monkeypatch.setattr(context.run_controller, "stop", lambda *, wait_s: beside.append(check_leaders(context)))  # noqa: ARG005
    answer_requests(context)
    assert "released-for" in codes(keep_lock(context, holder()))
    assert [guard(said) for said in beside] == [("releasing-lock", {"by": "Ada"}), ("standby", {})]
    assert not_led(world, 1) == 4


def test_who_takes_over_is_answered_before_the_lock_is_gone(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving a run takes a while, in which the lock check gives the lock up: what is not answered by then stays unanswered."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    ask(context, "take-over")
    ask(context, "cancel", run="run-1", why="changed my mind")
    assert context.run_controller is not None
    beside: list[Message] = []

    def stop(*, wait_s: float) -> None:
        if context.board.view.role is Role.ACTIVE:
            beside.append(keep_lock(context, holder()))

    monkeypatch.setattr(context.run_controller, "stop", stop)
    assert answer_requests(context) == "Answered 1 request."
    assert [(said.code, said.values) for said in beside] == [("released-for", {"by": "Ada"})]
    assert answers(context) == ["The lock is released for Ada; Ballast acquires it again once it is free.", None]


def test_a_take_over_request_that_no_process_waits_for_changes_nothing(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """The process that sent it was killed or gave up long ago: the daemon keeps the lock and says so."""
    context = daemon(world, clock, store)
    ask(context, "take-over", wait_s=30)
    clock.sleep(3600)
    keep_lock(context, holder())
    answer_requests(context)
    assert answers(context) == ["too late: the process that requested the lock no longer waits for it"]
    assert refused(context) == [True]
    assert "held" in codes(keep_lock(context, holder()))


def test_the_one_that_carries_a_run_out_does_not_answer_for_the_daemon(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """A request has one who hears it: the run goes on until the daemon's loop has read what was asked."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    ask(context, "take-over", run="run-1")
    ask(context, "cancel", run="run-1", why="changed my mind")
    bounce(world, 1)
    observe(context)
    assert "run-started" in codes(check_leaders(context))
    assert not_led(world, 1) == 0
    assert answers(context) == [None, None]
    answer_requests(context)
    assert answers(context) == [
        "The lock is released for Ada; Ballast acquires it again once it is free.",
        "Run run-1 is not being executed. ballast runs show run-1 tells how it ended.",
    ]
    assert refused(context) == [False, True]


def test_what_is_approved_on_a_standbys_page_is_what_the_leader_carries_out(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """Both replicas make the plan, at different times; it has one name, so that it does not matter whose page was open."""
    leader, standby = daemon(world, clock, store), daemon(world, clock, store)
    for context in (leader, standby):
        context.policy = replace(context.policy, mode=Mode.APPROVE)
    keep_lock(leader, holder("first"))
    assert "standing-by" in codes(keep_lock(standby, holder("second")))
    bounce(world, 1)
    observe(leader)
    assert "approval-pending" in codes(check_leaders(leader))
    clock.sleep(40)
    observe(standby)
    assert "Proposed plan: 4 preferred leader elections (no data copied)." in str(check_leaders(standby))
    (shown,) = standby.board.view.plans
    assert shown.created_at_ms > leader.board.view.plans[0].created_at_ms
    ask(standby, "approve", plan=shown.id)
    answer_requests(leader)
    assert not_led(world, 1) == 0
    assert f"Ada approved {shown.id}" in str(answers(leader)[0])


def test_the_lock_says_what_is_done_now(world: SimWorld, clock: SimClock, store: JournalStore) -> None:
    """While a run is executed its own words stand; after it nothing of it does."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    keep_lock(context, holder())
    other = MemoryJournal(store, clock)
    kept = other.holder()
    assert kept is not None
    assert kept.doing == "idle"
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    kept = other.holder()
    assert kept is not None
    assert "elect preferred leaders" in kept.doing
    keep_lock(context, holder())
    kept = other.holder()
    assert kept is not None
    assert kept.doing == "idle"


def test_a_standby_tells_of_the_run_that_another_carries_out(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """From the journal, with who does it; once it acts itself, it tells of its own runs alone."""
    standby, laptop = daemon(world, clock, store), MemoryJournal(store, clock)
    laptop.acquire(holder("laptop"))
    plan = Plan("evacuate 1", "c", "f", (Move("orders", 0, (1, 2, 3), (4, 2, 3)),))
    laptop.append(dump_run(new_run("r-7", plan, ExecutionPolicy(), Now(clock.now_ms(), clock.monotonic_s()))))
    assert "standing-by" in codes(keep_lock(standby, holder("pod")))
    read_journal_view(standby)
    assert show_run(standby) == "Run r-7 is executed by laptop on this machine."
    view = standby.board.view
    assert view.run is None
    assert view.run_elsewhere is not None
    assert (view.run_elsewhere.id, view.run_elsewhere.moves_total) == ("r-7", 1)
    standby.board.set_role(Role.ACTIVE)
    show_run(standby)
    assert standby.board.view.run_elsewhere is None


def daemon_beside_a_command(world: SimWorld, clock: SimClock, store: JournalStore) -> tuple[Rig, MemoryJournal]:
    """A daemon that stands by, and the journal of the command on a laptop that holds the lock."""
    standby, laptop = daemon(world, clock, store), MemoryJournal(store, clock)
    laptop.acquire(holder("laptop"))
    keep_lock(standby, holder("pod"))
    return standby, laptop


def test_a_standbys_page_tells_what_the_holder_answered_to_its_requests(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """A command that holds the lock keeps no answers for pages: without this the page would say that the request waits, for ever."""
    standby, laptop = daemon_beside_a_command(world, clock, store)
    ask(standby, "pause")
    ask(standby, "approve", plan="moves-1")
    ask(standby, "plan", intent="balance", broker=1)
    laptop.request(Request("r-other", "pause", "Bob", clock.now_ms(), {}))
    answer_requests(standby)
    assert [a.detail for a in standby.board.view.answers] == []
    laptop.answer("r-pause-0", "Paused by Ada.")
    laptop.answer("r-approve-1", "The laptop holds the lock.", refused=True)
    laptop.answer("r-plan-2", "A plan was asked for.")
    laptop.answer("r-other", "Paused by Bob.")
    answer_requests(standby)
    laptop.renew("still at it")
    keep_lock(standby, holder("pod"))
    answer_requests(standby)
    said = [(a.request, a.detail, a.ok) for a in standby.board.view.answers]
    assert said == [
        ("r-pause-0", "Paused by Ada.", True),
        ("r-approve-1", "Refused: The laptop holds the lock.", False),
    ], "the answer to a plan is told when it has been made"


def test_an_old_answer_is_no_news_when_newer_ones_have_pushed_it_out(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """The page shows the newest; requests stay in the journal for a month."""
    standby, laptop = daemon_beside_a_command(world, clock, store)
    ask(standby, "pause")
    laptop.answer("r-pause-0", "Paused by Ada.")
    answer_requests(standby)
    assert [a.request for a in standby.board.view.answers] == ["r-pause-0"]
    newer = [f"newer-{n}" for n in range(ANSWERS_KEPT)]
    for request in newer:
        standby.board.tell(request, "Resumed by Ada.", ok=True, at_ms=clock.now_ms())
    answer_requests(standby)
    answer_requests(standby)
    assert [a.request for a in standby.board.view.answers] == newer


def test_a_page_that_only_observes_says_that_its_pause_holds_no_other_process(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """Nothing is written to the journal in this mode: the run that the page shows goes on."""
    context = daemon(world, clock, store)
    context.policy = replace(AUTO, mode=Mode.OBSERVE)
    elsewhere = RunView(id="run-1", intent="balance", phase="running", started_at_ms=clock.now_ms())
    pause = Request("r", "pause", "Ada", clock.now_ms(), {})
    own = "Paused by Ada: nothing new starts, moves in progress go on."
    assert answer(context, pause) == own
    context.board.publish(run_elsewhere=elsewhere)
    assert (
        answer(context, pause)
        == f"{own} Another process executes run run-1. This process only observes and cannot forward the request."
    )


def test_a_plan_that_is_made_again_has_waited_since_it_was_made_first(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """Its age is what the alert for a forgotten approval goes by; a plan that would do something else is a new one."""
    context = daemon(world, clock, store)
    context.policy = replace(context.policy, mode=Mode.APPROVE)
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    check_leaders(context)
    (first,) = context.board.view.plans
    clock.sleep(3600)
    observe(context)
    check_leaders(context)
    assert context.board.view.plans == (first,)
    bounce(world, 2)
    observe(context)
    check_leaders(context)
    (other,) = context.board.view.plans
    assert other.id != first.id
    assert other.created_at_ms > first.created_at_ms + 3_600_000


def test_cancelling_one_run_does_not_hit_another(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who saw run-1 and asked too late does not stop the run that followed it."""
    context = daemon(world, clock, store)
    run_controller = context.run_controller
    asked: list[tuple[str, bool, str]] = []
    assert run_controller is not None
    now = RunView(id="run-2", intent="balance", phase="running", started_at_ms=clock.now_ms())
    monkeypatch.setattr(run_controller, "current", lambda: now)

    def cancel(run_id: str, *, rollback: bool, by: str) -> bool:
        asked.append((run_id, rollback, by))
        return True

    monkeypatch.setattr(run_controller, "cancel", cancel)
    late = Request("r", "cancel", "Ada", clock.now_ms(), {"run": "run-1"})
    assert answer(context, late) == "Refused: Run run-1 is not being executed; run run-2 is."
    assert asked == []
    assert answer(context, replace(late, kind="rollback", body={"run": "run-2"})).startswith(
        "Ada requested to cancel run run-2 and to roll back"
    )
    assert answer(context, replace(late, body={})).startswith("Refused"), "it names no run"
    assert answer(context, replace(late, body={"run": "run-2", "reason": "release"})).startswith(
        "Ada requested to cancel run run-2."
    )
    assert asked == [("run-2", True, "Ada"), ("run-2", False, "Ada: release")]


def test_a_cancel_from_the_page_means_the_run_that_the_page_shows(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posted to a standby, it must not kill the run after that one when this replica acts."""
    context = daemon(world, clock, store)
    assert context.run_controller is not None
    assert context.reading_journal is not None
    monkeypatch.setattr(context.run_controller, "current", lambda: None)
    post = Request("r", "cancel", "Ada", clock.now_ms(), {})
    with pytest.raises(Refused):
        submit(context, post)
    elsewhere = RunView(id="run-1", intent="balance", phase="running", started_at_ms=clock.now_ms())
    context.board.publish(run_elsewhere=elsewhere)
    submit(context, post)
    (left,) = context.reading_journal.requests()
    assert left.body == {"run": "run-1"}
    monkeypatch.setattr(context.run_controller, "current", lambda: replace(elsewhere, id="run-2"))
    assert answer(context, left).startswith("Refused")


@pytest.mark.parametrize("kind", ["cancel", "rollback"])
def test_restoring_throttles_is_nothing_to_cancel(
    world: SimWorld, clock: SimClock, store: JournalStore, kind: str
) -> None:
    """It is shown in the place of a run and is none: a user who asks is told so, whether or not they name it."""
    context = daemon(world, clock, store)
    bodies: list[Callable[[], None]] = []
    run_controller = give_run_controller(context, store, spawn=bodies.append)
    left = MemoryJournal(store, clock)
    left.acquire(holder("earlier"))
    left.append([dump_held(Setting("broker", "1", LEADER_RATE), LedgerEntry(None, frozenset({"5"})))])
    left.release()
    keep_lock(context, holder())
    assert run_controller.current() is not None
    assert context.reading_journal is not None
    for body in ({}, {"run": "throttles"}):
        with pytest.raises(Refused, match="throttles of earlier runs"):
            submit(context, Request("r", kind, "Ada", clock.now_ms(), body))
    assert context.reading_journal.requests() == []
    for run in ("throttles", "run-1"):
        assert "throttles of earlier runs" in answer(context, Request("r", kind, "Ada", clock.now_ms(), {"run": run}))
        assert not context.board.view.answers[-1].ok


@pytest.mark.parametrize("kind", ["pause", "resume", "approve"])
def test_an_order_that_names_nothing_lasting_expires(
    world: SimWorld, clock: SimClock, store: JournalStore, kind: str
) -> None:
    """Left for a daemon that was away for the night, it is not obeyed in the morning."""
    context = daemon(world, clock, store)
    old = Request("r", kind, "Ada", clock.now_ms(), {})
    clock.sleep(EXPIRES_S + CLOCKS_DIFFER_S + 1)
    assert answer(context, old).startswith("Refused: Request expired: Ada asked to")
    assert context.board.view.pause is None


@pytest.mark.parametrize(("api", "one"), [(frozenset(), True), (frozenset({"reassign"}), False)])
def test_clusters_of_one_batch_get_one_batch_at_a_time(
    world: SimWorld, clock: SimClock, store: JournalStore, api: frozenset[str], *, one: bool
) -> None:
    """The run that the daemon journals is one that the cluster can take: before Kafka 2.4, one batch at a time."""
    context = daemon(world, clock, store, api=api)
    keep_lock(context, holder())
    bounce(world, 1)
    observe(context)
    assert "run-started" in codes(check_leaders(context))
    assert context.journal is not None
    runs = load_runs(context.journal.read(), Now(clock.now_ms(), clock.monotonic_s()))
    assert runs["run-1"].policy.one_batch_at_a_time is one


def test_questions_that_are_asked_again_are_counted(serve: Callable[..., Running]) -> None:
    """A cluster that does not answer at once shows in the metrics before it shows as unreachable."""
    running = serve()
    retries, tries = Retries(running.service.metrics), iter([Unavailable("silence"), Unavailable("silence"), None])
    policy = RetryPolicy(total_s=30.0, longest_wait_s=0.01, observer=retries.on_event)

    def ask() -> str:
        if failure := next(tries):
            raise failure
        return "metadata"

    assert policy.call("metadata", ask) == "metadata"
    page = running.get("/metrics")[1]
    assert 'ballast_cluster_retries_total{operation="metadata"} 2.0' in page


def test_what_was_left_open_is_taken_up_before_anything_else_may_start(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work loop goes by the role: before it says leader, the run controller has taken up the open run."""
    context = daemon(world, clock, store)
    bounce(world, 1)
    observe(context)
    run_controller = context.run_controller
    assert run_controller is not None
    seen: list[Said] = []

    def adopt() -> None:
        seen.append(check_leaders(context))

    monkeypatch.setattr(run_controller, "adopt", adopt)
    keep_lock(context, holder())
    assert len(seen) == 1
    assert guard(seen[0]) == ("standby", {})
    assert "run-started" in codes(check_leaders(context))


def test_a_run_that_is_taken_up_while_ballast_is_paused_starts_nothing_new(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """The pause survives restarts for what was left open as well: moves in flight end, the next ones wait for the word."""
    world.add_broker(SimBroker(id=4, rack="a"))
    journal = MemoryJournal(store, clock)
    journal.acquire(holder("before"))
    driver = Driver(SimCluster(world), journal, clock)
    state = SimCluster(world).snapshot()
    names = [TopicPartition("orders", n) for n in (0, 1)]
    lists = {n: tuple(world.partition(*n).replicas) for n in names}
    moves = tuple(Move(*n, old, (*old[:2], 4), 100_000_000) for n, old in lists.items())
    plan = Plan("test", state.cluster_id, fingerprint(state), moves=moves)
    one_by_one = ExecutionPolicy(throttle=5_000_000, moves_at_once=1)
    clock.after(10, driver.leave)
    assert driver.execute(plan, one_by_one, run_id="left").status == "left"
    journal.append([Record(PAUSE_KEY, {"by": "Ada", "since_ms": clock.now_ms(), "reason": "release night"})])
    journal.release()

    context = daemon(world, clock, store)
    run_controller = context.run_controller
    assert run_controller is not None
    begun: list[bool] = []

    def resume() -> None:
        begun.extend(4 in world.partition(*n).replicas for n in names)
        run_controller.pause(paused=False)

    clock.after(200, resume)
    keep_lock(context, holder())
    assert begun == [True, False]
    assert all(4 in world.partition(*n).replicas for n in names)


def test_a_plan_keeps_its_name_while_producers_write(world: SimWorld, clock: SimClock, store: JournalStore) -> None:
    """Sizes grow between two checks; the plan a person looks at is still the one that they approve."""
    context = daemon(world, clock, store)
    context.policy = replace(AUTO, mode=Mode.APPROVE)
    keep_lock(context, holder())
    world.add_broker(SimBroker(id=4, rack="a"))
    clock.sleep(context.policy.guards.membership_cool_down_s)
    ids, sizes = set(), set()
    for _ in range(2):
        for partition in world.partitions():
            for copy in partition.copies.values():
                copy.end_bytes *= 1.001
        context.parts.reading.full = None
        clock.sleep(context.policy.guards.membership_cool_down_s + 1)
        observe(context)
        check_balance(context)
        (plan,) = [p for p in context.board.view.plans if p.action == "moves"]
        ids.add(plan.id)
        sizes.add(plan.bytes_moved)
    assert len(sizes) == 2
    assert len(ids) == 1


def test_what_was_done_is_not_done_again_where_its_answer_was_not_written(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time it would be refused as already done, though it is what was asked for."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    ask(context, "pause")
    answer_requests(context)
    write, failing = MemoryJournal.answer, [1]

    def fails(self: MemoryJournal, *about: Any, **more: Any) -> None:
        if failing:
            failing.pop()
            raise Unavailable("silence")
        write(self, *about, **more)

    monkeypatch.setattr(MemoryJournal, "answer", fails)
    ask(context, "resume")
    with pytest.raises(Unavailable):
        answer_requests(context)
    answer_requests(context)
    assert answers(context) == ["Paused by Ada: nothing new starts, moves in progress go on.", "Resumed by Ada."]


def test_a_request_that_came_while_the_journal_was_silent_is_executed_afterwards(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it could not be written down is no decision: it waits, and nothing has begun of it."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    ask(context, "pause")

    def silent(_self: MemoryJournal, *_about: Any, **_more: Any) -> None:
        raise Unavailable("silence")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(MemoryJournal, "append", silent)
        meanwhile.setattr(MemoryJournal, "answer", silent)
        with pytest.raises(Unavailable):
            answer_requests(context)
    assert context.board.view.pause is None
    answer_requests(context)
    assert context.board.view.pause is not None
    assert answers(context) == ["Paused by Ada: nothing new starts, moves in progress go on."]


@pytest.mark.parametrize("kind", ["cancel", "rollback"])
def test_a_run_that_has_ended_cannot_be_cancelled_any_more(
    world: SimWorld, clock: SimClock, store: JournalStore, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """While its throttles are still being removed, too: the answer says so, and not that it may still end first."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    now_ms = clock.now_ms()
    ended = RunView(id="run-1", intent="balance", phase="ended", started_at_ms=now_ms, ended_at_ms=now_ms)
    monkeypatch.setattr(DriverRunController, "current", lambda _: ended)
    # Until it is idle it takes commands.
    monkeypatch.setattr(DriverRunController, "cancel", lambda *_, **__: True)
    said = answer(context, Request("q", kind, "Ada", clock.now_ms(), {"run": ended.id}))
    assert said.startswith(f"Refused: Run {ended.id} is not being executed.")


@pytest.mark.parametrize("kind", ["pause", "approve", "take-over"])
def test_an_order_of_a_clock_far_ahead_is_refused(
    world: SimWorld, clock: SimClock, store: JournalStore, kind: str
) -> None:
    """It would count as new for as long as that clock is ahead."""
    context = daemon(world, clock, store)
    early = Request("r", kind, "Ada", clock.now_ms() + 86_400_000, {})
    said = answer(context, early)
    assert said.startswith("Refused")
    assert "clock" in said
    assert context.board.view.pause is None


def test_a_kind_that_this_version_does_not_know_is_refused(
    world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """The person who asked waits for an answer."""
    context = daemon(world, clock, store)
    keep_lock(context, holder())
    assert context.reading_journal is not None
    context.reading_journal.request(Request("q", "dance", "Ada", clock.now_ms(), {}))
    answer_requests(context)
    assert refused(context) == [True]


def test_a_cancel_expires_as_any_other_order(world: SimWorld, clock: SimClock, store: JournalStore) -> None:
    """Its sender has given up."""
    context = daemon(world, clock, store)
    old = Request("r", "cancel", "Ada", clock.now_ms(), {"run": "run-1"})
    clock.sleep(EXPIRES_S + CLOCKS_DIFFER_S + 1)
    assert answer(context, old).startswith("Refused: Request expired")
