"""What every cluster tells of itself, and how it tells what it does not know."""

from __future__ import annotations

import numpy as np
from tests.contract.cluster_forms import ClusterForm

from ballast.core.cluster import UNKNOWN, ClusterState, TopicPartition
from ballast.ports.cluster import ConfigResource

MEBIBYTE = 1 << 20


def test_brokers_have_ids_racks_and_log_dirs(form: ClusterForm) -> None:
    """A snapshot names every broker with its rack, its log dirs and their space."""
    state = form.cluster.snapshot()
    assert [b.id for b in state.brokers] == list(form.brokers)
    assert len({b.rack for b in state.brokers}) == 3
    assert all(b.alive and b.log_dirs_known and len(b.log_dirs) == 2 for b in state.brokers)
    assert not state.gaps
    assert ("reassign" in state.api) != form.old
    if form.old:
        # KIP-827 (Kafka 3.3) tells the space.
        assert all(b.capacity_bytes == b.usable_bytes == UNKNOWN for b in state.brokers)
    else:
        assert all(b.capacity_bytes > 0 and b.usable_bytes >= 0 for b in state.brokers)


def test_cluster_and_topics_have_their_ids(form: ClusterForm) -> None:
    """The cluster's id is always told, a topic's from Kafka 2.8 on; of the same cluster both stay the same."""
    topic = form.topic({0: (1, 2)})
    first, second = form.cluster.snapshot(log_dirs=False), form.cluster.snapshot(log_dirs=False)
    assert first.cluster_id
    assert first.cluster_id == second.cluster_id
    ids = {s.topics[s.topic_index[topic]].topic_id for s in (first, second)}
    assert len(ids) == 1
    assert (None in ids) == form.old


def test_asking_never_creates_a_topic(form: ClusterForm) -> None:
    """Neither a partition's state, nor its offsets, nor its topic's configs make a topic that is not there."""
    missing = TopicPartition(f"{form.prefix}-no", 0)
    assert form.cluster.partitions([missing]) == {}
    assert form.cluster.offsets([missing])[missing].high_watermark == UNKNOWN
    assert form.cluster.configs([ConfigResource("topic", missing.topic)]) == {}
    assert form.cluster.partitions([missing]) == {}
    assert missing.topic not in form.cluster.snapshot().topic_index


def test_partitions_come_in_order_with_their_replicas(form: ClusterForm) -> None:
    """Replica lists keep their order, the first one leads and is preferred, and everyone is in sync."""
    assignment: dict[int, tuple[int, ...]] = {0: (1, 2, 3), 1: (3, 1, 2), 2: (2, 3, 1)}
    topic = form.topic(assignment)
    state = form.cluster.snapshot()
    rows = [state.index[TopicPartition(topic, p)] for p in assignment]
    assert rows == sorted(rows)
    for row, replicas in zip(rows, assignment.values(), strict=True):
        assert state.replicas(row) == state.target(row) == state.settled_replicas(row) == replicas
        assert state.isr(row) == replicas
        assert state.partitions.leader[row] == state.preferred[row] == replicas[0]
    assert not state.moving[rows].any()


def test_sizes_follow_what_was_produced(form: ClusterForm) -> None:
    """Each replica's size on disk is known and at least what was acknowledged; the log dir it lies in is known too."""
    topic = form.topic({0: (1, 2)})
    form.hands.produce(TopicPartition(topic, 0), MEBIBYTE)

    def told() -> bool:
        state = form.cluster.snapshot()
        p = state.partitions
        run = slice(p.start[row := state.index[TopicPartition(topic, 0)]], p.start[row + 1])
        return bool(
            (p.size_bytes[run] >= MEBIBYTE * 0.9).all()
            and (p.log_dir[run] >= 0).all()
            and (p.lag[run] == UNKNOWN).all()
        )

    form.until(told, "both replicas tell their size")


def test_what_was_not_asked_for_is_unknown_and_not_zero(form: ClusterForm) -> None:
    """Without log dirs every size is unknown, and so is every broker's capacity."""
    form.topic({0: (1, 2)})
    state = form.cluster.snapshot(log_dirs=False, configs=False)
    assert (state.partitions.size_bytes == UNKNOWN).all()
    assert not any(b.log_dirs_known for b in state.brokers)
    assert all(b.capacity_bytes == UNKNOWN for b in state.brokers)


