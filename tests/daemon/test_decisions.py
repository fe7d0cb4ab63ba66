"""What the daemon decides, check by check, on a simulated cluster in simulated time."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.daemon.conftest import bounce, not_led, pass_time
from tests.daemon.rig import (
    Rig,
    a_rig,
    act,
    answer_requests,
    check_balance,
    check_leaders,
    check_repair,
    codes,
    give_run_controller,
    guard,
    holder,
    keep_lock,
    lead,
    observe,
    read_journal_view,
    submit,
)

from ballast.core.cluster import ClusterState, TopicPartition
from ballast.core.guards import verdict
from ballast.core.plan import Move, Plan
from ballast.core.plan.fingerprint import fingerprint
from ballast.core.planner import Place, Selection, TopicRule, plan
from ballast.core.throttles import FOLLOWER_RATE, LedgerEntry, Setting
from ballast.daemon.acting.driving import DriverRunController
from ballast.daemon.context.view import BalanceView, Role
from ballast.daemon.policy import (
    ActionKind,
    ActionPolicy,
    Actions,
    ControllerRebalance,
    DaemonPolicy,
    LeaderPolicy,
    Mode,
)
from ballast.errors import Unavailable, WrongCluster
from ballast.executor.driver.events import Refusing
from ballast.executor.journal.ledger import dump_held
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.ports.journal import Request
from ballast.sim.clock import SimClock
from ballast.sim.cluster import SimCluster
from ballast.sim.journal import JournalStore
from ballast.sim.model import SimBroker
from ballast.sim.world import SimWorld

AUTO = DaemonPolicy(mode=Mode.AUTO)


@pytest.fixture
def leader(context: Rig, store: JournalStore) -> Rig:
    """A daemon in auto mode that holds the lock and has read the cluster."""
    context.policy = AUTO
    lead(context, store)
    observe(context)
    return context


def wait(context: Rig, seconds: float) -> None:
    """Let time pass and read the cluster again."""
    context.clock.sleep(seconds)
    context.clock.sleep(1)
    observe(context)


def ask(context: Rig, kind: str, **body: object) -> Request:
    """A person's request, as the page hands it over."""
    request = Request(
        id=f"r-{kind}-{context.clock.now_ms()}", kind=kind, by="Ada", at_ms=context.clock.now_ms(), body=body
    )
    submit(context, request)
    return request


def test_observe_mode_recommends_and_never_elects(context: Rig, world: SimWorld) -> None:
    """A broker that came back without its leaders is reported, and left as it is."""
    bounce(world, 1)
    observe(context)
    said = str(check_leaders(context))
    assert "Leader imbalance over 10 % at broker 1 (100.0 %)" in said
    assert "Proposed plan: 4 preferred leader elections (no data copied)." in said
    assert "observe" in said
    assert not_led(world, 1) == 4
    assert [p.action for p in context.board.view.plans] == ["elections"]
    assert not context.board.view.plans[0].pending_approval


def test_several_imbalanced_brokers_are_told_together(context: Rig, world: SimWorld) -> None:
    """In the plural."""
    for broker in (1, 2):
        world.kill(broker)
    for broker in (1, 2):
        bounce(world, broker)
    observe(context)
    assert "Leader imbalance over 10 % at brokers 1 (100.0 %), 2 (100.0 %)." in str(check_leaders(context))


def test_auto_mode_brings_leaders_home(leader: Rig, world: SimWorld) -> None:
    """A broker that lost its leaders between two readings gets them back at once, and then there is nothing to do."""
    bounce(world, 1)
    observe(leader)
    assert "Run run-1 started: 4 preferred leader elections (no data copied)" in str(check_leaders(leader))
    assert not_led(world, 1) == 0
    wait(leader, 1)
    assert "leaders-balanced" in codes(check_leaders(leader))


