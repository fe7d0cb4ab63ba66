"""Reassignments, elections and new partitions as every cluster executes them (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.contract.cluster_forms import MOVES_ONE_BATCH_AT_A_TIME, ClusterForm
from tests.contract.conftest import forms

from ballast.core.cluster import TopicPartition
from ballast.core.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from ballast.errors import Refused
from ballast.ports.cluster import OK, ConfigChange, ConfigResource

pytestmark = pytest.mark.parametrize(
    "opened_form", forms(without=MOVES_ONE_BATCH_AT_A_TIME), indirect=True, scope="package"
)
MEBIBYTE = 1 << 20
SLOW_BYTES_PER_S = 1024
FILLED_BYTES = 8 * MEBIBYTE
"""At that rate this stays in flight for as long as a test needs: a mebibyte at a time, and then none until Kafka's window of eleven
seconds is over."""


@pytest.fixture(autouse=True)
def left_as_it_was(form: ClusterForm) -> Iterator[None]:
    """What a failed test left in flight would keep every later one waiting, since there a replica is out of sync for ever."""
    yield
    for name in form.cluster.reassignments():
        form.cluster.alter_reassignments({name: None})
        hold(form, name.topic, release=True)


def hold(form: ClusterForm, topic: str, *, release: bool = False) -> None:
    """Throttle every copy of this topic to a crawl, or let it go."""
    operation = "delete" if release else "set"
    lists = [
        ConfigChange(ConfigResource("topic", topic), key, operation, None if release else "*")
        for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    ]
    rates = [
        ConfigChange(ConfigResource("broker", str(b)), key, operation, None if release else str(SLOW_BYTES_PER_S))
        for b in form.brokers
        for key in (LEADER_RATE, FOLLOWER_RATE)
    ]
    outcomes = form.cluster.alter_configs([*lists, *rates])
    assert all(o.ok for o in outcomes.values()), outcomes

    def slow() -> bool:
        told = form.cluster.configs([c.resource for c in rates])
        return all(told[c.resource][c.key].value == c.value for c in rates)

    if not release:
        # A broker hears of its rate after the lists.  Before it has, it would copy everything at once.
        form.until(slow, "every broker has its rate")


def filled(form: ClusterForm, replicas: tuple[int, ...]) -> TopicPartition:
    """A partition with some mebibytes, whose next copies will crawl."""
    name = TopicPartition(form.topic({0: replicas}), 0)
    form.hands.produce(name, FILLED_BYTES)
    hold(form, name.topic)
    return name


def start(form: ClusterForm, name: TopicPartition, target: tuple[int, ...], *, allow: bool = False) -> None:
    """Start a move that must be accepted."""
    assert form.cluster.alter_reassignments({name: target}, allow_replication_factor_change=allow) == {name: OK}


def finish(form: ClusterForm, name: TopicPartition, target: tuple[int, ...]) -> None:
    """Let the move run and wait until it has ended at its target, everyone in sync."""
    hold(form, name.topic, release=True)

    def done() -> bool:
        state = form.cluster.partitions([name])[name]
        return name not in form.cluster.reassignments() and state.replicas == target and set(state.isr) == set(target)

    form.until(done, f"{name} is on {target}")


def test_a_move_shows_the_union_until_it_ends(form: ClusterForm) -> None:
    """[1,2] → [3,1] lists 3 as adding and 2 as removing; the snapshot tells target and origin apart."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    move = form.cluster.reassignments()[name]
    assert set(move.replicas) == {1, 2, 3}
    assert (move.adding, move.removing) == ((3,), (2,))
    states = []

    def on(*brokers: int) -> bool:
        states.append(form.cluster.snapshot())
        return set(states[-1].replicas(states[-1].index[name])) == set(brokers)

    # The controller knows it; a broker that is asked may not have heard of it yet, here and at the end.
    form.until(lambda: on(1, 2, 3), "the union shows")
    state = states[-1]
    row = state.index[name]
    assert state.target(row) == (3, 1)
    assert set(state.settled_replicas(row)) == {1, 2}
    assert state.moving[row]
    finish(form, name, (3, 1))
    form.until(lambda: on(3, 1), "the union is gone")
    after = states[-1]
    row = after.index[name]
    assert after.replicas(row) == after.target(row) == (3, 1)
    assert not after.moving[row]


