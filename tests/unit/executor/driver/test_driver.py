"""The driver on a simulated cluster: what a run leaves behind, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.executor.scenes import MB, Scene, T, performed, reasons, scene

from ballast.core.cluster import TopicPartition
from ballast.core.plan import Move
from ballast.errors import Fenced, Unavailable
from ballast.executor.driver.events import MoveChanged, Performing, Progressed, Refusing
from ballast.executor.journal.ledger import list_unrestored, load_ledger
from ballast.executor.journal.records import load_runs
from ballast.executor.machine.policy import ExecutionPolicy
from ballast.executor.machine.rollback import rollback_plan
from ballast.executor.machine.stages import Stalled, Submitted
from ballast.executor.machine.step import Command
from ballast.executor.machine.transitions import EffectKind
from ballast.ports.cluster import ConfigChange, ConfigResource
from ballast.sim import Physics

T0, T1 = TopicPartition(T, 0), TopicPartition(T, 1)
THROTTLED = ExecutionPolicy(throttle=5 * MB)
FOLLOWER_LIST = "follower.replication.throttled.replicas"


def at(s: Scene, moment_s: float, action: Callable[[], object]) -> None:
    """Let something happen while the driver works."""
    s.world.clock.at(s.world.clock.monotonic_s() + moment_s, lambda: (action(), None)[1])


def move(old: tuple[int, ...], new: tuple[int, ...], *, partition: int = 0, size: int = 100 * MB) -> Move:
    """A move of topic ``t``."""
    return Move(T, partition, old, new, size)


def outcome(s: Scene, name: TopicPartition = T0) -> tuple[str, str]:
    """Stage and outcome of a move."""
    assert s.driver.run is not None
    m = s.driver.run.moves[name]
    return m.stage.code, m.outcome


def test_throttled_move_leaves_nothing_behind() -> None:
    """Entries and rates stand while the move is in flight, at the worked case's places, and are gone afterwards."""
    s = scene()
    seen: list[dict[str, str]] = []
    at(s, 10, lambda: seen.append(s.throttles()))
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r")
    assert result.status == "done"
    assert seen[0][f"topic t {FOLLOWER_LIST}"] == "0:3"
    assert set(seen[0]["topic t leader.replication.throttled.replicas"].split(",")) == {"0:1", "0:2"}
    assert seen[0]["broker 3 follower.replication.throttled.rate"] == str(5 * MB)
    assert s.throttles() == {}
    assert load_ledger(s.journal.read()) == {}
    assert performed(s.ears) == [EffectKind.THROTTLE, EffectKind.SUBMIT, EffectKind.UNTHROTTLE]


def test_settings_of_others_come_back_exactly() -> None:
    """A person's list, rate and star are merged with, and come back as they were."""
    s = scene({0: (1, 2), 1: (2, 3)}, configs={FOLLOWER_LIST: "1:3,0:2"})
    s.world.add_topic("star", {0: (1, 2)}, size_bytes=10 * MB, configs={FOLLOWER_LIST: "*"})
    theirs = ConfigChange(ConfigResource("broker", "3"), "follower.replication.throttled.rate", "set", "123456")
    s.cluster.alter_configs([theirs])
    before = s.throttles()
    during: list[dict[str, str]] = []
    at(s, 8, lambda: during.append(s.throttles()))
    plan = s.plan(move((1, 2), (3, 2)), Move("star", 0, (1, 2), (4, 2), 10 * MB))
    assert s.driver.execute(plan, THROTTLED, run_id="r").status == "done"
    assert during[0][f"topic t {FOLLOWER_LIST}"] == "1:3,0:2,0:3"
    assert during[0][f"topic star {FOLLOWER_LIST}"] == "*"
    assert during[0]["broker 3 follower.replication.throttled.rate"] == str(5 * MB)
    assert s.throttles() == before


def test_rate_changed_by_a_person_in_mid_run_is_theirs() -> None:
    """A user who changes a rate that we set owns it from then on: it is not restored."""
    s = scene()
    change = ConfigChange(ConfigResource("broker", "3"), "follower.replication.throttled.rate", "set", "9000000")
    at(s, 10, lambda: s.cluster.alter_configs([change]))
    assert s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r").status == "done"
    assert s.throttles() == {"broker 3 follower.replication.throttled.rate": "9000000"}