def test_it_waits_for_quiet_after_a_brokers_return(leader: Rig, world: SimWorld, clock: SimClock) -> None:
    """A return that the daemon saw starts the quiet time; elections come after it, not before."""
    world.kill(1)
    clock.sleep(20)
    observe(leader)
    world.start(1)
    wait(leader, 60)
    code, parameters = guard(check_leaders(leader))
    assert (code, "a broker came or went" in parameters["why"]) == ("replicas-not-in-sync", True)
    assert not_led(world, 1) == 4
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    assert "run-started" in codes(check_leaders(leader))
    assert not_led(world, 1) == 0


def test_it_leaves_the_controller_one_of_its_own_intervals(leader: Rig, world: SimWorld) -> None:
    """While the controller rebalances by itself, only what it left over is elected."""
    world.cluster_configs.pop("auto.leader.rebalance.enable")
    bounce(world, 1)
    leader.parts.reading.full = None
    observe(leader)
    assert "controller-first" in codes(check_leaders(leader))
    wait(leader, 301)
    assert "run-started" in codes(check_leaders(leader))
    leader.policy = replace(AUTO, leaders=LeaderPolicy(with_controller_rebalance=ControllerRebalance.DISABLE))
    bounce(world, 2)
    observe(leader)
    assert "left-to-controller" in codes(check_leaders(leader))
    assert not_led(world, 2) == 4


def test_caps_survive_a_restart(leader: Rig, world: SimWorld, clock: SimClock, store: JournalStore) -> None:
    """A day's cap counts what the process before this one did."""
    capped = replace(AUTO, actions=Actions(elections=ActionPolicy(per_day=1)))
    leader.policy = capped
    bounce(world, 1)
    observe(leader)
    assert "run-started" in codes(check_leaders(leader))
    assert leader.journal is not None
    leader.journal.release()
    successor = a_rig(SimCluster(world), clock, type(leader.board)(), capped)
    give_run_controller(successor, store)
    successor.policy = capped
    keep_lock(successor, holder("successor"))
    bounce(world, 2)
    observe(successor)
    assert guard(check_leaders(successor)) == ("cap-reached", {"starts": 1, "cap": 1})
    assert not_led(world, 2) == 4


def test_approval_starts_exactly_what_was_shown(leader: Rig, world: SimWorld) -> None:
    """A plan waits for a person; the word of a person starts it; another plan's name starts nothing."""
    leader.policy = DaemonPolicy(mode=Mode.APPROVE)
    bounce(world, 1)
    observe(leader)
    assert "approval-pending" in codes(check_leaders(leader))
    assert not_led(world, 1) == 4
    (shown,) = leader.board.view.plans
    assert shown.pending_approval
    ask(leader, "approve", plan="elections-0")
    answer_requests(leader)
    assert not_led(world, 1) == 4
    ask(leader, "approve", plan=shown.id)
    answer_requests(leader)
    assert not_led(world, 1) == 0
    assert leader.reading_journal is not None
    answers = [r.answer for r in leader.reading_journal.requests()]
    assert answers[0] is not None
    assert "There is no plan elections-0" in answers[0]
    assert answers[1] is not None
    assert f"Ada approved {shown.id}" in answers[1]