def test_partitions_that_do_not_exist_are_absent(form: ClusterForm) -> None:
    """Asking for a missing topic or a number too high is no error."""
    topic = form.topic({0: (2, 3)})
    there, beyond, elsewhere = TopicPartition(topic, 0), TopicPartition(topic, 7), TopicPartition(f"{topic}-no", 0)
    states = form.cluster.partitions([there, beyond, elsewhere])
    assert set(states) == {there}
    assert states[there].leader == 2
    assert states[there].replicas == (2, 3)
    assert set(states[there].isr) == {2, 3}


def test_offsets_are_the_leaders(form: ClusterForm) -> None:
    """The high watermark counts acknowledged records; a partition without an answer has unknown offsets."""
    topic = form.topic({0: (1, 2)})
    there, beyond = TopicPartition(topic, 0), TopicPartition(topic, 7)
    form.hands.produce(there, MEBIBYTE)
    told = []

    def leader_told() -> bool:
        told.append(form.cluster.offsets([there, beyond]))
        return UNKNOWN not in {told[-1][there].earliest, told[-1][there].high_watermark}

    # Who leads it is asked of any broker, which may not have heard of the topic yet.
    form.until(leader_told, "the leader has told its offsets")
    offsets = told[-1]
    assert offsets[there].earliest == 0
    assert offsets[there].high_watermark > 0
    assert offsets[beyond].high_watermark == UNKNOWN


def test_log_dirs_list_every_copy(form: ClusterForm) -> None:
    """Per broker: its dirs and, per partition, where the copy lies; brokers that do not exist are absent."""
    topic = form.topic({0: (1, 2)})
    name = TopicPartition(topic, 0)
    form.until(lambda: all(name in form.cluster.log_dirs([b])[b].replicas for b in (1, 2)), "the copies are on disk")
    logs = form.cluster.log_dirs([1, 2, 3, 77])
    assert set(logs) == {1, 2, 3}
    assert name not in logs[3].replicas
    (copy,) = logs[1].replicas[name]
    assert copy.log_dir in {d.path for d in logs[1].dirs}
    assert not copy.is_future


def test_configs_hold_only_what_was_set(form: ClusterForm) -> None:
    """Defaults are left out, the source is named, and what does not exist is absent."""
    topic = form.topic({0: (1, 2)}, {"min.insync.replicas": "2"})
    resource, missing = ConfigResource("topic", topic), ConfigResource("topic", f"{topic}-no")
    told = []

    def there() -> bool:
        told.append(form.cluster.configs([resource, missing]))
        return resource in told[-1]

    # Any broker is asked, and may not have heard of the topic yet.
    form.until(there, "the topic's configs are told")
    configs = told[-1]
    assert set(configs) == {resource}
    assert {k: (v.value, v.source) for k, v in configs[resource].items()} == {
        "min.insync.replicas": ("2", "DYNAMIC_TOPIC_CONFIG")
    }


def test_a_topics_min_isr_is_the_one_in_force(form: ClusterForm) -> None:
    """Set on the topic it is the topic's; otherwise it is what the brokers give it."""
    strict = form.topic({0: (1, 2)}, {"min.insync.replicas": "2"}, name="strict")
    plain = form.topic({0: (1, 2)}, name="plain")
    state = form.cluster.snapshot(log_dirs=False)
    assert state.topics[state.topic_index[strict]].min_isr == 2
    assert state.topics[state.topic_index[plain]].min_isr == 1