def test_the_rate_of_a_down_broker_is_restored_later() -> None:
    """The ledger keeps the rate of a source that dies; the next start restores it once the broker is back."""
    s = scene({0: (1, 2)}, brokers=4)
    at(s, 12, lambda: s.world.kill(1))
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r")
    assert result.status == "done"
    assert {d.name for d in result.throttles_to_restore} == {"1"}
    assert all(k.startswith("broker 1 ") for k in s.throttles())
    owed = list_unrestored(s.process().restore_throttles())
    assert owed
    assert {o.partition(": ")[2] for o in owed} == {"broker 1 is not alive."}
    s.world.start(1)
    s.world.clock.sleep(10)
    assert s.process().restore_throttles() == {}
    assert s.throttles() == {}
    assert load_ledger(s.journal.read()) == {}


def test_cancel_puts_the_old_order_back() -> None:
    """A cancel that leaves the old brokers in another order is followed by a free replica list change; nothing is left."""
    s = scene({0: (2, 1)})
    at(s, 12, lambda: s.driver.ask(Command.CANCEL))
    result = s.driver.execute(s.plan(move((2, 1), (1, 3))), THROTTLED, run_id="r")
    assert result.status == "cancelled"
    assert outcome(s) == ("rolled-back", "rolled-back")
    s.world.clock.sleep(5)
    assert s.cluster.partitions([T0])[T0].replicas == (2, 1)
    assert s.throttles() == {}


@pytest.mark.parametrize(("old", "new"), [((1, 2), (1, 3)), ((2, 1), (1, 3))], ids=["same-order", "another-order"])
def test_cancel_is_prompt_where_every_request_was_answered(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    """A person who presses it sees it done within seconds, whether or not the order has to be put back."""
    s = scene({0: old})
    at(s, 12, lambda: s.driver.ask(Command.CANCEL))
    began = s.world.clock.monotonic_s()
    assert s.driver.execute(s.plan(move(old, new)), THROTTLED, run_id="r").status == "cancelled"
    assert s.world.clock.monotonic_s() - began - 12 < 4
    assert outcome(s) == ("rolled-back", "rolled-back")
    s.world.clock.sleep(20)
    assert s.cluster.partitions([T0])[T0].replicas == old
    assert not s.cluster.reassignments()
    assert s.throttles() == {}


def test_cancel_waits_for_a_submission_that_no_broker_answered() -> None:
    """It may arrive after the cancel and start the move again: the list is watched for the whole grace."""
    s = scene({0: (1, 2)})
    submit = s.cluster.alter_reassignments
    unheard: list[Any] = []

    def lose_the_first(*args: Any, **kwargs: Any) -> Any:
        answer = submit(*args, **kwargs)
        if not unheard:
            unheard.append(answer)
            raise Unavailable("The controller did not answer in time.")
        return answer

    s.cluster.alter_reassignments = lose_the_first  # type: ignore[method-assign]
    at(s, 12, lambda: s.driver.ask(Command.CANCEL))
    began = s.world.clock.monotonic_s()
    assert s.driver.execute(s.plan(move((1, 2), (1, 3))), THROTTLED, run_id="r").status == "cancelled"
    assert s.world.clock.monotonic_s() - began - 12 >= THROTTLED.submit_grace_s
    assert outcome(s) == ("rolled-back", "rolled-back")


def test_late_metadata_does_not_pass_for_the_order_that_a_cancel_left() -> None:
    """The old list from before the move is still shown when the cancel has left another order: it is put back all the same."""
    s = scene({0: (2, 1)}, physics=Physics(metadata_lag_s=8.0))
    at(s, 12, lambda: s.driver.ask(Command.CANCEL))
    assert s.driver.execute(s.plan(move((2, 1), (1, 3))), THROTTLED, run_id="r").status == "cancelled"
    assert s.world.partition(T, 0).replicas == [2, 1]


def test_rollback_plan_restores_every_replica_list() -> None:
    """The journal alone is enough to put everything back."""
    s = scene({0: (1, 2), 1: (2, 3)})
    moves = (move((1, 2), (3, 2)), move((2, 3), (4, 3), partition=1))
    assert s.driver.execute(s.plan(*moves), ExecutionPolicy(), run_id="r").status == "done"
    driver = s.process()
    run = load_runs(s.journal.read(), driver._now())["r"]
    assert driver.execute(rollback_plan(run), ExecutionPolicy(), run_id="back", rollback_of="r").status == "done"
    s.world.clock.sleep(5)
    seen = s.cluster.partitions([T0, T1])
    assert (seen[T0].replicas, seen[T1].replicas) == ((1, 2), (2, 3))


def test_deleted_topic_ends_its_move_and_the_rest_goes_on() -> None:
    """A topic deleted in mid-move is a stated outcome; other moves finish and no throttle is left."""
    s = scene()
    s.world.add_topic("doomed", {0: (1, 2)}, size_bytes=100 * MB)
    at(s, 12, lambda: s.world.delete_topic("doomed"))
    plan = s.plan(move((1, 2), (3, 2)), Move("doomed", 0, (1, 2), (4, 2), 100 * MB))
    result = s.driver.execute(plan, THROTTLED, run_id="r")
    assert result.status == "incomplete"
    assert outcome(s) == ("verified", "")
    assert outcome(s, TopicPartition("doomed", 0)) == ("failed", "deleted")
    assert s.throttles() == {}
    assert load_ledger(s.journal.read()) == {}


def test_foreign_override_ends_the_move_and_is_not_touched() -> None:
    """Another user gives the partition another target: ours ends as overridden, theirs is left to run."""
    s = scene()
    at(s, 12, lambda: s.cluster.alter_reassignments({T0: (4, 2)}))
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r")
    assert result.status == "incomplete"
    assert outcome(s) == ("failed", "overridden")
    assert s.throttles() == {}


def test_foreign_cancel_is_a_stated_outcome() -> None:
    """Another user cancels our move: it ends as such and is not started again."""
    s = scene()
    at(s, 12, lambda: s.cluster.alter_reassignments({T0: None}))
    s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r")
    assert outcome(s) == ("failed", "cancelled-externally")
    assert s.throttles() == {}


def test_waits_for_a_foreign_move_on_its_partition() -> None:
    """A partition that another user is moving is refused, named, and judged again until it stands still."""
    s = scene({0: (1, 2), 1: (2, 3)})
    s.cluster.alter_reassignments({T0: (2, 1, 4)}, allow_replication_factor_change=True)
    at(s, 4, lambda: s.cluster.alter_reassignments({T0: None}))
    plan = s.plan(move((1, 2), (3, 2)))
    assert s.driver.execute(plan, ExecutionPolicy(), run_id="r").status == "done"
    refusals = [v.code for h in s.ears.heard if isinstance(h, Refusing) for v in h.verdicts]
    assert "foreign-reassignment" in refusals


def test_refused_for_too_long_gives_up_untouched() -> None:
    """A down destination is refused; after the policy's patience the run ends as refused and nothing was sent."""
    s = scene()
    s.world.kill(3)
    s.world.clock.sleep(10)
    policy = ExecutionPolicy(throttle=5 * MB, guard_timeout_s=30, measure_s=0)
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), policy, run_id="r")
    assert result.status == "refused"
    assert outcome(s) == ("rolled-back", "refused")
    ((code, figures),) = reasons(result)
    assert (code, figures["verdict"]["code"]) == ("guard-for-too-long", "destination-down")
    assert figures["verdict"]["parameters"]["broker"] == 3
    assert EffectKind.SUBMIT not in performed(s.ears)