def test_pause_survives_a_restart_and_holds_everything(
    leader: Rig, world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """The switch lives in the journal: the next process finds it on."""
    ask(leader, "pause", reason="release night")
    answer_requests(leader)
    assert leader.journal is not None
    leader.journal.release()
    successor = a_rig(SimCluster(world), clock, type(leader.board)(), AUTO)
    give_run_controller(successor, store)
    keep_lock(successor, holder("successor"))
    bounce(world, 1)
    observe(successor)
    code, parameters = guard(check_leaders(successor))
    assert (code, parameters["by"], parameters["reason"]) == ("paused", "Ada", "release night")
    ask(successor, "resume")
    answer_requests(successor)
    assert "run-started" in codes(check_leaders(successor))


def test_a_standby_does_nothing_and_takes_over_when_the_leader_is_gone(
    leader: Rig, world: SimWorld, clock: SimClock, store: JournalStore
) -> None:
    """While the leader renews, the second process stands by; once it is silent for a lease, the second one acts."""
    second = a_rig(SimCluster(world), clock, type(leader.board)(), AUTO)
    give_run_controller(second, store)
    assert "standing-by" in codes(keep_lock(second, holder("second")))
    bounce(world, 1)
    observe(second)
    assert guard(check_leaders(second))[0] == "standby"
    assert not_led(world, 1) == 4
    assert "taken" in codes(keep_lock(second, holder("second")))
    assert "run-started" in codes(check_leaders(second))
    assert not_led(world, 1) == 0
    assert "lost" in codes(keep_lock(leader, holder()))
    assert leader.board.view.role is Role.STANDBY


def test_a_down_broker_is_given_its_grace_and_then_rebuilt(leader: Rig, clock: SimClock) -> None:
    """Within the grace nothing is moved; after it every replica has a live home and no throttle is left."""
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    cluster.world.add_broker(SimBroker(id=4, rack="a"))
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    cluster.world.kill(1)
    wait(leader, 60)
    assert "down" in codes(check_repair(leader))
    leader.board.publish(balance=BalanceView(verdict="balanced", detail="Every resource is within its range."))
    assert "repair-first" in codes(check_balance(leader))
    assert leader.board.view.balance == BalanceView()
    wait(leader, leader.policy.guards.down_broker_grace_s)
    said = str(check_repair(leader))
    assert "Broker 1 has been down" in said
    assert "Run run-1 started" in said
    wait(leader, 5)
    assert all(1 not in p.replicas for p in cluster.world.partitions())
    read_journal_view(leader)
    assert [r.status for r in leader.board.view.history] == ["done"]
    assert leader.board.view.throttles_to_restore == 0


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.APPROVE])
def test_within_its_grace_a_down_broker_is_told_what_follows_in_the_mode_of_repair(leader: Rig, mode: Mode) -> None:
    """Nothing is rebuilt unless a person approves it, and the sentence does not say that it is."""
    leader.policy = DaemonPolicy(mode=mode)
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    cluster.world.kill(1)
    wait(leader, 60)
    said = str(check_repair(leader))
    assert "are rebuilt elsewhere" not in said
    assert "to return before a plan to rebuild its replicas elsewhere is proposed" in said


def test_what_was_on_a_failed_log_dir_is_rebuilt_after_the_grace_and_nothing_else(leader: Rig) -> None:
    """The broker lives and keeps its other replicas; a disk that is replaced in time brings everything back by itself."""
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    world = cluster.world
    world.add_broker(SimBroker(id=4, rack="a"))
    world.brokers[2].dir_bytes = (1e12, 1e12)
    world.add_topic("late", dict.fromkeys(range(6), (2, 3)), size_bytes=1e6)
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)

    def held() -> tuple[set[str], set[str]]:
        """Partitions with a replica on broker 2, and those of which it is offline."""
        state = cluster.snapshot()
        p = state.partitions
        rows = np.repeat(np.arange(len(p)), np.diff(p.start))
        return tuple(
            {str(state.name(r)) for r in rows[mask].tolist()} for mask in (p.replica == 2, (p.replica == 2) & p.offline)
        )  # type: ignore[return-value]

    for mended in (True, False):
        world.fail_dir(2, 1)
        wait(leader, 60)
        before, lost = held()
        assert 0 < len(lost) < len(before)
        assert "nothing-to-repair" not in codes(check_repair(leader))
        assert leader.parts.reading.failed_disks.since_s.keys() == {2}
        if mended:
            world.repair_dirs(2)
            wait(leader, leader.policy.guards.down_broker_grace_s)
            check_repair(leader)
            assert held() == (before, set())
    wait(leader, leader.policy.guards.down_broker_grace_s)
    assert "run-started" in codes(check_repair(leader))
    wait(leader, 5)
    assert held() == (before - lost, set())
    assert not leader.parts.reading.failed_disks.since_s