def test_a_copy_in_the_making_is_behind_and_log_dirs_do_not_say_so(form: ClusterForm) -> None:
    """DescribeLogDirs answers 0 for a new replica that crawls; its own log end tells how far it is."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    form.until(lambda: name in form.cluster.log_dirs([3])[3].replicas, "broker 3 has begun")
    (copy,) = form.cluster.log_dirs([3])[3].replicas[name]
    told = []

    def ends_told() -> bool:
        told.append({b: ends[name] for b, ends in form.cluster.log_ends({1: [name], 3: [name]}).items()})
        return told[-1].keys() == {1, 3}

    form.until(ends_told, "both tell their ends")
    assert copy.offset_lag == 0
    assert told[-1][3] < told[-1][1]
    finish(form, name, (3, 1))
    form.until(
        lambda: len({e[name] for e in form.cluster.log_ends({1: [name], 3: [name]}).values()}) == 1,
        "both ends are the same",
    )


def test_the_leader_epoch_goes_up_although_the_leader_stays(form: ClusterForm) -> None:
    """ZooKeeper's controller counts up when the move begins, all of them when replicas go."""
    name = filled(form, (1, 2))
    before = form.cluster.epochs([name])[name].leader
    start(form, name, (1, 3))
    form.until(lambda: len(form.cluster.partitions([name])[name].replicas) == 3, "the union shows")
    assert (form.cluster.epochs([name])[name].leader > before) == form.has_zookeeper
    finish(form, name, (1, 3))
    assert form.cluster.partitions([name])[name].leader == 1
    form.until(lambda: form.cluster.epochs([name])[name].leader > before, "the epoch has gone up")


def test_a_leader_outside_the_target_hands_over(form: ClusterForm) -> None:
    """When the move ends, the leader is one of the new replicas."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    form.hands.produce(name, MEBIBYTE)
    start(form, name, (3, 2))
    finish(form, name, (3, 2))
    form.until(lambda: form.cluster.partitions([name])[name].leader in {2, 3}, "a new replica leads")


def test_a_replica_list_change_is_done_at_once_and_free(form: ClusterForm) -> None:
    """The same brokers in another order never show up as a move; an election then makes the new first one lead."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    start(form, name, (2, 1))
    assert name not in form.cluster.reassignments()
    form.until(lambda: form.cluster.partitions([name])[name].replicas == (2, 1), "the order is new")
    assert form.cluster.elect_leaders([name]) == {name: OK}
    form.until(lambda: form.cluster.partitions([name])[name].leader == 2, "broker 2 leads")


def test_an_election_that_is_not_needed_counts_as_done(form: ClusterForm) -> None:
    """The preferred leader already leads: ok.  A partition that does not exist: not ok, and named so."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    missing = TopicPartition(name.topic, 9)
    outcomes = form.cluster.elect_leaders([name, missing])
    assert outcomes[name] == OK
    assert outcomes[missing].code == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_cancelled_move_leaves_the_replicas_it_had(form: ClusterForm) -> None:
    """The added replica goes; the old ones stay, though perhaps in another order."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    assert form.cluster.alter_reassignments({name: None}) == {name: OK}

    def settled() -> bool:
        return name not in form.cluster.reassignments() and set(form.cluster.partitions([name])[name].replicas) == {
            1,
            2,
        }

    form.until(settled, "the move is gone")
    hold(form, name.topic, release=True)