def test_unhealthy_neighbour_holds_moves_until_it_is_well() -> None:
    """No move starts on a broker that holds an under-replicated partition; it starts when that one is well."""
    s = scene({0: (1, 2)}, brokers=5)
    s.world.add_topic("unhealthy", {0: (1, 4, 5)}, size_bytes=MB)
    s.world.kill(5)
    s.world.clock.sleep(30)
    at(s, 30, lambda: s.world.start(5))
    began = s.world.clock.monotonic_s()
    assert s.driver.execute(s.plan(move((1, 2), (3, 2))), ExecutionPolicy(), run_id="r").status == "done"
    submitted = next(h for h in s.ears.heard if isinstance(h, MoveChanged) and isinstance(h.after, Submitted))
    assert submitted.name == T0
    assert s.world.clock.monotonic_s() - began > 30
    refusals = {v.code for h in s.ears.heard if isinstance(h, Refusing) for v in h.verdicts}
    assert refusals == {"under-replicated"}


def test_the_lock_tells_other_processes_what_the_moves_wait_for() -> None:
    """``ballast runs`` reads it from the journal: no other process knows why a run stands still."""
    s = scene()
    s.world.kill(3)
    s.world.clock.sleep(10)
    at(s, 30, lambda: s.world.start(3))
    seen = list[str]()

    def look() -> None:
        holder = s.journal.holder()
        seen.append(holder.doing if holder else "")

    for second in (20, 120):
        at(s, second, look)
    slow = ExecutionPolicy(throttle=MB)
    assert s.driver.execute(s.plan(move((1, 2), (3, 2))), slow, run_id="r").status == "done"
    doing = "run r: test, 0 of 1 move ended"
    why = "Broker 3, where t-0 is to go, is not alive. Start it, or make a new plan without it."
    assert seen == [f"{doing}; waiting: {why}", doing]