def test_what_cannot_be_rebuilt_is_named(leader: Rig) -> None:
    """Leadership goes elsewhere; with no broker left for the data the first partition is named, and why, in whole sentences."""
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    cluster.world.kill(1)
    wait(leader, leader.policy.guards.down_broker_grace_s + 1)
    wait(leader, leader.policy.guards.down_broker_grace_s + 1)
    check_repair(leader)
    wait(leader, leader.policy.actions.repair.cool_down_s + 60)
    said = str(check_repair(leader))
    assert re.fullmatch(r"Broker 1 has been down for longer than 30 min\. orders-\d+: .+\.", said), said


def test_a_topic_that_is_to_follow_kafkas_placement_is_repaired(leader: Rig) -> None:
    """A list that another user changed goes back, as a repair and once; topics without the rule stay."""
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    assert "nothing-to-repair" in codes(check_repair(leader))
    placed = {p.name: tuple(p.replicas) for p in cluster.world.partitions()}
    moved = TopicPartition("orders", 4)
    turned = tuple(reversed(placed[moved]))
    cluster.alter_reassignments({moved: turned})
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    assert "nothing-to-repair" in codes(check_repair(leader)), "no rule says so"
    rule = TopicRule(topics="orders", kafka_placement=True)
    leader.policy = replace(leader.policy, balance=replace(leader.policy.balance, topic_rules=(rule,)))
    assert "not-as-kafka-places" in codes(check_repair(leader))
    wait(leader, 30)
    state = cluster.snapshot()
    made = plan(state, Place(selection=Selection(topics="orders"), as_partition_0=True))
    assert made.is_empty
    assert "nothing-to-repair" in codes(check_repair(leader))


def test_kafka_placements_over_other_brokers_wait_for_approval(leader: Rig, world: SimWorld) -> None:
    """An added broker gives a topic that follows Kafka's placement other lists: that copying waits for the operator."""
    rule = TopicRule(topics="orders", kafka_placement=True)
    leader.policy = replace(AUTO, balance=replace(AUTO.balance, topic_rules=(rule,)))
    before = {p.name: tuple(p.replicas) for p in world.partitions()}
    world.add_broker(SimBroker(id=4, rack="a"))
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    check_repair(leader)
    (waiting,) = leader.board.view.plans
    assert (waiting.action, waiting.pending_approval) == ("repair", True)
    assert [(o.code, o.parameters) for o in waiting.objections] == [("placement", {"topics": ["orders"]})]
    wait(leader, 3600)
    check_repair(leader)
    assert {p.name: tuple(p.replicas) for p in world.partitions()} == before


def test_a_topic_that_kafka_cannot_place_is_named_and_the_others_are_repaired(leader: Rig, world: SimWorld) -> None:
    """Unlike replica counts: that topic stays as it is."""
    world.add_topic("unlike", {0: (1, 2), 1: (2, 3, 1)}, size_bytes=1e6)
    moved = TopicPartition("orders", 4)
    placed = next(tuple(p.replicas) for p in world.partitions() if p.name == moved)
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    cluster.alter_reassignments({moved: tuple(reversed(placed))})
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    rule = TopicRule(topics=".*", kafka_placement=True)
    leader.policy = replace(AUTO, balance=replace(AUTO.balance, topic_rules=(rule,)))
    said = str(check_repair(leader))
    assert "do not follow Kafka's placement" in said
    assert "unlike" in said
    wait(leader, 30)
    made = plan(leader.parts.reading.fresh(), Place(selection=Selection(topics="orders"), as_partition_0=True))
    assert made.is_empty
    assert [tuple(p.replicas) for p in world.partitions() if p.name.topic == "unlike"] == [(1, 2), (2, 3, 1)]
    assert "unlike" in str(check_repair(leader))


def test_a_new_broker_is_filled(leader: Rig) -> None:
    """An added, empty broker gets its share, and a balanced cluster is left alone afterwards."""
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    cluster.world.add_broker(SimBroker(id=4, rack="a"))
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    for _ in range(6):
        check_balance(leader)
        wait(leader, 3600)
    # Racks b and c have one broker each, which must keep all they hold; brokers 1 and 4 share what rack a has.
    assert sum(4 in p.replicas for p in cluster.world.partitions()) == 6
    assert codes(check_balance(leader)) == ["balanced"]
    assert leader.board.view.plans == ()