def test_there_is_nothing_to_cancel(form: ClusterForm) -> None:
    """Cancelling where nothing moves is answered with Kafka's own error."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    (outcome,) = form.cluster.alter_reassignments({name: None}).values()
    assert outcome.code == "NO_REASSIGNMENT_IN_PROGRESS"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ((), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 1), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, -2), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 99), "INVALID_REPLICA_ASSIGNMENT"),
    ],
    ids=["empty", "duplicate", "negative", "unknown broker"],
)
def test_an_impossible_target_is_refused(form: ClusterForm, target: tuple[int, ...], code: str) -> None:
    """The controller says no to this partition and nothing changes."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    (outcome,) = form.cluster.alter_reassignments({name: target}).values()
    assert not outcome.ok
    assert outcome.code == code
    assert form.cluster.partitions([name])[name].replicas == (1, 2)


def test_one_request_can_partly_succeed(form: ClusterForm) -> None:
    """Each partition has its own outcome: the good ones start, the missing ones are named."""
    topic = form.topic({0: (1, 2), 1: (2, 3)})
    good, beyond, elsewhere = TopicPartition(topic, 0), TopicPartition(topic, 9), TopicPartition(f"{topic}-no", 0)
    outcomes = form.cluster.alter_reassignments({good: (2, 3), beyond: (1, 2), elsewhere: (1, 2)})
    assert outcomes[good] == OK
    assert outcomes[beyond].code == outcomes[elsewhere].code == "UNKNOWN_TOPIC_OR_PARTITION"
    finish(form, good, (2, 3))


def test_a_replica_count_changes_only_when_asked_for(form: ClusterForm) -> None:
    """Two replicas do not become three by accident; told to, they do."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    (outcome,) = form.cluster.alter_reassignments({name: (1, 2, 3)}).values()
    assert outcome.code == "INVALID_REPLICATION_FACTOR"
    start(form, name, (1, 2, 3), allow=True)
    finish(form, name, (1, 2, 3))


def test_the_union_taken_for_an_assignment_is_refused(form: ClusterForm) -> None:
    """A tool that reads the replica list in mid-move and writes it back would raise the count: it is stopped."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    form.until(lambda: len(form.cluster.partitions([name])[name].replicas) == 3, "the union shows")
    union = form.cluster.partitions([name])[name].replicas
    (outcome,) = form.cluster.alter_reassignments({name: union}).values()
    assert outcome.code == "INVALID_REPLICATION_FACTOR"
    finish(form, name, (3, 1))


def test_a_count_that_is_changing_is_the_one_to_come(form: ClusterForm) -> None:
    """While two replicas become three, the two of before would change the count."""
    name = filled(form, (1, 2))
    start(form, name, (1, 2, 3), allow=True)
    form.until(lambda: len(form.cluster.partitions([name])[name].replicas) == 3, "the union shows")
    (outcome,) = form.cluster.alter_reassignments({name: (2, 1)}).values()
    assert (outcome.code, outcome.message) == (
        "INVALID_REPLICATION_FACTOR",
        "The replication factor is changed from 3 to 2",
    )
    finish(form, name, (1, 2, 3))


def test_a_second_move_replaces_the_first(form: ClusterForm) -> None:
    """Submitting another target overrides a move in flight."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    start(form, name, (3, 2))
    finish(form, name, (3, 2))


def test_going_back_needs_a_cancel(form: ClusterForm) -> None:
    """The old list submitted as a target: ZooKeeper and KRaft 3.9 end the move, KRaft 4.3 leaves it hanging until a cancel."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    start(form, name, (1, 2))

    def target() -> tuple[int, ...]:
        state = form.cluster.snapshot(log_dirs=False, configs=False)
        return tuple(state.target(state.index[name]))

    # The controller has ended it; a broker that is asked may not have heard of that yet.
    form.until(lambda: target() == (1, 2), "the old list is the target")
    hangs = form.name in {"kraft", "sim"}
    if not hangs:
        form.until(lambda: name not in form.cluster.reassignments(), "the move ends by itself")
    (outcome,) = form.cluster.alter_reassignments({name: None}).values()
    assert outcome.code == ("" if hangs else "NO_REASSIGNMENT_IN_PROGRESS")
    hold(form, name.topic, release=True)
    form.until(lambda: name not in form.cluster.reassignments(), "the move is gone")
    form.until(
        lambda: set(form.cluster.partitions([name])[name].replicas) == {1, 2}, "the old replicas are all there is"
    )