def test_repair_goes_on_where_other_moves_wait() -> None:
    """A move that replaces an offline replica is not held back by the unhealthy_partitions it repairs."""
    s = scene({0: (1, 2), 1: (2, 1)})
    s.world.kill(1)
    s.world.clock.sleep(30)
    plan = s.plan(move((1, 2), (3, 2)), move((2, 1), (2, 4), partition=1))
    assert s.driver.execute(plan, ExecutionPolicy(), run_id="r").status == "done"


def test_stall_names_the_down_destination_and_goes_on_when_it_returns() -> None:
    """A destination that dies in mid-move makes a stall with its cause; the move ends when it is back."""
    s = scene()
    at(s, 14, lambda: s.world.kill(3))
    at(s, 90, lambda: s.world.start(3))
    policy = ExecutionPolicy(throttle=5 * MB, stall_after_s=20)
    assert s.driver.execute(s.plan(move((1, 2), (3, 2))), policy, run_id="r").status == "done"
    stalls = [h.detail for h in s.ears.heard if isinstance(h, MoveChanged) and isinstance(h.after, Stalled)]
    assert any("Broker 3" in d and "not alive" in d for d in stalls)
    assert s.throttles() == {}


def test_a_throttle_below_the_inbound_rate_is_refused_with_the_arithmetic() -> None:
    """Producers write faster than the throttle: the move could never end, so it does not begin."""
    s = scene(inbound_bytes_per_s=2 * MB)
    policy = ExecutionPolicy(throttle=MB, guard_timeout_s=10)
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), policy, run_id="r")
    assert result.status == "refused"
    ((code, figures),) = reasons(result)
    assert (code, figures["verdict"]["code"]) == ("guard-for-too-long", "throttle-too-low")
    lack = figures["verdict"]["parameters"]["lack"]
    assert lack["rate_bytes_per_s"] == MB
    assert lack["inbound_bytes_per_s"] - lack["rate_bytes_per_s"] == pytest.approx(MB, rel=0.1)
    assert s.throttles() == {}


def test_a_throttle_below_the_inbound_rate_is_raised_when_told() -> None:
    """With raise_throttle the rate is raised to what the move needs, and the move ends."""
    s = scene(inbound_bytes_per_s=2 * MB, size_bytes=20 * MB)
    policy = ExecutionPolicy(throttle=MB, raise_throttle=True)
    assert s.driver.execute(s.plan(move((1, 2), (3, 2), size=20 * MB)), policy, run_id="r").status == "done"
    aims = [
        h.effect.desired for h in s.ears.heard if isinstance(h, Performing) and h.effect.kind is EffectKind.THROTTLE
    ]
    rates = {int(next(iter(v))) for s_, v in aims[0].items() if s_.name == "3"}
    assert list(rates) == [pytest.approx(2.5 * MB, rel=0.1)]


def test_lost_lock_stops_before_the_next_write() -> None:
    """Another process becomes the writer: nothing more is sent by us."""
    s = scene()

    def steal() -> None:
        s.store.epoch += 1

    at(s, 6, steal)
    with pytest.raises(Fenced):
        s.driver.execute(s.plan(move((1, 2), (3, 2))), ExecutionPolicy(poll_s=20), run_id="r")


def test_left_run_is_adopted_and_finished() -> None:
    """A process that leaves in mid-move writes down how far it came; the next one finishes."""
    s = scene()
    at(s, 12, s.driver.leave)
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r")
    assert (result.status, result.still_open) == ("left", 1)
    s.journal.release()
    driver = s.process()
    (run,) = driver.open_runs()
    assert driver.resume(run).status == "done"
    assert s.throttles() == {}
    assert driver.open_runs() == []