def test_a_broker_is_drained_and_its_stop_is_no_loss(leader: Rig) -> None:
    """The settings name it, it is emptied and said to be empty; stopped for good, it holds back no check."""
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    world = cluster.world
    world.add_broker(SimBroker(id=4, rack="a"))
    leader.policy = replace(AUTO, balance=replace(AUTO.balance, draining=frozenset({1})))
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    for _ in range(4):
        check_balance(leader)
        wait(leader, 3600)
    assert not any(1 in p.replicas for p in world.partitions())
    assert "Broker 1 is empty and may be stopped" in str(check_balance(leader))
    figures = leader.board.view.figures
    assert figures is not None
    assert [b.id for b in figures.brokers if b.draining] == [1]
    assert all(1 not in found.shares for found in figures.ranges)
    world.kill(1)
    pass_time(world, 30)
    wait(leader, 1)
    assert 1 in {b.id for b in leader.parts.reading.fresh().brokers}, (
        "a broker that is registered and down is remembered"
    )
    assert "nothing-to-repair" in codes(check_repair(leader))
    assert codes(check_balance(leader)) == ["balanced"]
    assert "repair-first" not in codes(check_balance(leader))


def test_a_foreign_reassignment_keeps_it_from_starting(leader: Rig, world: SimWorld) -> None:
    """What another user moves is named and waited for."""
    world.add_broker(SimBroker(id=4, rack="b", nic_bytes_per_s=1e3))
    bounce(world, 1)
    cluster = leader.cluster
    assert isinstance(cluster, SimCluster)
    name = next(p.name for p in world.partitions() if p.replicas[0] == 2)
    cluster.alter_reassignments({name: (4, 2, 3)})
    wait(leader, leader.policy.guards.membership_cool_down_s + 1)
    code, parameters = guard(check_leaders(leader))
    assert code == "foreign-activity"
    assert str(name) in parameters["what"]


def test_a_proposal_whose_cluster_changed_is_planned_anew(leader: Rig, world: SimWorld) -> None:
    """Between planning and starting another user changed the assignment: the old plan is not started."""
    leader.policy = DaemonPolicy(mode=Mode.APPROVE)
    bounce(world, 1)
    observe(leader)
    check_leaders(leader)
    leader.parts.proposals.by_kind[ActionKind.ELECTIONS] = replace(
        leader.parts.proposals.by_kind[ActionKind.ELECTIONS], approved_by="Ada"
    )
    world.add_topic("new", {0: (1, 2, 3)})
    wait(leader, 1)
    assert "plan-outdated" in codes(act(leader))
    assert leader.parts.proposals.by_kind == {}
    assert not_led(world, 1) == 4


def test_nothing_planned_before_a_run_ended_is_started_after_it(leader: Rig, world: SimWorld) -> None:
    """What was seen before the run may want what the run has done: it is dropped, and the cluster is read again."""
    bounce(world, 1)
    observe(leader)
    assert "run-started" in codes(check_leaders(leader))
    assert "run-ended" in codes(check_leaders(leader))
    assert leader.parts.proposals.by_kind == {}
    with pytest.raises(Unavailable):
        check_leaders(leader)
    observe(leader)
    assert "leaders-balanced" in codes(check_leaders(leader))