def test_a_deleted_topic_takes_its_move_along(form: ClusterForm) -> None:
    """A topic that another user deletes in mid-move disappears from the moves and from the snapshot."""
    name = filled(form, (1, 2))
    start(form, name, (3, 1))
    hold(form, name.topic, release=True)
    form.hands.delete_topic(name.topic)
    form.until(lambda: name not in form.cluster.reassignments(), "the move is gone")
    form.until(lambda: not form.cluster.partitions([name]), "the topic is gone")
    # The whole picture may come from another broker.
    form.until(lambda: name not in form.cluster.snapshot().index, "the topic is gone from the snapshot")


def test_a_topic_is_created_once_as_told(form: ClusterForm) -> None:
    """The assignment is taken as given; the same name again is refused."""
    topic = form.topic({0: (3, 1), 1: (2, 3)})
    assert form.cluster.partitions([TopicPartition(topic, 1)])[TopicPartition(topic, 1)].replicas == (2, 3)
    with pytest.raises(Refused, match=topic):
        form.cluster.create_topic(topic, {0: (1, 2)})


def test_a_topic_grows_as_told(form: ClusterForm) -> None:
    """New partitions lie where the assignment puts them; the old ones stay."""
    topic = form.topic({0: (1, 2)})
    form.cluster.create_partitions(topic, 3, {1: (3, 1), 2: (2, 3)})
    names = [TopicPartition(topic, p) for p in range(3)]
    wanted = {names[0]: (1, 2), names[1]: (3, 1), names[2]: (2, 3)}

    def grown() -> bool:
        return {n: s.replicas for n, s in form.cluster.partitions(names).items()} == wanted

    form.until(grown, "three partitions lie as told")


def test_a_replica_moves_to_the_brokers_other_log_dir(form: ClusterForm) -> None:
    """The copy turns up in the other dir and leaves the first; a dir that does not exist is refused."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    form.hands.produce(name, MEBIBYTE)
    logs = form.cluster.log_dirs([1])[1]
    here = logs.replicas[name][0].log_dir
    there = next(d.path for d in logs.dirs if d.path != here)
    assert form.cluster.alter_log_dirs({(name, 1): there}) == {(name, 1): OK}
    form.until(
        lambda: [c.log_dir for c in form.cluster.log_dirs([1])[1].replicas.get(name, ())] == [there],
        "the copy is in the other dir",
    )
    (outcome,) = form.cluster.alter_log_dirs({(name, 1): "/no/such/dir"}).values()
    assert outcome.code == "LOG_DIR_NOT_FOUND"


def test_a_move_onto_a_down_broker_never_arrives(broken: ClusterForm) -> None:
    """ZooKeeper controllers refuse it; KRaft takes it, nothing arrives, and it can be cancelled."""
    name = TopicPartition(broken.topic({0: (1, 2)}), 0)
    broken.hands.kill(3)
    broken.until(lambda: 3 not in broken.cluster.snapshot(log_dirs=False).alive, "broker 3 counts as down")
    if "zookeeper" in broken.cluster.snapshot(log_dirs=False).api:
        (outcome,) = broken.cluster.alter_reassignments({name: (1, 3)}).values()
        assert outcome.code == "INVALID_REPLICA_ASSIGNMENT"
        return
    start(broken, name, (1, 3))
    assert broken.cluster.reassignments()[name].adding == (3,)
    assert broken.cluster.alter_reassignments({name: None}) == {name: OK}
    broken.until(lambda: name not in broken.cluster.reassignments(), "the move is gone")