def test_caps_hold_at_every_moment() -> None:
    """Never more moves into one broker, out of one broker or in the cluster than the policy says."""
    assignment = {i: (1 + i % 2, 3) for i in range(24)}
    s = scene(assignment, brokers=6, size_bytes=10 * MB)
    plan = s.plan(*(move(r, (r[0], 4 + i % 3), partition=i, size=10 * MB) for i, r in assignment.items()))
    policy = ExecutionPolicy(moves_in_per_broker=2, moves_out_per_broker=3, moves_at_once=5)
    most = [0, 0, 0]

    def look() -> None:
        listed = s.cluster.reassignments()
        into = [b for r in listed.values() for b in r.adding]
        out = [s.world.partition(n.topic, n.partition).leader for n in listed]
        most[0] = max(most[0], len(listed))
        most[1] = max([most[1], *(into.count(b) for b in into)])
        most[2] = max([most[2], *(out.count(b) for b in out)])

    for tick in range(1, 400):
        at(s, tick * 0.25, look)
    assert s.driver.execute(plan, policy, run_id="r").status == "done"
    assert most[0] <= 5
    assert most[1] <= 2
    assert most[2] <= 3
    assert most[0] >= 4, "the stream keeps the links busy"


def test_strict_mode_waits_for_the_whole_batch() -> None:
    """One batch at a time: nothing is submitted while anything is in flight."""
    assignment = dict.fromkeys(range(6), (1, 2))
    s = scene(assignment, size_bytes=10 * MB)
    plan = s.plan(*(move((1, 2), (3, 2), partition=i, size=10 * MB) for i in range(6)))
    policy = ExecutionPolicy(one_batch_at_a_time=True, moves_in_per_broker=2)
    open_at_submit: list[int] = []

    class Watch:
        def on_event(self, event: object) -> None:
            if isinstance(event, Performing) and event.effect.kind is EffectKind.SUBMIT:
                open_at_submit.append(len(s.cluster.reassignments()))

    s.driver.listen(Watch())
    assert s.driver.execute(plan, policy, run_id="r").status == "done"
    assert open_at_submit == [0, 0, 0]


def test_partition_without_the_room_waits_with_a_verdict() -> None:
    """A destination without room for the copy is refused by name."""
    s = scene()
    s.world.brokers[3].dir_bytes = (50.0 * MB,)
    policy = ExecutionPolicy(guard_timeout_s=5)
    result = s.driver.execute(s.plan(move((1, 2), (3, 2))), policy, run_id="r")
    assert result.status == "refused"
    ((code, figures),) = reasons(result)
    assert (code, figures["verdict"]["code"]) == ("guard-for-too-long", "destination-full")
    assert figures["verdict"]["parameters"]["broker"] == 3


def test_replication_factor_changes_when_the_plan_says_so() -> None:
    """A plan that adds a replica is submitted with the flag, one that removes one copies nothing."""
    s = scene({0: (1, 2), 1: (1, 2)}, size_bytes=MB)
    plan = s.plan(move((1, 2), (1, 2, 3), size=MB), move((1, 2), (1,), partition=1, size=MB), change_rf=True)
    assert s.driver.execute(plan, THROTTLED, run_id="r").status == "done"
    s.world.clock.sleep(5)
    seen = s.cluster.partitions([T0, T1])
    assert (seen[T0].replicas, seen[T1].replicas) == ((1, 2, 3), (1,))


def test_elections_wait_for_their_moves_and_are_chunked() -> None:
    """Elections of partitions that do not move go first, in batches; the others follow their moves."""
    assignment = dict.fromkeys(range(10), (1, 2))
    s = scene(assignment, size_bytes=MB)
    plan = s.plan(
        *(move((1, 2), (2, 1), partition=i, size=MB) for i in range(10)),
        elections=tuple(TopicPartition(T, i) for i in range(10)),
    )
    result = s.driver.execute(plan, ExecutionPolicy(election_batch=4), run_id="r")
    assert (result.status, result.elections_completed) == ("done", 10)
    sizes = [len(h.effect.names) for h in s.ears.heard if isinstance(h, Performing) and h.effect.names]
    assert sizes == [4, 4, 2]
    s.world.clock.sleep(3)
    assert {s.world.partition(T, i).leader for i in range(10)} == {2}