def test_a_down_broker_leaves_a_gap_and_no_zeros(broken: ClusterForm) -> None:
    """Its replicas stay listed, fall out of the ISR, and have unknown sizes; the gap is named."""
    topic = broken.topic({0: (3, 1), 1: (1, 3)})
    broken.hands.kill(3)
    broken.until(lambda: 3 not in broken.cluster.snapshot(log_dirs=False).alive, "broker 3 counts as down")

    def left() -> bool:
        states = broken.cluster.partitions([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        return all(s.isr == (1,) and s.leader == 1 for s in states.values())

    broken.until(left, "broker 1 leads both")
    states = []

    def out_of_sync() -> bool:
        states.append(broken.cluster.snapshot())
        return not states[-1].partitions.in_sync[states[-1].partitions.replica == 3].any()

    # Those of other tests leave their ISRs at the same death, not at the same moment.
    broken.until(out_of_sync, "no replica on broker 3 counts as in sync")
    state = states[-1]
    p = state.partitions
    on_three = p.replica == 3
    assert on_three.any()
    assert (p.size_bytes[on_three] == UNKNOWN).all()
    assert (p.size_bytes[~on_three] >= 0).all()
    down = state.broker(3)
    assert down is not None
    assert not down.alive
    assert any(g.subject == "broker 3" and g.missing == "log dirs" for g in state.gaps)


def test_log_ends_are_each_replicas_own(form: ClusterForm) -> None:
    """Every holder tells its own; a broker without the replica, and one that does not exist, tell nothing."""
    name = TopicPartition(form.topic({0: (1, 2)}), 0)
    form.hands.produce(name, MEBIBYTE)
    asked = {b: [name] for b in (1, 2, 3, 77)}

    def whole() -> bool:
        high = form.cluster.offsets([name])[name].high_watermark
        ends = [form.cluster.log_ends(asked).get(b, {}).get(name) for b in (1, 2)]
        return high > 0 and ends == [high, high]

    form.until(whole, "both replicas hold everything")
    assert name not in form.cluster.log_ends(asked).get(3, {})
    assert 77 not in form.cluster.log_ends(asked)


def test_leader_epochs_go_up_with_each_leader(broken: ClusterForm) -> None:
    """A partition whose leader dies is in a later epoch; one that does not exist has none."""
    name = TopicPartition(broken.topic({0: (3, 1)}), 0)
    missing = TopicPartition(name.topic, 9)
    before = broken.cluster.epochs([name, missing])
    assert set(before) == {name}
    broken.hands.kill(3)
    broken.until(lambda: broken.cluster.partitions([name])[name].leader == 1, "broker 1 leads")
    broken.until(
        lambda: broken.cluster.epochs([name])[name].leader > before[name].leader, "the leader epoch has gone up"
    )
    assert (before[name].controller != UNKNOWN) == broken.has_zookeeper


def test_a_frozen_follower_has_no_log_end_until_it_answers(broken: ClusterForm) -> None:
    """Frozen until it leaves the ISR, its end is unknown and not what log dirs said; back, it tells the truth."""
    name = TopicPartition(broken.topic({0: (1, 3)}), 0)
    broken.hands.produce(name, MEBIBYTE)
    asked = {1: [name], 3: [name]}
    broken.hands.pause(3)
    broken.until(lambda: broken.cluster.partitions([name])[name].isr == (1,), "broker 3 has left the ISR")
    broken.hands.produce(name, MEBIBYTE)
    ends = broken.cluster.log_ends(asked)
    assert 3 not in ends
    assert ends[1][name] > 0
    broken.hands.start(3)

    def caught_up() -> bool:
        told = broken.cluster.log_ends(asked)
        behind = told.get(1, {}).get(name, 0) - told.get(3, {}).get(name, 0)
        logs = broken.cluster.log_dirs([3])
        lies = 3 not in logs or name not in logs[3].replicas or logs[3].replicas[name][0].offset_lag == 0
        assert lies, "log dirs never tell that a current replica is behind"
        return 1 in told and 3 in told and behind == 0

    broken.until(caught_up, "broker 3 has fetched what it missed")


def test_a_frozen_broker_costs_a_bounded_wait(broken: ClusterForm) -> None:
    """While it still counts as alive no reader waits long for it, and what it should have told is a gap."""
    broken.topic({0: (3, 1), 1: (1, 3)})
    broken.cluster.snapshot()
    broken.hands.pause(3)
    states = []

    def told() -> bool:
        began = broken.clock.monotonic_s()
        states.append(broken.cluster.snapshot())
        assert broken.clock.monotonic_s() - began < 25
        frozen = states[-1].broker(3)
        assert frozen is not None
        return any(g.subject == "broker 3" for g in states[-1].gaps) and not (frozen.alive and frozen.reachable)

    # On a busy machine it may answer once more before it stands still, and one of its questions without the others.
    broken.until(told, "the frozen broker counts as down or unreachable, and its answers are missing")
    state = states[-1]
    assert all(b.reachable for b in state.brokers if b.id != 3)
    assert (state.partitions.size_bytes[state.partitions.replica == 3] == UNKNOWN).all()
    assert np.any(state.partitions.size_bytes >= 0)


def test_a_broker_that_comes_back_is_read_again(broken: ClusterForm) -> None:
    """After a restart the same connection object finds it, alive, in sync and with sizes."""
    broken.topic({0: (3, 1)})
    broken.hands.kill(3)
    broken.until(lambda: 3 not in broken.cluster.snapshot(log_dirs=False).alive, "broker 3 counts as down")
    broken.hands.start(3)

    def back() -> bool:
        state = broken.cluster.snapshot()
        on_three = state.partitions.replica == 3
        return 3 in state.alive and not state.gaps and bool(state.partitions.in_sync[on_three].all())

    broken.until(back, "broker 3 is whole again")


def test_a_failed_log_dir_takes_its_replicas_offline_and_no_others(broken: ClusterForm) -> None:
    """The broker stays, names the dir and tells no sizes of it; what lay there is led by others until the dir is back.

    Not so with the first dir, where the metadata log of KRaft lies: see the next test.
    """
    topic = broken.topic(dict.fromkeys(range(4), (3, 1)))
    names = {TopicPartition(topic, p) for p in range(4)}
    broken.until(lambda: names <= broken.cluster.log_dirs([3])[3].replicas.keys(), "broker 3 tells all of its replicas")
    logs = broken.cluster.log_dirs([3])[3]
    paths = sorted(d.path for d in logs.dirs)
    lost = {n for n in names if logs.replicas[n][0].log_dir == paths[1]}
    assert lost not in (set(), names), "the broker spreads replicas over its log dirs"
    broken.hands.fail_dir(3, 1)

    def given_up() -> bool:
        told = broken.cluster.log_dirs([3])
        return 3 in told and any(d.failed for d in told[3].dirs)

    broken.until(given_up, "broker 3 has given the log dir up")
    whole, failed = sorted(broken.cluster.log_dirs([3])[3].dirs, key=lambda d: d.path)
    assert (failed.path, failed.failed, failed.usable_bytes, whole.failed) == (paths[1], True, UNKNOWN, False)
    assert broken.old or whole.usable_bytes > 0

    def led_by_others() -> bool:
        states = broken.cluster.partitions(names)
        return all((s.leader, set(s.isr)) == ((1, {1}) if n in lost else (3, {1, 3})) for n, s in states.items())

    broken.until(led_by_others, "what lay there is led by broker 1")
    told = broken.cluster.log_dirs([3])[3].replicas
    assert lost.isdisjoint(told)
    assert names - lost <= told.keys()
    states = []

    def shown() -> bool:
        states.append(broken.cluster.snapshot())
        return {n for n in names if _offline_on(states[-1], n)} == lost

    # The whole picture may come from another broker than a partition's state.
    broken.until(shown, "what lay there is offline, and nothing else of it")
    state = states[-1]
    three = state.broker(3)
    assert three is not None
    assert three.alive
    assert three.reachable
    assert all(_offline_on(state, n) == {3} for n in lost)
    broken.hands.start(3)

    def whole_again() -> bool:
        dirs = broken.cluster.log_dirs([3])
        states = broken.cluster.partitions(names)
        return 3 in dirs and not any(d.failed for d in dirs[3].dirs) and all(len(s.isr) == 2 for s in states.values())

    broken.until(whole_again, "every replica is in sync")


def _offline_on(state: ClusterState, name: TopicPartition) -> set[int]:
    """Brokers on which a replica is offline by the metadata."""
    p, row = state.partitions, state.index[name]
    run = slice(int(p.start[row]), int(p.start[row + 1]))
    return set(p.replica[run][p.offline[run]].tolist())


def test_a_broker_of_kraft_whose_first_log_dir_fails_is_gone(broken: ClusterForm) -> None:
    """It ends, since the metadata log lies there; with ZooKeeper it stays."""
    topic = broken.topic({0: (3, 1)})
    name = TopicPartition(topic, 0)
    broken.hands.fail_dir(3, 0)

    def seen() -> bool:
        if not broken.has_zookeeper:
            return 3 not in broken.cluster.snapshot(log_dirs=False, configs=False).alive
        told = broken.cluster.log_dirs([3])
        return 3 in told and any(d.failed for d in told[3].dirs)

    broken.until(seen, "broker 3 is gone, or has given the log dir up")
    assert (3 in broken.cluster.snapshot(log_dirs=False, configs=False).alive) == broken.has_zookeeper
    broken.hands.start(3)
    broken.until(lambda: 3 in broken.cluster.partitions([name])[name].isr, "it has caught up")


def test_a_broker_that_is_shut_down_hands_its_leaderships_over(broken: ClusterForm) -> None:
    """Its partitions are led by others, and it is in sync again once it is back."""
    topic = broken.topic({0: (3, 1), 1: (3, 2)})
    names = [TopicPartition(topic, p) for p in (0, 1)]
    broken.hands.stop(3)

    def led_by_others() -> bool:
        states = broken.cluster.partitions(names)
        return [states[n].leader for n in names if n in states] == [1, 2]

    broken.until(led_by_others, "the others lead")
    broken.hands.start(3)
    broken.until(lambda: all(3 in s.isr for s in broken.cluster.partitions(names).values()), "it has caught up")