def test_a_throttle_that_a_down_broker_kept_is_restored_when_it_returns(leader: Rig, world: SimWorld) -> None:
    """By the daemon that runs on, without another run or restart; until then it is owed, and no attempt is made."""
    rate = Setting("broker", "3", FOLLOWER_RATE)
    assert leader.journal is not None
    assert leader.run_controller is not None
    given = ConfigChange(ConfigResource("broker", "3"), FOLLOWER_RATE, "set", "5000000")
    assert isinstance(leader.cluster, SimCluster)
    assert all(outcome.ok for outcome in leader.cluster.alter_configs([given]).values())
    leader.journal.append([dump_held(rate, LedgerEntry(None, frozenset({"5000000"})))])
    world.kill(3)
    wait(leader, 20)
    assert "1 throttle not yet removed" in read_journal_view(leader)
    assert "removing-throttles" not in codes(check_repair(leader))
    assert world.brokers[3].configs.get(FOLLOWER_RATE) == "5000000"
    world.start(3)
    pass_time(world, 30)
    observe(leader)
    assert "Removing throttles of an earlier run: broker 3 follower" in str(check_repair(leader))
    assert FOLLOWER_RATE not in world.brokers[3].configs
    read_journal_view(leader)
    assert leader.board.view.throttles_to_restore == 0
    assert "removing-throttles" not in codes(check_repair(leader))


def test_guards_that_hold_a_run_back_are_counted(leader: Rig) -> None:
    """Each once for what it refuses now, beside the reasons for which no run is started."""
    heard: list[tuple[str, str]] = []
    leader.refused = lambda kind, code: heard.append((kind, code))
    assert isinstance(leader.run_controller, DriverRunController)
    name = TopicPartition("orders", 0)
    down = verdict("destination-down", 3, broker=3, partition=name)
    least = verdict("at-min-isr", name, partition=name, in_sync=(1,))
    verdicts = [down, least, least]
    leader.run_controller.on_event(Refusing(tuple(verdicts)))
    leader.run_controller.on_event(Refusing(()))
    assert heard == [("run", "at-min-isr"), ("run", "destination-down")]


def test_another_cluster_at_the_same_address_is_refused(leader: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the connection tells of another cluster is an outage of ours: nothing more is decided from what was read."""

    def another(**_: bool) -> ClusterState:
        raise WrongCluster("The broker at a:1 belongs to cluster b.")

    monkeypatch.setattr(leader.cluster, "snapshot", another)
    with pytest.raises(WrongCluster):
        observe(leader)
    outage = leader.board.view.outage
    assert outage is not None
    assert outage.code == "refused"
    with pytest.raises(Unavailable):
        check_leaders(leader)


def test_nothing_is_decided_from_an_old_reading(leader: Rig, clock: SimClock) -> None:
    """When the cluster has not been read for a while, checks refuse instead of guessing."""
    clock.sleep(leader.policy.guards.max_reading_age_s + 1)
    with pytest.raises(Unavailable, match="no fresh reading"):
        check_leaders(leader)


def test_a_run_and_the_observe_check_read_sizes_and_configs_once_for_both(
    leader: Rig, world: SimWorld, clock: SimClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a minute, which is what the settings say: log dirs of a large cluster are dear to its brokers."""
    snapshot, read = leader.cluster.snapshot, list[float]()

    def counted(*, log_dirs: bool = True, configs: bool = True, patient: bool = True) -> ClusterState:
        if log_dirs:
            read.append(clock.monotonic_s())
        return snapshot(log_dirs=log_dirs, configs=configs, patient=patient)

    def observe_again() -> None:
        observe(leader)
        clock.after(leader.policy.intervals.observe_s, observe_again)

    world.add_broker(SimBroker(id=4, rack="a"))
    leader.policy = replace(AUTO, execution=ExecutionPolicy(throttle=500_000, measure_s=0))
    observe(leader)
    monkeypatch.setattr(leader.cluster, "snapshot", counted)
    clock.after(1, observe_again)
    state, before_s = leader.cluster.snapshot(), clock.monotonic_s()
    move = Move("orders", 0, state.target(state.index[TopicPartition("orders", 0)]), (4, 2, 3), 100_000_000)
    controller = leader.access.run_controller
    assert controller is not None
    controller.start(Plan("test", state.cluster_id, fingerprint(state), moves=(move,)))
    minutes = (clock.monotonic_s() - before_s) / 60
    assert world.partition("orders", 0).replicas == [4, 2, 3]
    assert minutes > 3
    # The run's own first one, and that of its end.
    assert len(read) <= minutes + 3, (len(read), minutes)