def test_progress_grows_to_all_bytes() -> None:
    """Bytes done never shrink and end at the total; the rate is the throttle's."""
    s = scene(size_bytes=200 * MB)
    s.driver.execute(s.plan(move((1, 2), (3, 2), size=200 * MB)), THROTTLED, run_id="r")
    progress = [h.progress for h in s.ears.heard if isinstance(h, Progressed)]
    done = [p.bytes_done for p in progress]
    assert done == sorted(done)
    assert done[-1] == progress[-1].bytes_total
    assert done[-1] >= 200 * MB
    middle = progress[len(progress) // 2]
    assert middle.bytes_per_s == pytest.approx(5 * MB, rel=0.3)
    assert middle.left_s is not None


def test_unanswered_submit_is_found_out_by_looking() -> None:
    """The controller does not answer for a while: nothing is lost, nothing is submitted twice in effect."""
    s = scene()
    sent: list[EffectKind] = []

    class Cut:
        """The controller goes away as the first submission is sent, for 40 s."""

        def on_event(self, event: object) -> None:
            if isinstance(event, Performing):
                if event.effect.kind is EffectKind.SUBMIT and not sent:
                    s.world.controller_up = False
                    at(s, 40, lambda: setattr(s.world, "controller_up", True))
                sent.append(event.effect.kind)

    s.driver.listen(Cut())
    assert s.driver.execute(s.plan(move((1, 2), (3, 2))), ExecutionPolicy(), run_id="r").status == "done"
    s.world.clock.sleep(3)
    assert s.cluster.partitions([T0])[T0].replicas == (3, 2)


def test_auto_rate_grows_while_used_and_halves_when_others_suffer() -> None:
    """An auto throttle starts low, grows while the move uses it, and backs off when a bystander falls out of sync."""
    s = scene({0: (1, 2)}, size_bytes=600 * MB, brokers=6)
    s.world.add_topic("bystander", {0: (4, 5)}, size_bytes=MB)
    at(s, 45, lambda: s.world.kill(5))
    at(s, 100, lambda: s.world.start(5))
    policy = ExecutionPolicy(auto_min_bytes_per_s=MB // 4, auto_start_bytes_per_s=2 * MB, measure_s=0)
    plan = s.plan(move((1, 2), (3, 2), size=600 * MB))
    assert s.driver.execute(plan, policy, run_id="r").status == "done"
    rates = []
    for h in s.ears.heard:
        if isinstance(h, Performing) and h.effect.kind in {EffectKind.THROTTLE, EffectKind.UNTHROTTLE}:
            rates += [int(next(iter(v))) for n, v in h.effect.desired.items() if n.name == "3"][:1]
    assert rates[0] == 2 * MB
    top = max(rates)
    assert top > 4 * MB
    after = rates[rates.index(top) :]
    assert min(after) <= top / 2, "it backed off"
    assert s.throttles() == {}


def test_throttle_of_another_open_run_stands_while_this_one_acts() -> None:
    """A run that was left with moves in flight keeps its throttle while a second run begins and ends."""
    s = scene({0: (1, 2), 1: (1, 2)}, size_bytes=200 * MB)
    at(s, 12, s.driver.leave)
    s.driver.execute(s.plan(move((1, 2), (3, 2), size=200 * MB)), THROTTLED, run_id="left")
    s.journal.release()
    driver = s.process()
    s.world.add_topic("u", {0: (1, 2)}, size_bytes=MB)
    result = driver.execute(s.plan(Move("u", 0, (1, 2), (4, 2), MB)), THROTTLED, run_id="second")
    assert result.status == "done"
    assert s.throttles()[f"topic t {FOLLOWER_LIST}"] == "0:3"
    assert s.throttles()["broker 3 follower.replication.throttled.rate"] == str(5 * MB)
    assert not any(k.startswith("topic u") for k in s.throttles())
    (run,) = driver.open_runs()
    assert driver.resume(run).status == "done"
    assert s.throttles() == {}


def test_a_cluster_that_stays_silent_is_given_up_when_told_so() -> None:
    """No user watches a follower: it ends after the given silence, not before, and the next start finds the run."""
    s = scene()
    s.driver.give_up_after(600)
    silent_s = s.world.clock.monotonic_s() + 12

    def fall_silent() -> None:
        def snapshot(**_: bool) -> Any:
            raise Unavailable("No broker answers.")

        s.cluster.snapshot = snapshot  # type: ignore[method-assign]
        s.cluster.reassignments = snapshot  # type: ignore[method-assign]

    at(s, 12, fall_silent)
    with pytest.raises(Unavailable, match="No broker answers"):
        s.driver.execute(s.plan(move((1, 2), (3, 2))), THROTTLED, run_id="r")
    assert 600 <= s.world.clock.monotonic_s() - silent_s < 700
    assert [r.id for r in s.driver.open_runs()] == ["r"]
